"""A party at relays: registered at its own, so that others can call it there, and calling others at theirs."""

from __future__ import annotations

import asyncio
import random
import secrets
from collections.abc import Callable, Coroutine, Sequence
from functools import partial

import msgspec

from inca.network.addresses import Address
from inca.network.transport.failures import Failure, FailureCause, Unreached, describe_failure
from inca.network.transport.interface import TransportEvents
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.relay.link import NORMAL
from inca.network.transport.relay.messages import (
    CallJoined,
    ClaimRefused,
    Contested,
    Declined,
    Incoming,
    Kind,
    PresenceQuery,
    PresenceReply,
    Registered,
    RelayClaim,
    RelayRefusal,
    claim_text,
)
from inca.network.transport.relay.opening import open_link
from inca.network.transport.relay.stream import ClientLink

CONTROL_PING_S, CONTROL_PATIENCE_S = 10.0, 30.0
_REPLY_TIMEOUT_S = 20.0  # longer than a relay waits for a callee
_SHORTEST_PAUSE_S, _LONGEST_PAUSE_S = 0.1, 3.0  # between registrations
_REFUSED_PAUSE_S = 10.0  # where asking again soon changes nothing
_AT_ONCE = 4  # connections being opened at one relay, which limits those of one origin
_ASK_TIMEOUT_S = 2.0
_LAST_WORDS_S = 1.0

AnswerCall = Callable[[asyncio.BufferedProtocol], Coroutine[object, object, None]]
Callee = Callable[[Address, str, AnswerCall], bool]
"""Takes a call at a relay, which names its origin, by `AnswerCall` with a protocol for the stream, or returns False."""


