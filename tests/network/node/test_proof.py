"""A proof convinces whoever holds the roster, and nobody can be framed."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers.lying_dealer import LyingDealer
from helpers.parties import START, Room
from helpers.rosters import SEED, terms
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity, verify
from inca.network.membership.roster import Roster
from inca.network.node.node import SessionEnd
from inca.network.node.proof import Evidence, Proof, proof_of, verify_proof
from inca.network.node.report import write_report
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.messages import Item
from inca.network.protocol.party import Party

N, LIAR, HONEST = 5, 3, 1
IDENTITIES = [Identity.create(f"clinic-{letter}") for letter in "abcde"]
CARDS = tuple(identity.card(f"127.0.0.1:{7001 + i}") for i, identity in enumerate(IDENTITIES))
ROSTER = Roster("trial", terms(seed=SEED, rounds=2), CARDS)


class SignedRoom(Room):
    """A room of parties that sign as nodes do; one of them deals garbage."""

    def make(self, i: int) -> Party:
        super().make(i)
        kind = LyingDealer if i == LIAR else Party

        def verified(party: int, text: bytes, signature: bytes) -> bool:
            return verify(CARDS[party].certificate, text, signature)

        self.parties[i] = kind(
            self.session, i, sign=IDENTITIES[i].sign, verify=verified, rng=random.Random(self.rng.random())
        )
        return self.parties[i]


@pytest.fixture(scope="module")
def room() -> Room:
    paced = {"start": START, "period": 1.0, "min_round_duration": 0.4}
    return SignedRoom(replace(SessionSetup(ROSTER).session, **paced)).open().run()  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def proof(room: Room) -> Proof:
    lie = room.parties[HONEST].finalization.lie
    assert lie is not None
    return proof_of(ROSTER, lie)


def test_every_honest_party_has_a_proof_that_anyone_with_the_roster_can_check(room: Room, tmp_path: Path) -> None:
    for i, party in room.parties.items():
        assert party.finalization.lie is not None and party.result is None
        proof_of(ROSTER, party.finalization.lie).write(tmp_path / f"{i}.json")
        read = Proof.read(tmp_path / f"{i}.json")
        assert read == proof_of(ROSTER, party.finalization.lie) and read.liar == "clinic-d"
        assert read.sentence.startswith("clinic-d has signed a deposit that no honest party can deal: the keys of ")
        verify_proof(read, ROSTER)


def test_a_report_comes_with_the_proof_and_names_the_liar(room: Room, tmp_path: Path) -> None:
    party = room.parties[HONEST]
    document = write_report(
        tmp_path, SessionSetup(ROSTER), HONEST, SessionEnd(None, party.reason, lie=party.finalization.lie)
    )
    assert document.estimate is None and document.reason.startswith("clinic-d has lied, which is proven")
    assert (tmp_path / "ended.json").exists()
    verify_proof(Proof.read(tmp_path / "proof.json"), ROSTER)


def test_whoever_comes_back_has_the_same_proof(room: Room) -> None:
    before = room.parties[HONEST].finalization.lie
    again = SignedRoom(room.session)
    again.now = room.now
    again.journals = dict(room.journals)
    again.recover(HONEST)
    again.run(until=again.now + 60.0)
    lie = again.parties[HONEST].finalization.lie
    assert lie is not None and before is not None and lie.party == before.party
    verify_proof(proof_of(ROSTER, lie), ROSTER)


def evidence(item: Item) -> Evidence:
    return Evidence(ROSTER.names[item.party], item.body, item.signature)


def changed(entry: Evidence, **fields: Any) -> Evidence:
    return msgspec.structs.replace(entry, **fields)


def flipped(body: bytes) -> bytes:
    return body[:-1] + bytes([body[-1] ^ 1])


def framing(room: Room, proof: Proof) -> Proof:
    """The honest deposit of a party, with all that belongs to it."""
    deposit = evidence(room.parties[0].signed_items.by_kind["deposit"][HONEST])
    return msgspec.structs.replace(proof, liar="clinic-b", deposit=deposit)


FORGERIES: dict[str, tuple[Callable[[Proof], dict[str, Any]], str]] = {
    "another session": (lambda p: {"session": "ab" * 32}, "must be about the session of the roster"),
    "another liar": (lambda p: {"liar": "clinic-b"}, "must have a deposit of clinic-b"),
    "a stranger": (
        lambda p: {"liar": "zoe", "deposit": changed(p.deposit, party="zoe")},
        "'zoe' is not in the roster",
    ),
    "a deposit in another's name": (
        lambda p: {"liar": "clinic-b", "deposit": changed(p.deposit, party="clinic-b")},
        "clinic-b has not signed the deposit",
    ),
    "a changed deposit": (
        lambda p: {"deposit": changed(p.deposit, body=flipped(p.deposit.body))},
        "clinic-d has not signed the deposit",
    ),
    "a digest in the place of the deposit": (
        lambda p: {"deposit": next(entry for entry in p.digests if entry.party == p.liar)},
        "clinic-d has not signed the deposit",
    ),
    "a key too few": (lambda p: {"keys": p.keys[1:]}, "must have the keys of 3 trustees"),
    "a key twice": (lambda p: {"keys": (p.keys[0], p.keys[0], p.keys[1])}, "must have the keys of 3 trustees"),
    "a changed key": (
        lambda p: {"keys": (changed(p.keys[0], body=flipped(p.keys[0].body)), *p.keys[1:])},
        "has not signed the key",
    ),
    "a digest too few": (lambda p: {"digests": p.digests[1:]}, "must have the digests of the deposit's cohort"),
    "a changed digest": (
        lambda p: {"digests": (changed(p.digests[0], body=flipped(p.digests[0].body)), *p.digests[1:])},
        "has not signed the digest",
    ),
}


@pytest.mark.parametrize("case", FORGERIES)
def test_a_forged_proof_is_refused(proof: Proof, case: str) -> None:
    fields, reason = FORGERIES[case]
    with pytest.raises(InvalidInput, match=f"^this proves nothing: .*{reason}"):
        verify_proof(msgspec.structs.replace(proof, **fields(proof)), ROSTER)


def test_an_honest_deposit_proves_nothing(room: Room, proof: Proof) -> None:
    with pytest.raises(InvalidInput, match="a deposit that no honest party deals, got others"):
        verify_proof(framing(room, proof), ROSTER)


def test_another_roster_is_another_session(proof: Proof) -> None:
    with pytest.raises(InvalidInput, match="must be about the session of the roster"):
        verify_proof(proof, Roster("another trial", ROSTER.terms, CARDS))


def test_a_trustee_that_signs_a_key_that_is_not_its_own_proves_nothing(room: Room, proof: Proof) -> None:
    """Else a trustee that lies could frame every dealer."""
    shown = proof.keys[0].party
    party = ROSTER.names.index(shown)
    other = next(entry for entry in proof.keys if entry.party != shown)
    signed = Item("key", party, other.body, b"")
    signature = IDENTITIES[party].sign(room.parties[party].signed_items._text(party, signed.proof))
    keys = (Evidence(shown, other.body, signature), *proof.keys[1:])
    with pytest.raises(InvalidInput, match="must have the keys of 3 trustees"):
        verify_proof(msgspec.structs.replace(proof, keys=keys), ROSTER)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"nonsense", "cannot be read as a proof: "),
        (b"{}", "cannot be read as a proof: "),
        (b'{"format": "inca-proof/1"}', "session: is missing"),
    ],
)
def test_a_file_that_is_no_proof_is_refused(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "proof.json").write_bytes(content)
    with pytest.raises(InvalidInput, match=reason):
        Proof.read(tmp_path / "proof.json")
    with pytest.raises(InvalidInput, match="cannot be read as a proof"):
        Proof.read(tmp_path / "nowhere.json")
