"""What a party writes down, one record after the other: its journal, from which its ledger follows.

The journal on disk (`node/journal.py`) keeps them as they are; adding a kind, or a field, is another format of it. It
puts their large payloads away, and leaves `StoredBytes` in their place.
"""

from __future__ import annotations

import msgspec

from inca.network.protocol.messages import Decision, Item, Lock, OfferProof, sizes_only


class JournalRecord(msgspec.Struct, frozen=True, array_like=True):
    """The base of all records. Their `repr` shows the sizes of noise, shares and secrets, never the bytes."""

    def __repr__(self) -> str:
        return sizes_only(self)


class Opened(JournalRecord, frozen=True, tag="opened"):
    """The party's private side, durable before anything leaves: its value with its independent noise, and seeds.

    The value itself is never written. All cancelling noise follows from `masks`; `secret` is the party's part in the
    coin flip for the public seed.
    """

    noisy: bytes
    masks: bytes
    secret: bytes
    late: bool = False
    """Whether this is a journal begun after the start, perhaps in the place of a lost one; nobody vouches that not."""


class Seeded(JournalRecord, frozen=True, tag="seeded"):
    """The public seed is known."""

    seed: bytes


class Began(JournalRecord, frozen=True, tag="began"):
    """Round `round` begins: the share is debited, and the round's injection enters."""

    round: int
    share: bytes


class Credited(JournalRecord, frozen=True, tag="credited"):
    """An offer was accepted in its round."""

    round: int
    payload: bytes
    proof: OfferProof | None = None
    """What its sender has signed, to be shown to it should it have forgotten."""


class Tombstoned(JournalRecord, frozen=True, tag="tombstoned"):
    """An offer will never be accepted."""

    round: int
    proof: OfferProof | None = None
    refused: bytes = b""
    """Its payload if no honest party can have made it: with the proof it convicts its sender."""


class Answered(JournalRecord, frozen=True, tag="answered"):
    """An own offer was answered in its own round: `acked`, or back, since it was `voided` or never left (`unsent`)."""

    round: int
    fate: str


class Sealed(JournalRecord, frozen=True, tag="sealed"):
    """The balance is final: nothing is credited or returned any more."""


class Joined(JournalRecord, frozen=True, tag="joined"):
    """The party came late, with a fresh journal: what was offered to it in rounds before `round` is not its to decide.

    Should it have been there before, with a journal that is lost, it might have decided otherwise.
    """

    round: int


class Vouched(JournalRecord, frozen=True, tag="vouched"):
    """The party came late, and its operator vouches that this is its first journal: it is like one that was in time."""


class Promised(JournalRecord, frozen=True, tag="promised"):
    """Consensus: no proposal below this ballot will be followed."""

    instance: int
    ballot: int


class Voted(JournalRecord, frozen=True, tag="voted"):
    """Consensus: the vote in this ballot, for the proposal with this hash."""

    instance: int
    ballot: int
    proposal: bytes


class Accepted(JournalRecord, frozen=True, tag="accepted"):
    """Consensus: locked on this; with the items of others that it names, should nobody else be left."""

    instance: int
    lock: Lock
    items: list[Item]


class Decided(JournalRecord, frozen=True, tag="decided"):
    """Consensus: this was decided."""

    decision: Decision


class Kept(JournalRecord, frozen=True, tag="kept"):
    """Items of others that a decision names, and that this party had not accepted: it can show them when it is back."""

    items: list[Item]


class Signed(JournalRecord, frozen=True, tag="signed"):
    """An own item that may exist only once, written before anyone sees it: the digest, or the word on a cohort."""

    item: Item
    cohort: int | None = None
    """The number of the cohort of which it is the word (a deposit or a refusal)."""


class Secret(JournalRecord, frozen=True, tag="secret"):
    """The secrets of this cohort and of later ones (`CohortSecrets`); those of earlier cohorts are erased with it.

    The journal keeps it in a file of its own, so that it can be erased.
    """

    cohort: int
    state: bytes


class Erased(JournalRecord, frozen=True, tag="erased"):
    """All secrets of cohorts are erased: the session has ended without commit."""


class Left(JournalRecord, frozen=True, tag="left"):
    """The party has left the session and will not come back."""

    reason: str


StartRecord = Opened | Seeded | Joined | Vouched
TransferRecord = Began | Credited | Tombstoned | Answered
ConsensusWord = Promised | Voted | Accepted
Record = StartRecord | TransferRecord | ConsensusWord | Decided | Kept | Sealed | Signed | Secret | Erased | Left


_PAYLOADS: dict[type, str] = {Opened: "noisy", Began: "share", Credited: "payload", Tombstoned: "refused"}


def payload_fields(record: Record) -> list[tuple[msgspec.Struct, str]]:
    """Return what holds the payloads of a record, which may be large, each with the name of its field."""
    if (field := _PAYLOADS.get(type(record))) is not None:
        return [(record, field)]
    items = [record.item] if isinstance(record, Signed) else getattr(record, "items", [])
    return [(item, "sealed") for item in items]
