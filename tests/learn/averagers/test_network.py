"""Training and statistics over the network: the same program in every process, and the same results."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.averages import averaged
from helpers.sequence_processes import CLIPPING, EPSILON, INTERVAL, SIZES, STEPS, agreed, begin, learned, model, parts
from inca._base.validation import InputError
from inca.learn.averagers.base import Elsewhere
from inca.learn.averagers.network import Sessions
from inca.learn.averagers.simulated import Aggregator
from inca.learn.budget import Budget
from inca.learn.statistics.moments import mean, moments
from inca.learn.statistics.records import Records
from inca.learn.training.train import Clipping, Descent, train
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.loss_check import Judge
from inca.network.node.session_setup import Setting
from inca.network.sequence.outcome_log import Chain
from inca.network.sequence.session_sequence import Asked, Course, Stopped, terms_for
from inca.network.testing.local_cluster import load
from inca.privacy.gaussian import mu_for
from inca.protocol.domain import Interval

LEAD = 6.0
SEED = "cd" * 16
WAIT = 240.0  # a busy machine takes longer, a party that hangs for ever


class World:
    """A roster and a folder per party; whatever still runs at the end is killed."""

    interval = INTERVAL

    def __init__(self, folder: Path) -> None:
        load()
        self.folder, self.roster = folder, agreed(folder, LEAD)
        self.processes: dict[int, ForkServerProcess] = {}

    def begin(self, *parties: int) -> None:
        self.processes |= {i: begin(self.folder, i, self.interval) for i in parties}

    def until(self, session: float) -> None:
        """Sleep until a session; 2.5 is in the middle between the starts of the second and the third."""
        time.sleep(max(0.0, self.roster.terms.start + (session - 1.0) * self.interval - time.time()))

    def end(self) -> list[dict[str, Any]]:
        """Wait for all, and return what each of them learned."""
        for i, process in self.processes.items():
            process.join(WAIT)
            assert process.exitcode == 0, (self.folder / str(i) / "output.txt").read_text()
        return [learned(self.folder, i) for i in self.processes]

    def report(self, i: int) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / str(i) / "course" / "course.json").read_text())
        return found


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for process in made.processes.values():
        process.kill()


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two parties learned the same; only noise may be known to different last digits."""
    exact = all(one[name] == other[name] for name in ("parameters", "skipped", "means", "epsilon"))
    return exact and one["errors"] == pytest.approx(other["errors"])


# --- real processes -------------------------------------------------------------------------------------------------


def test_a_party_that_was_killed_comes_back_and_all_have_the_same(world: World) -> None:
    world.begin(*range(len(SIZES)))
    world.until(2.1)
    world.processes[2].kill()
    world.processes[2].join()
    world.until(2.4)
    world.begin(2)
    answers = world.end()
    one = answers[0]
    assert all(alike(each, one) for each in answers)
    assert not all(one["skipped"]) and one["epsilon"] == pytest.approx(EPSILON)
    truth = np.concatenate([features for features, _ in parts()])
    # Who was there decides whose records are in it, and hardly any noise does: all means lie among the parties' own.
    assert (np.abs(np.array(one["means"])) <= np.abs(truth).max()).all()
    taken = [[row["took_part"] for row in world.report(i)["sessions"]] for i in range(len(SIZES))]
    assert all(len(each) == STEPS + 1 for each in taken)
    assert all(world.report(i)["own_epsilon"] <= EPSILON for i in range(len(SIZES)))
    assert not list((world.folder / "0" / "course").glob("*/sessions/*/journal.db")), "private, and no longer needed"


