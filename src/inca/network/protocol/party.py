"""A party of a session as a pure state machine: events, time and randomness in; records and messages out.

What a party does when is in the table of `stages`; this file walks it. The driver writes `Effects.records` durably, in
one transaction, and only then sends `Effects.sends`. It never delivers a message of an earlier incarnation of a peer
after one of a later incarnation.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from math import inf

from inca.errors import CannotJoin, CorruptJournal, InvalidPeerMessage, LocalProtocolError
from inca.network.lattice import Numbers
from inca.network.protocol.agreement.agenda import Agenda
from inca.network.protocol.agreement.ballot_signatures import BallotSignatures
from inca.network.protocol.agreement.coin_flip import CoinFlip
from inca.network.protocol.agreement.consensus import Consensus
from inca.network.protocol.anti_entropy import AntiEntropy
from inca.network.protocol.context import Effects, PartyContext
from inca.network.protocol.finalization import Finalization, Result
from inca.network.protocol.joining import Joining
from inca.network.protocol.ledger import Ledger
from inca.network.protocol.messages import Ask, ConsensusMessage, Goodbye, ItemMessage, Message, Offer, Seen, pack
from inca.network.protocol.offer_signatures import OfferSignatures
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.records import Opened, Record, Secret, Vouched
from inca.network.protocol.session import SessionConfig
from inca.network.protocol.signed_items import ONCE, Sign, SignedItems, Verify, printable
from inca.network.protocol.stage_rule import Stage, StageRule
from inca.network.protocol.stages import STAGES, after_decision
from inca.network.protocol.transfers import Transfers

_FIRST_PROPOSERS = 2  # whose proposals are to be expected
_FIRST_RETRY_PERIODS, _MAX_RETRY_PERIODS = 1 / 32, 1 / 4  # after which something without an answer is sent again


class Party:
    """Party number `me` of a session. `open` or `recover` comes first, once; then any event, in the order it happens.

    A call that the state does not allow raises `LocalProtocolError` and changes nothing. A message that no honest peer
    would send is logged and changes nothing.
    """

    def __init__(
        self, session: SessionConfig, me: int, *, sign: Sign, verify: Verify, rng: random.Random, serve_s: float = 0.0
    ) -> None:
        # Their types are written out, as the table of stages, which this module imports, looks at them.
        self.session: SessionConfig = session
        self.me: int = me
        self.serve_s: float = serve_s
        self.stage: Stage = "gathering"
        self.entered: float = 0.0
        """When the stage began."""
        self.retry_at: float = inf
        """When that which has no answer is sent again."""
        self.ledger: Ledger = Ledger(session, me)
        self.signed_items: SignedItems = SignedItems(session, me, self.ledger, sign, verify)
        self.context: PartyContext = PartyContext(session, me, self.ledger, self.signed_items, rng)
        offer_signatures = OfferSignatures(session, me, sign, verify)
        self.coin_flip: CoinFlip = CoinFlip(self.context)
        self.joining: Joining = Joining(self.context, offer_signatures)
        self.transfers: Transfers = Transfers(self.context, offer_signatures)
        self.finalization: Finalization = Finalization(self.context)
        self.agenda: Agenda = Agenda(self.context)
        signatures = BallotSignatures(session, me, sign, verify)
        self.consensus: Consensus = Consensus(self.context, self.agenda, signatures)
        self.anti_entropy: AntiEntropy = AntiEntropy(self.context, self.finalization, self.consensus)
        self.retry_pause: float = 0.0
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
        joining, late = self.joining, (now if began is None else began) >= self.session.start
        joining.vouched = late and first_start
        joining.without_journal = late and not first_start
        self.context.record(Opened(pack(noisy), masks, secret, joining.without_journal))
        self.context.record(Secret(0, sealing))
        joining.away = late
        return self._start(now)

    def recover(self, now: float, records: Iterable[Record], *, first_start: bool = False) -> Effects:
        """Come back with what the journal holds."""
        self._require_not_started()
        for record in records:
            self.ledger.apply(record)
        if (opened := self.ledger.opened) is None:
            raise CorruptJournal("the journal must have an opening, got none")
        joining, finalization = self.joining, self.finalization
        joining.away = True
        joining.without_journal = opened.late and self.ledger.since == 0
        finalization.recover()
        if self.ledger.left is None:
            if first_start and joining.without_journal and not self.ledger.sealed:
                self.context.record(Vouched())
                joining.vouched, joining.without_journal = True, False
            return self._start(now)
        self.stage, self._started, finalization.reason = "left", True, self.ledger.left
        return self.context.flush()

    def tick(self, now: float) -> Effects:
        """Let time pass; to be called at `wakeup` at the latest."""
        self._require_started()
        return self._advance(now)

    def receive(self, now: float, peer: int, message: Message) -> Effects:
        """Take a message of a peer."""
        self._require_peer(peer)
        if not isinstance(message, Ask):
            self.context.mark_up(peer)
        if not isinstance(message, self._rule.ignores):
            try:
                self._handle(now, peer, message)
            except InvalidPeerMessage as error:
                self.context.out.violations.append(peer)
                self.context.log_event("invalid message", peer=peer, what=printable(str(error)))
            except CannotJoin as error:
                self._leave(now, str(error))
            self.coin_flip.go_on()
        return self._advance(now)

    def unsent(self, now: float, message: Message) -> Effects:
        """Take back a message of which certainly no byte has left."""
        self._require_started()
        if isinstance(message, Offer) and not self.finished:
            self.transfers.unsent(message)
        return self._advance(now)

    def in_doubt(self, now: float, message: Message) -> Effects:
        """Learn that the connection on which a message was sent has ended: it may be lost, with its answer or without.

        Of a connection that stands, nothing is lost: without this, no offer is made a second time.
        """
        self._require_started()
        if isinstance(message, Offer) and not self.finished:
            self.transfers.in_doubt(message)
        return self._advance(now)

    def down(self, now: float, peer: int) -> Effects:
        """Wait no longer for this peer until it speaks again."""
        self._require_peer(peer)
        self.context.mark_down(peer, now)
        return self._advance(now)

    def up(self, now: float, peer: int) -> Effects:
        """Expect to hear from this peer, if it is there in time; later it must speak before it is waited for.

        There is a new connection to it: what was sent on an earlier one may be lost.
        """
        self._require_peer(peer)
        self.anti_entropy.connected(now, peer)
        if self.stage == "gathering":
            self.context.mark_up(peer)
        return self._advance(now)

    def planned(self, now: float, refusal: str) -> Effects:
        """Take part, or leave: the loss at full attendance, which `Effects.plan` asked for, is worked out."""
        self._require_started()
        if not self.finished:
            if self.stage != "gathering" or self.coin_flip.flipping or self.joining.may_begin:
                raise LocalProtocolError(f"planned can only be called when it was asked for, got it in {self.stage!r}")
            self.joining.may_begin = True
            if refusal:
                self._leave(now, refusal)
        return self._advance(now)

    def assessed(self, now: float, refusal: str, of: RealizedExecution) -> Effects:
        """Learn why not to deposit, or nothing: the loss on an execution (`Effects.assess`) is known."""
        self._require_started()
        if not self.finished:
            self.finalization.assessed(refusal, of)
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
        rule = self._rule
        times = [rule.deadline(self), rule.due(self)]
        if not rule.terminal:
            awaited = rule.waits_for(self) - {self.me}
            if awaited <= self.context.gone:
                times.append(max(rule.earliest(self), rule.grace(self) if awaited else -inf))
        if self._gossips:
            times.append(self.anti_entropy.due)
        return min(times)

    @property
    def partners(self) -> list[int]:
        """All peers: those first that propose, or pass items on, then in order of the rounds in which they matter."""
        topology = self.context.topology
        peers = [*self.consensus.order[:_FIRST_PROPOSERS], *sorted(self.anti_entropy.neighbours)]
        for receivers, senders in zip(topology.receivers[1:], topology.senders[1:], strict=True):
            peers += [receivers[self.me], senders[self.me]]
        return [peer for peer in dict.fromkeys([*peers, *range(self.session.parties)]) if peer != self.me]

    @property
    def finished(self) -> bool:
        """Whether the party has nothing more to do for itself or for others."""
        return self._rule.terminal

    @property
    def outcome_known(self) -> bool:
        """Whether it is known how the session ends for this party; it may still serve others."""
        return self.stage in ("serving", "over", "left")

    @property
    def result(self) -> Result | None:
        """The result of the session, once it is known."""
        return self.finalization.result

    @property
    def reason(self) -> str:
        """Why there is no result, or why this party is not in it."""
        return self.finalization.reason

    # --- the walk through the stages ------------------------------------------------------------------------------

    @property
    def _rule(self) -> StageRule:
        return STAGES[self.stage]

    @property
    def _gossips(self) -> bool:
        return bool(self._rule.gossips) and self._rule.gossips_while(self)

    def _start(self, now: float) -> Effects:
        self._started = True
        self._enter(now, self.stage)
        return self._advance(now)

    def _advance(self, now: float) -> Effects:
        """Leave all stages that are over, do what is due, and return what the event has led to."""
        self._walk(now)
        if now >= self._rule.due(self):
            self._rule.work(self, now)
            self._walk(now)
        if self._gossips and now >= self.anti_entropy.due:
            self.anti_entropy.tick(now, self._rule.waits_for(self))
        return self.context.flush()

    def _walk(self, now: float) -> None:
        """Go from stage to stage as long as one is over; leave if a decision shows that the journal is behind."""
        try:
            self._go_on(now)
        except CannotJoin as error:  # an own word on a cohort came before the cohort itself
            self._leave(now, str(error))

    def _go_on(self, now: float) -> None:
        """Pass on what is new between one stage and the next; begin no round when asked to leave."""
        self.anti_entropy.pass_on(now)
        while (successor := self._successor(now)) is not None:
            assert successor in self._rule.successors, f"{successor} after {self.stage}"
            if self._departing and successor == "rounds":
                self._say_goodbye(now)
            else:
                self._enter(now, successor)
            self.anti_entropy.pass_on(now)

    def _successor(self, now: float) -> Stage | None:
        """Return the stage that follows, or None while this one lasts."""
        rule = self._rule
        if rule.terminal:
            return None
        if rule.until_decision and self.finalization.apply_decisions():
            return after_decision(self)
        if self.finalization.open():
            return "serving"
        if not self._is_over(now):
            return None
        return rule.successors[0] if rule.then is None else rule.then(self, now)

    def _is_over(self, now: float) -> bool:
        rule = self._rule
        if now >= rule.deadline(self):
            return True
        if now < rule.earliest(self):
            return False
        awaited = rule.waits_for(self) - {self.me}
        return awaited <= (self.context.gone if now >= rule.grace(self) else frozenset())

    def _enter(self, now: float, stage: Stage) -> None:
        self.stage, self.entered, self.retry_at = stage, now, now
        self.retry_pause = _FIRST_RETRY_PERIODS * self.session.period
        self.anti_entropy.start(now)
        self._rule.enter(self, now)
        if self._rule.logged:
            self.context.log_event("stage", stage=stage, round=self.ledger.round)

    def _say_goodbye(self, now: float) -> None:
        self.context.send_all(Goodbye())
        when = f"after round {self.ledger.round}" if self.ledger.round else "before its first round"
        self._leave(now, f"it was asked to leave, and left {when}")

    def _leave(self, now: float, reason: str) -> None:
        self.finalization.reason = reason
        self._enter(now, "left")

    def back_off(self, now: float) -> None:
        """Wait for answers, and longer each time."""
        self.retry_at = now + self.retry_pause
        self.retry_pause = min(2 * self.retry_pause, _MAX_RETRY_PERIODS * self.session.period)

    # --- calls and messages that the stage allows -----------------------------------------------------------------

    def _require_not_started(self) -> None:
        if self._started:
            raise LocalProtocolError("a party can be opened or recovered only once")

    def _require_started(self) -> None:
        if not self._started:
            raise LocalProtocolError("a party must be opened or recovered before anything else")

    def _require_peer(self, peer: int) -> None:
        self._require_started()
        if peer not in self.context.others:
            raise LocalProtocolError(f"a peer must be another of the {self.session.parties} parties, got {peer}")

    def _handle(self, now: float, peer: int, message: Message) -> None:
        if isinstance(message, Ask):
            self.context.mark_down(peer, now)  # on its way back: to be waited for when it says something else
            if self.transfers.deciding or not self.joining.without_journal:
                self.context.send(peer, self._seen_of(peer, now))
        elif isinstance(message, Goodbye):
            self.context.mark_gone(peer, now)
            self.context.log_event("goodbye", peer=peer)
        elif isinstance(message, Seen):
            self.joining.handle_seen(peer, message)
            self.retry_at = self.retry_at if self.joining.unanswered else inf
        elif isinstance(message, ItemMessage):
            self.anti_entropy.handle(now, peer, message)
        elif isinstance(message, ConsensusMessage):
            self.consensus.handle(now, peer, message)
        else:
            self.transfers.handle(peer, message, away=self.joining.away and not self.transfers.deciding)

    def _seen_of(self, peer: int, now: float) -> Seen:
        """Return what a peer that was away is told: what it has said here, and in which round this party is."""
        after_last, items = self.session.rounds + 1, self.signed_items.by_kind
        signed = [items[kind][peer].proof for kind in ONCE if peer in items[kind]]
        current = max(0, self.ledger.round, min(self.session.clock_round(now), after_last))
        current = after_last if self.ledger.sealed else current
        return Seen(self.transfers.seen_of(peer), current, self.ledger.since, signed)
