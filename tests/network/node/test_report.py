"""What a party tells of a session: an estimate in the agreed domain, its interval, and what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.command_line import Capture
from helpers.rosters import SEED, terms
from inca._base.kernels import Flags
from inca._base.types import Array
from inca.cli.node.run import _show
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.node import SessionEnd
from inca.network.node.report import report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.finalization import Result
from inca.network.protocol.realized_execution import Contradiction, RealizedExecution
from inca.network.protocol.session import WEIGHT, Topology

NAMES = ("anna", "bert", "cleo", "dora")
CARDS = tuple(Identity.create(name).card("127.0.0.1", 7001 + i) for i, name in enumerate(NAMES))


BEACON = bytes(range(32))


def told(mean: Array, **changes: Any) -> dict[str, Any]:
    """Return the report of a session of four whose final messages have a given mean."""
    setup = SessionSetup(Roster("trial", terms(seed=SEED, **changes), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    realized = realized_of(setup, topology, np.ones(4, dtype=bool))
    return report_of(
        setup, Result(setup.lattice.encode(mean) * 4, 4 * WEIGHT, realized.cohort, realized, exact=True, beacon=BEACON)
    )


def realized_of(setup: SessionSetup, topology: Topology, cohort: Flags, **parts: Any) -> RealizedExecution:
    execution = inca.Execution(topology.schedule, setup.roster.terms.injection, cohort=cohort, **parts)
    return RealizedExecution(execution, topology, ())


def report_of(setup: SessionSetup, result: Result) -> dict[str, Any]:
    return report(setup, 0, SessionEnd(result, ""))[0]


def test_the_agreed_estimate_stays_and_is_told_in_the_domain_too() -> None:
    fields = told(np.array([-222.0]))
    assert fields["estimate"] == pytest.approx(-222.0)  # on which all parties agree: sequences go on from it
    assert (fields["constrained"], fields["confidence"]) == (0.0, 0.95)
    assert fields["interval"] == [0.0, pytest.approx(49.0, rel=1e-4)]
    assert fields["standard_error"] == 25.0
    assert fields["remarks"] == [
        "The noise took the estimate to -222, outside [0, 240]: 0 is the nearest mean there is."
    ]


def test_a_result_that_says_nothing_says_so() -> None:
    fields = told(np.array([100.0]), sigma_independent=120.0)
    assert (fields["constrained"], fields["interval"]) == (pytest.approx(100.0), [0.0, pytest.approx(217.6, abs=0.1)])
    (sentence,) = fields["remarks"]
    assert sentence.startswith("The standard error 60 is a large part of the range [0, 240]: guessing 120")


def test_vectors_have_an_interval_for_each_coordinate() -> None:
    fields = told(np.array([3.0, 4.0]), dimension=2, lower=None, upper=None, radius=1.0, sigma_independent=0.1)
    assert fields["constrained"] == pytest.approx([0.6, 0.8]) and fields["estimate"] == pytest.approx([3.0, 4.0])
    assert fields["standard_error"] == pytest.approx(0.05)  # of a coordinate, however many there are
    low, high = fields["interval"]
    assert len(low) == len(high) == 2 and max(high) <= 1.0 and min(low) >= -1.0
    assert "outside the ball of radius 1" in fields["remarks"][0]


@pytest.mark.parametrize("why", ["late after a leaver", "contradiction"])
def test_an_error_that_is_not_known_leaves_the_whole_domain(why: str) -> None:
    setup = SessionSetup(Roster("trial", terms(seed=SEED), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    cohort, late = np.array([True, True, True, why == "contradiction"]), why != "contradiction"
    realized = realized_of(setup, topology, cohort, published=cohort & [True, not late, True, True])
    published = realized.cohort - ({1} if late else set())
    total, weight = setup.lattice.encode(np.array([100.0])) * len(published), len(published) * WEIGHT
    fields = report_of(setup, Result(total, weight, published, realized, exact=late, beacon=BEACON))
    assert fields["standard_error"] is None and fields["interval"] == [0.0, 240.0]
    assert fields["remarks"][0].startswith("The error is not known")
    assert (fields["late"], fields["exact"]) == (["bert"] if late else [], late)
    assert fields["present"] == len(published) and fields["weight"] == len(published)


def test_who_settled_who_was_late_and_who_contradicts_whom_is_told_by_name(capsys: Capture) -> None:
    setup = SessionSetup(Roster("trial", terms(seed=SEED), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    execution = realized_of(setup, topology, np.ones(4, dtype=bool), published=np.arange(4) != 2).execution
    realized = RealizedExecution(execution, topology, (Contradiction(2, 3, 1, "acknowledged"),))
    fields = report_of(
        setup,
        Result(
            setup.lattice.encode(np.array([3.0])),
            3 * WEIGHT,
            frozenset((0, 1, 3)),
            realized,
            exact=False,
            beacon=BEACON,
        ),
    )
    assert fields["format"] == "inca-result/2" and not {"in_doubt", "weight_in_doubt"} & set(fields)
    assert (fields["cohort"], fields["late"], fields["present"]) == (list(NAMES), ["cleo"], 3)
    assert fields["contradictions"] == [[2, "dora", "bert", "acknowledged"]]
    _show(fields, Path("state"))
    out = capsys.readouterr().out
    assert "late         cleo settled and did not publish: their noise is left in it\n" in out
    assert "not exact    dora says that round 2 was acknowledged by bert, who says the opposite\n" in out
    assert "own loss     not worked out: this party is not in the result\n" in out


def test_without_a_result_there_is_nothing_to_remark() -> None:
    setup = SessionSetup(Roster("trial", terms(), CARDS))
    fields, certificate = report(setup, 0, SessionEnd(None, "too few were there"))
    assert fields["estimate"] is None and certificate is None
    assert not {"constrained", "interval", "remarks"} & set(fields)


def test_what_is_printed_is_in_the_domain(capsys: Capture) -> None:
    fields = told(np.array([-222.0]), sigma_independent=150.0) | {"epsilon": 1.0, "coalitions": 3}
    _show(fields, Path("state"))
    out = capsys.readouterr().out
    assert "estimate     0\ninterval     0 to 146.997   of the exact mean, with a probability of 95%\n" in out
    assert "-222, outside [0, 240]" in out and "guessing 120, the middle, would do as well." in out
    _show(told(np.array([0.5, 0.25]), dimension=2, upper=1.0) | {"epsilon": 1.0, "coalitions": 3}, Path("state"))
    assert "interval     0 to 1, 0 to 1   of the exact mean" in capsys.readouterr().out
