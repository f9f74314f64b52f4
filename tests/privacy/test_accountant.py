"""The two methods against Lemma 2's minimum, each other, textbook cases and all that must be monotone."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import inca
from helpers import reference
from helpers.executions import fates, offers, present_flags
from helpers.strategies import executions, generator, interrupted, seeds
from helpers.views import adversary_of, incremental_ones, plain_system
from inca._base.types import Array
from inca.privacy.accountant import compose

levels = st.floats(0.05, 50)


def losses_of(view: inca.View, independent: float, cancelling: float, **options: Any) -> inca.Losses:
    levels = inca.NoiseLevels(independent=independent, cancelling=cancelling)
    return inca.account(view, levels, **{"sensitivity": 1.0, **options})


def shortest_imitation(view: inca.View, own: float, shared: float) -> Array:
    """Lemma 2: the shortest noise, in units of its level, that imitates x_i moved by 1, by a least-squares solver."""
    b, a = plain_system(view)
    if not len(b):
        return np.zeros(view.honest.size)
    moves = np.linalg.lstsq(np.hstack([own * b, shared * a]), b, rcond=None)[0]
    return np.asarray(np.linalg.norm(moves, axis=0))


@given(executions(largest=6), seeds, levels, levels)
def test_the_dense_method_is_lemma_2s_minimum(execution: inca.Execution, seed: int, own: float, shared: float) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    losses = losses_of(view, independent=own, cancelling=shared, method="dense")
    np.testing.assert_allclose(losses.mu, shortest_imitation(view, own, shared), rtol=1e-9, atol=1e-12)
    assert losses.method == "dense"


@given(executions(largest=8), seeds, levels, levels)
def test_both_methods_agree(execution: inca.Execution, seed: int, own: float, shared: float) -> None:
    execution = incremental_ones(execution)
    view = inca.View(execution, adversary_of(execution, seed))
    fast, plain = (
        losses_of(view, independent=own, cancelling=shared, sensitivity=2.5, method=method)
        for method in ("state-space", "dense")
    )
    np.testing.assert_allclose(fast.mu**2, plain.mu**2, rtol=1e-9, atol=1e-12)
    assert fast.method == "state-space"


Share = tuple[int, int, int]


def real_losses(
    view: inca.View, seen: set[tuple[int, int]], credited: set[Share], own: float, shared: float
) -> list[float]:
    """Lemma 2 on what really happened to every share: the protocol run by accounts, with one unknown 1 at a time."""
    execution, colluding = view.execution, view.adversary.colluding
    n, rounds = execution.parties, execution.rounds
    histories = [execution.coefficients(i) for i in range(n)]
    # What colluders hold is among the rows here, so that nothing is taken for granted about it.
    rows = sorted(seen | {(t, i) for t in range(rounds + 1) for i in colluding})

    def column(party: int, term: int | None) -> Array:
        def injected(i: int, t: int) -> float:
            c, z = histories[i]
            return float(c[t] if term is None else z[t][term]) if i == party else 0.0

        share = execution.schedule.round(1).share
        held = reference.balances(
            offers(execution), share, present_flags(execution), fates(execution), credited, injected
        )
        return np.array([held[t][i] for t, i in rows])

    if not rows:
        return [0.0] * view.honest.size
    b = np.stack([column(i, None) for i in view.honest], axis=1)
    a = np.stack([column(i, k) for i in view.honest for k in range(rounds)], axis=1)
    moves = np.linalg.lstsq(np.hstack([own * b, shared * a]), b, rcond=1e-11)[0]
    return [float(each) for each in np.linalg.norm(moves, axis=0)]


moderate = st.floats(0.5, 5)


@given(interrupted(), seeds, moderate, moderate)
def test_late_and_lost_shares_never_cost_more_than_accounted(
    execution: inca.Execution, seed: int, own: float, shared: float
) -> None:
    """The loss is that of an adversary who is told the messages whose shares were late or lost, and no real one's less.

    Lost shares may as well have been credited without their sender learning it.
    """
    assume(execution.late)
    adversary, rng = adversary_of(execution, seed), generator(seed)
    view = inca.View(execution, adversary)
    accounted = losses_of(view, independent=own, cancelling=shared).mu
    present, meant = present_flags(execution), [step.receivers.tolist() for step in execution.intended()]
    seen = set(reference.observed(meant, present, adversary.colluding, adversary.eavesdropped))
    honest = set(view.honest.tolist())
    seen |= {(t - 1, i) for t, i, j, _ in execution.undelivered if i in honest and j in adversary.colluding}
    told = seen | {(entry.round - 1, entry.sender) for entry in execution.late if entry.sender in honest}
    maybe = [(t, i, j) for t, i, j, back in execution.undelivered if back == 0 and present[t][j]]
    for credited in (set[Share](), {each for each in maybe if rng.random() < 0.5}, set(maybe)):
        np.testing.assert_allclose(accounted, real_losses(view, told, credited, own, shared), rtol=1e-8, atol=1e-9)
        assert (accounted >= np.array(real_losses(view, seen, credited, own, shared)) * (1 - 1e-8) - 1e-9).all()
    if execution.injection.mask_scales is not None:
        np.testing.assert_allclose(
            accounted,
            losses_of(view, independent=own, cancelling=shared, method="dense").mu,
            rtol=1e-8,
            atol=1e-12,
        )


def test_what_a_late_share_costs() -> None:
    """Party 1 never hears of the share, so the real loss does not depend on it; to count it as known has a price."""
    schedule = inca.ExplicitSchedule([[[-1], [2], [0]], [[1], [2], [0]]])
    in_time, late = (
        inca.View(inca.Execution(schedule, inca.incremental_injection(2), undelivered=[(1, 0, 1, back)]))
        for back in (1, 2)
    )
    final = {(2, i) for i in range(3)}
    np.testing.assert_allclose(
        losses_of(in_time, independent=1.0, cancelling=5.0).mu,
        real_losses(in_time, final, set(), 1.0, 5.0),
    )
    real, accounted = (
        real_losses(late, final, set(), 1.0, 5.0),
        losses_of(late, independent=1.0, cancelling=5.0).mu,
    )
    assert (accounted > np.array(real) * 1.0001).any() and (accounted >= np.array(real) * (1 - 1e-9)).all()


@settings(max_examples=15)
@given(st.integers(20, 70), st.integers(2, 14), st.integers(1, 4), seeds, st.floats(0.1, 100))
def test_both_methods_agree_on_larger_executions(n: int, rounds: int, k: int, seed: int, ratio: float) -> None:
    rng = generator(seed)
    kind = [inca.RandomReceivers, inca.PermutationReceivers][seed % 2]
    presence = inca.Presence.markov(n, rounds, 0.2 * rng.random(), 0.5, rng)
    injection = inca.incremental_injection(rounds, quiet=int(rng.integers(rounds)), variances=rng.random(rounds) + 0.2)
    execution = inca.Execution(kind(n, rounds, k, seed=seed), injection, presence)
    view = inca.View(
        execution, inca.Adversary.random(n, rounds, rng, colluding=0.4 * rng.random(), eavesdropped=0.4 * rng.random())
    )
    fast, plain = (
        losses_of(view, independent=2.0, cancelling=2.0 * ratio),
        losses_of(view, independent=2.0, cancelling=2.0 * ratio, method="dense"),
    )
    np.testing.assert_allclose(fast.mu**2, plain.mu**2, rtol=1e-9, atol=1e-14)


def test_one_observed_message_is_the_textbook_gaussian_mechanism() -> None:
    nobody_at_the_end = inca.Presence.explicit([[1, 1], [0, 0]])
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0]]]), inca.incremental_injection(1), nobody_at_the_end)
    losses = losses_of(
        inca.View(execution, inca.Adversary(eavesdropped=[(0, 1)])), independent=3.0, cancelling=4.0, sensitivity=10.0
    )
    share = 0.5
    assert losses.mu == pytest.approx([0.0, 10.0 * share / math.hypot(share * 3.0, 4.0)])


@given(executions(), seeds, levels, levels)
def test_every_message_observed_is_exactly_local_dp(
    execution: inca.Execution, seed: int, own: float, shared: float
) -> None:
    """For everyone who is there to the end; a leaver's last mask stays, unless the value came before any mask left."""
    everything = [(t, i) for t in range(execution.rounds + 1) for i in range(execution.parties)]
    losses = losses_of(
        inca.View(execution, inca.Adversary((), everything)), independent=own, cancelling=shared, sensitivity=7.0
    )
    stayed = execution.presence.row(execution.rounds) & (execution.total_weights != 0)
    np.testing.assert_allclose(losses.mu[stayed], 7.0 / own, rtol=1e-9)
    assert (losses.mu <= 7.0 / own * (1 + 1e-9)).all()


