"""A party at work: the state machine with its journal on disk, the transport beneath it, and a clock.

Whatever happened since the last time is handed to the state machine at once; its records go to the journal in one
transaction, and only then are its messages sent.
"""

from __future__ import annotations

import asyncio
import os
import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from inca._base.types import Array
from inca.errors import CorruptJournal, InvalidInput, InvalidPeerMessage, JournalUnusable
from inca.network.addresses import Address
from inca.network.membership.identity import Identity, verify
from inca.network.node.clock_check import check_clocks
from inca.network.node.connect_ahead import ConnectAhead, connected_ahead
from inca.network.node.event_log import EventLog, StatusFile
from inca.network.node.journal import Journal, check_disk_space
from inca.network.node.loss_check import LossCheck, LossChecker
from inca.network.node.progress import TimeLeft, here_of
from inca.network.node.session_clock import Clock, session_clock
from inca.network.node.session_cost import session_bytes
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess, limits_for, start_transport, transport_for
from inca.network.node.warm_up import in_daemon_thread
from inca.network.payloads import LARGE_BYTES
from inca.network.protocol.context import Effects
from inca.network.protocol.finalization import Lie, Result
from inca.network.protocol.messages import Message, Nudge, Offer, decode, encode, encode_in_pieces
from inca.network.protocol.party import Party
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.signed_items import printable
from inca.network.transport.failures import Failure, FailureCause
from inca.network.transport.frames import Received
from inca.network.transport.interface import TransportEvents

_EVENTS_PER_COMMIT = 256  # handed to the state machine before its records are written
_PROBE = encode(Nudge(0))  # there is no round 0 to speak of: it asks for nothing
_GOODBYE_S = 1.0  # for which connections are opened to tell others that this party leaves
_LINGER_S = 2.0  # for which a party with a wrong clock can still be measured by the others
_MAX_SLEEP_S = 3600.0
_STATUS_S = 1.0  # after which the status is written again, if it has changed
_STATUS_BYTES = 2**14  # received, in which the status counts, so that small messages do not change it
_CONNECT_AHEAD_S = 60.0  # of the start


@dataclass(frozen=True, eq=False)
class SessionEnd:
    """How a party's session ended: with a result, or for a reason."""

    result: Result | None
    reason: str
    loss_check: LossCheck | None = None
    loss_checker: LossChecker | None = None
    unfinished: bool = False
    """Whether there may still be a result: the party has accepted commit, and does not know the outcome."""
    lie: Lie | None = None


@dataclass(frozen=True, kw_only=True)
class NodeOptions:
    """What an operator chooses for a party, and the clock it goes by: by default one that begins with the node."""

    clip: bool = False
    access: NetworkAccess = field(default_factory=NetworkAccess)
    first_start: bool = False
    serve_s: float = 0.0
    unfinished_until: float = inf
    """Until when (Unix time) a party waits that has accepted commit and lacks the outcome; it can go on later."""
    clock: Clock | None = None


