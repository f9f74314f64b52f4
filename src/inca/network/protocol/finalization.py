"""What a party does after the last round: its digest, whether it is ready, its settled final message, the result.

What is decided when is on the `agenda`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca.errors import CannotJoin, InvalidPeerMessage
from inca.network.lattice import Numbers
from inca.network.protocol.agreement.agenda import kind_of
from inca.network.protocol.agreement.public_randomness import beacon, beacon_commitment
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import MAX_NUMBER, Account, Item, Proposal, Step, pack, unpack
from inca.network.protocol.realized_execution import RealizedExecution, check_account, realize
from inca.network.protocol.records import Kept, Sealed
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.signed_items import ONCE, Digest, Final, Ready, not_among, printable, read


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a session: sums of the final messages and of their weights, and the execution behind them.

    Args:
        total: The sum of the final messages, in lattice steps.
        weight: The sum of their weights, in units of 1 / `WEIGHT`.
        published: The parties whose final messages these are.
        realized: The execution that follows from the digests of the cohort.
        exact: Whether no accounts contradict each other and, if all of the cohort have published, the weights add up to
            what the cohort has injected.
        beacon: 32 bytes that nobody could choose or know before the first final message, the same for all who hold the
            result; for the seed of a session that follows.
    """

    total: Numbers
    weight: int
    published: frozenset[int]
    realized: RealizedExecution
    exact: bool
    beacon: bytes

    @property
    def late(self) -> frozenset[int]:
        """The late leavers: in the cohort, but their final messages did not come."""
        return self.realized.cohort - self.published


