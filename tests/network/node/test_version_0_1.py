"""A session that version 0.1 held, with one party killed in the middle: today's code reads all that is public of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.command_line import Capture, call, refused
from helpers.paths import FIXTURES
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity, read_card, verify
from inca.network.membership.roster import Roster, read_roster
from inca.network.node.journal import Journal
from inca.network.node.session_setup import SessionSetup
from inca.privacy.certificate import certify
from inca.protocol.adversary import Adversary
from inca.protocol.execution_files import digest, read_execution
from inca.protocol.transcript import Transcript

SESSION = "8bb0349916f7a6f615abc257ea70f4248e388383a1bd5872d63257a070836133"
NAMES = ("anna", "ben", "cleo", "dora", "emil")
FLIPPED = bytes.fromhex("28e69f87c258aafda0584d3adc11c8dd26e09dd1b222110c8de0a8a0a99f9bd4")  # the public seed
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


@pytest.fixture
def session(tmp_path: Path) -> OldSession:
    return OldSession(tmp_path / "session")


def test_the_roster_and_the_identity_are_read(session: OldSession) -> None:
    assert session.roster.session.hex() == SESSION and session.roster.names == NAMES
    anna = Identity.read(session.home(0))
    assert session.roster.index(anna.certificate) == 0
    assert verify(session.roster.parties[0].certificate, b"today", anna.sign(b"today"))


def test_addresses_are_said_not_to_be_signed_and_no_session_begins_with_them(
    session: OldSession, capsys: Capture, tmp_path: Path
) -> None:
    assert session.roster.unsigned == NAMES
    status, out, _ = call(capsys, "node", "roster", "show", session.folder / "roster.json")
    assert status == 1 and f"Addresses that are not signed (version 0.1): {', '.join(NAMES)}." in out
    words = ["--identity", session.home(0), "--state", tmp_path / "new"]
    sentence = refused(capsys, "node", "run", session.folder / "roster.json", *words, "--value-command", "echo 5")
    assert sentence.startswith("the addresses of all parties must be signed, got a roster of version 0.1 in which")
    assert "those of anna, ben, cleo, dora, emil are not: they run `inca node card`" in sentence
    assert not (tmp_path / "new").exists()
    status, out, _ = call(capsys, "node", "doctor", session.folder / "roster.json", *words)
    assert status == 1 and "of version 0.1: the addresses of anna, ben, cleo, dora, emil are not signed" in out
    with pytest.raises(InvalidInput, match="its address must be signed, got a card of"):
        read_card(session.home(0) / "card.json")


def test_whoever_signs_its_address_keeps_its_key_and_its_place(session: OldSession, capsys: Capture) -> None:
    old = session.roster.parties[0]
    assert call(capsys, "node", "card", "--identity", session.home(0), "--host", old.host, "--port", old.port)[0] == 0
    path = session.folder / "roster.json"
    status, out, _ = call(capsys, "node", "roster", "add", path, session.home(0) / "card.json")
    assert status == 0 and f"0   anna   {old.address}" in out
    signed = read_roster(path)
    assert signed.names == NAMES and signed.unsigned == NAMES[1:] and signed.session != session.roster.session
    assert [card.certificate for card in signed.parties] == [card.certificate for card in session.roster.parties]


@pytest.mark.parametrize("party", range(5))
def test_the_journals_are_refused_in_a_sentence(session: OldSession, party: int) -> None:
    """The end of a session is another one: who began with the old version ends with it."""
    path = session.session_folder(party) / "journal.db"
    before = path.read_bytes()
    with pytest.raises(InvalidInput, match=r"journal\.db was begun by another version, which must end the session$"):
        Journal(path, session=session.roster.session, party=party)
    assert path.read_bytes() == before  # for the old version to go on with


@pytest.mark.parametrize("party", SURVIVORS)
def test_the_result_and_the_execution_are_read(session: OldSession, party: int) -> None:
    transcript = read_execution(session.session_folder(party) / "execution.json")
    result = session.fields(party, "result.json")
    assert f"sha256:{digest(transcript)}" == result["execution"] and transcript.execution.cohort is None
    assert (transcript.sigma_independent, transcript.sigma_cancelling) == (40.0, 90.0)
    expected = json.loads((session.folder / "expected.json").read_text())["replayed"]
    assert expected == [*result["total"], result["total_weight"]]
    estimate = session.setup.estimate(np.array(result["total"]), result["total_weight"])
    assert estimate.tolist() == result["estimate"] and session.setup.lattice.granularity == result["granularity"]
    assert transcript.execution.weight == pytest.approx(result["weight"], rel=1e-12)


def test_the_result_is_printed_again(session: OldSession, capsys: Capture) -> None:
    words = ["--identity", session.home(0), "--state", session.home(0) / "sessions"]
    status, out, err = call(capsys, "node", "run", session.folder / "roster.json", *words)
    own = session.fields(0, "result.json")["epsilon"]
    assert (status, err) == (0, "")
    assert "estimate     73.4456" in out and f"own loss     epsilon {own:.4g} of 8 at delta 1e-05" in out


@pytest.mark.parametrize("party", SURVIVORS)
def test_the_certificate_comes_out_the_same(session: OldSession, party: int) -> None:
    terms = session.roster.terms
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
        intended=session.setup.session.topology(FLIPPED).schedule,
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
