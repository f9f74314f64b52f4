"""Between two sessions of a sequence the parties catch up: who lacks an outcome gets it from somebody who has it.

Everyone listens for an agreed while. Only a party that lacks something connects to the others; mostly nobody does.
To the transport this is a session of its own, with the same certificates. Results are public among the parties, and a
party believes another that it has the result it shows, as everywhere in this model.
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import msgspec

from inca._base.types import Array
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.transport_setup import transport_for
from inca.network.sequence.outcome_log import (
    DIGEST_BYTES,
    NO_RESULT,
    OutcomeLog,
    digest_of,
    from_bytes,
    last_result,
    to_bytes,
)
from inca.network.transport.failures import Failure
from inca.network.transport.interface import TransportEvents
from inca.network.transport.limits import Limits

_MAX_FRAME_BYTES = 10_000_000 * 8 + 2**16  # the longest average that terms allow, as a file
_RETRY_AFTER_S = 0.25  # before a peer that has not answered is asked again


class KnownOutcomes(msgspec.Struct, frozen=True, tag="tell", array_like=True, forbid_unknown_fields=True):
    """The outcomes that I know; `ask`: send me yours."""

    outcomes: list[bytes]
    ask: bool


class AverageWanted(msgspec.Struct, frozen=True, tag="want", array_like=True, forbid_unknown_fields=True):
    """Send me the average of this session."""

    number: int


class AverageSent(msgspec.Struct, frozen=True, tag="give", array_like=True, forbid_unknown_fields=True):
    """The average of a session, as a .npy file, and its standard error where it is known."""

    number: int
    average: bytes
    standard_error: float | None


CatchUpMessage = KnownOutcomes | AverageWanted | AverageSent
_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[CatchUpMessage] = msgspec.msgpack.Decoder(CatchUpMessage)


@dataclass
class CatchUpResult:
    """What came of catching up.

    Attributes:
        peers: Who answered.
        adopted_from: From whom outcomes were taken over.
        changed: Whether outcomes changed that were known here.
    """

    peers: set[int] = field(default_factory=set)
    adopted_from: int | None = None
    changed: bool = False


class CatchUp(TransportEvents):
    """One party's side of catching up before a session.

    Args:
        roster: The roster of the sequence.
        me: This party's place in it.
        outcome_log: What this party knows; it is extended by what it lacks.
        number: The session that comes next: if there is no result of the one before it, others are asked.
    """

    def __init__(self, roster: Roster, me: int, outcome_log: OutcomeLog, number: int) -> None:
        self._roster, self._me, self._outcome_log = roster, me, outcome_log
        self._lacking = last_result(outcome_log.outcomes) < number - 1
        self.result = CatchUpResult()
        self._asked: set[int] = set()
        self._known_by: dict[int, list[bytes]] = {}
        self._averages: dict[int, tuple[Array, float | None]] = {}
        self._requested: tuple[int, int] | None = None  # peer, session: asked for and not here yet

    async def hold(self, identity: Identity, until: float, listen: tuple[str, int] | None = None) -> CatchUpResult:
        """Listen, and ask if something is lacking.

        Args:
            identity: This party's keys.
            until: When to stop, as Unix time.
            listen: Host and port to listen at, if not those of the roster.

        Returns:
            Who answered, and what was taken over.
        """
        session = hashlib.sha256(b"inca-meeting/1" + self._roster.session).digest()
        limits = replace(Limits(), max_frame_bytes=_MAX_FRAME_BYTES, max_queue_bytes=2 * _MAX_FRAME_BYTES)
        self._transport = transport_for(self._roster, identity, limits, self, session=session)
        await self._transport.start(*(listen or ()))
        try:
            while (left := until - time.time()) > 0.0:
                if self._lacking:
                    self._ask_and_fetch()
                await asyncio.sleep(min(left, _RETRY_AFTER_S))
        finally:
            await self._transport.close()
        return self.result

    # --- asking ---------------------------------------------------------------------------------------------------

    def _ask_and_fetch(self) -> None:
        """Ask those who have not answered; fetch what the best of the answers has and we have not."""
        for peer in range(len(self._roster.parties)):
            if peer != self._me and peer not in self._asked:
                self._asked.add(peer)
                self._send(peer, KnownOutcomes(self._outcome_log.outcomes, ask=True))
        if self._requested is None:
            self._fetch()

    def _fetch(self) -> None:
        """Request the next average that the best of the answers has and we have not, or adopt what it knows."""
        ours = self._outcome_log.outcomes
        peer = max(self._known_by, key=lambda party: last_result(self._known_by[party]), default=None)
        if peer is None or (last := last_result(self._known_by[peer])) <= last_result(ours):
            return
        theirs = self._known_by[peer][:last]
        for number, outcome in enumerate(theirs, 1):
            known = ours[number - 1] if number <= len(ours) else NO_RESULT
            if outcome not in (known, NO_RESULT) and number not in self._averages:
                self._requested = peer, number
                self._send(peer, AverageWanted(number))
                return
        self.result.changed |= self._outcome_log.adopt(theirs, self._averages)
        self.result.adopted_from = peer

    def _send(self, peer: int, message: CatchUpMessage) -> None:
        self._transport.send(peer, _encode(message))

    # --- what the transport reports -------------------------------------------------------------------------------

    def received(self, peer: int, frame: bytes) -> None:
        """Answer a question, or take an answer; what is neither is not answered."""
        try:
            message = _decoder.decode(frame)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        handlers: dict[type, Callable[..., None]] = {
            KnownOutcomes: self._handle_outcomes,
            AverageWanted: self._handle_request,
            AverageSent: self._handle_average,
        }
        handlers[type(message)](peer, message)

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
        if any(len(outcome) not in (0, DIGEST_BYTES) for outcome in message.outcomes):
            return
        if message.ask:
            self._send(peer, KnownOutcomes(self._outcome_log.outcomes, ask=False))
        elif self._lacking:
            self._known_by[peer] = message.outcomes
            self.result.peers.add(peer)
            if self._requested is None:
                self._fetch()

    def _handle_request(self, peer: int, message: AverageWanted) -> None:
        if 1 <= message.number <= len(self._outcome_log):
            average = self._outcome_log.average(message.number)
            if average is not None:
                error = self._outcome_log.standard_error(message.number)
                self._send(peer, AverageSent(message.number, to_bytes(average), error))

    def _handle_average(self, peer: int, message: AverageSent) -> None:
        if self._requested != (peer, message.number):
            return
        self._requested = None
        expected = self._known_by[peer][message.number - 1]
        try:
            average = from_bytes(message.average)
        except (ValueError, EOFError):
            average = None
        if average is None or digest_of(average) != expected:
            del self._known_by[peer]  # it does not have what it says: another may
            return
        self._averages[message.number] = average, message.standard_error
        self._fetch()

    def _ask_again(self, peer: int) -> None:
        self._asked.discard(peer)
        if self._requested is not None and self._requested[0] == peer:
            self._requested = None
            del self._known_by[peer]  # another may have the same