def test_only_final_messages_observed_tends_to_central_dp() -> None:
    n = 40
    execution = inca.Execution(inca.RandomReceivers(n, 15, seed=3), inca.incremental_injection(15))
    central = 1.0 / (2.0 * math.sqrt(n))
    excess = [
        losses_of(inca.View(execution), independent=2.0, cancelling=shared).max_mu / central - 1
        for shared in (2.0, 20.0, 200.0, 2e3)
    ]
    assert all(later < earlier / 50 for earlier, later in pairwise(excess[1:]))
    assert 0 < excess[-1] < 1e-5


def test_one_honest_party_among_colluders_has_local_dp() -> None:
    execution = inca.Execution(inca.RandomReceivers(10, 5, seed=1), inca.incremental_injection(5))
    losses = losses_of(inca.View(execution, inca.Adversary(range(1, 10))), independent=2.0, cancelling=100.0)
    assert losses.honest.tolist() == [0]
    assert losses.mu == pytest.approx([0.5])


def test_a_cut_off_party_has_local_dp_and_the_others_do_not() -> None:
    """Party 0 sends to a colluder only and hears from nobody honest."""
    receivers = [[[5], [2], [3], [4], [1], [0]]] * 6
    execution = inca.Execution(inca.ExplicitSchedule(receivers), inca.incremental_injection(6))
    losses = losses_of(inca.View(execution, inca.Adversary([5])), independent=2.0, cancelling=50.0)
    assert losses.mu[0] == pytest.approx(0.5)
    assert losses.worst_party == 0
    assert losses.mu[1:] == pytest.approx([0.25] * 4, rel=0.01)  # four honest parties, as if only their sum were seen


