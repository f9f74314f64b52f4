"""A session that version 0.1 held, with one party killed in the middle: today's code reads all that it left."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.paths import FIXTURES
from inca.network.membership.identity import Identity, read_card, verify
from inca.network.membership.roster import Roster, read_roster
from inca.network.node.journal import Journal
from inca.network.node.loss_check import LossChecker
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.ledger import Ledger, Opened, Record
from inca.network.testing.replay import replay
from inca.privacy.certificate import certify
from inca.protocol.adversary import Adversary
from inca.protocol.execution_files import digest, read_execution
from inca.protocol.transcript import Transcript

SESSION = "8bb0349916f7a6f615abc257ea70f4248e388383a1bd5872d63257a070836133"
NAMES = ("anna", "ben", "cleo", "dora", "emil")
KILLED = 2
SURVIVORS = tuple(party for party in range(len(NAMES)) if party != KILLED)


class OldSession:
    """A copy of the files, private to their owner as version 0.1 left them."""

    def __init__(self, folder: Path) -> None:
        shutil.copytree(FIXTURES / "version-0.1" / "session", folder)
        self.folder = folder
        for path in [*folder.rglob("journal.db"), *folder.rglob("identity.pem")]:
            path.chmod(0o600)
        self.roster: Roster = read_roster(folder / "roster.json")
        self.setup = SessionSetup(self.roster)

    def home(self, party: int) -> Path:
        return self.folder / f"party-{party:03d}"

    def session_folder(self, party: int) -> Path:
        return self.home(party) / "sessions" / SESSION[:16]

    def fields(self, party: int, name: str) -> dict[str, Any]:
        fields: dict[str, Any] = json.loads((self.session_folder(party) / name).read_text())
        return fields

    def records(self, party: int) -> list[Record]:
        path = self.session_folder(party) / "journal.db"
        with closing(Journal(path, session=self.roster.session, party=party)) as journal:
            return journal.read()

    def ledger(self, party: int) -> Ledger:
        ledger = Ledger(self.setup.session, party)
        for record in self.records(party):
            ledger.apply(record)
        return ledger


@pytest.fixture
def session(tmp_path: Path) -> OldSession:
    return OldSession(tmp_path / "session")


def test_the_roster_the_cards_and_the_identity_are_read(session: OldSession) -> None:
    assert session.roster.session.hex() == SESSION and session.roster.names == NAMES
    assert tuple(read_card(session.home(party) / "card.json") for party in range(5)) == session.roster.parties
    anna = Identity.read(session.home(0))
    assert session.roster.index(anna.certificate) == 0
    assert verify(session.roster.parties[0].certificate, b"today", anna.sign(b"today"))


def test_ledgers_recover_from_the_journals(session: OldSession) -> None:
    ledgers = {party: session.ledger(party) for party in range(5)}
    assert len({ledger.seed for ledger in ledgers.values()}) == 1 and ledgers[0].seed is not None
    assert {party: ledger.round for party, ledger in ledgers.items()} == {0: 6, 1: 6, KILLED: 2, 3: 6, 4: 6}
    total = np.sum([ledgers[party].balance for party in SURVIVORS], axis=0)
    result = session.fields(0, "result.json")
    assert total.tolist() == [*result["total"], result["total_weight"]]


@pytest.mark.parametrize("party", SURVIVORS)
def test_the_replayed_sums_are_those_of_the_result(session: OldSession, party: int) -> None:
    transcript = read_execution(session.session_folder(party) / "execution.json")
    result = session.fields(party, "result.json")
    assert f"sha256:{digest(transcript)}" == result["execution"]
    assert (transcript.sigma_independent, transcript.sigma_cancelling) == (40.0, 90.0)
    openings = {other: record for other in range(5) for record in session.records(other) if isinstance(record, Opened)}
    last = replay(session.setup.session, transcript.execution, openings)
    sums = np.sum([last[other] for other in np.flatnonzero(transcript.execution.published)], axis=0).tolist()
    assert sums == json.loads((session.folder / "expected.json").read_text())["replayed"]
    assert sums == [*result["total"], result["total_weight"]]
    estimate = session.setup.estimate(np.array(result["total"]), result["total_weight"])
    assert estimate.tolist() == result["estimate"] and session.setup.lattice.granularity == result["granularity"]
    assert transcript.execution.weight == pytest.approx(result["weight"], rel=1e-12)


@pytest.mark.parametrize("party", SURVIVORS)
def test_the_certificate_comes_out_the_same(session: OldSession, party: int) -> None:
    terms, seed = session.roster.terms, session.ledger(party).seed
    assert seed is not None
    topology = session.setup.session.topology(seed)
    result, expected = session.fields(party, "result.json"), session.fields(party, "certificate.json")
    execution = read_execution(session.session_folder(party) / "execution.json").execution
    adversary = Adversary(tuple(result["coalition"]))
    levels = terms.noise_levels
    certificate = certify(  # without what whole numbers add: version 0.1 argued instead of adding it
        Transcript(
            execution,
            sigma_independent=levels.independent,
            sigma_cancelling=levels.cancelling,
            adversary=adversary,
        ),
        sensitivity=terms.sensitivity,
        delta=terms.delta,
        rule=terms.rule,
        intended=topology.schedule,
    ).as_dict()
    assert certificate.keys() == expected.keys()
    words = ("format", "execution", "parties", "rounds", "adversary", "rule", "honest", "route", "notion")
    assert {name: certificate[name] for name in words} == {name: expected[name] for name in words}
    for name in ("sigma_independent", "sigma_cancelling", "sensitivity", "delta", "mu", "epsilon", "total_weight"):
        assert certificate[name] == pytest.approx(expected[name], rel=1e-12)
    for name in ("worst", "full_attendance", "rank"):
        assert certificate[name] == pytest.approx(expected[name], rel=1e-12)
    own = expected["epsilon"][expected["honest"].index(party)]
    assert result["epsilon"] == pytest.approx(own, rel=1e-12)
    checker = LossChecker(session.setup, topology, seed)
    considered = [coalition for coalition in checker.coalitions if party not in coalition]
    assert (len(considered), checker.complete) == (result["coalitions"], result["all_coalitions"])
