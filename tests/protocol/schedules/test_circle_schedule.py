"""The circle, and schedules by their names."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.strategies import generator, seeds
from inca.errors import InvalidInput
from inca.protocol.schedules import SCHEDULE_KINDS, schedule_of_kind


@given(st.integers(2, 40).flatmap(lambda n: st.tuples(st.just(n), st.integers(1, n - 1))))
def test_in_round_r_everyone_sends_to_the_rth_next_party(size: tuple[int, int]) -> None:
    n, rounds = size
    circle = inca.CircleSchedule(n, rounds)
    assert (circle.parties, circle.rounds, circle.slots, circle.share) == (n, rounds, 1, 0.5)
    for r in range(1, rounds + 1):
        step = circle.round(r)
        assert step.receivers.tolist() == [[(i + r) % n] for i in range(n)]
        assert step.receivers.dtype == np.int32 and step.share == 0.5


@pytest.mark.parametrize("n", [2, 3, 12])
def test_rounds_end_before_a_party_would_send_to_itself(n: int) -> None:
    assert inca.CircleSchedule(n, n - 1).round(n - 1).receivers[0, 0] == n - 1
    sentence = f"rounds must be below the number of parties .{n}. on a circle, where in round {n} everyone would send"
    for rounds in (n, n + 1, 5 * n):
        with pytest.raises(InvalidInput, match=f"{sentence} to itself, got {rounds}"):
            inca.CircleSchedule(n, rounds)


@pytest.mark.parametrize(
    ("n", "rounds", "sentence"),
    [
        (1, 1, "parties must be from 2 to 2147483647, got 1"),
        (0, 0, "parties must be from 2 to 2147483647, got 0"),
        (5, 0, "rounds must be at least 1, got 0"),
        (2, 2, "rounds must be below the number of parties .2."),
    ],
)
def test_too_few_parties_or_rounds_are_refused(n: int, rounds: int, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        inca.CircleSchedule(n, rounds)


def test_the_share_can_be_chosen() -> None:
    circle = inca.CircleSchedule(4, 3, share=0.75)
    assert circle.round(2).kept.tolist() == [0.25] * 4 and circle.even_share == 0.75
    with pytest.raises(InvalidInput, match=r"share must be above 0 and at most 1, got 1\.5"):
        inca.CircleSchedule(4, 3, share=1.5)


@given(st.integers(2, 12), seeds, st.floats(0.0, 0.4))
def test_a_settled_circle_gives_the_exact_mean_whoever_leaves(n: int, seed: int, rate: float) -> None:
    rng = generator(seed)
    rounds = int(rng.integers(1, n))
    presence = inca.Presence.leaving(n, rounds, rate, rng)
    circle = inca.CircleSchedule(n, rounds, share=float(rng.uniform(0.1, 1.0)))
    execution = inca.Execution(circle, inca.incremental_injection(rounds), presence)
    if not execution.published.any():
        return
    values, levels = rng.normal(size=n), inca.NoiseLevels(independent=0.0, cancelling=30.0)
    outcome = inca.simulate(execution.settled(), values, noise_levels=levels, rng=rng)
    assert outcome.estimate == pytest.approx(values[execution.published].mean(), abs=1e-9)


@pytest.mark.parametrize("name", ["run.json", "run.npz"])
def test_a_file_of_an_execution_on_a_circle_is_read_back(name: str, tmp_path: Path) -> None:
    circle = inca.CircleSchedule(5, 4)
    inca.write_execution(tmp_path / name, inca.Transcript(inca.Execution(circle, inca.incremental_injection(4))))
    schedule = inca.read_execution(tmp_path / name).execution.schedule
    assert schedule.even_share == 0.5
    for r in range(1, 5):
        assert np.array_equal(schedule.round(r).receivers, circle.round(r).receivers)


@pytest.mark.parametrize("kind", SCHEDULE_KINDS)
def test_every_kind_has_a_name(kind: str) -> None:
    schedule = schedule_of_kind(kind, 9, 4, seed=3, share=0.25)
    assert (schedule.parties, schedule.rounds, schedule.slots, schedule.even_share) == (9, 4, 1, 0.25)
    if kind == "circle":
        assert isinstance(schedule, inca.CircleSchedule)
        assert schedule.round(2).receivers.tolist() == schedule_of_kind(kind, 9, 4).round(2).receivers.tolist()
    else:
        assert type(schedule) is type(inca.random_schedule(kind, 9, 4, seed=3))
        with pytest.raises(InvalidInput, match=f"seed must be given, as a schedule of kind {kind} is drawn, got None"):
            schedule_of_kind(kind, 9, 4)


def test_a_circle_has_one_receiver_and_is_not_drawn() -> None:
    with pytest.raises(InvalidInput, match="receivers must be 1 on a circle, got 2"):
        schedule_of_kind("circle", 9, 4, 2)
    with pytest.raises(InvalidInput, match="schedule must be one of random, distinct, permutation, circle, got 'star'"):
        schedule_of_kind("star", 9, 4)
    with pytest.raises(InvalidInput, match="schedule must be one of random, distinct, permutation, got 'circle'"):
        inca.random_schedule("circle", 9, 4, seed=1)
