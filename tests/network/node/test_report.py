"""What a party tells of a session: an estimate in the agreed domain, its interval, and what it is worth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.command_line import Capture
from helpers.rosters import SEED, terms
from inca._base.types import Array
from inca.cli.node.run import _show
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node import report as module
from inca.network.node.node import SessionEnd
from inca.network.node.report import report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.finalization import Result
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.session import WEIGHT

NAMES = ("anna", "bert", "cleo", "dora")
CARDS = tuple(Identity.create(name).card("127.0.0.1", 7001 + i) for i, name in enumerate(NAMES))


def told(mean: Array, **changes: Any) -> dict[str, Any]:
    """Return the report of a session of four whose final messages have a given mean."""
    setup = SessionSetup(Roster("trial", terms(seed=SEED, **changes), CARDS))
    topology = setup.session.topology(bytes.fromhex(SEED))
    execution = inca.Execution(topology.schedule, setup.roster.terms.injection)
    realized = RealizedExecution(execution, (), topology, frozenset(range(4)), {}, exact=True)
    total = setup.lattice.encode(mean) * 4
    fields, _ = report(setup, 0, SessionEnd(Result(total, 4 * WEIGHT, frozenset(range(4)), realized), ""))
    return fields


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
    low, high = fields["interval"]
    assert len(low) == len(high) == 2 and max(high) <= 1.0 and min(low) >= -1.0
    assert "outside the ball of radius 1" in fields["remarks"][0]


def test_an_error_that_is_not_known_leaves_the_whole_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*arguments: object, **options: object) -> None:
        raise InvalidInput("shares came late")

    monkeypatch.setattr(module, "expected_error", unknown)
    fields = told(np.array([100.0]))
    assert fields["standard_error"] is None and fields["interval"] == [0.0, 240.0]
    assert fields["remarks"][0].startswith("The error is not known")


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
