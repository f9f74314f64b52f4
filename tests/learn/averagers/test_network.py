"""Training and statistics over the network: the same program in every process, and the same results."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from helpers import documents
from helpers.averages import averaged
from helpers.outcome_logs import result_of
from helpers.sequence_processes import CLIPPING, EPSILON, SIZES, STEPS, SequenceProcesses, agree, datasets, model
from inca.errors import InvalidInput, SequencePaused
from inca.learn.averagers.base import RemoteRecords
from inca.learn.averagers.network import NetworkAverager
from inca.learn.averagers.simulated import SimulatedAverager
from inca.learn.budget import Budget, ProtectionLevel
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.training.averaging_loop import AveragingLoop
from inca.learn.training.clipping import Clipping
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import TrainingRules, train
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.sequence.outcome_log import OutcomeLog
from inca.network.sequence.session_sequence import AverageRequest, SessionSequence, terms_for
from inca.privacy.gaussian import epsilon_for, mu_for
from inca.protocol.domain import Interval
from inca.protocol.execution import Execution
from inca.protocol.expected_error import expected_error
from inca.protocol.presence import Presence
from inca.protocol.schedules import PermutationReceivers

AGREED = float(epsilon_for(0.1, 1e-5))
EVERYONE = range(len(SIZES))


@pytest.fixture
def parties(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[SequenceProcesses]:
    """Processes that reach each other directly, or through a relay if a test asks for that."""
    processes = SequenceProcesses(tmp_path, relayed=getattr(request, "param", False))
    yield processes
    processes.stop()


def alike(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Whether two parties learned the same; only noise may be known to different last digits."""
    exact = all(one[name] == other[name] for name in ("parameters", "skipped", "means", "epsilon"))
    return exact and one["errors"] == pytest.approx(other["errors"])


# --- real processes -------------------------------------------------------------------------------------------------


@pytest.mark.slow  # 45 s: six processes, several sessions, a restart
@pytest.mark.parametrize("parties", [False, True], ids=["direct", "relayed"], indirect=True)
def test_a_party_that_was_killed_comes_back_and_all_have_the_same(parties: SequenceProcesses) -> None:
    parties.begin(*EVERYONE)
    parties.wait_for_session(2, 2)
    parties.kill(2)
    parties.wait_until(lambda: len(parties.outcomes(0)) >= 2)
    parties.begin(2)
    answers = parties.finish()
    one = answers[0]
    assert all(alike(answer, one) for answer in answers)
    assert not all(one["skipped"]) and one["epsilon"] == pytest.approx(EPSILON)
    truth = np.concatenate([features for features, _ in datasets()])
    # Who was there decides whose records are in it, and hardly any noise does: all means lie among the parties' own.
    assert (np.abs(np.array(one["means"])) <= np.abs(truth).max()).all()
    taken = [[row["took_part"] for row in parties.report(i)["sessions"]] for i in EVERYONE]
    assert all(len(sessions) == STEPS + 1 for sessions in taken)
    assert all(parties.report(i)["own_epsilon"] <= EPSILON for i in EVERYONE)
    assert not list((parties.folder / "0" / "course").glob("*/sessions/*/journal.db")), "private, and no longer needed"


@pytest.mark.slow
def test_without_faults_it_is_the_training_of_the_simulator(parties: SequenceProcesses) -> None:
    parties.begin(*EVERYONE)
    answers = parties.finish()
    averager, budget = SimulatedAverager.of("central", len(SIZES)), Budget(1e12, 1e-5)
    rng = np.random.default_rng(0)
    expected = train(model(), datasets(), averager, budget, STEPS, rng, TrainingRules(CLIPPING, optimizer=SGD(2.0)))
    # The noise of a step is 0.004 or less in each coordinate and is multiplied by the rate: eight standard deviations.
    assert all(answer == answers[0] and not any(answer["skipped"]) for answer in answers), parties.outputs()
    assert np.abs(np.array(answers[0]["parameters"]) - expected.parameters).max() < 8 * 0.004 * 2.0 * math.sqrt(STEPS)
    truth = np.concatenate([features for features, _ in datasets()]).mean(axis=0)
    assert (np.abs(answers[0]["means"] - truth) < 6 * np.array(answers[0]["errors"])).all()


@pytest.mark.slow
def test_all_of_them_can_be_stopped_and_started_again(parties: SequenceProcesses) -> None:
    parties.begin(*EVERYONE)
    parties.wait_until(lambda: all(len(parties.outcomes(i)) >= 2 for i in EVERYONE))
    parties.kill(*EVERYONE)
    before = [parties.outcomes(i) for i in EVERYONE]
    parties.begin(*EVERYONE)
    answers = parties.finish()
    after = [parties.outcomes(i) for i in EVERYONE]
    assert all(answer == answers[0] for answer in answers)
    assert all(then[: len(first)] == first and any(first) for first, then in zip(before, after, strict=True))


