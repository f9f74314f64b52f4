"""The terms of a session in a sequence, and what a sequence refuses."""

from __future__ import annotations

import math
import os
import secrets
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from helpers import documents
from helpers.examples import examples
from helpers.outcome_logs import result_of
from helpers.sequence_processes import SIZES, agree
from inca.errors import InvalidInput, OtherRoster
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.loss_check import LossChecker
from inca.network.node.node import NodeOptions
from inca.network.node.session_setup import SessionSetup
from inca.network.sequence import session_sequence
from inca.network.sequence.catch_up import CatchUp, CatchUpResult
from inca.network.sequence.outcome_log import OutcomeLog, SessionResult
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
    noise: dict[str, Any] = {"sigma_independent": 3.0, "sigma_cancelling": 30.0, "colluding": 0.2, "seed": SEED}
    roster = agree(tmp_path_factory.mktemp("tight"), 100.0, **noise)
    terms = roster.terms
    execution = Execution(SessionSetup(roster).session.topology(bytes.fromhex(SEED)).schedule, terms.injection)
    coalitions = {coalition for i in range(len(SIZES)) for coalition in map(tuple, _checker(roster, i).coalitions)}
    views = [View(execution, Adversary(coalition)) for coalition in coalitions]
    mu = max(account(view, terms.noise_levels, sensitivity=terms.sensitivity).max_mu for view in views)
    worst = float(epsilon_for(mu, terms.delta, terms.rule))
    return Roster(roster.name, msgspec.structs.replace(roster.terms, epsilon=worst), roster.parties)


@settings(parent=examples(4, 25), suppress_health_check=[HealthCheck.function_scoped_fixture])
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
    return _checker(roster, party).planned.epsilon


def _checker(roster: Roster, party: int) -> LossChecker:
    seed = bytes.fromhex(SEED)
    return LossChecker(SessionSetup(roster), seed, party)


def test_top_up_noise_scales_as_all_noise_does(tight: Roster) -> None:
    base = msgspec.structs.replace(tight.terms, sigma_together=2.0)
    terms = terms_for(base, AverageRequest(3, max_norm=4.0, distance=2.0, mu=0.1), len(SIZES))
    scale = terms.sigma_independent / base.sigma_independent
    assert scale > 1.0 and terms.sigma_together == pytest.approx(2.0 * scale, rel=1e-12)


AGREED_MU = 0.1
MORE, LESS = (float(epsilon_for(mu, 1e-5)) for mu in (0.2, 0.05))
BOOKS: dict[str, tuple[dict[str, Any], float]] = {
    "more than agreed": ({"epsilon": MORE, "all_coalitions": False}, 0.2),
    "more than agreed to any coalition": ({"epsilon": MORE, "all_coalitions": True}, 0.2),
    "more than asked for, whatever its result calls agreed": (
        {"epsilon": MORE, "all_coalitions": False, "wanted": 1000.0},
        0.2,
    ),
    "less, as far as was looked": ({"epsilon": LESS, "all_coalitions": False}, AGREED_MU),
    "less to any coalition": ({"epsilon": LESS, "all_coalitions": True}, 0.05),
    "nothing to any coalition": ({"epsilon": 0.0, "all_coalitions": True}, 0.0),
    "less, but the others went on without it": (
        {"epsilon": LESS, "all_coalitions": True, "cohort": ["party-0", "party-2", "party-3"]},
        AGREED_MU,
    ),
    "less, but perhaps the others had a result": (
        {"epsilon": LESS, "all_coalitions": True, "estimate": None},
        AGREED_MU,
    ),
    "not worked out": ({"epsilon": None, "coalitions": None, "all_coalitions": None}, AGREED_MU),
    "without bound": ({"epsilon": None, "all_coalitions": True}, math.inf),
}


@pytest.mark.parametrize("case", BOOKS)
def test_what_is_booked_is_less_than_agreed_only_if_no_coalition_learned_more(case: str, tmp_path: Path) -> None:
    changes, expected = BOOKS[case]
    everyone = [f"party-{i}" for i in range(len(SIZES))]
    agreed = float(epsilon_for(AGREED_MU, 1e-5))
    fields = {"party": "party-1", "cohort": everyone, "coalitions": 6, "wanted": agreed} | changes
    log = OutcomeLog(tmp_path / "course")
    place = log.session_folder(1) / "sessions" / "ab"
    place.mkdir(parents=True)
    documents.result(**fields).write(place / "result.json")
    log.append(1, result_of(np.array([0.5])))
    sequence = SessionSequence(agree(tmp_path, lead=-1000.0), Identity.read(tmp_path / "1"), tmp_path / "course")
    outcome = sequence.average(np.array([0.1]), max_norm=1.0, distance=1.0, mu=AGREED_MU)
    assert outcome.estimate is not None and outcome.estimate.tolist() == [0.5]
    (booked,) = sequence.report()["sessions"]
    assert booked["mu"] == AGREED_MU and booked["took_part"]
    assert (math.inf if booked["own_mu"] is None else booked["own_mu"]) == pytest.approx(expected, rel=1e-6)
    # And it is what further sessions are paid from.
    limit = math.hypot(0.2, AGREED_MU) if expected == 0.2 else math.hypot(AGREED_MU, AGREED_MU)
    for mu, affordable in ((0.99 * AGREED_MU, expected < math.inf), (1.2, False)):
        sequence._max_mu = limit
        assert sequence._affordable(2, mu) is affordable


