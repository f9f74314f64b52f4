"""What a party does after the last round: its digest, its deposit or refusal, its key, and the result.

What is decided when is on the `agenda`; who opens what, in `opening`.
"""

from __future__ import annotations

from dataclasses import dataclass

from inca.network.lattice import Numbers
from inca.network.protocol.agreement.public_randomness import beacon, beacon_commitment
from inca.network.protocol.context import PartyContext
from inca.network.protocol.messages import Item, Proposal, Step, pack
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.opening.opening import OpenedDeposits, Opening
from inca.network.protocol.realized_execution import RealizedExecution, realize
from inca.network.protocol.records import Erased, Kept, Sealed
from inca.network.protocol.session import WEIGHT
from inca.network.protocol.share_bounds import largest_total
from inca.network.protocol.signed_items import PER_COHORT, Digest, Refusal, not_among, printable, read

_LEFT_OUT = "the others go on without this party: it was not there in time"


@dataclass(frozen=True, eq=False)
class Result:
    """The result of a session: sums of the final messages and weights of a cohort, and the execution behind them.

    It is exact if no accounts contradict each other, and the weights add up to what the cohort has injected. Nobody
    could choose or know the beacon, 32 bytes, before the first deposit was opened; the next session's seed is of it.
    """

    total: Numbers  # in lattice steps
    weight: int  # in units of 1 / `WEIGHT`
    realized: RealizedExecution
    exact: bool
    beacon: bytes


@dataclass(frozen=True)
class Lie:
    """The proof that a party has lied: its deposit is none, as the keys of enough trustees show.

    Evidence are its deposit, the keys, and the digests of the cohort, which the deposit names by their hash.
    """

    party: int
    evidence: tuple[Item, ...]