@pytest.mark.slow
def test_a_party_that_begins_late_gets_the_results_it_missed(parties: SequenceProcesses) -> None:
    parties.begin(0, 1, 2, 3)
    parties.wait_for_session(0, 2)
    parties.begin(4)
    answers = parties.finish()
    assert all(alike(answer, answers[0]) for answer in answers)
    assert not parties.report(4)["sessions"][0]["took_part"] and parties.report(4)["sessions"][-1]["took_part"]


# --- without a network: what is on disk decides ---------------------------------------------------------------------


@pytest.fixture
def roster(tmp_path: Path) -> Roster:
    return agree(tmp_path, lead=-1000.0)


@pytest.fixture
def averager(tmp_path: Path, roster: Roster) -> Callable[..., NetworkAverager]:
    """Return what makes an averager of party 1, as often as its program is started."""

    def start(**options: Any) -> NetworkAverager:
        times = {"interval": 0.4, "gathering": 0.1} | options
        return NetworkAverager(
            SessionSequence(roster, Identity.read(tmp_path / "1"), tmp_path / "1" / "course", **times)
        )

    return start


@pytest.fixture
def outcome_log(tmp_path: Path) -> OutcomeLog:
    """Return what party 1 knows."""
    return OutcomeLog(tmp_path / "1" / "course")


def row(*numbers: float) -> list[list[float]]:
    return [list(numbers)]


