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

import msgspec
import numpy as np

from inca.errors import CorruptJournal, InvalidPeerMessage
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.lattice.fixed_point import portion
from inca.network.payloads import contents
from inca.network.protocol import records
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
from inca.network.protocol.session import WEIGHT, SessionConfig, Topology

# An offer that never left is as if nobody had been there (erratum E1); one that left may have been seen.
_FATES = {"acked": ACKED, "voided": BACK, "unsent": NOBODY}


class Ledger:
    """One party's ledger; it changes by records alone."""

    def __init__(self, session: SessionConfig, me: int) -> None:
        self.session, self.me = session, me
        self.opened: records.Opened | None = None
        self.seed: bytes | None = None
        self.topology: Topology | None = None
        self.balance: Numbers = np.zeros(session.dimension + 1, dtype=np.int64)
        self.round = 0
        # By round: the own offer's fate as in `Account`, and its share; what was credited; what was decided about the
        # offer that came, and its proof.
        self.fates: dict[int, int] = {}
        self.began: dict[int, records.Began] = {}
        self.received: dict[int, records.Credited] = {}
        self.decisions: dict[int, bool] = {}
        self.proofs: dict[int, OfferProof] = {}
        self.sealed = False
        self.own_items: dict[tuple[str, int | None], Item] = {}  # signed once: by kind, and number of the cohort
        self.secrets: CohortSecrets | None = None
        self.since = 0  # transfers of earlier rounds are not this party's to decide
        self.promised: dict[int, int] = {}
        self.voted: dict[int, records.Voted] = {}
        self.accepted: dict[int, records.Accepted] = {}
        self.decided: list[Decision] = []
        self.kept: list[Item] = []
        self.left: str | None = None
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
        return Account(list(self.fates), list(self.fates.values()), list(self.received))

    @property
    def injected(self) -> Numbers:
        """What has entered the session here so far: portions of the value, and the live mask."""
        portions = (portion(self._value, r, self.session.pieces) for r in range(len(self.fates) + 1))
        total = np.asarray(sum(portions, start=np.zeros_like(self._value)))
        total[:-1] += self._mask
        return total

    @property
    def open(self) -> list[int]:
        """The rounds of own offers without an answer."""
        return [t for t, fate in self.fates.items() if fate == OPEN]

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
        return t > 0 and t not in self.fates and (t < self.round or self.sealed)

    def settled(self, cohort: frozenset[int], credited: Set[int]) -> Numbers:
        """Return the settled balance: what no party of the cohort credited is back, what others sent is undone."""
        assert self.topology is not None
        balance = self.balance.copy()
        for t, fate in self.fates.items():
            if fate in (OPEN, ACKED) and t not in credited:
                balance += self.share(t)
        for t, record in self.received.items():
            if self.topology.senders[t][self.me] not in cohort:
                balance -= np.frombuffer(contents(record.payload), dtype="<i8")
        return balance

    def payload(self, t: int) -> bytes:
        """Return what was offered in round t."""
        return contents(self.began[t].share)

    def share(self, t: int) -> Numbers:
        """Return the numbers in it."""
        return np.frombuffer(self.payload(t), dtype="<i8")

    def next_share(self) -> bytes:
        """Return what is offered if the next round begins now."""
        return pack(self.balance // 2)  # rounded down: the rest stays here

    # --- records ------------------------------------------------------------------------------------------------

    def apply(self, record: records.Record) -> None:
        """Change the ledger by one record."""
        match record:
            case records.Opened():
                self._open(record)
            case records.Seeded():
                _check(self.topology is None, "a second seed")
                self.seed = record.seed
                self.topology = self.session.topology(record.seed)
            case records.Began():
                self._begin(record)
            case records.Credited() | records.Tombstoned():
                self._decide(record)
            case records.Answered():
                self._answer(record)
            case records.Sealed():
                _check(not self.sealed, "a second seal")
                self.sealed = True
            case records.Signed() | records.Secret() | records.Erased():
                self._own(record)
            case records.Joined() | records.Vouched():
                self._join(record)
            case records.Decided():
                self.decided.append(record.decision)
            case records.Kept():
                self.kept += record.items
            case records.Left():
                self.left = record.reason
            case _:
                self._agree(record)

    def _open(self, record: records.Opened) -> None:
        _check(self.opened is None, "a second opening")
        _check(len(record.masks) == 32 and len(record.secret) == 32, "an opening without its secrets")
        noisy = _numbers(record.noisy, self.session.dimension)
        self.opened = msgspec.structs.replace(record, noisy=b"")  # which the ledger holds as numbers
        self._value = np.append(noisy, np.int64(WEIGHT))
        # All at once and before the first message: how long a draw takes depends on what is drawn.
        self._drawn = [self._draw(r) for r in range(self.session.rounds)]
        self._inject(0)

    def _join(self, record: records.Joined | records.Vouched) -> None:
        """Take a record of how a party that came late joins, which it does once."""
        _check(self.opened is not None and self.opened.late, "a party that joins late and came in time")
        _check(self.since == self.round == 0 and not self.sealed, "a party that joins late and has joined")
        assert self.opened is not None
        if isinstance(record, records.Joined):
            self.since = record.round
        else:
            self.opened = msgspec.structs.replace(self.opened, late=False)

    def _own(self, record: records.Signed | records.Secret | records.Erased) -> None:
        """Take a record of what the party says once, or of its secrets."""
        match record:
            case records.Signed(item=item, cohort=cohort):
                words = {kind for kind, of in self.own_items if of == cohort is not None}
                _check((item.kind, cohort) not in self.own_items and not words, f"a second {item.kind}")
                self.own_items[item.kind, cohort] = item
            case records.Secret():
                later = self.secrets is None or record.cohort > self.secrets.cohort
                _check(later and len(record.state) == 32, "secrets that are no later cohort's")
                self.secrets = CohortSecrets(record.state, record.cohort)
            case records.Erased():
                self.secrets = None

    def _begin(self, record: records.Began) -> None:
        t = record.round
        _check(self.opened is not None and self.topology is not None, "a round before the opening")
        _check(self.round < t <= self.session.rounds and not self.sealed, f"round {t} after round {self.round}")
        part = _numbers(record.share, self.balance.size)
        _check(np.array_equal(part, self.balance // 2), "a share that the balance does not give")
        self.balance -= part
        self.began[t] = record
        self.round = t
        self.fates[t] = OPEN
        self._inject(t)

    def _inject(self, t: int) -> None:
        """Add c^(i)_t (x + eta*) + Z^(i)_t eta (erratum E2): a fresh mask replaces the old one; at t = T none does."""
        fresh = self._drawn.pop(0) if t < self.session.rounds else np.zeros_like(self._mask)
        piece = portion(self._value, len(self.fates), self.session.pieces)
        piece[:-1] += fresh
        piece[:-1] -= self._mask
        self._mask = fresh
        self.balance += piece

    def _agree(self, record: records.ConsensusWord) -> None:
        """Take a word of this party in the consensus."""
        instance, promised = record.instance, self.promised.get(record.instance, 0)
        match record:
            case records.Promised(ballot=ballot):
                _check(ballot > promised, "a promise that breaks an earlier one")
            case records.Voted(ballot=ballot):
                vote = self.voted.get(instance)
                _check(ballot >= promised, "a vote that breaks a promise")
                _check(vote is None or ballot > vote.ballot, "a second vote in a ballot")
                self.voted[instance] = record
            case records.Accepted():
                last, ballot = self.accepted.get(instance), record.lock.ballot
                _check(ballot >= promised, "an acceptance that breaks a promise")
                _check(last is None or ballot > last.lock.ballot, "a second acceptance in a ballot")
                self.accepted[instance] = record
                self.kept += record.items  # a later acceptance names them without bringing them again
        self.promised[instance] = ballot

    def _decide(self, record: records.Credited | records.Tombstoned) -> None:
        t = record.round
        scheduled = self.topology is not None and 1 <= t <= self.session.rounds
        _check(scheduled, "a decision about a transfer that the schedule does not have")
        _check(t not in self.decisions, "a second decision about a transfer")
        if isinstance(record, records.Credited):
            _check(t == self.round and not self.sealed, "a credit outside its round")
            self.balance += _numbers(record.payload, self.balance.size)
            self.received[t] = record
        self.decisions[t] = t in self.received
        if record.proof is not None:
            self.proofs[t] = record.proof

    def _answer(self, record: records.Answered) -> None:
        t = record.round
        _check(self.fates.get(t) == OPEN, "an answer about an offer that is not open")
        _check(record.fate in _FATES and not self.sealed, f"the fate {record.fate}")
        fate = _FATES[record.fate]
        _check(fate == ACKED or t == self.round, "a share that is back after its round")
        self.fates[t] = fate
        if fate != ACKED:
            self.balance += self.share(t)

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
