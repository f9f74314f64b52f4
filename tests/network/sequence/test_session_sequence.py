"""The terms of a session in a sequence, and what a sequence refuses."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers.sequence_processes import SIZES, agree
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.loss_check import LossChecker
from inca.network.node.session_setup import SessionSetup
from inca.network.sequence.session_sequence import AverageRequest, SessionSequence, terms_for
from inca.privacy.accountant import account
from inca.privacy.gaussian import epsilon_for, mu_for
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution

SEED = "cd" * 16


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Roster:
    """Return a roster whose noise is just enough for what it promises, in real numbers."""
    noise = {"sigma_independent": 3.0, "sigma_cancelling": 30.0, "colluding": 0.2, "coalitions": 5, "seed": SEED}
    roster = agree(tmp_path_factory.mktemp("tight"), 100.0, **noise)
    checker, terms = _checker(roster), roster.terms
    execution = Execution(SessionSetup(roster).session.topology(bytes.fromhex(SEED)).schedule, terms.injection)
    views = [View(execution, Adversary(coalition)) for coalition in checker.coalitions]
    mu = max(account(view, terms.noise_levels, sensitivity=terms.sensitivity).max_mu for view in views)
    worst = float(epsilon_for(mu, terms.delta, terms.rule))
    return Roster(roster.name, msgspec.structs.replace(roster.terms, epsilon=worst), roster.parties)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 10_000), st.floats(1e-3, 1e3), st.floats(1e-3, 10.0), st.floats(1.0, 1e4))
def test_the_loss_of_a_session_is_at_most_what_was_asked_for(
    tight: Roster, dimension: int, distance: float, mu: float, times: float
) -> None:
    request = AverageRequest(dimension, max_norm=distance * times, distance=distance, mu=mu)
    terms = terms_for(tight.terms, request, len(SIZES))
    assert terms.sensitivity == pytest.approx(distance) and terms.dimension == dimension
    roster = Roster("a session", terms, tight.parties)
    assert all(_planned(roster, i) <= terms.epsilon for i in range(len(SIZES)))
    assert mu_for(terms.epsilon, terms.delta) == pytest.approx(mu, rel=1e-6)
    assert SessionSetup(roster).session.dimension == dimension  # there is a lattice for it


def _planned(roster: Roster, party: int) -> float:
    return _checker(roster).planned(party).epsilon


def _checker(roster: Roster) -> LossChecker:
    seed = bytes.fromhex(SEED)
    return LossChecker(SessionSetup(roster), SessionSetup(roster).session.topology(seed), seed)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"interval": 0.1, "gathering": 0.1}, r"interval must be above two gatherings \(0.2 s\), got 0.1"),
        ({"gathering": 0.0}, "gathering must be above 0, got 0"),
        ({"interval": math.nan}, "interval must be a finite number, got nan"),
        ({"max_mu": -1.0}, "max_mu must be above 0, got -1"),
    ],
)
def test_times_and_limits_that_make_no_sense_are_refused(
    tmp_path: Path, options: dict[str, float], sentence: str
) -> None:
    roster = agree(tmp_path, lead=-1000.0)
    with pytest.raises(InvalidInput, match=sentence):
        SessionSequence(roster, Identity.read(tmp_path / "1"), tmp_path / "course", **options)  # type: ignore[arg-type]


def test_a_stranger_is_refused(tmp_path: Path) -> None:
    roster = agree(tmp_path, lead=-1000.0)
    with pytest.raises(InvalidInput, match="the identity must be one of the roster 'a sequence', got 'nobody'"):
        SessionSequence(roster, Identity.create("nobody"), tmp_path)
