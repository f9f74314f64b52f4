"""A party of a session as a pure state machine: events, time and randomness in; records and messages out.

What a party does when is in the table of `stages`; this file walks it. The driver writes `Effects.records` durably, in
one transaction, and only then sends `Effects.sends`. It never delivers a message of an earlier incarnation of a peer
after one of a later incarnation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import inf

import numpy as np

from inca._base.validation import refuse
from inca.errors import CannotJoin, CorruptJournal, InvalidPeerMessage, LocalProtocolError
from inca.network.lattice import Numbers
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.agreement.coin_flip import CoinFlip
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.anti_entropy import AntiEntropy
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.finalization import Finalization, Lie, Result
from inca.network.protocol.joining import Joining
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Ask, ConsensusMessage, Goodbye, ItemMessage, Message, Offer, Seen, pack
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.records import Opened, Record, Secret, Vouched
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import Sign, SignedItems, Verify, printable
from inca.network.protocol.stage_rule import PartyComponents, Stage, StageRule
from inca.network.protocol.stages import STAGES, after_decision
from inca.network.protocol.transfers import Transfers

_SECRET_BYTES = 32


class Party:
    """Party number `me` of a session. `open` or `recover` comes first, once; then any event, in the order it happens.

    A call that the state does not allow raises `LocalProtocolError` and changes nothing. A message that no honest peer
    would send is logged and changes nothing.
    """

    def __init__(
        self,
        session: SessionConfig,
        me: int,
        *,
        sign: Sign,
        verify: Verify,
        rng: random.Random,
        serve_s: float = 0.0,
    ) -> None:
        self.session, self.me = session, me
        self.stage: Stage = "gathering"
        self.ledger = Ledger(session, me)
        self.signed_items = SignedItems(session, me, self.ledger, sign, verify)
        offer_signatures = OfferSignatures(session, me, sign, verify)
        context = PartyContext(session, me, self.ledger, self.signed_items, rng)
        finalization = Finalization(context)
        agenda = Agenda(context)
        consensus = Consensus(context, agenda, BallotSignatures(session, me, sign, verify))
        self._context = context
        self._components = PartyComponents(
            context,
            CoinFlip(context),
            Joining(context, offer_signatures),
            Transfers(context, offer_signatures),
            finalization,
            agenda,
            consensus,
            AntiEntropy(context, finalization, consensus),
            serve_s=serve_s,
        )
        self._started = self._departing = False

    def __repr__(self) -> str:
        return f"Party({self.me}, {self.stage!r}, {self.ledger})"

    # --- calls of the driver --------------------------------------------------------------------------------------

    def open(
        self,
        now: float,
        noisy: Numbers,
        masks: bytes,
        secret: bytes,
        sealing: bytes,
        *,
        began: float | None = None,
        first_start: bool = False,
    ) -> Effects:
        """Begin with a value that has its independent noise already.

        All cancelling noise follows from the random bytes `masks`, the secrets with which final messages are sealed and
        opened from `sealing`; `secret` is this party's part in the coin flip. It `began` when it was started, and
        `first_start` is its operator's word that there was no earlier incarnation.
        """
        self._require_not_started()
        shape, kind = np.shape(noisy), getattr(noisy, "dtype", type(noisy).__name__)
        if shape != (self.session.dimension,) or kind != np.int64:  # never the value itself
            refuse("noisy", f"{kind} of shape {shape}", f"int64 numbers of shape ({self.session.dimension},)")
        for name, random_bytes in (("masks", masks), ("secret", secret), ("sealing", sealing)):
            if len(random_bytes) != _SECRET_BYTES:
                refuse(f"the length of {name}", len(random_bytes), f"{_SECRET_BYTES} bytes")
        joining, late = self._components.joining, (now if began is None else began) >= self.session.start
        joining.vouched = late and first_start
        joining.without_journal = late and not first_start
        self._context.record(Opened(pack(noisy), masks, secret, joining.without_journal))
        self._context.record(Secret(0, sealing))
        joining.away = late
        return self._start(now)

    def recover(self, now: float, records: Iterable[Record], *, first_start: bool = False) -> Effects:
        """Come back with what the journal holds."""
        self._require_not_started()
        for record in records:
            self.ledger.apply(record)
        if (opened := self.ledger.opened) is None:
            raise CorruptJournal("the journal must have an opening, got none")
        joining, finalization = self._components.joining, self._components.finalization
        joining.away = True
        joining.without_journal = opened.late and self.ledger.since == 0
        finalization.recover()
        if self.ledger.left is None:
            if first_start and joining.without_journal and not self.ledger.sealed:
                self._context.record(Vouched())
                joining.vouched, joining.without_journal = True, False
            return self._start(now)
        self.stage, self._started, finalization.reason = "left", True, self.ledger.left
        return self._context.flush()

    def tick(self, now: float) -> Effects:
        """Let time pass; to be called at `wakeup` at the latest."""
        self._require_started()
        return self._advance(now)

    def receive(self, now: float, peer: int, message: Message) -> Effects:
        """Take a message of a peer."""
        self._require_peer(peer)
        if not isinstance(message, Message):
            raise LocalProtocolError(f"a message must be one of the protocol, got a {type(message).__name__}")
        if not isinstance(message, Ask):
            self._context.mark_up(peer)
        if not isinstance(message, self._rule.ignores):
            try:
                self._handle(now, peer, message)
            except InvalidPeerMessage as error:
                self._context.out.violations.append(peer)
                self._context.log_event("invalid message", peer=peer, what=printable(str(error)))
            except CannotJoin as error:
                self._leave(now, str(error))
            self._components.coin_flip.go_on()
        return self._advance(now)

    def unsent(self, now: float, message: Message) -> Effects:
        """Take back a message of which certainly no byte has left."""
        self._require_started()
        if isinstance(message, Offer) and not self.finished:
            self._components.transfers.unsent(message)
        return self._advance(now)

    def in_doubt(self, now: float, message: Message) -> Effects:
        """Learn that the connection on which a message was sent has ended: it may be lost, with its answer or without.

        Of a connection that stands, nothing is lost: without this, no offer is made a second time.
        """
        self._require_started()
        if isinstance(message, Offer) and not self.finished:
            self._components.transfers.in_doubt(message)
        return self._advance(now)

    def down(self, now: float, peer: int) -> Effects:
        """Wait no longer for this peer until it speaks again."""
        self._require_peer(peer)
        self._context.mark_down(peer, now)
        return self._advance(now)

    def up(self, now: float, peer: int) -> Effects:
        """Expect to hear from this peer, if it is there in time; later it must speak before it is waited for.

        There is a new connection to it: what was sent on an earlier one may be lost.
        """
        self._require_peer(peer)
        self._components.anti_entropy.connected(now, peer)
        if self._rule.connected_is_up:
            self._context.mark_up(peer)
        return self._advance(now)

    def planned(self, now: float, refusal: str) -> Effects:
        """Take part, or leave: the loss at full attendance, which `Effects.plan` asked for, is worked out."""
        joining = self._components.joining
        if self._require_call("planned", asked=not (self._components.coin_flip.flipping or joining.may_begin)):
            joining.may_begin = True
            if refusal:
                self._leave(now, refusal)
        return self._advance(now)

    def assessed(self, now: float, refusal: str, of: RealizedExecution | None = None) -> Effects:
        """Learn why not to deposit, or nothing: the loss on the agreed execution (`Effects.assess`) is known."""
        if of is not None or self._require_call("assessed", asked=True):
            self._require_started()
            if not self.finished:
                self._components.finalization.assessed(refusal, of)
        return self._advance(now)

    def depart(self, now: float) -> Effects:
        """Leave for good as soon as that costs the others little, and tell them.

        It finishes its round and begins no other. What it has exchanged is undone by those who stay
        (docs/settlement.md), so it has nothing to hand over. When the rounds are over it stays to the end, which is
        near: whoever has sealed its balance is counted on.
        """
        self._require_started()
        self._departing = True
        return self._advance(now)

    # --- what the driver may know ---------------------------------------------------------------------------------

    @property
    def wakeup(self) -> float:
        """When the party wants to be called next."""
        rule, components = self._rule, self._components
        times = [rule.deadline(components), rule.due(components)]
        if not rule.terminal:
            awaited = rule.waits_for(components) - {self.me}
            if awaited <= self._context.gone:
                times.append(max(rule.earliest(components), rule.grace(components) if awaited else -inf))
        if self._gossips:
            times.append(components.anti_entropy.due)
        return min(times)

    @property
    def partners(self) -> list[int]:
        """All peers, those first with whom most will be exchanged, and soonest."""
        return self._components.partners

    @property
    def finished(self) -> bool:
        """Whether the party has nothing more to do for itself or for others."""
        return self._rule.terminal

    @property
    def outcome_known(self) -> bool:
        """Whether it is known how the session ends for this party; it may still serve others."""
        return self._rule.outcome_known

    @property
    def result(self) -> Result | None:
        """The result of the session, once it is known."""
        return self._components.finalization.result

    @property
    def lie(self) -> Lie | None:
        """The proof that a party has lied, if that is how the session ends."""
        return self._components.finalization.lie

    @property
    def unfinished(self) -> bool:
        """Whether the party has accepted commit and does not know the outcome: it must be started again until then."""
        return self._components.finalization.unfinished

    @property
    def deposits(self) -> tuple[int, int]:
        """How many final messages of the last cohort are here, and of how many parties."""
        return self._components.finalization.deposits

    @property
    def keys(self) -> tuple[int, int]:
        """How many trustees have shown their keys, and how many must for the final messages to be opened."""
        return self._components.finalization.keys

    @property
    def reason(self) -> str:
        """Why there is no result, or why this party is not in it."""
        return self._components.finalization.reason

    # --- the walk through the stages ------------------------------------------------------------------------------

    @property
    def _rule(self) -> StageRule:
        return STAGES[self.stage]

    @property
    def _gossips(self) -> bool:
        rule = self._rule
        return bool(rule.gossips) and rule.gossips_while(self._components)

    def _start(self, now: float) -> Effects:
        self._started = True
        self._enter(now, self.stage)
        return self._advance(now)

    def _advance(self, now: float) -> Effects:
        """Leave all stages that are over, do what is due, and return what the event has led to."""
        self._walk(now)
        rule, components = self._rule, self._components
        if now >= rule.due(components):
            rule.work(components, now)
            self._walk(now)
        if self._gossips and now >= components.anti_entropy.due:
            components.anti_entropy.tick(now, self._rule.waits_for(components))
        return self._context.flush()

    def _walk(self, now: float) -> None:
        """Go from stage to stage as long as one is over; leave if a decision shows that the journal is behind."""
        try:
            self._go_on(now)
        except CannotJoin as error:  # an own word on a cohort came before the cohort itself
            self._leave(now, str(error))

    def _go_on(self, now: float) -> None:
        """Pass on what is new between one stage and the next; begin no round when asked to leave."""
        self._components.anti_entropy.pass_on(now)
        while (successor := self._successor(now)) is not None:
            assert successor in self._rule.successors, f"{successor} after {self.stage}"
            if self._departing and successor == "rounds":
                self._say_goodbye(now)
            else:
                self._enter(now, successor)
            self._components.anti_entropy.pass_on(now)

    def _successor(self, now: float) -> Stage | None:
        """Return the stage that follows, or None while this one lasts."""
        rule, components = self._rule, self._components
        if rule.until_decision and components.finalization.apply_decisions():
            return after_decision(components)
        if rule.until_opened and components.finalization.open():
            return "serving"
        if rule.terminal or not self._is_over(now):
            return None
        return rule.successors[0] if rule.then is None else rule.then(components, now)

    def _is_over(self, now: float) -> bool:
        rule, components = self._rule, self._components
        if now >= rule.deadline(components):
            return True
        if now < rule.earliest(components):
            return False
        awaited = rule.waits_for(components) - {self.me}
        return awaited <= (self._context.gone if now >= rule.grace(components) else frozenset())

    def _enter(self, now: float, stage: Stage) -> None:
        self.stage = stage
        self._components.start_stage(now)
        self._rule.enter(self._components, now)
        if self._rule.logged:
            self._context.log_event("stage", stage=stage, round=self.ledger.round)

    def _say_goodbye(self, now: float) -> None:
        self._context.send_all(Goodbye())
        when = f"after round {self.ledger.round}" if self.ledger.round else "before its first round"
        self._leave(now, f"it was asked to leave, and left {when}")

    def _leave(self, now: float, reason: str) -> None:
        self._components.finalization.reason = reason
        self._enter(now, "left")

    # --- calls and messages that the stage allows -----------------------------------------------------------------

    def _require_not_started(self) -> None:
        if self._started:
            raise LocalProtocolError("a party can be opened or recovered only once")

    def _require_started(self) -> None:
        if not self._started:
            raise LocalProtocolError("a party must be opened or recovered before anything else")

    def _require_peer(self, peer: int) -> None:
        self._require_started()
        if peer not in self._context.others:
            raise LocalProtocolError(f"a peer must be another of the {self.session.parties} parties, got {peer}")

    def _require_call(self, call: str, *, asked: bool) -> bool:
        """Refuse a call that was not asked for; return whether it still matters."""
        self._require_started()
        if not self.finished and not (asked and call in self._rule.calls):
            raise LocalProtocolError(f"{call} can only be called when it was asked for, got it in stage {self.stage!r}")
        return not self.finished

    def _handle(self, now: float, peer: int, message: Message) -> None:
        components = self._components
        joining, transfers = components.joining, components.transfers
        if isinstance(message, Ask):
            self._context.mark_down(peer, now)  # on its way back: to be waited for when it says something else
            if transfers.deciding or not joining.without_journal:
                self._context.send(peer, components.seen_of(peer, now, rounds_over=self._rule.rounds_over))
        elif isinstance(message, Goodbye):
            self._context.mark_gone(peer, now)
            self._context.log_event("goodbye", peer=peer)
        elif isinstance(message, Seen):
            joining.handle_seen(peer, message)
            components.retry_at = components.retry_at if joining.unanswered else inf
        elif isinstance(message, ItemMessage):
            components.anti_entropy.handle(now, peer, message)
        elif isinstance(message, ConsensusMessage):
            components.consensus.handle(now, peer, message)
        else:
            transfers.handle(peer, message, away=joining.away and not transfers.deciding)