@pytest.mark.slow
def test_without_faults_it_is_the_training_of_the_simulator(world: World) -> None:
    world.begin(*range(len(SIZES)))
    answers = world.end()
    aggregator, budget = Aggregator.of("central", len(SIZES)), Budget(1e12, 1e-5)
    rng = np.random.default_rng(0)
    expected = train(model(), parts(), aggregator, budget, STEPS, rng, clipping=CLIPPING, optimiser=Descent(2.0))
    # The noise of a step is 0.004 or less in each coordinate and is multiplied by the rate: eight standard deviations.
    assert all(each == answers[0] and not any(each["skipped"]) for each in answers)
    assert np.abs(np.array(answers[0]["parameters"]) - expected.parameters).max() < 8 * 0.004 * 2.0 * math.sqrt(STEPS)
    truth = np.concatenate([features for features, _ in parts()]).mean(axis=0)
    assert (np.abs(answers[0]["means"] - truth) < 6 * np.array(answers[0]["errors"])).all()


@pytest.mark.slow
def test_all_of_them_can_be_stopped_and_started_again(world: World) -> None:
    everyone, world.interval = range(len(SIZES)), 12.0  # to load takes a busy machine some seconds
    world.begin(*everyone)
    world.until(2.4)  # two sessions have been held
    for process in world.processes.values():
        process.kill()
        process.join()
    before = [Chain(world.folder / str(i) / "course").outcomes for i in everyone]
    world.begin(*everyone)
    answers = world.end()
    after = [Chain(world.folder / str(i) / "course").outcomes for i in everyone]
    assert all(each == answers[0] for each in answers)
    assert all(then[: len(first)] == first and any(first) for first, then in zip(before, after, strict=True))


@pytest.mark.slow
def test_a_party_that_begins_late_gets_the_results_it_missed(world: World) -> None:
    world.begin(0, 1, 2, 3)
    world.until(2.2)
    world.begin(4)
    answers = world.end()
    assert all(alike(each, answers[0]) for each in answers)
    assert not world.report(4)["sessions"][0]["took_part"] and world.report(4)["sessions"][-1]["took_part"]


# --- without a network: what is on disk decides ---------------------------------------------------------------------


@pytest.fixture
def roster(tmp_path: Path) -> Roster:
    return agreed(tmp_path, lead=-1000.0)


@pytest.fixture
def sessions(tmp_path: Path, roster: Roster) -> Callable[..., Sessions]:
    def made(**options: Any) -> Sessions:
        times = {"interval": 0.4, "gathering": 0.1} | options
        return Sessions(Course(roster, Identity.read(tmp_path / "1"), tmp_path / "1" / "course", **times))

    return made


def row(*numbers: float) -> list[list[float]]:
    return [list(numbers)]


def test_outcomes_that_are_known_are_returned_without_a_session(
    tmp_path: Path, sessions: Callable[..., Sessions]
) -> None:
    chain, rng = Chain(tmp_path / "1" / "course"), np.random.default_rng(0)
    chain.settle(1, np.array([0.5, -0.5]), 0.01)
    chain.settle(2, None)
    for _ in range(2):  # a program that was stopped begins again
        again = sessions()
        first = again.average(row(1.0, 2.0), 1.0, 0.1, rng, reach=3.0)
        assert first.vector is not None and first.vector.tolist() == [0.5, -0.5] and first.noise == pytest.approx(1e-4)
        second = again.average(row(1.0), 1.0, 0.1, rng, reach=3.0)
        assert second.vector is None and second.noise == math.inf


def test_a_program_that_asks_for_something_else_is_refused(tmp_path: Path, sessions: Callable[..., Sessions]) -> None:
    Chain(tmp_path / "1" / "course").settle(1, np.array([0.5]))
    rng = np.random.default_rng(0)
    sessions().average(row(1.0), 1.0, 0.1, rng, reach=3.0)
    with pytest.raises(InputError, match=r"average 1 is asked for with .*'mu': 0.2.*but was with.*'mu': 0.1"):
        sessions().average(row(1.0), 1.0, 0.2, rng, reach=3.0)


