"""What the parties of a session decide, one thing after the other, and what each decision may be.

The rule. *Whose final messages will count is decided before any of them is published, and never changes after that.*
Otherwise one party might publish for a cohort from which the others settle it out, and the difference would lay it bare
(docs/settlement.md). So they decide (`consensus`):

1. a *cohort*: the digests, by contents, of parties that were there in the last round;
2. *commit*, once every party of the cohort has worked out its own loss and says that it is ready; or a smaller cohort,
   if some refuse or are gone, and then again. Commit and a smaller cohort are the same decision, so they exclude each
   other (Paxos Commit: Gray and Lamport 2006);
3. the *result*: the settled final messages, by contents, that have been published.
"""

from __future__ import annotations

from inca.errors import InvalidPeerMessage
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import Item, Proposal, Step
from inca.network.protocol.signed_items import Digest, Kind, Ready, not_among

_HASH_BYTES = 32


def kind_of(step: Step) -> Kind:
    """Return the kind of items that a decision rests on."""
    kinds: dict[Step, Kind] = {"cohort": "digest", "commit": "ready", "result": "final"}
    return kinds[step]


class Agenda:
    """What this party would decide next, and whether what others propose can be decided."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self.patient_until = 0.0
        """Until when to wait for those who are not gone before going on without them."""

    @property
    def steps(self) -> list[Step]:
        """What was decided so far."""
        return [decision.proposal.step for decision in self._context.ledger.decided]

    @property
    def cohort(self) -> Proposal | None:
        """The cohort that was decided last."""
        cohorts = [d.proposal for d in self._context.ledger.decided if d.proposal.step == "cohort"]
        return cohorts[-1] if cohorts else None

    # --- own proposals --------------------------------------------------------------------------------------------

    def propose(self, now: float) -> Proposal | None:
        """Return what this party would decide next; None if it is too early for anything, or too few are there."""
        cohort, steps = self.cohort, self.steps
        if "result" in steps:
            return None
        if cohort is None:
            return self._first_cohort()
        return self._result(now, cohort) if "commit" in steps else self._commit_or_shrink(now, cohort)

    def _first_cohort(self) -> Proposal | None:
        items, last = self._context.signed_items, self._context.session.rounds
        digests, two_faced = items.bodies("digest", Digest), items.two_faced("digest")
        there = [party for party, digest in digests.items() if last in digest.account.present]
        return self._named("cohort", [items.by_kind["digest"][party] for party in there if party not in two_faced])

    def _commit_or_shrink(self, now: float, cohort: Proposal) -> Proposal | None:
        words = self._words(cohort)
        willing = {party for party, word in words.items() if not word.refusal}
        if willing == cohort.parties:
            return Proposal("commit", cohort.contents)
        if self._must_wait(now, cohort.parties - set(words)):
            return None
        smaller = [entry for entry in cohort.contents if entry[0] in willing]
        return Proposal("cohort", smaller) if len(smaller) >= self._context.session.min_participants else None

    def _result(self, now: float, cohort: Proposal) -> Proposal | None:
        finals = self._context.signed_items.by_kind["final"]
        if self._must_wait(now, cohort.parties - set(finals)):
            return None
        return self._named("result", [item for party, item in finals.items() if party in cohort.parties])

    def _must_wait(self, now: float, awaited: frozenset[int]) -> bool:
        return bool(awaited - self._context.gone) and now < self.patient_until

    def _named(self, step: Step, items: list[Item]) -> Proposal | None:
        contents = sorted((item.party, item.hash) for item in items)
        return Proposal(step, contents) if len(contents) >= self._context.session.min_participants else None

    def _words(self, cohort: Proposal) -> dict[int, Ready]:
        """Return who of a cohort has said whether it is ready for it."""
        words = self._context.signed_items.bodies("ready", Ready)
        return {party: w for party, w in words.items() if w.cohort == cohort.hash and party in cohort.parties}

    # --- proposals of others --------------------------------------------------------------------------------------

    def check(self, proposal: Proposal) -> None:
        """Refuse a proposal that cannot follow what was decided: by its form, not by what is held."""
        session, contents, parties = self._context.session, proposal.contents, [p for p, _ in proposal.contents]
        if parties != sorted(set(parties)) or (parties and parties[-1] >= session.parties):
            raise InvalidPeerMessage("a proposal must name parties of the session in order")
        if any(len(hash_) != _HASH_BYTES for _, hash_ in contents):
            raise InvalidPeerMessage(f"a proposal must name contents by hashes of {_HASH_BYTES} bytes")
        if len(parties) < session.min_participants:
            raise InvalidPeerMessage(f"a proposal must have at least {session.min_participants} parties")
        last, cohort = self.steps[-1:], set(() if self.cohort is None else self.cohort.contents)
        follows = {
            "cohort": not last or (last == ["cohort"] and set(contents) < cohort),
            "commit": last == ["cohort"] and set(contents) == cohort,
            "result": last == ["commit"] and proposal.parties <= {party for party, _ in cohort},
        }
        if not follows[proposal.step]:
            raise InvalidPeerMessage(f"a {proposal.step} that does not follow what was decided")

    def slights(self, now: float, proposal: Proposal) -> bool:
        """Return whether a proposal leaves out parties without a reason that is known here, and too early.

        One such party does not matter: views differ, and one party may have shown different faces. But a proposer must
        not choose a handful of parties to its liking while all others are there.
        """
        if now >= self.patient_until or proposal.step == "commit":
            return False
        return len(self._entitled() - proposal.parties - self._context.gone) > 1

    def _entitled(self) -> set[int]:
        """Return the parties that can be in the next decision, as far as is known here."""
        items, cohort = self._context.signed_items, self.cohort
        if cohort is None:
            last = self._context.session.rounds
            digests = items.bodies("digest", Digest)
            absent = {party for party, digest in digests.items() if last not in digest.account.present}
            return set(range(self._context.session.parties)) - absent - items.two_faced("digest")
        if "commit" in self.steps:
            return set(cohort.parties)
        return set(cohort.parties) - {party for party, word in self._words(cohort).items() if word.refusal}

    def lacks(self, proposal: Proposal, proposer: int) -> list[tuple[int, bytes]]:
        """Return the contents that a proposal rests on and that are not held: it cannot be accepted yet."""
        if proposal.step == "commit" and self.cohort is not None:
            ready = {party for party, word in self._words(self.cohort).items() if not word.refusal}
            return [entry for entry in proposal.contents if entry[0] not in ready]
        return self._context.signed_items.lacking_contents(kind_of(proposal.step), proposal.contents, proposer)

    def behind(self, proposal: Proposal) -> list[Item]:
        """Return the items of others that must outlive this party if it accepts a proposal, and are not kept yet."""
        if proposal.step == "commit":
            # Whoever proposes it again must show that all were ready, who may be gone by then.
            ready = self._context.signed_items.by_kind["ready"]
            items = [ready[party] for party in sorted(proposal.parties)]
        else:
            items = self._context.signed_items.with_contents(kind_of(proposal.step), proposal.contents)
        others = [item for item in items if item.party != self._context.me]
        return not_among(others, self._context.ledger.durable_items)