class Finalization:
    """What a party does after the last round; it acts on decisions one after the other."""

    def __init__(self, context: PartyContext) -> None:
        self._context = context
        self.result: Result | None = None
        self.lie: Lie | None = None
        self.reason = ""
        """Why there is no result, or why this party is not in it."""
        self.cohort: Proposal | None = None
        """The cohort that was decided last, as far as this party has acted on decisions."""
        self.last_step: Step | None = None
        """The last decision that this party has acted on."""
        self.opened = False
        """Whether the deposits were opened, whatever came of it."""
        self._opening: Opening | None = None
        self._applied = 0
        self._realized: dict[bytes, RealizedExecution] = {}  # by the hash of the cohort
        self._refusals: dict[bytes, str] = {}  # what came of working out the own loss, likewise

    # --- the own digest, deposit and key --------------------------------------------------------------------------

    def seal(self) -> None:
        """Make the balance final, and the digest with it: both once.

        Whoever came late and was there in no round has nothing to tell, and may have told it in an earlier
        incarnation, with a journal that is lost: it makes no digest.
        """
        ledger = self._context.ledger
        if not ledger.sealed:
            self._context.record(Sealed())
        silent = ledger.opened is not None and ledger.opened.late and ledger.round == 0
        if ("digest", None) not in ledger.own_items and not silent and ledger.secrets is not None:
            commitment = beacon_commitment(self._context.session.id, self._context.me, ledger.beacon_secret)
            digest = Digest(ledger.account, commitment, ledger.secrets.public_keys(COHORTS))
            self._context.publish_once("digest", digest)

    @property
    def must_answer(self) -> bool:
        """Whether this party has yet to make its deposit for the cohort that was decided last, or to refuse."""
        if self.cohort is None or self.last_step != "cohort" or self._context.me not in self.cohort.parties:
            return False
        assert self._opening is not None
        return self._opening.word is None

    def look_ahead(self, proposal: Proposal | None) -> None:
        """Have the own loss worked out on a cohort that is likely to be decided, while others are still deciding."""
        if proposal is not None and proposal.step == "cohort" and self._context.me in proposal.parties:
            self._assess(proposal)

    def request_assessment(self) -> None:
        """Make the deposit, or ask the driver to work out the own loss on the agreed execution first."""
        if self.must_answer:
            assert self.cohort is not None and self._opening is not None
            if self.cohort.hash in self._refusals:
                self._answer(self.cohort, self._opening, self._refusals[self.cohort.hash])
            else:
                self._assess(self.cohort)

    def _assess(self, cohort: Proposal) -> None:
        if cohort.hash not in self._realized:
            self._context.out.assess = self._realize(cohort)

    def assessed(self, refusal: str, of: RealizedExecution) -> None:
        """Learn the own loss on an execution: why to refuse, or nothing."""
        self._refusals |= {hash_: refusal for hash_, realized in self._realized.items() if realized is of}
        self.request_assessment()

    def _answer(self, cohort: Proposal, opening: Opening, refusal: str) -> None:
        """Make the deposit of the settled final message, or refuse."""
        context, ledger = self._context, self._context.ledger
        if not refusal and (ledger.secrets is None or ledger.secrets.cohort != opening.number):
            refusal = "its secrets for this cohort are erased"
        if refusal:
            self.reason = refusal
            context.log_event("refuses", reason=refusal)
            opening.refuse(printable(refusal))
            return
        digests, receivers = self._digests(cohort), {t: context.topology.receivers[t][context.me] for t in ledger.fates}
        credited = {t for t, other in receivers.items() if other in digests and t in digests[other].account.credited}
        message = ledger.settled(cohort.parties, credited)  # modulo 2^64, as everywhere from here on
        message[:-1] += ledger.topup(context.session.sigma_topup(self.realized.execution.cohort_weights))
        opening.deposit(pack(message) + ledger.beacon_secret)

    # --- what was decided -----------------------------------------------------------------------------------------

    @property
    def missing_keys(self) -> set[int]:
        """The trustees whose keys are waited for."""
        return set() if self._opening is None or self.last_step != "commit" else self._opening.missing_keys

    @property
    def unfinished(self) -> bool:
        """Whether this party has accepted commit and does not know the outcome: it must keep its secrets, and ask."""
        ledger = self._context.ledger
        return (ledger.committed and not self.opened) or ledger.in_doubt

    @property
    def deposits(self) -> tuple[int, int]:
        """How many deposits of the last cohort are held, and how many parties it has."""
        return len(self.sealed_messages), 0 if self.cohort is None else len(self.cohort.parties)

    @property
    def sealed_messages(self) -> list[Item]:
        """The deposits of the last cohort that are held, one of each party."""
        parties = frozenset() if self.cohort is None else self.cohort.parties
        return [item for party, item in self._context.signed_items.by_kind["deposit"].items() if party in parties]

    @property
    def keys(self) -> tuple[int, int]:
        """How many trustees have shown their keys, and how many must."""
        needed = 0 if self._opening is None else self._opening.threshold
        return len(self._context.signed_items.by_kind["key"]), needed

    def recover(self) -> None:
        """Take up what was said and kept in earlier incarnations."""
        self.reason = self._own_refusal
        self._take_durable(of_cohort=False)  # those are taken when the cohort is known
        self._context.erase_earlier()

    def forget(self) -> None:
        """Erase the secrets of all cohorts, if the session ends without commit; not while that is unknown."""
        ledger = self._context.ledger
        if ledger.secrets is not None and not (ledger.committed or self.unfinished):
            self._context.record(Erased())

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
        if self.named is None:
            return []
        return self._context.signed_items.lacking_contents(self.named.kind, self.named.contents, None)

    def _apply(self, proposal: Proposal) -> None:
        context, items = self._context, self._context.signed_items
        self._applied += 1
        self.last_step = proposal.step
        context.log_event("decided", what=proposal.step, parties=len(proposal.contents))
        self._keep(items.with_contents(proposal.kind, proposal.contents))
        items.pin(proposal.kind, proposal.contents)
        if proposal.step == "cohort":
            self._expect_words(proposal)
        else:
            assert self._opening is not None
            items.expect_keys(self._opening.publics)
            self._take_durable(of_cohort=True)  # keys of an earlier incarnation
            self._opening.show_key()

    def _expect_words(self, cohort: Proposal) -> None:
        context, number = self._context, self._applied - 1
        self.cohort = cohort
        self._opening = Opening(context, cohort, number, self._digests(cohort))
        context.signed_items.expect_words(number, cohort.hash, len(self._opening.publics))
        self._take_durable(of_cohort=True)
        if context.me not in cohort.parties and not self.reason:
            self.reason = _LEFT_OUT

    def _take_durable(self, *, of_cohort: bool) -> None:
        """Take what is durable: of this cohort, as what is about another means nothing, or of none."""
        items = self._context.signed_items
        for item in self._context.ledger.durable_items:
            if (item.kind in PER_COHORT) is of_cohort:
                items.keep(item.kind, [(item.party, item.hash)])
                items.take(item)

    def _keep(self, items: list[Item]) -> None:
        """Make durable what a decision rests on, unless it is: this party may have heard of it without accepting it."""
        if new := not_among(items, self._context.ledger.durable_items):
            self._context.record(Kept(new))

    @property
    def realized(self) -> RealizedExecution:
        """The execution of the cohort that was decided last."""
        assert self.cohort is not None
        return self._realize(self.cohort)

    def _realize(self, cohort: Proposal) -> RealizedExecution:
        if cohort.hash not in self._realized:
            accounts = {party: digest.account for party, digest in self._digests(cohort).items()}
            self._realized[cohort.hash] = realize(self._context.session, self._context.topology, accounts)
        return self._realized[cohort.hash]

    def _digests(self, cohort: Proposal) -> dict[int, Digest]:
        items = self._context.signed_items.with_contents("digest", cohort.contents)
        return {item.party: read(item, Digest) for item in items}

    # --- the outcome ----------------------------------------------------------------------------------------------

    def open(self) -> bool:
        """Open the deposits once enough trustees have shown their keys; return whether that has just happened."""
        if self.opened or self.last_step != "commit" or self._opening is None or self.cohort is None:
            return False
        committed = self._context.ledger.decided[-1].proposal
        if (opened := self._opening.open(committed)) is None:
            return False
        self.opened, self.reason = True, ""
        self._keep(opened.keys)
        if opened.liars:
            self._set_lie(min(opened.liars), committed, opened.keys)
        else:
            self._set_result(opened)
        self._context.log_event("opened", parties=len(opened.secrets), keys=len(opened.keys))
        return True

    def _set_lie(self, liar: int, committed: Proposal, keys: list[Item]) -> None:
        """Name a party whose deposit nobody can have dealt, with the proof; the lowest, so that all name the same."""
        assert self.cohort is not None
        items = self._context.signed_items
        deposits = [item for item in items.with_contents("deposit", committed.contents) if item.party == liar]
        digests = items.with_contents("digest", self.cohort.contents)
        self.lie = Lie(liar, (*deposits, *keys, *digests))
        self.reason = (
            f"{self._context.name(liar)} has lied, which is proven: its sealed final message is none. "
            "Schedule the session anew without it"
        )

    def _set_result(self, opened: OpenedDeposits) -> None:
        session, realized = self._context.session, self.realized
        assert self.cohort is not None
        digests = self._digests(self.cohort)
        total, weight = opened.total[:-1], int(opened.total[-1])
        largest = max(int(total.max()), -int(total.min()))
        if not (0 < weight <= session.parties * WEIGHT and largest <= largest_total(session, len(opened.secrets))):
            self.reason = (
                "the final messages do not add up to what honest parties can hold: someone has lied, "
                "and nobody can tell who"
            )
            return
        # What a party has put in by its portions: of round 0, and of each round that it took part in.
        portions = (min(len(of.account.present) + 1, session.pieces) for of in digests.values())
        injected = sum(WEIGHT * count // session.pieces for count in portions)
        exact = not realized.contradictions and weight == injected
        commitments = {party: digest.commitment for party, digest in digests.items()}
        self.result = Result(total, weight, realized, exact, beacon(session.id, commitments, opened.secrets))
        if self._context.me not in self.cohort.parties:
            self.reason = self._own_refusal or _LEFT_OUT

    @property
    def _own_refusal(self) -> str:
        """Why this party has refused a cohort, in this life or an earlier one; empty if it has refused none."""
        own = self._context.ledger.own_items
        reasons = [read(item, Refusal).reason for (kind, _), item in own.items() if kind == "refusal"]
        return reasons[-1] if reasons else ""