def test_training_goes_on_from_the_outcomes_on_disk(tmp_path: Path, sessions: Callable[..., Sessions]) -> None:
    """Two steps by hand, with a step without result between them."""
    chain = Chain(tmp_path / "1" / "course")
    chain.settle(1, np.array([0.1, 0.0, 0.0]))
    chain.settle(2, None)
    chain.settle(3, np.array([0.0, 0.2, 0.0]))
    mine, budget = sessions(), Budget(1.0, 1e-5)
    held = mine.with_others(parts()[1], SIZES)
    found = train(model(), held, mine, budget, 3, np.random.default_rng(0), clipping=CLIPPING, optimiser=Descent(1.0))
    assert found.parameters.tolist() == pytest.approx([-0.1, -0.2, 0.0])
    assert [step.skipped for step in found.history] == [False, True, False]
    assert budget.epsilon_spent == pytest.approx(1.0)


def test_statistics_are_computed_from_the_outcome_as_in_a_simulation(
    tmp_path: Path, sessions: Callable[..., Sessions]
) -> None:
    """Let the outcome be what everyone's sums average to; the count of records is averaged, since parties may leave."""
    tables, box = [features for features, _ in parts()], ([-1.0] * 3, [1.0] * 3)
    found = averaged(sessions(), Records.of(tables, box), "moments")
    Chain(tmp_path / "1" / "course").settle(1, found, 1e-9)
    mine = sessions()
    held = Records.of(mine.with_others(tables[1], SIZES), box)
    answer = moments(held, mine, Budget(2.0, 1e-5), np.random.default_rng(0))
    truth = np.concatenate(tables)
    assert np.asarray(answer.mean.value) == pytest.approx(truth.mean(axis=0))
    assert np.asarray(answer.variance.value) == pytest.approx(truth.var(axis=0))


def test_a_party_without_records_takes_part(tmp_path: Path, sessions: Callable[..., Sessions]) -> None:
    unit = math.sqrt(sessions().noise(2.0, 1.0)) / (1e-6 * 0.8)  # in which the number of records is averaged
    Chain(tmp_path / "1" / "course").settle(1, np.array([0.4, 0.4, 0.8 * unit]), 1e-3)
    mine = sessions()
    held: list[Any] = mine.with_others([], [1, 0, 1, 1, 1])
    answer = mean(Records.of(held, Interval(0, 1)), mine, 1.0, np.random.default_rng(0))
    assert answer.value == pytest.approx(0.75)  # 0.4 / 0.8 on the scale from -1 to 1


def test_a_party_that_is_alone_stops_after_some_meetings(sessions: Callable[..., Sessions]) -> None:
    said: list[str] = []
    alone = sessions(interval=0.6, gathering=0.2, tell=said.append)
    with pytest.raises(Stopped, match="nobody else was there at 3 meetings"):
        alone.average(row(1.0), 1.0, 0.1, np.random.default_rng(0), reach=3.0)
    assert len(said) == 3 and "no result here, asks the others" in said[0]


def test_a_party_stays_away_if_too_much_was_given_away(tmp_path: Path, sessions: Callable[..., Sessions]) -> None:
    place = tmp_path / "1" / "course" / "0001" / "sessions" / "ab"
    place.mkdir(parents=True)
    (place / "result.json").write_text(json.dumps({"epsilon": 2.0, "reason": ""}))
    Chain(tmp_path / "1" / "course").settle(1, np.array([0.5]))
    lost, rng = mu_for(2.0, 1e-5), np.random.default_rng(0)
    for limit, allowed in ((1.01 * math.hypot(lost, 0.1), True), (0.99 * math.hypot(lost, 0.1), False)):
        mine = sessions(limit=limit)
        mine.average(row(1.0), 1.0, 0.1, rng, reach=3.0)
        assert mine.course._within_limit(2, 0.1) == allowed
    report = mine.report()
    assert report["own_epsilon"] == pytest.approx(2.0) and report["sessions"][0]["mu"] == 0.1
    (place / "result.json").write_text(json.dumps({"epsilon": None, "coalitions": 3}))  # null: infinite
    mine = sessions(limit=1e6)
    mine.average(row(1.0), 1.0, 0.1, rng, reach=3.0)
    assert not mine.course._within_limit(2, 0.1) and mine.report()["own_epsilon"] is None
    (place / "result.json").write_text(json.dumps({"epsilon": None, "coalitions": None}))  # not worked out
    assert mine.report()["own_epsilon"] == mine.report()["epsilon"] > 0.0