@given(executions(), seeds, levels, levels)
def test_more_observations_never_lose_less(execution: inca.Execution, seed: int, own: float, shared: float) -> None:
    adversary = adversary_of(execution, seed)
    rng = generator(seed + 1)
    tap = (int(rng.integers(execution.rounds + 1)), int(rng.integers(execution.parties)))
    more = inca.Adversary(adversary.colluding, [*adversary.eavesdropped, tap])
    before, after = (
        losses_of(inca.View(execution, each), independent=own, cancelling=shared) for each in (adversary, more)
    )
    assert (after.mu >= before.mu * (1 - 1e-9)).all()


@given(executions(), seeds, levels, levels)
def test_more_colluders_never_lose_less(execution: inca.Execution, seed: int, own: float, shared: float) -> None:
    adversary = adversary_of(execution, seed)
    honest = adversary.honest(execution.parties)
    assume(honest.size > 1)
    one_more = int(honest[seed % honest.size])
    more = inca.Adversary([*adversary.colluding, one_more], adversary.eavesdropped)
    before, after = (
        losses_of(inca.View(execution, each), independent=own, cancelling=shared) for each in (adversary, more)
    )
    assert (after.mu >= before.mu[before.honest != one_more] * (1 - 1e-9)).all()


@given(executions(), seeds, levels, levels, st.floats(1, 5), st.floats(1, 5))
def test_more_noise_never_loses_more_and_scaling_changes_nothing(
    execution: inca.Execution, seed: int, own: float, shared: float, factor: float, scale: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    base = losses_of(view, independent=own, cancelling=shared, sensitivity=3.0).mu
    assert (losses_of(view, independent=factor * own, cancelling=shared, sensitivity=3.0).mu <= base * (1 + 1e-9)).all()
    assert (losses_of(view, independent=own, cancelling=factor * shared, sensitivity=3.0).mu <= base * (1 + 1e-9)).all()
    scaled = losses_of(view, independent=scale * own, cancelling=scale * shared, sensitivity=scale * 3.0).mu
    np.testing.assert_allclose(scaled, base, rtol=1e-9)
    np.testing.assert_allclose(losses_of(view, independent=own, cancelling=shared).mu * 3.0, base, rtol=1e-9)


@given(executions(largest=6), seeds, levels)
def test_without_cancelling_noise_it_is_the_limit_of_little(execution: inca.Execution, seed: int, own: float) -> None:
    """mu^2 is then a projection onto the row space of B; a vanishing level never gives less."""
    view = inca.View(execution, adversary_of(execution, seed))
    none, little = (
        losses_of(view, independent=own, cancelling=0.0),
        losses_of(view, independent=own, cancelling=own * 1e-6),
    )
    assert none.method == "dense"
    assert (none.mu >= little.mu * (1 - 1e-6)).all()
    projection = np.linalg.pinv(view.value, rcond=1e-9) @ view.value
    np.testing.assert_allclose((none.mu * own) ** 2, np.diagonal(projection), atol=1e-7)


@given(executions(largest=6), seeds, levels)
def test_without_independent_noise_the_sum_gives_everyone_away(
    execution: inca.Execution, seed: int, shared: float
) -> None:
    view = inca.View(execution, adversary_of(execution, seed))
    losses = losses_of(view, independent=0.0, cancelling=shared)
    assert (losses.mu >= losses_of(view, independent=shared * 1e-5, cancelling=shared).mu * (1 - 1e-6)).all()
    if execution.presence.row(execution.rounds)[view.honest].all():
        injects = execution.total_weights[view.honest] != 0
        assert np.isinf(losses.mu[injects]).all()


def test_without_independent_noise_a_leavers_mask_can_still_hide_a_value() -> None:
    presence = inca.Presence.explicit([[1, 1, 1], [1, 1, 1], [1, 1, 0]])
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]] * 2), inca.incremental_injection(2), presence)
    losses = losses_of(inca.View(execution), independent=0.0, cancelling=2.0)
    assert np.isfinite(losses.mu).all()
    np.testing.assert_allclose(
        losses.mu, losses_of(inca.View(execution), independent=2e-5, cancelling=2.0).mu, rtol=1e-4
    )