def test_outcomes_that_are_known_are_returned_without_a_session(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    rng = np.random.default_rng(0)
    outcome_log.append(1, result_of(np.array([0.5, -0.5]), 0.01))
    outcome_log.append(2, None)
    for _ in range(2):  # a program that was stopped begins again
        again = averager()
        first = again.average(row(1.0, 2.0), 1.0, 0.1, rng, max_norm=3.0)
        assert first.estimate is not None and first.estimate.tolist() == [0.5, -0.5]
        assert first.var_noise == pytest.approx(1e-4)
        second = again.average(row(1.0), 1.0, 0.1, rng, max_norm=3.0)
        assert second.estimate is None and second.var_noise == math.inf


def test_a_program_that_asks_for_something_else_is_refused(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    outcome_log.append(1, result_of(np.array([0.5])))
    rng = np.random.default_rng(0)
    averager().average(row(1.0), 1.0, 0.1, rng, max_norm=3.0)
    with pytest.raises(
        InvalidInput, match=r"average 1 must be asked for with .*'mu': 0.1.*, as before, got .*'mu': 0.2"
    ):
        averager().average(row(1.0), 1.0, 0.2, rng, max_norm=3.0)


def test_training_goes_on_from_the_outcomes_on_disk(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    """Two steps by hand, with a step without result between them."""
    outcome_log.append(1, result_of(np.array([0.1, 0.0, 0.0])))
    outcome_log.append(2, None)
    outcome_log.append(3, result_of(np.array([0.0, 0.2, 0.0])))
    mine, budget = averager(), Budget(1.0, 1e-5)
    held = mine.with_others(datasets()[1], SIZES)
    result = train(
        model(), held, mine, budget, 3, np.random.default_rng(0), TrainingRules(CLIPPING, optimizer=SGD(1.0))
    )
    assert result.parameters.tolist() == pytest.approx([-0.1, -0.2, 0.0])
    assert [step.skipped for step in result.history] == [False, True, False]
    assert budget.epsilon_spent == pytest.approx(1.0)


@pytest.mark.parametrize("level", ["party", "record"])
def test_a_loop_of_ones_own_goes_on_from_the_outcomes_on_disk(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager], level: ProtectionLevel
) -> None:
    """It asks for what `train` asks for, and a program that was stopped is given the same again."""
    outcome_log.append(1, result_of(np.array([0.1, 0.0, 0.0]), 0.02))
    outcome_log.append(2, None)
    outcome_log.append(3, result_of(np.array([0.0, 0.2, 0.0])))
    data, clipping = datasets()[1], Clipping(0.5, level)
    mine, rng = averager(), np.random.default_rng(0)
    held = mine.with_others(data, SIZES)
    train(model(), held, mine, Budget(1.0, 1e-5), 3, rng, TrainingRules(clipping, optimizer=SGD(1.0)))
    gradient = model().gradient if level == "party" else model().record_gradients
    for _ in range(2):
        loop, parameters, errors = (
            AveragingLoop(averager(), (1.0, 1e-5), 3, clipping=clipping, sizes=SIZES),
            np.zeros(3),
            [],
        )
        for _ in loop:
            mean = loop.average(gradient(parameters, *data))
            errors.append(mean.standard_error)
            if mean.estimate is not None:
                parameters = parameters - mean.estimate
        assert parameters.tolist() == pytest.approx([-0.1, -0.2, 0.0])
        assert errors[:2] == [pytest.approx(0.02), math.inf] and 0.0 < errors[2] < math.inf
        assert loop.budget.epsilon_spent == pytest.approx(1.0)


def test_statistics_are_computed_from_the_outcome_as_in_a_simulation(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    """Let the outcome be what everyone's sums average to; the count of records is averaged, since parties may leave."""
    tables, box = [features for features, _ in datasets()], ([-1.0] * 3, [1.0] * 3)
    outcome_log.append(1, result_of(averaged(averager(), Records.of(tables, box), "moments"), 1e-9))
    mine = averager()
    held = Records.of(mine.with_others(tables[1], SIZES), box)
    answer = moments(held, mine, Budget(2.0, 1e-5), np.random.default_rng(0))
    truth = np.concatenate(tables)
    assert np.asarray(answer.mean.estimate) == pytest.approx(truth.mean(axis=0))
    assert np.asarray(answer.variance.estimate) == pytest.approx(truth.var(axis=0))


def test_a_party_without_records_takes_part(outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]) -> None:
    unit = math.sqrt(averager().var_noise(2.0, 1.0)) / (1e-6 * 0.8)  # in which the number of records is averaged
    outcome_log.append(1, result_of(np.array([0.4, 0.4, 0.8 * unit]), 1e-3))
    mine = averager()
    held: list[Any] = mine.with_others([], [1, 0, 1, 1, 1])
    answer = moments(Records.of(held, Interval(0, 1)), mine, 1.0, np.random.default_rng(0))
    assert answer.mean.estimate == pytest.approx(0.75)  # 0.4 / 0.8 on the scale from -1 to 1


def test_a_party_that_is_alone_pauses_after_some_time(averager: Callable[..., NetworkAverager]) -> None:
    said: list[str] = []
    alone = averager(interval=0.6, gathering=0.2, notify=said.append)
    with pytest.raises(SequencePaused, match="others must be there to catch up with, got fewer 3 times"):
        alone.average(row(1.0), 1.0, 0.1, np.random.default_rng(0), max_norm=3.0)
    assert len(said) == 3 and "no result here, asks the others" in said[0]


def test_a_party_stays_away_if_too_much_was_given_away(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    place = outcome_log.session_folder(1) / "sessions" / "ab"
    place.mkdir(parents=True)
    documents.result(epsilon=2.0, wanted=AGREED).write(place / "result.json")
    outcome_log.append(1, result_of(np.array([0.5])))
    lost, rng = mu_for(2.0, 1e-5), np.random.default_rng(0)
    for max_mu, allowed in ((1.01 * math.hypot(lost, 0.1), True), (0.99 * math.hypot(lost, 0.1), False)):
        mine = averager(max_mu=max_mu)
        mine.average(row(1.0), 1.0, 0.1, rng, max_norm=3.0)
        assert mine.sequence._affordable(2, 0.1) == allowed
    report = mine.report()
    assert report["own_epsilon"] == pytest.approx(2.0) and report["sessions"][0]["mu"] == 0.1
    documents.result(epsilon=None, coalitions=3).write(place / "result.json")  # null: infinite
    mine = averager(max_mu=1e6)
    mine.average(row(1.0), 1.0, 0.1, rng, max_norm=3.0)
    assert not mine.sequence._affordable(2, 0.1) and mine.report()["own_epsilon"] is None
    documents.result(epsilon=None, coalitions=None).write(place / "result.json")  # not worked out
    assert mine.report()["own_epsilon"] == mine.report()["epsilon"] > 0.0


def lost_in_session_1(outcome_log: OutcomeLog, epsilon: float) -> None:
    """Let party 1 have taken part in a session that cost it more than was agreed."""
    place = outcome_log.session_folder(1) / "sessions" / "ab"
    place.mkdir(parents=True)
    documents.result(epsilon=epsilon, wanted=AGREED).write(place / "result.json")
    outcome_log.append(1, result_of(np.array([0.1, 0.0, 0.0])))


@pytest.mark.parametrize(("epsilon", "allowed"), [(0.5, True), (2.0, False)])
def test_the_budget_is_the_limit_of_a_sequence_without_one(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager], epsilon: float, allowed: bool
) -> None:
    """What was agreed is epsilon 1 for two steps; who has lost 2 in the first stays away from the second."""
    lost_in_session_1(outcome_log, epsilon)
    outcome_log.append(2, None)
    mine, budget, rng = averager(), Budget(1.0, 1e-5), np.random.default_rng(0)
    held = mine.with_others(datasets()[1], SIZES)
    result = train(model(), held, mine, budget, 2, rng, TrainingRules(CLIPPING, mu=budget.part(0.1)))
    assert mine.sequence._affordable(3, result.history[0].mu) == allowed


def test_averages_without_a_budget_are_limited_by_what_they_were_asked_for(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    lost_in_session_1(outcome_log, 2.0)
    outcome_log.append(2, None)
    for options, allowed in (({}, False), ({"max_mu": 10.0}, True)):  # a limit of the party's own stays
        mine, rng = averager(**options), np.random.default_rng(0)
        for _ in range(2):
            mine.average(row(1.0, 0.0, 0.0), 1.0, 0.1, rng, max_norm=3.0)
        assert mine.sequence._affordable(3, 0.1) == allowed


def test_where_the_noise_is_not_known_it_is_more_than_that_of_simulated_leavers(
    outcome_log: OutcomeLog, averager: Callable[..., NetworkAverager]
) -> None:
    """300 random executions with up to as many leavers as there may be, some of them after they settled, have less."""
    outcome_log.append(1, result_of(np.array([0.5])))
    mine, rng = averager(), np.random.default_rng(5)
    worst = mine.average(row(1.0), 1.0, 0.1, rng, max_norm=3.0).var_noise
    assert worst > mine.var_noise(1.0, 0.1)
    terms = terms_for(mine.sequence.roster.terms, AverageRequest(1, 3.0, 1.0, 0.1), mine.parties)
    seen = []
    for _ in range(300):
        schedule = PermutationReceivers(mine.parties, terms.rounds, seed=int(rng.integers(2**31)))
        leavers = int(rng.integers(mine.parties - terms.min_participants + 1))
        presence = Presence.leaving(mine.parties, terms.rounds, leavers / mine.parties, rng)
        cohort = presence.row(terms.rounds)
        late = rng.permutation(np.flatnonzero(cohort))[: rng.integers(cohort.sum() - terms.min_participants + 1)]
        published = cohort & ~np.isin(np.arange(mine.parties), late)
        execution = Execution(schedule, terms.injection, presence, cohort=cohort, published=published)
        noise = replace(terms.noise_levels, topup=terms.topup(mine.parties).sigma(execution.total_weights[cohort]))
        seen.append(expected_error(execution, noise).noise)
    assert max(seen) <= worst


def test_the_probability_of_failure_is_the_rosters(averager: Callable[..., NetworkAverager]) -> None:
    mine = averager()
    assert mine.failure_probability is None  # the roster does not say
    terms = msgspec.structs.replace(mine.sequence.roster.terms, failure=1e-7)
    mine.sequence.roster = Roster("a", terms, mine.sequence.roster.parties)
    assert mine.failure_probability == 1e-7


# --- bad input ------------------------------------------------------------------------------------------------------


def test_a_network_wants_one_row_and_a_bound_on_its_norm(averager: Callable[..., NetworkAverager]) -> None:
    mine, rng = averager(), np.random.default_rng(0)
    with pytest.raises(InvalidInput, match="the number of vectors must be 1, this party's own, got 5"):
        mine.average(np.ones((5, 2)), 1.0, 0.1, rng, max_norm=1.0)
    with pytest.raises(InvalidInput, match="max_norm must be a bound on the norm of every party's vector, got None"):
        mine.average(row(1.0), 1.0, 0.1, rng)
    with pytest.raises(InvalidInput, match=r"vectors\[0, 0\] must be a finite number, got nan"):
        mine.average(row(math.nan), 1.0, 0.1, rng, max_norm=1.0)
    with pytest.raises(InvalidInput, match="the number of sizes must be 5, one for each party, got 2"):
        mine.with_others(None, [1, 2])


def test_records_on_other_machines_are_only_counted() -> None:
    held: list[Any] = [RemoteRecords(4), [0.5, 1.0], RemoteRecords(0)]
    records = Records.of(held, Interval(0, 1), cap=3)
    assert records.sizes.tolist() == [3, 2, 0] and records.total == 5 and records.held == [1]
    with pytest.raises(InvalidInput, match="the records of all 3 parties must be here, got those of 1 only"):
        records.everything()
    with pytest.raises(InvalidInput, match="count must be at least 0, got -1"):
        RemoteRecords(-1)
    with pytest.raises(InvalidInput, match=r"the number of records of datasets\[0\] must be at least 1, got 0"):
        rng = np.random.default_rng(0)
        empty: list[Any] = [RemoteRecords(0), datasets()[1]]
        train(
            model(), empty, SimulatedAverager.of("central", 2), Budget(1.0, 1e-5), 1, rng, TrainingRules(Clipping(1.0))
        )
