"""Between two sessions of a sequence the parties catch up: who lacks an outcome gets it from somebody who has it.

Everyone listens for an agreed while. Only a party that lacks something connects to the others; mostly nobody does.
To the transport this is a session of its own, with the same certificates. Results are public among the parties. A
party takes over what two others say in the same words, so that one member that lies changes nothing; of two or three
parties there may be only one other left, and its word is enough.

Everything that comes in is bounded by what there can be: one outcome for each session so far, one answer to each
question, one average at a time, and only if it was asked for. Questions are answered once on a connection, which loses
nothing while it stands. Whoever does not deliver the average that it says it has gives way to the next.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.session_clock import Clock, session_clock
from inca.network.node.transport_setup import NetworkAccess, start_transport, transport_for
from inca.network.sequence.outcome_log import (
    DIGEST_BYTES,
    NO_RESULT,
    OutcomeLog,
    SessionResult,
    from_bytes,
    last_result,
    to_bytes,
)
from inca.network.transport.failures import Failure
from inca.network.transport.frames import Received
from inca.network.transport.interface import TransportEvents
from inca.network.transport.limits import Limits

_MAX_FRAME_BYTES = 10_000_000 * 8 + 2**16  # the longest average that terms allow, as a file
_RETRY_AFTER_S = 0.25  # before a peer that has not answered is asked again
_PATIENCE = 1 / 4  # part of the time for catching up in which a peer must deliver an average
_MIN_PATIENCE_S = 1.0
_OUTCOME_BYTES = DIGEST_BYTES + 2  # at most, in a message
_SHORT_BYTES = 64  # a message without outcomes or average, at most
_MAX_ANSWERS = 2  # to one question on one connection: it may have been asked again when the connection was new
_MAX_AHEAD = 2  # sessions by which another's clock may be ahead


class KnownOutcomes(msgspec.Struct, frozen=True, tag="tell", array_like=True, forbid_unknown_fields=True):
    """The outcomes that I know; `ask`: send me yours."""

    outcomes: list[bytes]
    ask: bool


class AverageWanted(msgspec.Struct, frozen=True, tag="want", array_like=True, forbid_unknown_fields=True):
    """Send me the average of this session."""

    number: int


class AverageSent(msgspec.Struct, frozen=True, tag="give", array_like=True, forbid_unknown_fields=True):
    """The average of a session, as a .npy file, its standard error where it is known, and its beacon."""

    number: int
    average: bytes
    standard_error: float | None
    beacon: bytes


CatchUpMessage = KnownOutcomes | AverageWanted | AverageSent
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[CatchUpMessage] = msgspec.msgpack.Decoder(CatchUpMessage)
_average_decoder: msgspec.msgpack.Decoder[AverageSent] = msgspec.msgpack.Decoder(AverageSent)


@dataclass
class CatchUpResult:
    """What came of catching up."""

    peers: set[int] = field(default_factory=set)
    adopted_from: int | None = None
    vouched_by: set[int] = field(default_factory=set)
    changed: bool = False


class CatchUp(TransportEvents):
    """One party's side of catching up before a session."""

    def __init__(
        self, roster: Roster, me: int, outcome_log: OutcomeLog, number: int, clock: Clock | None = None
    ) -> None:
        self._roster, self._me, self._outcome_log = roster, me, outcome_log
        self._clock = clock or session_clock()
        self._lacking = last_result(outcome_log.outcomes) < number - 1
        self.result = CatchUpResult()
        self._max_outcomes = max(number, len(outcome_log)) + _MAX_AHEAD
        self._max_short_bytes = _SHORT_BYTES + self._max_outcomes * _OUTCOME_BYTES
        self._asked: set[int] = set()
        self._unanswered: set[int] = set()  # of those that were asked
        self._known_by: dict[int, tuple[bytes, ...]] = {}  # outcomes by peer, up to the last result
        self._results: dict[int, SessionResult] = {}
        self._requested: tuple[int, int] | None = None  # peer, session: asked for and not here yet
        self._requested_until = 0.0
        self._patience_s = _MIN_PATIENCE_S
        self._answered: Counter[tuple[int, int]] = Counter()  # (peer, session, or 0 for outcomes), on its connection

    async def hold(self, identity: Identity, until: float, access: NetworkAccess) -> CatchUpResult:
        """Listen, and ask if something is lacking."""
        session = hashlib.sha256(b"inca-meeting/1" + self._roster.session).digest()
        limits = replace(Limits(), max_frame_bytes=_MAX_FRAME_BYTES, max_queue_shared_bytes=2 * _MAX_FRAME_BYTES)
        self._transport = transport_for(
            self._roster, identity, limits, self, access, session=session, clock=self._clock
        )
        await start_transport(self._transport, self._roster.addresses_of(self._me), access)
        self._patience_s = max(_MIN_PATIENCE_S, _PATIENCE * (until - self._clock()))
        try:
            while (left := until - self._clock()) > 0.0:
                if self._lacking:
                    self._ask_and_fetch()
                await asyncio.sleep(min(left, _RETRY_AFTER_S))
        finally:
            await self._transport.close()
        return self.result

    def _ask_and_fetch(self) -> None:
        """Ask those who have not answered; fetch what the best of the answers has and we have not."""
        for peer in range(len(self._roster.parties)):
            if peer != self._me and peer not in self._asked:
                self._asked.add(peer)
                self._unanswered.add(peer)
                self._send(peer, KnownOutcomes(self._outcome_log.outcomes, ask=True))
        if self._requested is not None and time.monotonic() >= self._requested_until:
            self._give_up(self._requested[0])
        if self._requested is None:
            self._fetch()

    def _vouchers(self, outcomes: tuple[bytes, ...]) -> list[int]:
        """Return who says that outcomes are these, and perhaps that there are later ones."""
        return [peer for peer, known in self._known_by.items() if known[: len(outcomes)] == outcomes]

    def _fetch(self) -> None:
        """Request the next average that the best of the answers has and we have not, or adopt what it knows."""
        ours = self._outcome_log.outcomes
        credible = {known for known in self._known_by.values() if len(known) > last_result(ours)}
        credible = {known for known in credible if len(self._vouchers(known)) >= needed_vouchers(self._roster)}
        if not credible:
            return
        theirs = max(credible, key=lambda known: (len(known), len(self._vouchers(known)), known))
        peer = (vouchers := self._vouchers(theirs))[0]
        for number, outcome in enumerate(theirs, 1):
            known = ours[number - 1] if number <= len(ours) else NO_RESULT
            if outcome not in (known, NO_RESULT) and number not in self._results:
                self._requested, self._requested_until = (peer, number), time.monotonic() + self._patience_s
                self._send(peer, AverageWanted(number))
                return
        self.result.changed |= self._outcome_log.adopt(theirs, self._results)
        self.result.adopted_from, self.result.vouched_by = peer, set(vouchers)

    def _send(self, peer: int, message: CatchUpMessage) -> None:
        self._transport.send(peer, _encode(message))

    def received(self, peer: int, frame: Received) -> None:
        """Answer a question, or take an answer; what is neither is not answered."""
        long = len(frame) > self._max_short_bytes
        if long and (self._requested is None or self._requested[0] != peer):
            return  # only an average can be so long, and this one was not asked for
        try:
            message = _average_decoder.decode(frame) if long else _decoder.decode(frame)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        handlers: dict[type, Callable[..., None]] = {
            KnownOutcomes: self._handle_outcomes,
            AverageWanted: self._handle_request,
            AverageSent: self._handle_average,
        }
        handlers[type(message)](peer, message)

    def up(self, peer: int) -> None:
        """Answer this peer again: what was sent on an earlier connection may be lost."""
        self._answered = Counter({key: times for key, times in self._answered.items() if key[0] != peer})
        if peer in self._unanswered:
            self._asked.discard(peer)

    def unsent(self, peer: int, token: object) -> None:
        """Ask again later."""
        self._ask_again(peer)

    def down(self, peer: int, failure: Failure) -> None:
        """Ask again later: it may still be on its way from the session before."""
        self._ask_again(peer)

    def lost(self, peer: int, failure: Failure) -> None:
        """Ask again."""
        self._ask_again(peer)

    def _handle_outcomes(self, peer: int, message: KnownOutcomes) -> None:
        outcomes = message.outcomes
        if len(outcomes) > self._max_outcomes or any(len(outcome) not in (0, DIGEST_BYTES) for outcome in outcomes):
            return
        if message.ask:
            if self._may_answer(peer, 0):
                self._send(peer, KnownOutcomes(self._outcome_log.outcomes, ask=False))
        elif peer in self._unanswered:
            self._unanswered.discard(peer)
            self._known_by[peer] = tuple(outcomes[: last_result(outcomes)])
            self.result.peers.add(peer)
            if self._requested is None:
                self._fetch()

    def _may_answer(self, peer: int, number: int) -> bool:
        """Return whether a question was not answered yet on this connection, and note that it is."""
        self._answered[peer, number] += 1
        return self._answered[peer, number] <= _MAX_ANSWERS

    def _handle_request(self, peer: int, message: AverageWanted) -> None:
        if not (1 <= message.number <= len(self._outcome_log) and self._may_answer(peer, message.number)):
            return
        if (known := self._outcome_log.result(message.number)) is not None:
            average = to_bytes(known.average)
            self._send(peer, AverageSent(message.number, average, known.standard_error, known.beacon))

    def _handle_average(self, peer: int, message: AverageSent) -> None:
        if self._requested != (peer, message.number):
            return
        try:
            result = SessionResult(from_bytes(message.average), message.standard_error, message.beacon)
        except (ValueError, EOFError, SyntaxError):
            result = None
        if result is None or result.digest != self._known_by[peer][message.number - 1]:
            self._give_up(peer)
        else:
            self._requested, self._results[message.number] = None, result
            self._fetch()

    def _give_up(self, peer: int) -> None:
        """Wait no longer for what a peer says it has: another may have it."""
        self._requested = None
        del self._known_by[peer]

    def _ask_again(self, peer: int) -> None:
        self._asked.discard(peer)
        self._unanswered.discard(peer)
        if self._requested is not None and self._requested[0] == peer:
            self._give_up(peer)


def needed_vouchers(roster: Roster) -> int:
    """Return how many others must say the same before a party takes it over, or thinks that nobody knows more.

    One member that lies changes nothing then. Of two or three parties there may be only one other.
    """
    return min(2, len(roster.parties) // 2)
