"""How a party's session ends: its digest, the realized execution, its final message, the result.

A party publishes its final message only after it has worked out its own loss on the realized execution, which follows
from the digests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca.network.protocol.context import PartyContext
from inca.network.protocol.ledger import Sealed
from inca.network.protocol.messages import Account, Item, Numbers, members, pack, unpack
from inca.network.protocol.realized_execution import RealizedExecution, check_account, realize
from inca.network.protocol.signed_items import Digest, Final, Vote, read


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a session: sums of the final messages and of their weights, and the execution behind them.

    Args:
        total: The sum of the final messages, in lattice steps.
        weight: The sum of their weights, in units of 1 / `WEIGHT`.
        finals: The parties whose final messages these are.
        realized: The execution that follows from the digests.
    """

    total: Numbers
    weight: int
    finals: frozenset[int]
    realized: RealizedExecution


class Finalization:
    """What a party does after the last round."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self.result: Result | None = None
        self.decided = False
        """Whether it is decided what the result is, or that there is none."""
        self.assessed = False
        """Whether the own final message was published or withheld, in this incarnation."""
        self.reason = ""
        """Why there is no result, or why the own final message was withheld."""
        self._withheld = ""
        self._cohort: set[int] = set()
        self._cohort_digests = 0  # of which the cohort is made

    @property
    def cohort(self) -> set[int]:
        """Whoever was there in the last round, according to the digests."""
        items = self._context.signed_items
        if self._cohort_digests != (count := len(items.by_kind["digest"])):
            last, digests = self._context.session.rounds, items.bodies("digest", Digest)
            self._cohort = {party for party, digest in digests.items() if last in digest.account.present}
            self._cohort_digests = count
        return self._cohort

    def seal(self, last_known_accounts: dict[int, Account]) -> None:
        """Make the balance final, and the digest with it: both once.

        Whoever came late and was there in no round has nothing to tell, and may have told it in an earlier
        incarnation, with a journal that is lost: it makes no digest.
        """
        ledger = self._context.ledger
        if not ledger.sealed:
            self._context.record(Sealed())
        silent = ledger.opened is not None and ledger.opened.late and ledger.round == 0
        if "digest" not in ledger.signed and not silent:
            self._context.publish("digest", Digest(ledger.account, sorted(last_known_accounts.items())), once=True)

    @property
    def has_final_message(self) -> bool:
        """Whether the party has yet to publish or withhold a final message: it was there in the last round."""
        ledger = self._context.ledger
        return "final" not in ledger.signed and self._context.session.rounds in ledger.account.present

    def request_assessment(self) -> None:
        """Ask the driver to work out the own loss on the realized execution."""
        digests = self._context.signed_items.bodies("digest", Digest)
        self._context.out.assess = realize(self._context.session, self._context.topology, digests)

    def publish_or_withhold(self, refusal: str) -> None:
        """Publish the final message, or withhold it if there is a reason to (`refusal` is not empty)."""
        required = self._context.session.min_participants
        if not refusal and (count := len(self.cohort)) < required:
            refusal = f"at least {required} parties must be there at the end, got {count}"
        if refusal:
            self.reason = self._withheld = refusal
            self._context.log_event("withheld", reason=refusal)
        payload = b"" if refusal else pack(self._context.ledger.balance)
        self._context.publish("final", Final(payload, refusal), once=True)
        self.assessed = True

    def recover(self) -> None:
        """Take up what was said in an earlier incarnation."""
        for item in self._context.ledger.signed.values():
            self._context.signed_items.add(item)
            if item.kind == "final":
                self.reason = self._withheld = read(item, Final).withheld

    def check(self, item: Item) -> None:
        """Refuse a digest whose account of its own party cannot be."""
        if item.kind == "digest" and item.party not in self._context.signed_items.by_kind["digest"]:
            check_account(self._context.session, self._context.topology, item.party, read(item, Digest).account)

    def apply_decision(self) -> bool:
        """Compute the result once it is decided and all its parts are there; return whether it has just been."""
        items, session = self._context.signed_items, self._context.session
        if self.decided or not items.by_kind["decision"]:
            return False
        vote = next(iter(items.bodies("decision", Vote).values()))
        digests, finals = members(vote.digests, session.parties), members(vote.finals, session.parties)
        if not (digests <= set(items.by_kind["digest"]) and finals <= set(items.by_kind["final"])):
            return False
        self.decided = True
        messages = items.bodies("final", Final)
        payloads = {party: messages[party].payload for party in sorted(finals & digests) if messages[party].payload}
        if len(payloads) >= session.min_participants:
            total = np.sum([unpack(payload, session.dimension + 1) for payload in payloads.values()], axis=0)
            bodies = items.bodies("digest", Digest)
            counted = {party: bodies[party] for party in sorted(digests)}
            realized = realize(session, self._context.topology, counted, set(payloads))
            self.result = Result(total[:-1], int(total[-1]), frozenset(payloads), realized)
            self.reason = self._withheld
        elif not self.reason:
            reasons = sorted({messages[party].withheld for party in finals if messages[party].withheld})
            too_few = f"a result needs at least {session.min_participants} final messages, got {len(payloads)}"
            self.reason = "; ".join([too_few, *reasons[:1]])
        return True
