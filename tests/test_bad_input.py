"""Whatever is handed to the Python interface is taken or refused in one sentence: no traceback of something inside."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

import inca
from helpers.rosters import terms
from inca import InvalidInput, learn, network

UNIT, LEVELS = inca.Interval(0, 1), inca.NoiseLevels(independent=1.0, cancelling=1.0)
BY_HAND = inca.ByHand(sigma_independent=1.0, sigma_cancelling=10.0)
SCHEDULE, INJECTION = inca.RandomReceivers(2, 3, seed=1), inca.incremental_injection(3)
RUN = inca.Execution(SCHEDULE, INJECTION)
FULL = inca.Transcript(RUN, sigma_independent=1.0, sigma_cancelling=1.0, adversary=inca.Adversary())
AVERAGER = learn.SimulatedAverager.of("central", 2)
RECORDS = learn.Records.of([[0.1, 0.2], [0.3, 0.4]], UNIT)
PAIRS = learn.Records.of([[[0.1, 0.2]], [[0.3, 0.4]]], UNIT)
LINE = learn.linear_regression(PAIRS, AVERAGER, 1.0, np.random.default_rng(1))
SCALED = learn.LogisticModel(2, 2)
DATA: list[Any] = [(np.zeros((2, 2)), np.array([0, 1]))] * 2


class WithoutValues:
    """What a library of tables might hand over."""

    values = None


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


NOT_NUMBERS: dict[str, Any] = {
    "None": None,
    "text": "abc",
    "bytes": b"abc",
    "a dict": {"a": 1.0},
    "a set": {1.0},
    "a generator": (number for number in (0.1, 0.2)),
    "an object": WithoutValues(),
    "a function": len,
    "a type": int,
    "objects": np.array([0.1, None]),
    "complex numbers": np.array([1j, 0.0]),
    "dates": np.array(["2026-01-01", "2026-01-02"], "M8[D]"),
    "texts": ["a", "b"],
    "booleans": np.array([True, False]),
    "rows of different lengths": [[0.1], [0.1, 0.2]],
    "NaN": [0.1, math.nan],
    "infinity": [0.1, math.inf],
    "a huge integer": [10**400, 1],
    "a mask": np.ma.array([0.1, 0.2], mask=[False, True]),
    "a hidden row": [np.ma.array([0.1], mask=[True]), [0.2]],
    "a record of fields": np.zeros(2, dtype=[("a", float)]),
    "four axes": np.zeros((2, 2, 2, 2)),
}
NOT_A_NUMBER = {
    name: NOT_NUMBERS[name]
    for name in (
        "None",
        "text",
        "bytes",
        "a dict",
        "a generator",
        "an object",
        "objects",
        "dates",
        "rows of different lengths",
    )
} | {
    "True": True,
    "NaN": math.nan,
    "a complex number": 1j,
    "a complex number of NumPy": np.complex128(1j),
    "a date": np.datetime64("2026-01-01"),
    "numbers": np.array([0.5, 0.5]),
    "one number": [0.5],
    "a huge integer": 10**400,
    "a negative number": -1,
}
NOT_A_COUNT = NOT_A_NUMBER | {"a fraction": 2.5, "infinity": math.inf}
NO_OBJECT = {name: bad for name, bad in NOT_A_COUNT.items() if name != "None"} | {"nothing": []}
NO_WORD = {name: bad for name, bad in NO_OBJECT.items() if name != "text"} | {"another word": "other"}

Call = Callable[[Any], object]

ARRAYS: dict[str, Call] = {
    "average values": lambda bad: inca.average(bad, UNIT, BY_HAND, rng=rng()),
    "Interval.validate": lambda bad: UNIT.validate(bad, clip=True),
    "Ball.validate": lambda bad: inca.Ball(1).validate(bad, clip=True),
    "simulate values": lambda bad: inca.simulate(RUN, bad, LEVELS, rng()),
    "Noise independent": lambda bad: inca.simulate(RUN, [0.1, 0.2], noise=inca.Noise(bad, np.zeros((2, 3)))),
    "Noise cancelling": lambda bad: inca.simulate(RUN, [0.1, 0.2], noise=inca.Noise(np.zeros(2), bad)),
    "mix": lambda bad: RUN.mix(1, bad),
    "Injection value": lambda bad: inca.Injection(bad, [[1.0], [-1.0]]),
    "Injection noise": lambda bad: inca.Injection([0.5, 0.5], bad),
    "Records.of data": lambda bad: learn.Records.of(bad, UNIT),
    "Records.of a party": lambda bad: learn.Records.of([bad, [0.1]], UNIT),
    "histogram edges": lambda bad: learn.histogram(RECORDS, bad, AVERAGER, 1.0, rng()),
    "distribution grid": lambda bad: learn.distribution(RECORDS, bad, AVERAGER, 1.0, rng()),
    "predict": LINE.predict,
    "averager vectors": lambda bad: AVERAGER.average(bad, 1.0, 1.0, rng()),
    "train features": lambda bad: train(datasets=[(bad, [0, 1]), DATA[0]]),
}
NUMBERS: dict[str, Call] = {
    "Interval low": lambda bad: inca.Interval(bad, -2.0),
    "Ball": inca.Ball,
    "sigma_independent": lambda bad: inca.NoiseLevels(independent=bad, cancelling=1.0),
    "mu_for epsilon": lambda bad: inca.mu_for(bad, 1e-5),
    "mu_for delta": lambda bad: inca.mu_for(1.0, bad),
    "epsilon_for delta": lambda bad: inca.epsilon_for(1.0, bad),
    "colluding": lambda bad: inca.RandomAdversary(colluding=bad),
    "leave": lambda bad: inca.Presence.markov(4, 2, bad, 0.1, rng()),
    "fraction": lambda bad: inca.Presence.leaving(4, 2, bad, rng()),
    "Requirements epsilon": lambda bad: inca.Requirements(20, bad, colluding=0.0, dropout=0.0),
    "Requirements delta": lambda bad: inca.Requirements(20, 1.0, bad, colluding=0.0, dropout=0.0),
    "Requirements failure": lambda bad: inca.Requirements(20, 1.0, failure=bad, colluding=0.0, dropout=0.0),
    "average epsilon": lambda bad: inca.average(
        [0.1] * 9, UNIT, inca.Guarantee(epsilon=bad, colluding=0.0, dropout=0.0)
    ),
    "average confidence": lambda bad: inca.average([0.1] * 9, UNIT, BY_HAND, confidence=bad),
    "average dropout": lambda bad: inca.average(
        [0.1] * 9, UNIT, inca.Guarantee(epsilon=9.0, dropout=bad, colluding=0.0)
    ),
    "account sensitivity": lambda bad: inca.account(inca.View(RUN), LEVELS, sensitivity=bad),
    "Budget epsilon": lambda bad: learn.Budget(bad, 1e-5),
    "Budget delta": lambda bad: learn.Budget(1.0, bad),
    "part": learn.Budget(1.0, 1e-5).part,
    "Clipping": learn.Clipping,
    "ridge": lambda bad: learn.linear_regression(PAIRS, AVERAGER, 1.0, rng(), ridge=bad),
    "loss": lambda bad: learn.moments(RECORDS, AVERAGER, bad, rng()),
    "level": LINE.coefficients.interval,
    "share": lambda bad: learn.quantile(RECORDS, bad, AVERAGER, 1.0, rng()),
    "averager sensitivity": lambda bad: AVERAGER.average(np.zeros((2, 1)), bad, 1.0, rng()),
    "averager mu": lambda bad: AVERAGER.average(np.zeros((2, 1)), 1.0, bad, rng()),
    "averager dropout": lambda bad: learn.SimulatedAverager.of(
        "central", 20, inca.Conditions(dropout=bad, colluding=0.0)
    ),
    "rate": lambda bad: learn.LocalSteps(1, bad),
    "SGD": lambda bad: learn.SGD(bad).begin(2),
}
COUNTS: dict[str, Call] = {
    "Requirements parties": lambda bad: inca.Requirements(bad, 1.0, colluding=0.0, dropout=0.0),
    "Requirements messages": lambda bad: inca.Requirements(20, 1.0, messages=bad, colluding=0.0, dropout=0.0),
    "Presence parties": lambda bad: inca.Presence.leaving(bad, 2, 0.2, rng()),
    "Presence rounds": lambda bad: inca.Presence.leaving(4, bad, 0.2, rng()),
    "Presence.row": lambda bad: inca.Presence.everyone(4, 2).row(bad),
    "schedule parties": lambda bad: inca.RandomReceivers(bad, 2, seed=1),
    "schedule rounds": lambda bad: inca.RandomReceivers(4, bad, seed=1),
    "schedule receivers": lambda bad: inca.RandomReceivers(4, 2, bad, seed=1),
    "circle parties": lambda bad: inca.CircleSchedule(bad, 1),
    "circle rounds": lambda bad: inca.CircleSchedule(4, bad),
    "graph rounds": lambda bad: inca.StaticGraph([[1], [0]], bad),
    "complete_graph": lambda bad: inca.complete_graph(bad, 1),
    "hypercube_graph": lambda bad: inca.hypercube_graph(bad, 1),
    "early_injection": inca.early_injection,
    "incremental_injection": inca.incremental_injection,
    "quiet": lambda bad: inca.incremental_injection(3, quiet=bad),
    "coefficients": RUN.coefficients,
    "sends": RUN.sends,
    "threads": lambda bad: inca.simulate(RUN, [0.1, 0.2], LEVELS, rng(), threads=0 if bad is None else bad),
    "dimensions": lambda bad: inca.draw_noise(RUN, LEVELS, rng(), dimensions=bad),
    "Interval.sensitivity": UNIT.sensitivity,
    "Ball.sensitivity": inca.Ball(1).sensitivity,
    "Adversary of parties": lambda bad: inca.Adversary.random(bad, 2, rng()),
    "Adversary of rounds": lambda bad: inca.Adversary.random(4, bad, rng()),
    "honest": inca.Adversary([1]).honest,
    "fractions": inca.Adversary([1]).fractions,
    "at_least parties": lambda bad: inca.Adversary([1]).at_least(inca.RandomAdversary(), bad, 2),
    "at_least rounds": lambda bad: inca.Adversary([1]).at_least(inca.RandomAdversary(), 3, bad),
    "cap": lambda bad: learn.Records.of([[0.1]], UNIT, cap=-1 if bad is None else bad),
    "column": PAIRS.column,
    "RemoteRecords": learn.RemoteRecords,
    "points": lambda bad: learn.quantile(RECORDS, 0.5, AVERAGER, 1.0, rng(), points=bad),
    "releases": lambda bad: learn.SimulatedAverager.of("central", 20, releases=bad),
    "averager parties": lambda bad: learn.SimulatedAverager.of("central", bad),
    "steps": lambda bad: train(steps=bad),
    "spend releases": lambda bad: learn.Budget(1.0, 1e-5).spend(0.01, releases=bad),
    "local count": lambda bad: learn.LocalSteps(bad, 0.1),
}
OBJECTS: dict[str, Call] = {
    "average domain": lambda bad: inca.average([0.1, 0.2], bad, BY_HAND),
    "average noise": lambda bad: inca.average([0.1, 0.2], UNIT, bad),
    "average absences": lambda bad: inca.average([0.1, 0.2], UNIT, BY_HAND, absences=bad),
    "average adversary": lambda bad: inca.average([0.1, 0.2], UNIT, BY_HAND, adversary=bad),
    "average rng": lambda bad: inca.average([0.1, 0.2], UNIT, BY_HAND, rng=bad),
    "colluding ids": lambda bad: inca.Adversary(colluding=bad),
    "eavesdropped": lambda bad: inca.Adversary(eavesdropped=bad),
    "a message": lambda bad: inca.Adversary(eavesdropped=[bad]),
    "check": inca.Adversary().check,
    "observed": inca.Adversary().observed,
    "at_least size": lambda bad: inca.Adversary().at_least(bad, 3, 2),
    "presence rng": lambda bad: inca.Presence.leaving(4, 2, 0.2, bad),
    "presence file": lambda bad: inca.Presence.from_csv(bad, 4, 2),
    "Presence.explicit": inca.Presence.explicit,
    "receivers": inca.ExplicitSchedule,
    "matrices": inca.ExplicitSchedule.from_matrices,
    "neighbours": lambda bad: inca.StaticGraph(bad, 2),
    "neighbours of one": lambda bad: inca.StaticGraph([bad, [0]], 2),
    "from_networkx": lambda bad: inca.StaticGraph.from_networkx(bad, 1),
    "adapted": INJECTION.adapted,
    "Execution schedule": lambda bad: inca.Execution(bad, INJECTION),
    "Execution injection": lambda bad: inca.Execution(SCHEDULE, bad),
    "Execution presence": lambda bad: inca.Execution(SCHEDULE, INJECTION, bad),
    "Execution published": lambda bad: inca.Execution(SCHEDULE, INJECTION, published=bad),
    "Execution cohort": lambda bad: inca.Execution(SCHEDULE, INJECTION, cohort=bad),
    "Execution undelivered": lambda bad: inca.Execution(SCHEDULE, INJECTION, undelivered=bad),
    "without_finals": RUN.without_finals,
    "settled": RUN.settled,
    "simulate execution": lambda bad: inca.simulate(bad, [0.1, 0.2], LEVELS, rng()),
    "simulate noise_levels": lambda bad: inca.simulate(RUN, [0.1, 0.2], bad, rng()),
    "simulate rng": lambda bad: inca.simulate(RUN, [0.1, 0.2], LEVELS, bad),
    "simulate noise": lambda bad: inca.simulate(RUN, [0.1, 0.2], noise=bad),
    "draw_noise": lambda bad: inca.draw_noise(bad, LEVELS, rng()),
    "expected_error execution": lambda bad: inca.expected_error(bad, LEVELS),
    "expected_error noise_levels": lambda bad: inca.expected_error(RUN, bad),
    "expected_error domain": lambda bad: inca.expected_error(RUN, LEVELS, domain=bad),
    "View execution": inca.View,
    "View adversary": lambda bad: inca.View(RUN, bad),
    "Transcript": inca.Transcript,
    "Transcript adversary": lambda bad: inca.Transcript(RUN, adversary=bad),
    "Transcript agreed": lambda bad: inca.Transcript(RUN, agreed=bad),
    "read_execution": inca.read_execution,
    "write_execution": lambda bad: inca.write_execution("unwritten.json", bad),
    "read_plan": inca.read_plan,
    "plan requirements": inca.plan,
    "plan options": lambda bad: inca.plan(inca.Requirements(20, 1.0, colluding=0.0, dropout=0.0), bad),
    "plan progress": lambda bad: inca.plan(inca.Requirements(20, 1.0, colluding=0.0, dropout=0.0), progress=bad),
    "account view": lambda bad: inca.account(bad, LEVELS, sensitivity=1.0),
    "account noise_levels": lambda bad: inca.account(inca.View(RUN), bad, sensitivity=1.0),
    "account parties": lambda bad: inca.account(inca.View(RUN), LEVELS, sensitivity=1.0, parties=bad),
    "compose": inca.compose,
    "Tradeoff": inca.Tradeoff,
    "certify": inca.certify,
    "content": inca.content,
    "verdict": inca.verdict,
    "read_study": learn.read_study,
    "read_roster": network.read_roster,
    "read_card": network.read_card,
    "Roster terms": lambda bad: network.Roster("trial", bad),
    "Roster parties": lambda bad: network.Roster("trial", terms(), (bad,)),
    "Records.of domain": lambda bad: learn.Records.of([[0.1], [0.2]], bad),
    "Records.of clip": lambda bad: learn.Records.of([[0.1]], UNIT, clip=cast(bool, "yes" if bad is True else bad)),
    "records": lambda bad: learn.moments(bad, AVERAGER, 1.0, rng()),
    "averager": lambda bad: learn.moments(RECORDS, bad, 1.0, rng()),
    "generator": lambda bad: learn.moments(RECORDS, AVERAGER, 1.0, bad),
    "covariance records": lambda bad: learn.covariance(bad, AVERAGER, 1.0, rng()),
    "regression averager": lambda bad: learn.linear_regression(PAIRS, bad, 1.0, rng()),
    "shares": lambda bad: learn.quantiles(RECORDS, bad, AVERAGER, 1.0, rng()),
    "mechanism": learn.SimulatedAverager,
    "loop averager": lambda bad: learn.AveragingLoop(bad, (1.0, 1e-5), 2, clipping=1.0),
    "loop sizes": lambda bad: learn.AveragingLoop(AVERAGER, (1.0, 1e-5), 2, clipping=1.0, sizes=bad),
    "model": lambda bad: train(model=bad),
    "datasets": lambda bad: train(datasets=bad),
    "a dataset": lambda bad: train(datasets=[bad, DATA[0]]),
    "budget": lambda bad: train(budget=bad),
    "clipping": lambda bad: train(clipping=bad),
    "optimizer": lambda bad: train(optimizer=bad),
    "local": lambda bad: train(local=bad),
}
WORDS: dict[str, Call] = {
    "rule": lambda bad: inca.mu_for(0.5, 1e-5, bad),
    "settlement": lambda bad: inca.average([0.1, 0.2], UNIT, replace(BY_HAND, settlement=bad)),
    "Terms schedule": lambda bad: terms(schedule=bad),
    "Terms rule": lambda bad: terms(rule=bad),
    "recipe": lambda bad: inca.plan(
        inca.Requirements(20, 1.0, colluding=0.0, dropout=0.0), inca.PlanOptions(recipe=bad)
    ),
    "account method": lambda bad: inca.account(inca.View(RUN), LEVELS, sensitivity=1.0, method=bad),
    "account device": lambda bad: inca.account(inca.View(RUN), LEVELS, sensitivity=1.0, device=bad),
    "basis": lambda bad: inca.certify(FULL, sensitivity=1.0, basis=bad),
    "schedule kind": lambda bad: inca.random_schedule(bad, 4, 2, seed=1),
    "graph weights": lambda bad: inca.StaticGraph([[1], [0]], 1, weights=bad),
    "record level": lambda bad: learn.Records.of([[0.1]], UNIT, level=bad),
    "target": lambda bad: LINE.coefficients.interval(0.9, bad),
    "averager kind": lambda bad: learn.SimulatedAverager.of(bad, 20),
    "clipping level": lambda bad: learn.Clipping(1.0, bad),
    "clipping weights": lambda bad: learn.Clipping(1.0, "party", bad),
    "spend level": lambda bad: learn.Budget(1.0, 1e-5).spend(0.01, level=bad),
}


def train(**changes: Any) -> object:
    arguments: dict[str, Any] = {
        "model": SCALED,
        "datasets": DATA,
        "averager": AVERAGER,
        "budget": learn.Budget(1.0, 1e-5),
        "steps": 2,
        "rng": rng(),
    }
    rules = {name: changes.pop(name) for name in list(changes) if name in ("clipping", "optimizer", "local", "penalty")}
    arguments["rules"] = learn.TrainingRules(**({"clipping": learn.Clipping(1.0)} | rules))
    return learn.train(**(arguments | changes))


def pairs() -> Iterator[tuple[str, Call, Any]]:
    kinds = (
        (ARRAYS, NOT_NUMBERS),
        (NUMBERS, NOT_A_NUMBER),
        (COUNTS, NOT_A_COUNT),
        (OBJECTS, NO_OBJECT),
        (WORDS, NO_WORD),
    )
    for calls, values in kinds:
        for (name, call), (what, bad) in itertools.product(calls.items(), values.items()):
            yield f"{name}: {what}", call, bad


TAKEN = {  # which makes sense
    "Records.of data: rows of different lengths",
    *(
        f"{ids}: {what}"
        for ids in ("colluding ids", "eavesdropped", "Execution undelivered")
        for what in ("a generator", "nothing")
    ),
    "shares: numbers",
    "shares: one number",
}


def test_whatever_is_no_argument_is_refused_in_one_sentence() -> None:
    """One test for all, as each takes microseconds; what is wrong is listed together."""
    wrong = []
    for what, call, bad in pairs():
        if what in TAKEN:
            continue
        try:
            call(bad)
        except InvalidInput as refusal:
            text = str(refusal)
            if "\n" in text or len(text) > 300 or (" must " not in text and " cannot " not in text):
                wrong.append(f"{what}: {text}")
        except Exception as error:
            wrong.append(f"{what}: {type(error).__name__}: {error}")
        else:
            wrong.append(f"{what}: was taken")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "values", [np.array([0.1, 0.2], np.float32), [np.float64(0.1), 1], (0, 1), np.array([0, 1], np.uint8)]
)
def test_numbers_of_any_kind_are_taken(values: Any) -> None:
    assert inca.simulate(RUN, values, LEVELS, rng()).estimate is not None
    assert learn.Records.of([values, values], UNIT).total == 4
