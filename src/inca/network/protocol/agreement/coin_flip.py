"""The coin flip for the public seed: a commit-reveal among all parties.

Everyone publishes a commitment to a secret; then, once it holds all commitments, their hash, signed; then, once all
have signed the same hash, the secret. The hash of all secrets is the public seed. Without the second step a party could
commit to different secrets before different others, and choose between them when it knows theirs.
"""

from __future__ import annotations

import hashlib
from math import inf

from inca.network.protocol.agreement.public_randomness import commitment, flipped_seed
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import Want, bits
from inca.network.protocol.records import Seeded


class CoinFlip:
    """A party's part in the coin flip; if the seed was agreed on, there is none."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self._compared: set[int] = set()  # parties that hold other commitments, and were asked for them

    @property
    def flipping(self) -> bool:
        """Whether the coin flip goes on: the seed is unknown."""
        return self._context.ledger.topology is None

    @property
    def deadline(self) -> float:
        """When the coin flip must be over."""
        return self._context.session.start + self._context.session.period if self.flipping else inf

    @property
    def missing_parts(self) -> set[int]:
        """Whose part is missing, while the coin flip goes on."""
        items = self._context.signed_items
        return items.missing("commit") | items.missing("reveal") if self.flipping else set()

    def start(self) -> None:
        """Commit, unless the seed was agreed on; whoever knows it already still owes its part to the others."""
        context, session, ledger = self._context, self._context.session, self._context.ledger
        if session.seed is not None:
            if ledger.topology is None:
                context.record(Seeded(session.seed))
        elif ledger.opened is not None:
            context.publish("commit", commitment(session.id, context.me, ledger.opened.secret))
            if ledger.topology is not None:
                context.publish("reveal", ledger.opened.secret)
        context.out.plan = not self.flipping

    def go_on(self) -> None:
        """Confirm once everyone has committed, reveal once everyone has confirmed; all secrets give the seed."""
        context, items = self._context, self._context.signed_items
        opened = context.ledger.opened
        if not self.flipping or opened is None or items.missing("commit"):
            return
        if context.me not in items.by_kind["confirm"]:
            context.publish("confirm", self._all_commitments)
        if self._unconfirmed:
            self._compare_commitments()
            return
        if context.me not in items.by_kind["reveal"]:
            context.publish("reveal", opened.secret)
        if items.missing("reveal"):
            return
        secrets = [items.by_kind["reveal"][party].body for party in range(context.session.parties)]
        context.record(Seeded(flipped_seed(context.session.id, secrets)))
        context.out.plan = True

    def failure(self) -> str:
        """Return who has kept the coin flip from its end."""
        items = self._context.signed_items
        if silent := items.missing("commit"):
            reason = f"nothing was committed to by {self._context.listed(silent)}"
        elif two_faced := items.two_faced("commit"):
            reason = f"{self._context.listed(two_faced)} committed to two different secrets"
        elif self._others:
            reason = f"{self._context.listed(self._others)} hold other commitments than this party"
        elif silent := self._unconfirmed:
            reason = f"the commitments were not confirmed by {self._context.listed(silent)}"
        else:
            silent = items.missing("reveal")
            reason = f"the secret that was committed to was not revealed by {self._context.listed(silent)}"
        return f"the coin flip for the public seed failed: {reason}"

    @property
    def _all_commitments(self) -> bytes:
        """The hash of all commitments that are held."""
        commitments = self._context.signed_items.by_kind["commit"]
        listed = b"".join(commitments[party].body for party in range(self._context.session.parties))
        return hashlib.sha256(b"inca-commitments/1" + self._context.session.id + listed).digest()

    @property
    def _unconfirmed(self) -> set[int]:
        """Who has not signed that it holds the same commitments; who has revealed has seen that all did."""
        items = self._context.signed_items
        return (items.missing("confirm") | self._others) & items.missing("reveal")

    @property
    def _others(self) -> set[int]:
        """Who has signed that it holds other commitments."""
        ours, confirmed = self._all_commitments, self._context.signed_items.by_kind["confirm"]
        return {party for party, item in confirmed.items() if item.body != ours}

    def _compare_commitments(self) -> None:
        """Get the commitments of those that hold others: two of one party prove who has lied."""
        context, n = self._context, self._context.session.parties
        for party in sorted(self._others - self._compared - {context.me}):
            self._compared.add(party)
            context.send(party, Want({"commit": bits(set(range(n)), n)}, len(context.ledger.decided)))