class Node(TransportEvents):
    """One party of a session; `run` takes part until the end."""

    def __init__(
        self,
        setup: SessionSetup,
        identity: Identity,
        folder: Path,
        read_value: Callable[[], Array],
        options: NodeOptions | None = None,
        *,
        on_event: Callable[[dict[str, Any]], None] | None = None,
        on_ended: Callable[[SessionEnd], None] | None = None,
    ) -> None:
        me, self._options = setup.roster.party_of(identity), options or NodeOptions()
        self.setup, self.identity, self.me, self.folder = setup, identity, me, folder
        self._read_value, self._on_event, self._on_ended = read_value, on_event, on_ended
        self._clock = self._options.clock or session_clock()
        rng, serve_s = random.SystemRandom(), self._options.serve_s
        self._party = Party(setup.session, me, sign=identity.sign, verify=self._verify, rng=rng, serve_s=serve_s)
        self._events: deque[Callable[[float], Effects]] = deque()
        self._woken = asyncio.Event()
        self._ahead = ConnectAhead(lambda peer: self._transport.send(peer, _PROBE))
        self._loss_checker: LossChecker | None = None
        self._told: SessionEnd | None = None
        self._telling: asyncio.Task[None] | None = None
        self._stopping = self._departing = False
        self._bytes_received, self._deposits_left = 0, TimeLeft()
        self._relays: dict[str, str] = {}  # at which we registered, and why not if we are not
        self._written_changes = 0  # of the items of the party, when those to come were last written ahead

    # --- from outside -------------------------------------------------------------------------------------------

    def stop(self) -> None:
        """Stop soon, cleanly; the party can go on when it is started again."""
        self._stopping = True
        self._woken.set()

    def depart(self) -> bool:
        """Leave the session for good at the end of the round, or, when the rounds are over, at the end."""
        self._departing = self._party.ledger.round > 0 and not self._party.outcome_known
        self._woken.set()
        return self._departing

    async def run(self) -> SessionEnd:
        """Take part in the session."""
        if (self.folder / "ended.json").exists() and not self._options.serve_s:
            raise InvalidInput(f"the session has ended here before ({self.folder}): a session is never held twice")
        began = self._clock()
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        session = self.setup.session
        check_disk_space(self.folder, session)
        self.journal = Journal(self.folder / "journal.db", session=session.id, party=self.me)
        self._log = EventLog(self.folder / "log.jsonl", self.setup.roster.names, self._on_event)
        self._status = StatusFile(self.folder / "status.json")
        try:
            records = self.journal.read()
            noisy = self.setup.add_noise(self._read_value(), clip=self._options.clip) if not records else None
            await in_daemon_thread(self._load_accountant)
            await self._open_transport()
            try:
                await self._check_clocks()
                self._write_status(stage="drawing")  # which keeps this thread busy for a while if vectors are long
                first_start = self._options.first_start
                if records:
                    self._log.log_event("comes back", records=len(records))
                    effects = self._party.recover(self._clock(), records, first_start=first_start)
                    self._commit(effects)
                elif noisy is not None:
                    secrets = [os.urandom(32) for _ in range(3)]
                    self._commit(self._party.open(self._clock(), noisy, *secrets, began=began, first_start=first_start))
                self._write_status(now=True)
                await self._take_part()
            finally:
                await self._transport.close()
        except CorruptJournal as error:
            raise JournalUnusable(str(error)) from None
        finally:
            self._log.log_event("stopped" if self._stopping or self._party.finalization.unfinished else "ended")
            self._log.close()
            self.journal.close()
        return self._with_loss(self._end()) if self._told is None else self._told

    # --- the loop -----------------------------------------------------------------------------------------------

    async def _open_transport(self) -> None:
        roster = self.setup.roster
        limits = limits_for(self.setup.session)
        access = self._options.access
        self._transport = transport_for(roster, self.identity, limits, self, access, clock=self._clock)
        await start_transport(self._transport, roster.addresses_of(self.me), access)
        session, start = roster.session.hex(), roster.terms.start
        self._log.log_event("listens", session=session, parties=len(roster.parties), start=start)

    async def _check_clocks(self) -> None:
        try:
            await check_clocks(self._transport, self.setup, self.me, self._log.log_event, self._clock)
        except InvalidInput as error:
            self._log.log_event("refuses to start", reason=str(error))
            await asyncio.sleep(_LINGER_S)
            raise

    async def _take_part(self) -> None:
        party = self._party
        while not (party.finished or self._stopping or self._clock() >= self._patience_ends):
            if self._departing:
                self._departing = False
                self._post(party.depart)
            if not self._events:
                await self._sleep(min(party.wakeup, self._patience_ends) - self._clock())
            effects = Effects()
            for _ in range(min(len(self._events), _EVENTS_PER_COMMIT)):
                effects.extend(self._events.popleft()(self._clock()))
            effects.extend(party.tick(self._clock()))
            self._commit(effects)
            self._begin_to_tell()
            await asyncio.sleep(0)  # let the transport read and write
        if party.stage == "left" and not self._stopping:
            await asyncio.sleep(_GOODBYE_S)
        if self._telling is not None:
            await self._telling
        await self._tell_end()  # who comes after the end of everything has left before it began
        self._write_status(now=True)

    @property
    def _patience_ends(self) -> float:
        """Until when to wait for those without whom there is no outcome, if that is what is left to do."""
        unfinished = self._party.outcome_known and self._party.finalization.unfinished
        return self._options.unfinished_until if unfinished else inf

    def _begin_to_tell(self) -> None:
        """Tell how the session ends, if there is news, while others are served: losses and certificates take long."""
        if self._telling is not None and self._telling.done():
            self._telling.result()
            self._telling = None
        if self._telling is None and self._has_news:
            self._telling = asyncio.create_task(self._tell_end())
            self._telling.add_done_callback(lambda _: self._woken.set())

    @property
    def _has_news(self) -> bool:
        """Whether the end is known, and is not the one that was told; a result may come while others are served."""
        end, told = self._party.finalization, self._told
        as_told = told is not None and (told.result, told.unfinished) == (end.result, end.unfinished)
        return self._party.outcome_known and not as_told

    async def _tell_end(self) -> None:
        """Tell how the session ends, if there is news."""
        if not self._has_news:
            return
        self._told = end = self._end()
        if end.unfinished:
            self._log.log_event("unfinished", reason=end.reason)
        self._told = await asyncio.to_thread(self._with_loss, end)
        if self._on_ended is not None:
            await asyncio.to_thread(self._on_ended, self._told)

    def _end(self) -> SessionEnd:
        end = self._party.finalization
        return SessionEnd(end.result, end.reason, unfinished=end.unfinished, lie=end.lie)

    def _with_loss(self, end: SessionEnd) -> SessionEnd:
        return replace(end, loss_check=self._final_loss(end.result), loss_checker=self._loss_checker)

    def _final_loss(self, result: Result | None) -> LossCheck | None:
        """Return the loss on the agreed execution; without a result, the largest that was worked out.

        A party that was restarted has forgotten its loss, if it had made its deposit before.
        """
        checks = {} if self._loss_checker is None else self._loss_checker.checks
        if result is None:
            return max(checks.values(), key=lambda check: check.epsilon, default=None)
        cohort = result.realized.cohort
        if self.me in cohort and cohort not in checks:
            return self._known_loss_checker().realized(result.realized)
        return checks.get(cohort)

    async def _sleep(self, seconds: float) -> None:
        self._woken.clear()
        if seconds > 0:
            # While a large frame arrives nothing happens, but for what the status says of it.
            longest = _STATUS_S if self._party.signed_items.sealed_bytes >= LARGE_BYTES else _MAX_SLEEP_S
            timer = asyncio.get_running_loop().call_later(min(seconds, longest), self._woken.set)
            await self._woken.wait()
            timer.cancel()

    def _commit(self, effects: Effects) -> None:
        """Make the records durable, and only then send anything."""
        self.journal.append(effects.records)
        if (changes := self._party.signed_items.changes) != self._written_changes:
            self._written_changes = changes
            self.journal.write_ahead(self._party.finalization.sealed_messages)
        sent, frame = None, tuple[bytes, ...]()
        for peer, message in effects.sends:
            if message is not sent:  # the same to all is encoded once
                sent, frame = message, encode_in_pieces(message)
            self._transport.send(peer, frame, _label(message))
        for event, fields in effects.log_events:
            self._log.log_event(event, **fields)
        if effects.plan:
            self._connect_ahead()
            self._work(self._check_planned_loss, self._party.planned)
        if (realized := effects.assess) is not None:
            self._work(partial(self._check_realized_loss, realized), partial(self._party.assessed, of=realized))
        self._write_status()

    def _connect_ahead(self) -> None:
        """Connect before the start to those with whom there will be something to exchange.

        Rounds need not wait for that then, and who dies is missed at once. Whoever is there early leaves it to the
        other end, if that has a lower number, or is not there yet.
        """
        now, start = self._clock(), self.setup.session.start
        early = now < start - _CONNECT_AHEAD_S

        def connect() -> None:
            peers = self._party.partners[: connected_ahead(self.setup.session)]
            there = self._transport.connected
            self._ahead.begin(peer for peer in peers if peer not in there and (not early or peer > self.me))

        if now < start:
            asyncio.get_running_loop().call_later(max(0.0, start - _CONNECT_AHEAD_S - now), connect)

    def _post(self, event: Callable[[float], Effects]) -> None:
        self._events.append(event)
        self._woken.set()

    def _write_status(self, *, now: bool = False, stage: str = "") -> None:
        party = self._party
        (deposits, expected), (keys, keys_needed) = party.finalization.deposits, party.finalization.keys
        arriving, sealed_bytes = self._transport.arriving, party.signed_items.sealed_bytes
        received = self._bytes_received + sum(arriving)
        here = here_of(deposits, expected, arriving, sealed_bytes)
        fields = {
            "session": self.setup.session.id.hex(),
            "party": self.identity.name,
            "stage": stage or party.stage,
            "round": party.ledger.round,
            "rounds": self.setup.session.rounds,
            "attended": len(party.ledger.fates),
            "open_offers": len(party.ledger.open),
            "connected": len(self._transport.connected),
            "through_relays": sum(way.relay is not None for way in self._transport.ways.values()),
            "relays": dict(self._relays),
            "deposits": deposits,
            "expected": expected,
            "percent": min(99, int(100 * here / expected)) if deposits < expected else 100,
            "seconds_left": self._deposits_left.look(self._clock(), here, expected),
            "keys": keys,
            "keys_needed": keys_needed,
            "bytes_received": received - received % _STATUS_BYTES,
            "bytes_expected": session_bytes(self.setup.session).traffic,
            "reason": party.reason,
        }
        if self._status.write(fields, now=now) and self._on_event is not None:
            self._on_event({"event": "status", **fields})

    # --- what the transport tells -------------------------------------------------------------------------------

    def received(self, peer: int, frame: Received) -> None:
        """Take a frame of a peer."""
        self._bytes_received += len(frame)
        try:
            message = decode(frame)
        except InvalidPeerMessage as error:
            what = printable(str(error))
            self._log.log_event("invalid message", peer=peer, what=what)
            self._transport.report_violation(peer, f"sent an invalid message: {what}")
            return
        self._post(lambda now: self._receive(now, peer, message))

    def _receive(self, now: float, peer: int, message: Message) -> Effects:
        """Give a message to the party, unless its sender has been refused while the message was waiting."""
        if self._transport.refuses(peer):
            return Effects()
        effects = self._party.receive(now, peer, message)
        for liar in effects.violations:
            self._transport.report_violation(liar, "sent a message that no honest party sends")
        return effects

    def unsent(self, peer: int, token: object) -> None:
        """Take back an offer of which no byte has left."""
        if isinstance(token, Offer):
            self._post(lambda now: self._party.unsent(now, token))

    def in_doubt(self, peer: int, token: object) -> None:
        """Learn that an offer may be lost, since its connection has ended."""
        if isinstance(token, Offer):
            self._post(lambda now: self._party.in_doubt(now, token))

    def up(self, peer: int) -> None:
        """Learn that a peer is there."""
        self._ahead.settled(peer)
        self._post(lambda now: self._party.up(now, peer))

    def lost(self, peer: int, failure: Failure) -> None:
        """Try a lost connection again, which tells whether the peer is gone; at the end that is no longer needed.

        One that was closed since nobody had anything to say tells nothing, and in long rounds there are many.
        """
        self._log.log_event("lost", peer=peer, cause=failure.cause, reason=failure.detail)
        if failure.cause is not FailureCause.IDLE and not self._party.outcome_known:
            self._transport.send(peer, _PROBE)

    def down(self, peer: int, failure: Failure) -> None:
        """Learn that a peer cannot be reached."""
        self._log.log_event("down", peer=peer, cause=failure.cause, reason=failure.detail)
        self._ahead.settled(peer)
        self._post(lambda now: self._party.down(now, peer))

    def violated(self, peer: int | None, address: str, failure: Failure, violations: int) -> None:
        """Log who broke the rules of the transport."""
        fields = {"address": address, "cause": failure.cause, "reason": failure.detail, "violations": violations}
        self._log.log_event("violation", peer=peer, **fields)

    def log_event(self, event: str, **fields: object) -> None:
        """Log what else the transport has noticed."""
        self._log.log_event(event, **fields)

    def registered(self, relay: Address) -> None:
        """Log that the others can reach us at a relay."""
        self._relays[str(relay)] = ""
        self._log.log_event("registered", relay=relay)

    def unregistered(self, relay: Address, failure: Failure) -> None:
        """Log why the others cannot reach us at a relay; the transport tries again."""
        self._relays[str(relay)] = failure.detail
        self._log.log_event("unregistered", relay=relay, cause=failure.cause, reason=failure.detail)

    def contested(self, relay: Address) -> None:
        """Log that somebody else has our key: a second process, or a copy of the machine."""
        self._log.log_event("contested", relay=relay)

    def _verify(self, party: int, text: bytes, signature: bytes) -> bool:
        return verify(self.setup.roster.parties[party].certificate, text, signature)

    # --- the accountant, in a thread of its own -----------------------------------------------------------------

    def _load_accountant(self) -> None:
        """Load the accountant before the start, so that nobody waits for it later."""
        self._loss_checker = LossChecker(self.setup, self.setup.session.seed or bytes(32), self.me)
        _ = self._loss_checker.planned

    def _work(self, job: Callable[[], str], then: Callable[..., Effects]) -> None:
        """Do something long without keeping the peers waiting; it returns why not to go on, or nothing."""
        done = asyncio.get_running_loop().run_in_executor(None, job)
        done.add_done_callback(lambda task: self._post(partial(then, refusal=_refusal(task))))

    def _check_planned_loss(self) -> str:
        """Is the loss allowed if everyone is present throughout? Asked before anything is sent."""
        refusal = self._log_loss("planned loss", self._known_loss_checker().planned)
        return f"even with everyone present {refusal}" if refusal else ""

    def _check_realized_loss(self, realized: RealizedExecution) -> str:
        """Is the loss allowed on the agreed execution? Asked before anything is deposited for it."""
        return self._log_loss("own loss", self._known_loss_checker().realized(realized))

    def _known_loss_checker(self) -> LossChecker:
        """Return what works out losses for the schedule, which must be known."""
        seed = self._party.ledger.seed
        assert seed is not None
        if self._loss_checker is None or self._loss_checker.seed != seed:
            self._loss_checker = LossChecker(self.setup, seed, self.me)
        return self._loss_checker

    def _log_loss(self, event: str, check: LossCheck) -> str:
        delta = self.setup.roster.terms.delta
        fields = {"epsilon": check.epsilon, "allowed": check.allowed, "delta": delta, "coalitions": check.coalitions}
        self._log.log_event(event, **fields)
        return check.refusal


def _label(message: Message) -> Offer | None:
    """Return what the transport remembers of a message: which offer it is, not its payload."""
    return Offer(message.round, b"") if isinstance(message, Offer) else None


def _refusal(task: asyncio.Future[str]) -> str:
    """Return what a job returned; one that failed speaks against a deposit."""
    error = task.exception()
    return task.result() if error is None else f"its loss could not be worked out: {error}"
