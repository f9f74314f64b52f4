"""What the parties of a session decide, one thing after the other, and what each decision may be.

The rule. *Which sealed final messages are opened is decided once, and never changes after that.* Were messages for two
cohorts opened, the difference would lay bare whoever is in one alone (docs/settlement.md). So they decide
(`consensus`):

1. a *cohort*: the digests, by contents, of parties that were there in the last round;
2. *commit* to the deposits, by contents, of all of the cohort; or a smaller cohort, if some refuse or are gone, and
   then again. Commit and a smaller cohort are the same decision, so they exclude each other (Paxos Commit: Gray and
   Lamport 2006).

A cohort leaves out nobody whose digest, or deposit, is here: else a proposer could choose a handful of parties to its
liking. So whoever votes leaves out only those that refuse, are gone, or are silent past patience, as it sees them.
"""

from __future__ import annotations

from inca.errors import InvalidPeerMessage
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import Item, Proposal, Step
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.signed_items import Digest, not_among, read
from inca.protocol.adversary import smallest_cohort

_HASH_BYTES = 32


class Agenda:
    """What this party would decide next, and whether what others propose can be decided."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self.patient_until = 0.0
        """Until when to wait for those who are not gone before going on without them."""

    def propose(self, now: float) -> Proposal | None:
        """Return what this party would decide next; None if it is too early for anything, or too few are there."""
        ledger, items = self._context.ledger, self._context.signed_items.by_kind
        cohort = ledger.cohort
        if ledger.committed:
            return None
        if cohort is None:
            there = [item for item in items["digest"].values() if self._was_there(item)]
            return self._proposal("cohort", [(item.party, item.hash) for item in there])
        deposits = {party: item for party, item in items["deposit"].items() if party in cohort.parties}
        if deposits.keys() == cohort.parties:
            return self._proposal("commit", [(party, item.hash) for party, item in deposits.items()])
        silent = cohort.parties - deposits.keys() - items["refusal"].keys()
        if silent - self._context.gone and now < self.patient_until:
            return None
        return self._proposal("cohort", [entry for entry in cohort.contents if entry[0] in deposits])

    def _proposal(self, step: Step, contents: list[tuple[int, bytes]]) -> Proposal | None:
        return None if self._cannot_be([party for party, _ in contents]) else Proposal(step, sorted(contents))

    def _was_there(self, digest: Item) -> bool:
        """Return whether a party was there in the last round, so that no mask of it is left (erratum E2)."""
        return self._context.session.rounds in read(digest, Digest).account.present

    def _cannot_be(self, parties: list[int]) -> str:
        """Return why these parties cannot be a cohort; empty if they can."""
        session = self._context.session
        least = max(session.min_participants, smallest_cohort(session.colluders))
        if len(parties) < least:
            return f"a proposal must have at least {least} parties"
        trustees = self._context.trustees(parties)
        return "" if len(trustees.members) >= trustees.threshold else "a proposal must have enough trustees"

    def check(self, proposal: Proposal) -> None:
        """Refuse a proposal that cannot follow what was decided: by its form, not by what is held."""
        session, contents, parties = self._context.session, proposal.contents, [p for p, _ in proposal.contents]
        if parties != sorted(set(parties)) or (parties and parties[-1] >= session.parties):
            raise InvalidPeerMessage("a proposal must name parties of the session in order")
        if any(len(hash_) != _HASH_BYTES for _, hash_ in contents):
            raise InvalidPeerMessage(f"a proposal must name contents by hashes of {_HASH_BYTES} bytes")
        if why := self._cannot_be(parties):
            raise InvalidPeerMessage(why)
        ledger = self._context.ledger
        cohort = ledger.cohort
        if cohort is None:
            follows = proposal.step == "cohort"
        elif ledger.committed:
            follows = False
        elif proposal.step == "commit":
            follows = proposal.parties == cohort.parties
        else:
            follows = set(contents) < set(cohort.contents) and ledger.cohorts < COHORTS
        if not follows:
            raise InvalidPeerMessage(f"a {proposal.step} that does not follow what was decided")

    def slights(self, now: float, proposal: Proposal) -> bool:
        """Return whether a proposal leaves out parties without a reason that is known here.

        Whoever has a digest, or a deposit for the cohort that is to be made smaller, is never left out, however late
        it is and whatever else it has signed: otherwise a proposer could shrink a cohort again and again.
        """
        if proposal.step == "commit":
            return False
        items, cohort = self._context.signed_items.by_kind, self._context.ledger.cohort
        if cohort is None:
            heard = {party for party, item in items["digest"].items() if self._was_there(item)}
            excused = set(items["digest"]) - heard
            entitled = frozenset(range(self._context.session.parties))
        else:
            heard, excused, entitled = set(items["deposit"]), set(items["refusal"]), cohort.parties
        left_out = entitled - proposal.parties
        if left_out & heard:
            return True
        silent = left_out - excused - self._context.gone
        return bool(silent) and now < self.patient_until

    def fits(self, proposal: Proposal) -> bool:
        """Return whether all that a proposal names, which is held, may be in it."""
        named = self._context.signed_items.with_contents(proposal.kind, proposal.contents)
        return proposal.step == "commit" or all(self._was_there(item) for item in named)

    def lacks(self, proposal: Proposal, proposer: int) -> list[tuple[int, bytes]]:
        """Return the contents that a proposal names and that are not held: it cannot be accepted yet."""
        return self._context.signed_items.lacking_contents(proposal.kind, proposal.contents, proposer)

    def behind(self, proposal: Proposal) -> list[Item]:
        """Return the items of others that must outlive this party if it accepts a proposal, and are not kept yet."""
        items = self._context.signed_items.with_contents(proposal.kind, proposal.contents)
        others = [item for item in items if item.party != self._context.me]
        return not_among(others, self._context.ledger.durable_items)
