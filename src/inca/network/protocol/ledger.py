"""A party's ledger: what it holds, what it offered, what it decided. Integers only.

The rule. *A transfer is decided by its receiver, once.* The sender debits its balance and only then offers; the
receiver credits the offer in its own round, or writes a tombstone, and never changes its mind; the share of an offer
without an answer in its own round is *open*, set aside until the end. So in every state, under any loss, duplication,
reordering and crash,

    balances + open and uncredited shares = injected,    exactly.

Once it is agreed whose final messages will count, each of these parties settles (docs/settlement.md): it takes back
what none of them credited, and undoes what it was credited from others.

A ledger changes by records alone, one after the other, and records are what the journal keeps: a party that comes back
reads its records into a fresh ledger and is where it was. An illegal record raises `CorruptJournal` and changes
nothing.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

import msgspec
import numpy as np

from inca.errors import CorruptJournal, InvalidPeerMessage
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.lattice.fixed_point import portion, share
from inca.network.payloads import contents
from inca.network.protocol.messages import (
    ACKED,
    BACK,
    NOBODY,
    OPEN,
    Account,
    Decision,
    Item,
    OfferProof,
    Proposal,
    pack,
    unpack,
)
from inca.network.protocol.opening.cohort_keys import CohortSecrets
from inca.network.protocol.records import (
    Accepted,
    Answered,
    Began,
    Credited,
    Decided,
    Erased,
    Joined,
    Kept,
    Left,
    Opened,
    Promised,
    Record,
    Sealed,
    Secret,
    Seeded,
    Signed,
    Tombstoned,
    Voted,
    Vouched,
)
from inca.network.protocol.session import WEIGHT, SessionConfig, Topology

_FATES = ("acked", "voided", "unsent")


@dataclass
class Outgoing:
    """An own offer: to whom, and its fate as in `Account`."""

    receiver: int
    fate: int = OPEN


class Ledger:
    """One party's ledger; it changes by records alone."""

    def __init__(self, session: SessionConfig, me: int) -> None:
        self.session, self.me = session, me
        self.opened: Opened | None = None
        self.seed: bytes | None = None
        self.topology: Topology | None = None
        self.balance: Numbers = np.zeros(session.dimension + 1, dtype=np.int64)
        self.round = 0
        self.attended = 0  # rounds with an injection so far, round 0 included
        self.outbox: dict[tuple[int, int], Outgoing] = {}
        self.began: dict[int, Began] = {}  # by round, with the share
        self.received: dict[tuple[int, int, int], Credited] = {}
        self.decisions: dict[tuple[int, int, int], bool] = {}
        self.proofs: dict[tuple[int, int, int], OfferProof] = {}  # of offers that were decided here
        self.sealed = False
        self.own_items: dict[tuple[str, int | None], Item] = {}  # signed once: by kind, and number of the cohort
        self.secrets: CohortSecrets | None = None
        self.since = 0  # transfers of earlier rounds are not this party's to decide
        self.promised: dict[int, int] = {}
        self.voted: dict[int, Voted] = {}
        self.accepted: dict[int, Accepted] = {}
        self.decided: list[Decision] = []
        self.kept: list[Item] = []
        self.left: str | None = None
        self._present: list[int] = []
        self._value: Numbers = np.zeros_like(self.balance)
        self._mask: Numbers = np.zeros(session.dimension, dtype=np.int64)  # the live one
        self._drawn: list[Numbers] = []

    def __repr__(self) -> str:
        state = f"party {self.me}, round {self.round}, {self.balance.size} numbers, {len(self.open)} open offers"
        return f"Ledger({state}{', sealed' if self.sealed else ''})"

    # --- what others may know -----------------------------------------------------------------------------------

    @property
    def account(self) -> Account:
        """What the party did so far, for others to see."""
        k = self.session.receivers
        fates = [[self.outbox[t, s].fate if (t, s) in self.outbox else NOBODY for s in range(k)] for t in self._present]
        return Account(list(self._present), fates, list(self.received))

    @property
    def injected(self) -> Numbers:
        """What has entered the session here so far: portions of the value, and the live mask."""
        portions = (portion(self._value, r, self.session.pieces) for r in range(self.attended))
        total = np.asarray(sum(portions, start=np.zeros_like(self._value)))
        total[:-1] += self._mask
        return total

    @property
    def open(self) -> list[tuple[int, int]]:
        """The (round, slot) of own offers without an answer."""
        return [key for key, sent in self.outbox.items() if sent.fate == OPEN]

    @property
    def durable_items(self) -> list[Item]:
        """The signed items that outlive this party: its own, those behind acceptances, and those that were decided."""
        return [*self.own_items.values(), *self.kept]

    @property
    def cohorts(self) -> int:
        """How many cohorts were decided, one after the other."""
        return sum(decision.proposal.step == "cohort" for decision in self.decided)

    @property
    def cohort(self) -> Proposal | None:
        """The cohort that was decided last."""
        cohorts = [decision.proposal for decision in self.decided if decision.proposal.step == "cohort"]
        return cohorts[-1] if cohorts else None

    @property
    def committed(self) -> bool:
        """Whether it is decided that the deposits of the last cohort are opened."""
        return bool(self.decided) and self.decided[-1].proposal.step == "commit"

    @property
    def in_doubt(self) -> bool:
        """Whether this party has accepted commit, and does not know whether it was decided."""
        accepted = self.accepted.get(len(self.decided))
        return accepted is not None and accepted.lock.proposal.step == "commit"

    def skipped(self, t: int) -> bool:
        """Return whether this party was certainly absent in round t: it has begun a later one, or is sealed."""
        return t > 0 and t not in self._present and (t < self.round or self.sealed)

    def settled(self, cohort: frozenset[int], credited: Set[tuple[int, int]]) -> Numbers:
        """Return the settled balance: what no party of the cohort credited is back, what others sent is undone."""
        balance = self.balance.copy()
        for key, sent in self.outbox.items():
            if sent.fate in (OPEN, ACKED) and key not in credited:
                balance += self.share(key[0])
        for (_, sender, _), record in self.received.items():
            if sender not in cohort:
                balance -= np.frombuffer(contents(record.payload), dtype="<i8")
        return balance

    def payload(self, t: int) -> bytes:
        """Return what each receiver was offered in round t."""
        return contents(self.began[t].share)

    def share(self, t: int) -> Numbers:
        """Return the numbers in it."""
        return np.frombuffer(self.payload(t), dtype="<i8")

    def next_share(self) -> bytes:
        """Return what each receiver is offered if the next round begins now."""
        return pack(share(self.balance, self.session.receivers))

    # --- records ------------------------------------------------------------------------------------------------

    def apply(self, record: Record) -> None:
        """Change the ledger by one record."""
        match record:
            case Opened():
                self._open(record)
            case Seeded():
                _check(self.topology is None, "a second seed")
                self.seed = record.seed
                self.topology = self.session.topology(record.seed)
            case Began():
                self._begin(record)
            case Credited():
                self._credit(record)
            case Tombstoned():
                self.decisions[self._undecided(record)] = False
            case Answered():
                self._answer(record)
            case Sealed():
                _check(not self.sealed, "a second seal")
                self.sealed = True
            case Signed() | Secret() | Erased():
                self._own(record)
            case Joined():
                _check(self.opened is not None and self.opened.late and self.round == 0, "a late coming after a round")
                _check(self.since == 0, "a second late coming")
                self.since = record.round
            case Vouched():
                _check(self.opened is not None and self.opened.late, "a word for a party that did not come late")
                _check(self.since == self.round == 0 and not self.sealed, "a word for a party that has joined")
                assert self.opened is not None
                self.opened = msgspec.structs.replace(self.opened, late=False)
            case Promised() | Voted() | Accepted() | Decided() | Kept():
                self._agree(record)
            case Left():
                self.left = record.reason

    def _open(self, record: Opened) -> None:
        _check(self.opened is None, "a second opening")
        _check(len(record.masks) == 32 and len(record.secret) == 32, "an opening without its secrets")
        noisy = _numbers(record.noisy, self.session.dimension)
        self.opened = msgspec.structs.replace(record, noisy=b"")  # which the ledger holds as numbers
        self._value = np.append(noisy, np.int64(WEIGHT))
        # All at once and before the first message: how long a draw takes depends on what is drawn.
        self._drawn = [self._draw(r) for r in range(self.session.rounds)]
        self._inject(0)

    def _own(self, record: Signed | Secret | Erased) -> None:
        """Take a record of what the party says once, or of its secrets."""
        match record:
            case Signed(item=item, cohort=cohort):
                words = {kind for kind, of in self.own_items if of == cohort is not None}
                _check((item.kind, cohort) not in self.own_items and not words, f"a second {item.kind}")
                self.own_items[item.kind, cohort] = item
            case Secret():
                _check(self.secrets is None or record.cohort > self.secrets.cohort, "secrets of an earlier cohort")
                self.secrets = CohortSecrets(record.state, record.cohort)
            case Erased():
                self.secrets = None

    def _begin(self, record: Began) -> None:
        t, k = record.round, self.session.receivers
        _check(self.opened is not None and self.topology is not None, "a round before the opening")
        _check(self.round < t <= self.session.rounds and not self.sealed, f"round {t} after round {self.round}")
        part = _numbers(record.share, self.balance.size)
        _check(np.array_equal(part, share(self.balance, k)), "a share that the balance does not give")
        self.balance -= k * part
        self.began[t] = record
        self.round = t
        self._present.append(t)
        assert self.topology is not None
        for slot, receiver in enumerate(self.topology.receivers[t][self.me]):
            self.outbox[t, slot] = Outgoing(receiver)
        self._inject(t)

    def _inject(self, t: int) -> None:
        """Add c^(i)_t (x + eta*) + Z^(i)_t eta (erratum E2): a fresh mask replaces the old one; at t = T none does."""
        r = self.attended
        fresh = self._drawn.pop(0) if t < self.session.rounds else np.zeros_like(self._mask)
        piece = portion(self._value, r, self.session.pieces)
        piece[:-1] += fresh
        piece[:-1] -= self._mask
        self._mask = fresh
        self.attended += 1
        self.balance += piece

    def _credit(self, record: Credited) -> None:
        key = self._undecided(record)
        _check(record.round == self.round and not self.sealed, "a credit outside its round")
        self.balance += _numbers(record.payload, self.balance.size)
        self.decisions[key] = True
        self.received[key] = record

    def _agree(self, record: Promised | Voted | Accepted | Decided | Kept) -> None:
        """Take a record of the consensus."""
        if isinstance(record, Decided):
            self.decided.append(record.decision)
            return
        if isinstance(record, Kept):
            self.kept += record.items
            return
        instance, promised = record.instance, self.promised.get(record.instance, 0)
        match record:
            case Promised(ballot=ballot):
                _check(ballot > promised, "a promise that breaks an earlier one")
            case Voted(ballot=ballot):
                vote = self.voted.get(instance)
                _check(ballot >= promised, "a vote that breaks a promise")
                _check(vote is None or ballot > vote.ballot, "a second vote in a ballot")
                self.voted[instance] = record
            case Accepted():
                last, ballot = self.accepted.get(instance), record.lock.ballot
                _check(ballot >= promised, "an acceptance that breaks a promise")
                _check(last is None or ballot > last.lock.ballot, "a second acceptance in a ballot")
                self.accepted[instance] = record
                self.kept += record.items  # a later acceptance names them without bringing them again
        self.promised[instance] = ballot

    def _undecided(self, record: Credited | Tombstoned) -> tuple[int, int, int]:
        """Return the transfer that a record decides; it must be one, and undecided."""
        key = (record.round, record.sender, record.slot)
        meant = None if self.topology is None else self.topology.receiver(*key)
        _check(meant == self.me, "a decision about a transfer that the schedule does not have")
        _check(key not in self.decisions, "a second decision about a transfer")
        if record.proof is not None:
            self.proofs[key] = record.proof
        return key

    def _answer(self, record: Answered) -> None:
        sent = self.outbox.get((record.round, record.slot))
        _check(sent is not None and sent.fate == OPEN, "an answer about an offer that is not open")
        _check(record.fate in _FATES and not self.sealed, f"the fate {record.fate}")
        _check(record.fate == "acked" or record.round == self.round, "a share that is back after its round")
        assert sent is not None
        if record.fate == "acked":
            sent.fate = ACKED
        else:
            # An offer that never left is as if nobody had been there (erratum E1); one that left may have been seen.
            self.balance += self.share(record.round)
            sent.fate = NOBODY if record.fate == "unsent" else BACK

    def topup(self, sigma: int) -> Numbers:
        """Return the independent noise that the party adds when it settles, for this cohort and no other."""
        if sigma == 0:
            return np.zeros(self.session.dimension, dtype=np.int64)
        assert self.secrets is not None
        return discrete_gaussian(sigma, self.session.dimension, Keystream(self.secrets.topup, b"topup"))

    @property
    def beacon_secret(self) -> bytes:
        """The party's secret for the session's beacon: always the same, and it tells nothing of the noise."""
        assert self.opened is not None
        return Keystream(self.opened.masks, b"beacon").words(4).astype("<u8").tobytes()

    def _draw(self, r: int) -> Numbers:
        assert self.opened is not None
        stream = Keystream(self.opened.masks, b"mask %d" % r)
        return discrete_gaussian(self.session.sigma_cancelling, self.session.dimension, stream)


def _numbers(payload: bytes, count: int) -> Numbers:
    try:
        return unpack(contents(payload), count)
    except InvalidPeerMessage as error:
        raise CorruptJournal(f"the journal does not add up: {error}") from None


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise CorruptJournal(f"the journal does not add up: {what}")
