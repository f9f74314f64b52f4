"""Between two sessions of a sequence the parties meet: who lacks an outcome gets it from somebody who has it.

Everyone listens for an agreed while. Only a party that lacks something connects to the others; mostly nobody does.
The meeting is a session of its own to the transport, with the same certificates. Results are public among the
parties, and a party believes another that it has the result it shows, as everywhere in this model.
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
from inca.network.node.node import transport_for
from inca.network.sequence.outcome_log import NOTHING, Chain, digest, from_bytes, last_result, to_bytes
from inca.network.transport.frames import Limits

_LARGEST = 10_000_000 * 8 + 2**16  # bytes of the longest average that terms allow, as a file
_PAUSE = 0.25  # seconds before a peer that has not answered is asked again
_DIGEST = 32


class Tell(msgspec.Struct, frozen=True, tag="tell", array_like=True, forbid_unknown_fields=True):
    """The outcomes I know; `ask`: tell me yours."""

    outcomes: list[bytes]
    ask: bool


class Want(msgspec.Struct, frozen=True, tag="want", array_like=True, forbid_unknown_fields=True):
    """Send me the average of this session."""

    number: int


class Give(msgspec.Struct, frozen=True, tag="give", array_like=True, forbid_unknown_fields=True):
    """The average of a session, as a .npy file, and its noise where it is known."""

    number: int
    average: bytes
    noise: float | None


_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Tell | Want | Give] = msgspec.msgpack.Decoder(Tell | Want | Give)


@dataclass
class Heard:
    """What came of a meeting: who answered, from whom outcomes were taken over, and whether settled ones changed."""

    peers: set[int] = field(default_factory=set)
    adopted: int | None = None
    changed: bool = False


class Meeting:
    """One meeting of one party; the listener of a transport."""

    def __init__(self, roster: Roster, me: int, chain: Chain, expected: int) -> None:
        """Meet before session `expected`: if there is no result of the one before it, ask for what others know."""
        self._roster, self._me, self._chain = roster, me, chain
        self._lacking = last_result(chain.outcomes) < expected - 1
        self._heard = Heard()
        self._asked: set[int] = set()
        self._told: dict[int, list[bytes]] = {}
        self._averages: dict[int, tuple[Array, float | None]] = {}
        self._wanted: tuple[int, int] | None = None  # peer, session: asked for and not here yet

    async def hold(self, identity: Identity, until: float, listen: tuple[str, int] | None = None) -> Heard:
        """Listen until a time (Unix), and ask if something is lacking."""
        name = hashlib.sha256(b"inca-meeting/1" + self._roster.session).digest()
        limits = replace(Limits(), frame=_LARGEST, queue=2 * _LARGEST)
        self._transport = transport_for(self._roster, self._me, identity, limits, self, session=name)
        await self._transport.start(*(listen or ()))
        try:
            while (left := until - time.time()) > 0.0:
                if self._lacking:
                    self._go_on()
                await asyncio.sleep(min(left, _PAUSE))
        finally:
            await self._transport.close()
        return self._heard

    # --- asking ---------------------------------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Ask those who have not answered; fetch what the best of the answers has and we have not."""
        for peer in range(len(self._roster.parties)):
            if peer != self._me and peer not in self._asked:
                self._asked.add(peer)
                self._send(peer, Tell(self._chain.outcomes, ask=True))
        if self._wanted is None:
            self._fetch()

    def _fetch(self) -> None:
        known = self._chain.outcomes
        peer = max(self._told, key=lambda each: last_result(self._told[each]), default=None)
        if peer is None or (last := last_result(self._told[peer])) <= last_result(known):
            return
        theirs = self._told[peer][:last]
        for number, each in enumerate(theirs, 1):
            mine = known[number - 1] if number <= len(known) else NOTHING
            if each not in (mine, NOTHING) and number not in self._averages:
                self._wanted = peer, number
                self._send(peer, Want(number))
                return
        self._heard.changed |= self._chain.adopt(theirs, self._averages)
        self._heard.adopted = peer

    # --- the transport's listener ---------------------------------------------------------------------------------

    def received(self, peer: int, frame: bytes) -> None:
        """Answer a question, or take an answer; nonsense is not answered."""
        try:
            message = _decoder.decode(frame)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return
        answer: dict[type, Callable[..., None]] = {Tell: self._hear, Want: self._give, Give: self._take}
        answer[type(message)](peer, message)

    def _hear(self, peer: int, message: Tell) -> None:
        if any(len(each) not in (0, _DIGEST) for each in message.outcomes):
            return
        if message.ask:
            self._send(peer, Tell(self._chain.outcomes, ask=False))
        elif self._lacking:
            self._told[peer] = message.outcomes
            self._heard.peers.add(peer)
            if self._wanted is None:
                self._fetch()

    def _give(self, peer: int, message: Want) -> None:
        if 1 <= message.number <= self._chain.settled:
            average = self._chain.average(message.number)
            if average is not None:
                self._send(peer, Give(message.number, to_bytes(average), self._chain.noise(message.number)))

    def _take(self, peer: int, message: Give) -> None:
        if self._wanted != (peer, message.number):
            return
        self._wanted = None
        expected = self._told[peer][message.number - 1]
        try:
            average = from_bytes(message.average)
        except (ValueError, EOFError):
            average = None
        if average is None or digest(average) != expected:
            del self._told[peer]  # it does not have what it says: another may
            return
        self._averages[message.number] = average, message.noise
        self._fetch()

    def _send(self, peer: int, message: Tell | Want | Give) -> None:
        self._transport.send(peer, _encode(message))

    def unsent(self, peer: int, token: object) -> None:
        """Ask again later."""
        self._lost(peer)

    def down(self, peer: int, reason: str) -> None:
        """Ask again later: it may still be on its way from the session before."""
        self._lost(peer)

    def up(self, peer: int) -> None:
        """It has been asked, or will ask."""

    def note(self, event: str, **fields: object) -> None:
        """Ask again if a connection was lost."""
        if event == "lost" and isinstance(peer := fields.get("peer"), int):
            self._lost(peer)

    def _lost(self, peer: int) -> None:
        self._asked.discard(peer)
        if self._wanted is not None and self._wanted[0] == peer:
            self._wanted = None
            del self._told[peer]  # another may have the same
