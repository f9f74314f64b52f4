from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.examples import cases
from helpers.hidden_messages import drawn, exact_rank, plain_messages, views
from helpers.strategies import generator, interrupted
from inca.privacy.theorems.hidden_messages import HiddenMessages
from inca.privacy.theorems.rank_by_round import first_round_met, rank_curve, rounds_to_connect
from inca.privacy.view import View
from inca.protocol.adversary import Adversary


@pytest.mark.parametrize("k", [1, 2])
def test_curve_is_the_rank_of_every_shorter_execution(k: int) -> None:
    for seed in range(cases(5, 12)):
        n, rounds = 12, 8
        view = drawn(n, rounds, k, seed)
        curve = rank_curve(view)
        met = [r for r in range(rounds + 1) if curve[r] == view.honest.size - 1]
        assert first_round_met(view) == (met[0] if met else None)
        assert curve[0] == 0 and curve.dtype == np.int32
        for r in range(1, rounds + 1):
            eavesdropped = [(t, i) for t, i in view.adversary.eavesdropped if t <= r]
            short = inca.Execution(inca.RandomReceivers(n, r, k, seed=seed), inca.incremental_injection(r))
            cut = View(short, Adversary(view.adversary.colluding, eavesdropped))
            assert curve[r] == exact_rank(list(plain_messages(cut).values()), cut.honest.size)


@given(views())
def test_curve_ends_at_the_rank_under_absence_too(view: View) -> None:
    curve, messages = rank_curve(view), plain_messages(view)
    for r in range(view.execution.rounds + 1):
        early = [column for (t, _), column in messages.items() if t < r]
        assert curve[r] == exact_rank(early, view.honest.size)
    met = np.flatnonzero(curve == view.honest.size - 1)
    assert first_round_met(view) == (int(met[0]) if met.size else None)


def test_kernel_level_function_says_the_same() -> None:
    for seed in range(40):
        view = drawn(30, 6, 1, seed, colluding=0.4)
        execution = view.execution
        receivers = np.stack([execution.sends(t).receivers[:, 0] for t in range(1, 7)])
        colluding = np.isin(np.arange(30), view.adversary.colluding)
        eavesdropped = np.zeros((6, 30), dtype=bool)
        for t, i in view.adversary.eavesdropped:
            eavesdropped[t, i] = True
        assert rounds_to_connect(receivers, colluding, eavesdropped) == first_round_met(view)
        alone = View(execution, Adversary(view.adversary.colluding))
        assert rounds_to_connect(receivers, colluding) == first_round_met(alone)


def test_kernel_level_function_refuses() -> None:
    ring, nobody = np.array([[1, 2, 0]], dtype=np.int32), np.zeros(3, dtype=bool)
    with pytest.raises(
        inca.InvalidInput, match=r"receivers must be int32 of shape \(T, n\), got 'int64 of shape \(1, 3\)'"
    ):
        rounds_to_connect(ring.astype(np.int64), nobody)
    with pytest.raises(inca.InvalidInput, match=r"colluding must be bool of shape \(3,\), got 'bool of shape \(2,\)'"):
        rounds_to_connect(ring, nobody[:2])
    with pytest.raises(inca.InvalidInput, match=r"eavesdropped must be bool of shape \(1, 3\), got 'int64"):
        rounds_to_connect(ring, nobody, np.zeros((1, 3), dtype=np.int64))
    with pytest.raises(inca.InvalidInput, match="an id in receivers must be from -1 to 2, got 3"):
        rounds_to_connect(ring + np.int32(1), nobody)


@given(interrupted(), st.integers(0, 2**32))
def test_messages_of_late_or_lost_shares_hide_nothing(execution: inca.Execution, seed: int) -> None:
    rng = generator(seed)
    view = View(execution, Adversary(rng.choice(execution.parties, 1).tolist() if rng.random() < 0.7 else ()))
    hidden = HiddenMessages.of(view)
    messages = {(int(t), int(view.honest[i])) for t, i in zip(hidden.round, hidden.sender, strict=True)}
    assert not messages & {(entry.round - 1, entry.sender) for entry in execution.late}
    ranks = [hidden.until(r).rank.hidden for r in range(execution.rounds + 1)]
    assert rank_curve(view).tolist() == ranks
    needed = view.honest.size - 1
    assert first_round_met(view) == (ranks.index(needed) if needed in ranks else None)


def test_a_share_of_nothing_hides_nothing() -> None:
    """Explicit weights may be 0: such a message moves nothing, whoever it is addressed to."""
    receivers = np.array([[[1], [2], [0]], [[1], [2], [0]]])
    for weights, curve, met in (
        ([[0.5, 0.0, 0.0], [0.0, 0.5, 0.0]], [0, 1, 2], 2),
        ([[0.5, 0.0, 0.0], [0.5, 0.0, 0.0]], [0, 1, 1], None),
        ([[0.25, 0.5, 0.0], [0.0, 0.0, 0.0]], [0, 2, 2], 1),
    ):
        schedule = inca.ExplicitSchedule(receivers, weights=np.array(weights)[:, :, np.newaxis])
        view = View(inca.Execution(schedule, inca.incremental_injection(2)))
        assert rank_curve(view).tolist() == curve
        assert first_round_met(view) == met
        assert [HiddenMessages.of(view).until(r).rank.hidden for r in range(3)] == curve