# --- terms of a session ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Roster:
    """Return a roster whose noise is just enough for what it promises."""
    noise = {"sigma_independent": 3.0, "sigma_cancelling": 30.0, "colluding": 0.2, "coalitions": 5, "seed": SEED}
    made = agreed(tmp_path_factory.mktemp("tight"), 100.0, **noise)
    worst = max(_planned(made, i) for i in range(len(SIZES)))
    return Roster(made.name, msgspec.structs.replace(made.terms, epsilon=worst), made.parties)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 10_000), st.floats(1e-3, 1e3), st.floats(1e-3, 10.0), st.floats(1.0, 1e4))
def test_the_loss_of_a_session_is_at_most_what_was_asked_for(
    tight: Roster, dimension: int, distance: float, mu: float, times: float
) -> None:
    asked = Asked(dimension, reach=distance * times, distance=distance, mu=mu)
    terms = terms_for(tight.terms, asked, len(SIZES))
    assert terms.sensitivity == pytest.approx(distance) and terms.dimension == dimension
    made = Roster("a session", terms, tight.parties)
    assert all(_planned(made, i) <= terms.epsilon for i in range(len(SIZES)))
    assert mu_for(terms.epsilon, terms.delta) == pytest.approx(mu, rel=1e-6)
    assert Setting(made).session.dimension == dimension  # there is a lattice for it


def _planned(roster: Roster, party: int) -> float:
    setting = Setting(roster)
    seed = bytes.fromhex(SEED)
    return Judge(roster, setting.session.topology(seed), seed).planned(party).epsilon


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"interval": 0.1}, "interval is 0.1, but more than a meeting and a gathering"),
        ({"gathering": 0.0}, "gathering is 0"),
        ({"interval": math.nan}, "interval is nan"),
        ({"limit": -1.0}, "limit is -1"),
    ],
)
def test_times_and_limits_that_make_no_sense_are_refused(
    sessions: Callable[..., Sessions], options: dict[str, float], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        sessions(**options)


def test_a_stranger_is_refused(tmp_path: Path, roster: Roster) -> None:
    with pytest.raises(InputError, match="the identity of 'nobody' is not in the roster"):
        Course(roster, Identity.create("nobody"), tmp_path)


def test_a_network_wants_one_row_and_its_reach(sessions: Callable[..., Sessions]) -> None:
    mine, rng = sessions(), np.random.default_rng(0)
    with pytest.raises(InputError, match="the number of vectors is 5, but 1, this party's own"):
        mine.average(np.ones((5, 2)), 1.0, 0.1, rng, reach=1.0)
    with pytest.raises(InputError, match="reach is not given"):
        mine.average(row(1.0), 1.0, 0.1, rng)
    with pytest.raises(InputError, match="vectors\\[0, 0\\] is nan"):
        mine.average(row(math.nan), 1.0, 0.1, rng, reach=1.0)
    with pytest.raises(InputError, match="the number of sizes is 2"):
        mine.with_others(None, [1, 2])


def test_records_elsewhere_are_only_counted() -> None:
    held: list[Any] = [Elsewhere(4), [0.5, 1.0], Elsewhere(0)]
    records = Records.of(held, Interval(0, 1), cap=3)
    assert records.sizes.tolist() == [3, 2, 0] and records.total == 5 and records.held == [1]
    with pytest.raises(InputError, match="the records of 2 parties are elsewhere"):
        records.everything()
    with pytest.raises(InputError, match="count is -1"):
        Elsewhere(-1)
    with pytest.raises(InputError, match=r"parts\[0\] is empty"):
        rng = np.random.default_rng(0)
        empty: list[Any] = [Elsewhere(0), parts()[1]]
        train(model(), empty, Aggregator.of("central", 2), Budget(1.0, 1e-5), 1, rng, clipping=Clipping(1.0))