def test_no_noise_at_all_gives_away_whoever_is_seen() -> None:
    nobody_at_the_end = inca.Presence.explicit([[1, 1], [0, 0]])
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [0]]]), inca.incremental_injection(1), nobody_at_the_end)
    losses = losses_of(inca.View(execution, inca.Adversary(eavesdropped=[(0, 1)])), independent=0.0, cancelling=0.0)
    assert losses.mu.tolist() == [0.0, math.inf]
    assert losses.epsilon(1e-5).tolist() == [0.0, math.inf]
    assert losses.delta(1.0).tolist() == [0.0, 1.0]


def test_a_party_that_injects_nothing_in_total_makes_rows_dependent_and_is_still_exact() -> None:
    """c = (1, -1, 1, 0): a party absent in round 1 and present in round 2 = T injects 1 - 1 = 0."""
    injection = inca.Injection([1.0, -1.0, 1.0], [[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]])
    presence = inca.Presence.explicit([[1, 1, 1], [0, 1, 1], [1, 1, 1]])
    execution = inca.Execution(inca.ExplicitSchedule([[[1], [2], [0]]] * 2), injection, presence)
    assert execution.total_weights.tolist() == [0.0, 1.0, 1.0]
    everything = inca.Adversary((), [(t, i) for t in range(3) for i in range(3)])
    view = inca.View(execution, everything)
    assert np.linalg.matrix_rank(np.hstack([view.value, view.noise])) == view.shape[0] - 1
    losses = losses_of(view, independent=2.0, cancelling=3.0)
    assert losses.method == "dense"
    np.testing.assert_allclose(losses.mu, shortest_imitation(view, 2.0, 3.0), rtol=1e-9)
    with pytest.raises(inca.InvalidInput, match="so nearly dependent"):
        losses_of(view, independent=2.0, cancelling=3.0, method="state-space")