def test_what_a_killed_process_has_left_is_shredded_once_the_outcome_is_known(tmp_path: Path) -> None:
    """Its party may come back too late for the session, and learn the outcome from others."""
    log, seed = OutcomeLog(tmp_path / "course"), secrets.token_bytes(32)
    place = log.session_folder(1) / "sessions" / "ab"
    place.mkdir(parents=True)
    for name in ("journal.db", "journal.db-wal"):
        (place / name).write_bytes(b"before" + seed + b"after")
        os.link(place / name, tmp_path / name)
    log.append(1, result_of(np.array([0.5])))
    sequence = SessionSequence(agree(tmp_path, lead=-1000.0), Identity.read(tmp_path / "1"), tmp_path / "course")
    sequence.average(np.array([0.1]), max_norm=1.0, distance=1.0, mu=AGREED_MU)
    assert list(place.iterdir()) == []
    assert all(seed not in (tmp_path / name).read_bytes() for name in ("journal.db", "journal.db-wal"))


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


def test_a_program_goes_on_when_the_others_seem_to_have_another_roster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It catches up with them before the next session; nothing was sent, so it did not take part and lost nothing."""

    def differs(setup: SessionSetup, identity: Identity, folder: Path, *_: Any, **__: Any) -> None:
        folder.mkdir(parents=True)
        raise OtherRoster("this party's roster differs from those of party-0, party-2")

    sentences: list[str] = []
    roster = agree(tmp_path, lead=100.0)
    sequence = SessionSequence(roster, Identity.read(tmp_path / "1"), tmp_path / "course", notify=sentences.append)
    monkeypatch.setattr(session_sequence, "run_party", differs)
    monkeypatch.setattr(SessionSequence, "_catch_up", lambda self, number: CatchUpResult(peers={0, 2}))
    outcome = sequence.average(np.array([0.1]), max_norm=1.0, distance=1.0, mu=AGREED_MU)
    assert outcome.estimate is None and any("party-0, party-2" in sentence for sentence in sentences)
    (booked,) = sequence.report()["sessions"]
    assert not booked["took_part"] and booked["own_mu"] == 0.0


@pytest.mark.parametrize("change", [-3600.0, 3600.0])
def test_a_wall_clock_that_is_set_changes_nothing_in_a_sequence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: float
) -> None:
    """Neither does it sleep for an hour longer, nor does it think that it has missed a session."""
    slept: list[float] = []
    held: list[float] = []

    def hold(setup: SessionSetup, identity: Identity, folder: Path, _: object, options: NodeOptions, **__: Any) -> None:
        folder.mkdir(parents=True)
        assert options.clock is not None
        held.append(setup.roster.terms.start - options.clock())
        raise OtherRoster("so that it catches up with the others")

    async def catch_up(self: CatchUp, identity: Identity, until: float, access: object) -> CatchUpResult:
        slept.append(until - self._clock())
        return CatchUpResult(peers={0, 2})

    sequence = SessionSequence(
        agree(tmp_path, lead=100.0), Identity.read(tmp_path / "1"), tmp_path / "course", interval=50.0, gathering=5.0
    )
    honest = time.time
    monkeypatch.setattr(time, "time", lambda: honest() + change)
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(session_sequence, "run_party", hold)
    monkeypatch.setattr(CatchUp, "hold", catch_up)
    sequence.average(np.array([0.1]), max_norm=1.0, distance=1.0, mu=AGREED_MU)
    # It begins in 100 s; the parties catch up before the second one from 140 s to 145 s.
    assert held == pytest.approx([100.0], abs=60.0) and slept == pytest.approx([140.0, 145.0], abs=60.0)


def test_a_stranger_is_refused(tmp_path: Path) -> None:
    roster = agree(tmp_path, lead=-1000.0)
    with pytest.raises(InvalidInput, match="the identity of 'nobody' is not in the roster 'a sequence'"):
        SessionSequence(roster, Identity.create("nobody"), tmp_path)


def test_relays_for_all_are_those_of_every_session(tmp_path: Path) -> None:
    roster = replace(agree(tmp_path, lead=-1000.0), relays=("wss://relay.example.org/inca",))
    sequence = SessionSequence(roster, Identity.read(tmp_path / "1"), tmp_path / "course")
    of_a_session = sequence._roster_of(1, AverageRequest(1, 1.0, 1.0, AGREED_MU))
    assert of_a_session.addresses_of(2) == roster.addresses_of(2) and len(roster.addresses_of(2)) == 2


def test_the_next_seed_follows_from_the_beacon(tmp_path: Path) -> None:
    """The average alone could be tried out by whoever publishes last."""
    request, seeds = AverageRequest(1, 1.0, 1.0, AGREED_MU), set()
    roster = agree(tmp_path, lead=-1000.0, seed=None)
    for name, beacon in (("one", b"1" * 32), ("same", b"1" * 32), ("other", b"2" * 32)):
        OutcomeLog(tmp_path / name).append(1, SessionResult(np.array([0.5]), None, beacon))
        sequence = SessionSequence(roster, Identity.read(tmp_path / "1"), tmp_path / name)
        seeds.add(sequence._roster_of(2, request).terms.seed)
    assert len(seeds) == 2 and None not in seeds
