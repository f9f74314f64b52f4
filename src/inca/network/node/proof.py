"""`proof.json`: that a party has lied, for anyone who holds the roster, and without believing whoever shows it.

A deposit names the digests of its cohort by their hash, and the digests have the public keys of the trustees. The
private keys of enough trustees open every deposit that an honest party can deal (`opening.deposits`), so one that they
do not open, and that its dealer has signed, proves that the dealer has lied.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import msgspec

from inca.documents.document import Document
from inca.errors import InvalidInput, InvalidPeerMessage
from inca.network.membership.identity import verify
from inca.network.membership.roster import Roster
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.finalization import Lie
from inca.network.protocol.messages import Item, Proposal
from inca.network.protocol.opening.cohort_keys import check_public
from inca.network.protocol.opening.deposits import Dealing, Deposit, check_deposit
from inca.network.protocol.opening.trustees import are_drawn, trustees_of
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Digest, Key, read, signed_text


class Evidence(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a party has signed; the bytes in base64."""

    party: str
    body: bytes
    signature: bytes


class Proof(Document, frozen=True, kw_only=True):
    """The proof that a party has lied in a session; `verify_proof` says whether it proves anything.

    It has the deposit without the sealed message, which proves nothing, the private keys that trustees have shown for
    the cohort, and the digests of the cohort, with the public keys. The sentence is for people.
    """

    kind: ClassVar[str] = "a proof"
    format: Literal["inca-proof/1"] = "inca-proof/1"
    session: str
    liar: str
    sentence: str
    deposit: Evidence
    keys: tuple[Evidence, ...]
    digests: tuple[Evidence, ...]


def proof_of(roster: Roster, lie: Lie) -> Proof:
    """Return the proof of a lie by which a session has ended, to be written down."""
    by_kind: dict[str, list[Evidence]] = {"deposit": [], "key": [], "digest": []}
    for item in lie.evidence:
        by_kind[item.kind].append(Evidence(roster.names[item.party], item.body, item.signature))
    liar, trustees = roster.names[lie.party], ", ".join(key.party for key in by_kind["key"])
    return Proof(
        session=roster.session.hex(),
        liar=liar,
        sentence=f"{liar} has signed a deposit that no honest party can deal: the keys of {trustees}, "
        "which open every honest one, do not open it.",
        deposit=by_kind["deposit"][0],
        keys=tuple(by_kind["key"]),
        digests=tuple(by_kind["digest"]),
    )


def verify_proof(proof: Proof, roster: Roster, *, seed: bytes | None = None) -> None:
    """Refuse what does not prove that its party has lied in the session of a roster; nobody else need be believed.

    The session's public seed is needed only if it was drawn by a coin flip, and trustees by it (above 1,000 parties).

    Example:
        >>> verify_proof(Proof.read("proof.json"), read_roster("roster.json"))  # doctest: +SKIP
    """
    session = SessionSetup(roster).session
    seed = seed or session.seed
    try:
        _require(proof.session == roster.session.hex(), "it must be about the session of the roster, got another")
        _require(proof.deposit.party == proof.liar, f"it must have a deposit of {proof.liar}, got another party's")
        _require(seed is not None or not are_drawn(session), "the session's public seed must be given, too, got none")
        deposit = _signed_item("deposit", proof.deposit, roster)
        keys = [_signed_item("key", entry, roster) for entry in proof.keys]
        digests = [_signed_item("digest", entry, roster) for entry in proof.digests]
        _check_lie(session, seed or b"", deposit, keys, digests)
    except InvalidPeerMessage as error:
        raise InvalidInput(f"this proves nothing: {error}") from None


def _check_lie(session: SessionConfig, seed: bytes, item: Item, keys: list[Item], digests: list[Item]) -> None:
    """Refuse evidence that does not show that nobody can have dealt a deposit."""
    deposit, bodies = read(item, Deposit), {digest.party: read(digest, Digest) for digest in digests}
    cohort = Proposal("cohort", sorted((digest.party, digest.hash) for digest in digests))
    _require(cohort.hash == deposit.hash, "it must have the digests of the deposit's cohort, got others")
    numbered = all(deposit.cohort < len(body.keys) for body in bodies.values())
    _require(numbered, "a digest must have a key for the cohort")
    trustees = trustees_of(session, bodies, seed)
    publics = {trustee: bodies[trustee].keys[deposit.cohort] for trustee in trustees.members}
    for public in publics.values():
        check_public(public)
    check_deposit(deposit, len(publics))
    private = {key.party: read(key, Key).private for key in keys}
    dealing = Dealing(session.id, deposit.cohort, deposit.hash, item.party, publics, trustees.threshold)
    needed = f"it must have the keys of {trustees.threshold} trustees, and a deposit that no honest party deals"
    _require(dealing.proves_lie(deposit, b"", private), f"{needed}, got others")


def _signed_item(kind: str, evidence: Evidence, roster: Roster) -> Item:
    """Return the item of a party of the roster, which has signed it."""
    _require(evidence.party in roster.names, f"{evidence.party!r} is not in the roster")
    party = roster.names.index(evidence.party)
    item = Item(kind, party, evidence.body, evidence.signature)
    signed = verify(roster.parties[party].certificate, signed_text(roster.session, party, item.proof), item.signature)
    _require(signed, f"{evidence.party} has not signed the {kind}")
    return item


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise InvalidPeerMessage(what)