@pytest.mark.parametrize("ratio", [1e-6, 1e-3, 1e3, 1e5, 1e7])
def test_far_apart_noise_levels_stay_exact_or_are_handed_over(ratio: float) -> None:
    execution = inca.Execution(inca.RandomReceivers(12, 6, seed=5), inca.incremental_injection(6))
    view = inca.View(execution, inca.Adversary([3]))
    losses = losses_of(view, independent=2.0, cancelling=2.0 * ratio)
    np.testing.assert_allclose(losses.mu, shortest_imitation(view, 2.0, 2.0 * ratio), rtol=1e-7)


@given(st.lists(levels, min_size=1, max_size=4), seeds)
def test_composition_adds_squares_over_parties_honest_in_all(own: list[float], seed: int) -> None:
    execution = inca.Execution(inca.RandomReceivers(6, 3, seed=seed), inca.incremental_injection(3))
    several = [
        losses_of(inca.View(execution, inca.Adversary([q])), independent=level, cancelling=5.0)
        for q, level in enumerate(own)
    ]
    total = compose(*several)
    assert total.honest.tolist() == list(range(len(own), 6))
    for place, party in enumerate(total.honest):
        squares = [float(each.mu[each.honest == party][0]) ** 2 for each in several]
        assert total.mu[place] == pytest.approx(math.sqrt(sum(squares)))


def test_progress_is_told_of_every_round() -> None:
    execution = inca.Execution(inca.RandomReceivers(6, 3, seed=1), inca.incremental_injection(3))
    told: list[tuple[int, int]] = []
    losses_of(
        inca.View(execution), independent=1.0, cancelling=1.0, progress=lambda done, total: told.append((done, total))
    )
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


EXECUTION = inca.Execution(inca.RandomReceivers(6, 3, seed=1), inca.incremental_injection(3))
EARLY = inca.Execution(inca.RandomReceivers(6, 3, seed=1), inca.early_injection(3))
VIEW = inca.View(EXECUTION)
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: losses_of(VIEW, independent=-1.0, cancelling=1.0),
        "sigma_independent must be at least 0, got -1.0",
    ),
    (
        lambda: losses_of(VIEW, independent=1.0, cancelling=math.nan),
        "sigma_cancelling must be a finite number, at least 0, got nan",
    ),
    (
        lambda: losses_of(VIEW, independent=math.inf, cancelling=1.0),
        "sigma_independent must be a finite number, at least 0, got inf",
    ),
    (
        lambda: losses_of(VIEW, independent=1.0, cancelling=1.0, sensitivity=-1.0),
        "sensitivity must be at least 0, got -1.0",
    ),
    (
        lambda: losses_of(VIEW, independent=1.0, cancelling=1e13),
        "sigma_cancelling / sigma_independent must be from 1e-08 to 1e+12, where double precision suffices",
    ),
    (
        lambda: losses_of(VIEW, independent=1.0, cancelling=1.0, method="fast"),
        "method must be one of auto, dense, state-space, conjugate-gradients, got 'fast'",
    ),
    (
        lambda: losses_of(inca.View(EARLY), independent=1.0, cancelling=1.0, method="state-space"),
        "method must be dense, as state-space needs the incremental family and noise above 0, got 'state-space'",
    ),
    (
        lambda: losses_of(VIEW, independent=0.0, cancelling=1.0, method="state-space"),
        "method must be dense, as state-space needs the incremental family and noise above 0, got 'state-space'",
    ),
    (compose, "the number of losses must be at least 1, got 0"),
    (
        lambda: compose(
            *(
                losses_of(inca.View(EXECUTION, inca.Adversary(ids)), independent=1.0, cancelling=1.0)
                for ids in ([0], range(1, 6))
            )
        ),
        "the number of parties that are honest in all of the losses must be at least 1, got 0",
    ),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_bad_input_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(inca.InvalidInput) as caught:
        call()
    assert str(caught.value).startswith(message)


def test_zero_sensitivity_loses_nothing_even_without_noise() -> None:
    assert losses_of(VIEW, independent=0.0, cancelling=0.0, sensitivity=0.0).mu.tolist() == [0.0] * 6