class Relays:
    """The relays that a party uses. Nothing here raises because of them, except `dial`."""

    def __init__(
        self, access: RelayAccess, own: Sequence[Address], buffer: memoryview, events: TransportEvents, on_call: Callee
    ) -> None:
        self._access, self._own, self._buffer, self._events = access, own, buffer, events
        self._on_call = on_call
        self._instance = secrets.token_hex(16)
        self._context = access.context()
        self._slots: dict[Address, asyncio.Semaphore] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._controls: set[ClientLink] = set()
        self._asked: dict[tuple[ClientLink, str], asyncio.Future[bool]] = {}
        self._failures: dict[Address, Failure] = {}
        self._registrations: dict[Address, ClientLink] = {}

    @property
    def registered(self) -> set[Address]:
        """The relays at which others can call us now."""
        return set(self._registrations)

    def start(self) -> None:
        """Register, again and again if need be."""
        self._tasks = [asyncio.get_running_loop().create_task(self._stay_registered(own)) for own in self._own]

    async def close(self) -> None:
        """End the registrations."""
        links = list(self._controls)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(link.closed() for link in links))

    async def dial(self, protocol: asyncio.BufferedProtocol, address: Address, party: int) -> None:
        """Attach a protocol to a stream to a party that is registered at a relay, or raise `Unreached`."""
        name = self._access.names[party]
        if await self._is_absent(address, name):
            raise _refused(RelayRefusal.NOT_REGISTERED, str(address))
        async with self._slots.setdefault(address, asyncio.Semaphore(_AT_ONCE)):
            link = await self._claim(address, "dial", name)
        await self._join(link, protocol)

    async def _is_absent(self, address: Address, name: str) -> bool:
        """Ask where we are registered ourselves whether a party is not: it may be away for long, and often wanted."""
        if (link := self._registrations.get(address)) is None:
            return False
        answer = self._asked.get((link, name))
        if answer is None:
            answer = self._asked[link, name] = asyncio.get_running_loop().create_future()
            link.send_text(msgspec.json.encode(PresenceQuery(name)))
        try:
            async with asyncio.timeout(_ASK_TIMEOUT_S):
                return not await asyncio.shield(answer)
        except TimeoutError:
            return False

    async def _claim(self, address: Address, kind: Kind, about: str) -> ClientLink:
        """Return a connection on which something was claimed, and not granted yet."""
        link, challenge = await open_link(address, self._context, self._buffer)
        text = claim_text(kind, address.authority, challenge.nonce, about)
        claim = RelayClaim(kind, self._access.key, address.authority, about, self._access.sign(text))
        link.send_text(msgspec.json.encode(claim))
        return link

    async def _granted(self, link: ClientLink, answer: type[Registered | CallJoined]) -> None:
        """Wait until a claim is granted, or raise `Unreached`."""
        try:
            async with asyncio.timeout(_REPLY_TIMEOUT_S):
                reply = await link.receive_message()
        except TimeoutError:
            failure = Failure(FailureCause.RELAY_UNREACHABLE, f"the relay {link.name} does not answer")
            raise Unreached(failure) from None
        if isinstance(reply, ClaimRefused):
            raise _refused(reply.reason, link.name)
        if not isinstance(reply, answer):
            failure = Failure(FailureCause.RELAY_UNREACHABLE, f"the relay {link.name} answers what was not asked")
            raise Unreached(failure)

    async def _join(self, link: ClientLink, protocol: asyncio.BufferedProtocol) -> None:
        try:
            await self._granted(link, CallJoined)
            link.attach(protocol)
        except BaseException:
            link.abort()
            raise

    # --- registration ------------------------------------------------------------------------------------------------

    async def _stay_registered(self, address: Address) -> None:
        pause = _SHORTEST_PAUSE_S
        while True:
            failure = await self._register(address)
            if self._registrations.pop(address, None) is not None:
                pause = _SHORTEST_PAUSE_S
            before = self._failures.get(address)
            self._failures[address] = failure
            if before is None or before.cause is not failure.cause:
                self._events.unregistered(address, failure)
            refused = failure.cause in (FailureCause.RELAY_REFUSES, FailureCause.RELAY_UNTRUSTED)
            await asyncio.sleep((_REFUSED_PAUSE_S if refused else pause) * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    async def _register(self, address: Address) -> Failure:
        """Be registered until that ends; return why."""
        link = None
        try:
            link = await self._claim(address, "register", self._instance)
            self._controls.add(link)
            await self._granted(link, Registered)
            link.keep_alive(CONTROL_PING_S, CONTROL_PATIENCE_S)
            self._registrations[address] = link
            self._failures.pop(address, None)
            self._events.registered(address)
            while True:
                message = await link.receive_message()
                if isinstance(message, Incoming):
                    if not self._on_call(address, message.origin, partial(self._answer, address, message.ticket)):
                        link.send_text(msgspec.json.encode(Declined(message.ticket)))
                    await asyncio.sleep(0)  # there may be many
                elif isinstance(message, PresenceReply):
                    self._tell(link, message.name, message.here)
                elif isinstance(message, Contested):
                    self._events.contested(address)
                else:
                    link.abort()
        except OSError as error:
            return describe_failure(error, f"the relay {address}")
        finally:
            if link is not None:
                self._controls.discard(link)
                for asked in [name for of, name in self._asked if of is link]:
                    self._tell(link, asked, True)  # as far as we know
                link.close(NORMAL, _LAST_WORDS_S)

    def _tell(self, link: ClientLink, name: str, here: bool) -> None:
        answer = self._asked.pop((link, name), None)
        if answer is not None and not answer.done():
            answer.set_result(here)

    async def _answer(self, address: Address, ticket: str, protocol: asyncio.BufferedProtocol) -> None:
        try:
            async with self._slots.setdefault(address, asyncio.Semaphore(_AT_ONCE)):
                link = await self._claim(address, "answer", ticket)
            await self._join(link, protocol)
        except OSError as error:
            protocol.connection_lost(error)


def _refused(reason: RelayRefusal, relay: str) -> Unreached:
    return Unreached(Failure(reason.cause, f"the relay {relay} {reason.meaning}"))