class Finalization:
    """What a party does after the last round; it acts on decisions one after the other."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self.result: Result | None = None
        self.reason = ""
        """Why there is no result, or why this party is not in it."""
        self.cohort: Proposal | None = None
        """The cohort that was decided last, as far as this party has acted on decisions."""
        self.last_step: Step | None = None
        """The last decision that this party has acted on."""
        self._applied = 0
        self._realized: RealizedExecution | None = None

    # --- the own digest, word and final message -------------------------------------------------------------------

    def seal(self) -> None:
        """Make the balance final, and the digest with it: both once.

        Whoever came late and was there in no round has nothing to tell, and may have told it in an earlier
        incarnation, with a journal that is lost: it makes no digest.
        """
        ledger = self._context.ledger
        if not ledger.sealed:
            self._context.record(Sealed())
        silent = ledger.opened is not None and ledger.opened.late and ledger.round == 0
        if "digest" not in ledger.signed and not silent:
            commitment = beacon_commitment(self._context.session.id, self._context.me, ledger.beacon_secret)
            self._context.publish("digest", Digest(ledger.account, commitment), once=True)

    @property
    def must_answer(self) -> bool:
        """Whether this party has yet to say if it is ready for the cohort that was decided last."""
        if self.cohort is None or self.last_step != "cohort" or self._context.me not in self.cohort.parties:
            return False
        return self._word is None

    @property
    def _word(self) -> Ready | None:
        """What this party has said about the cohort, if anything."""
        said = self._context.ledger.signed.get("ready")
        word = None if said is None else read(said, Ready)
        return word if word is not None and self.cohort is not None and word.cohort == self.cohort.hash else None

    def request_assessment(self) -> None:
        """Ask the driver to work out the own loss on the agreed execution."""
        self._context.out.assess = self.realized

    def answer(self, refusal: str) -> None:
        """Say that this party is ready for the cohort, or why it refuses."""
        assert self.cohort is not None
        if refusal:
            self.reason = refusal
            self._context.log_event("refuses", reason=refusal)
        word = Ready(self._context.signed_items.ready_for, self.cohort.hash, printable(refusal))
        self._context.publish("ready", word, once=True)

    def publish(self) -> None:
        """Publish the settled final message: the cohort is committed to, and this party had said that it was ready."""
        context, ledger = self._context, self._context.ledger
        if self.cohort is None or self.last_step != "commit" or "final" in ledger.signed:
            return
        if self._word is None or self._word.refusal:
            return  # it is not in the cohort, or has forgotten what it said
        credited = {
            (t, slot)
            for account in self._accounts.values()
            for t, sender, slot in account.credited
            if sender == context.me
        }
        message = ledger.settled(self.cohort.parties, credited)
        message[:-1] += ledger.topup(context.session.topup(len(self.cohort.contents)))
        if np.abs(message).max() >= MAX_NUMBER or abs(message[-1]) > context.session.parties * WEIGHT:
            self.reason = "its final message would be larger than that of any honest party: a peer has lied"
            context.log_event("refuses", reason=self.reason)
            return
        context.publish("final", Final(pack(message), ledger.beacon_secret), once=True)

    # --- what was decided -----------------------------------------------------------------------------------------

    @property
    def awaited_finals(self) -> set[int]:
        """The parties of the cohort whose final message is missing."""
        missing = self._context.signed_items.missing("final")
        return set() if self.cohort is None else set(self.cohort.parties) & missing

    def recover(self) -> None:
        """Take up what was said and kept in earlier incarnations."""
        items = self._context.signed_items
        for item in self._context.ledger.durable_items:
            if item.kind != "ready":  # that is said again when the cohort is known
                items.keep(item.kind, [(item.party, item.hash)])
                items.add(item)
            elif item.party == self._context.me:
                self.reason = read(item, Ready).refusal

    def apply_decisions(self) -> bool:
        """Act on decisions as far as all that they name is there; return whether there was one."""
        before = self._applied
        while self.named is not None and not self.lacking:
            self._apply(self.named)
        return self._applied > before

    @property
    def named(self) -> Proposal | None:
        """The decision that is to be acted on next."""
        decided = self._context.ledger.decided
        return decided[self._applied].proposal if self._applied < len(decided) else None

    @property
    def lacking(self) -> list[tuple[int, bytes]]:
        """The contents that it names and that are not held yet."""
        if self.named is None or self.named.step == "commit":
            return []
        return self._context.signed_items.lacking_contents(kind_of(self.named.step), self.named.contents, None)

    def _apply(self, proposal: Proposal) -> None:
        context, items = self._context, self._context.signed_items
        self._applied += 1
        self.last_step = proposal.step
        context.log_event("decided", what=proposal.step, parties=len(proposal.contents))
        self._keep(proposal)
        if proposal.step == "cohort":
            items.pin("digest", proposal.contents)
            items.expect_ready(self._applied)
            self.cohort, self._realized = proposal, None
            for item in self._context.ledger.durable_items:
                if item.kind == "ready":
                    items.add(item)  # said before a restart; if it is not about this cohort, it means nothing
            if context.me not in proposal.parties and not self.reason:
                self.reason = "the others go on without this party: it was not there in time"
        elif proposal.step == "result":
            items.pin("final", proposal.contents)
            self._set_result(proposal)

    def _keep(self, proposal: Proposal) -> None:
        """Make durable what a decision names, unless it is: this party may have heard of it without accepting it."""
        if proposal.step == "commit":
            return
        items = self._context.signed_items.with_contents(kind_of(proposal.step), proposal.contents)
        if new := not_among(items, self._context.ledger.durable_items):
            self._context.record(Kept(new))

    @property
    def realized(self) -> RealizedExecution:
        """The execution of the cohort that was decided last."""
        if self._realized is None:
            self._realized = realize(self._context.session, self._context.topology, self._accounts)
        return self._realized

    @property
    def _accounts(self) -> dict[int, Account]:
        return {party: digest.account for party, digest in self._digests.items()}

    @property
    def _digests(self) -> dict[int, Digest]:
        assert self.cohort is not None
        items = self._context.signed_items.with_contents("digest", self.cohort.contents)
        return {item.party: read(item, Digest) for item in items}

    def _set_result(self, proposal: Proposal) -> None:
        session, items = self._context.session, self._context.signed_items
        assert self.cohort is not None
        finals = {item.party: read(item, Final) for item in items.with_contents("final", proposal.contents)}
        messages = {party: unpack(final.payload, session.dimension + 1) for party, final in finals.items()}
        total, weight = added_up(list(messages.values()))
        if total is None or not 0 < weight <= session.parties * WEIGHT:
            oddness = {
                party: int(np.abs(message[:-1]).max()) if total is None else abs(int(message[-1]) - WEIGHT)
                for party, message in messages.items()
            }
            self.reason = (
                "the final messages do not add up to what honest parties can hold: someone has lied, most likely "
                f"{self._context.name(max(oddness, key=lambda party: oddness[party]))}"
            )
            return
        published, accounts = proposal.parties, self._accounts
        everyone = published == self.cohort.parties  # mostly: then it is the execution that was assessed
        realized = self.realized if everyone else realize(session, self._context.topology, accounts, published)
        injected = sum(injected_weight(len(account.present), session.pieces) for account in accounts.values())
        exact = not realized.contradictions and (not everyone or weight == injected)
        commitments = {party: digest.commitment for party, digest in self._digests.items()}
        secrets = {party: final.secret for party, final in finals.items()}
        self.result = Result(total, weight, published, realized, exact, beacon(session.id, commitments, secrets))
        if self._context.me in published:
            self.reason = ""

    # --- items of others ------------------------------------------------------------------------------------------

    def check(self, peer: int, item: Item) -> None:
        """Refuse a digest that cannot be; leave if this party has said something that its journal does not know."""
        self._context.signed_items.check_known(item)
        if item.kind == "digest":
            check_account(self._context.session, self._context.topology, item.party, read(item, Digest).account)
        ledger = self._context.ledger
        if item.party == self._context.me and item.kind in ONCE and ledger.signed.get(item.kind) != item:
            if self._context.signed_items.signed_by_owner(item):
                name = self._context.name(peer)
                raise CannotJoin(f"the journal is behind: {name} has a {item.kind} of this party that it lacks")
            raise InvalidPeerMessage(f"a {item.kind} of this party that it has not signed")


def injected_weight(rounds: int, pieces: int) -> int:
    """Return the weight that a party injects in round 0 and `rounds` more, in the units that travel.

    >>> injected_weight(4, pieces=5) == WEIGHT, injected_weight(3, pieces=5) < WEIGHT
    (True, True)
    """
    return WEIGHT * min(rounds + 1, pieces) // pieces  # what so many portions add up to


def added_up(messages: list[Numbers]) -> tuple[Numbers | None, int]:
    """Return the sum of messages and that of their weights, whatever their size; no sum if no lattice holds it.

    >>> added_up([np.array([2**61, 3]), np.array([2**61 - 1, -1])])
    (array([4611686018427387903]), 2)
    >>> added_up([np.array([2**61, 3])] * 8)
    (None, 24)
    """
    high, low = np.zeros_like(messages[0]), np.zeros_like(messages[0])
    for message in messages:
        high += message >> 32
        low += message & 0xFFFFFFFF
    high, low = high + (low >> 32), low & 0xFFFFFFFF
    weight = (int(high[-1]) << 32) + int(low[-1])
    fits = bool((high[:-1] < 2**30).all() and (high[:-1] >= -(2**30)).all())
    return ((high[:-1] << 32) + low[:-1]) if fits else None, weight
