"""Who is registered at a relay, who calls whom, and the bytes that are passed on; it reads none of them."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from inca.network.keys import fingerprint_of
from inca.network.transport.limits import Limits, TokenBuckets
from inca.network.transport.relay.link import GOING_AWAY, NORMAL, OTHER_SIDE_LOST, VIOLATION
from inca.network.transport.relay.messages import (
    CallJoined,
    Challenge,
    ClaimRefused,
    Contested,
    Declined,
    Incoming,
    PresenceQuery,
    PresenceReply,
    Registered,
    RelayClaim,
    RelayRefusal,
    from_party,
)
from inca.network.transport.relay.options import RelayLimits
from inca.network.transport.relay.server_link import Role, ServerLink

CONTROL_PING_S, CONTROL_PATIENCE_S = 10.0, 30.0
DATA_PING_S = 25.0
_MAX_BUCKETS = 4096
_LINGER_S = 10.0  # for the last bytes of a stream to reach a slow reader
_LAST_WORDS_S = 1.0
_Key = TypeVar("_Key", str, frozenset[str])


@dataclass(slots=True)
class Counts:
    """What a relay has done so far."""

    bytes: int = 0
    joined: int = 0
    registered: int = 0
    refused: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Call:
    """A dial that waits for its callee."""

    caller: ServerLink
    callee: str


class Switchboard:
    """Knows the links of a relay that have proven a key, by its fingerprint.

    `settled` is called with each link that is no longer pending, `offended` with each that lies about its key, and
    `refused` with the words for the log.
    """

    def __init__(
        self,
        limits: RelayLimits,
        allow: frozenset[str] | None,
        knows: Callable[[str], bool],
        log: Callable[..., None],
    ) -> None:
        self.limits, self.allow, self._knows, self._log = limits, allow, knows, log
        self._loop = asyncio.get_running_loop()
        self.settled: Callable[[ServerLink], None] = lambda link: None
        self.offended: Callable[[ServerLink], None] = lambda link: None
        self.refused: Callable[[str], None] = lambda words: None
        self.counts = Counts()
        self.registered: dict[str, ServerLink] = {}
        self.calls: dict[str, Call] = {}  # by ticket
        self.data: set[ServerLink] = set()
        self._pairs: Counter[frozenset[str]] = Counter()  # calls, as long as the caller's end is there
        self._per_key: Counter[str] = Counter()  # ends of calls
        self._per_origin: Counter[str] = Counter()  # calls, by where they are made
        self._waiting: Counter[str] = Counter()  # calls by callee
        self._buckets: dict[str, TokenBuckets] = {}
        self._rates = Limits(
            bytes_per_second=limits.bytes_per_second,
            burst_bytes=limits.burst_bytes,
            frames_per_second=limits.messages_per_second,
            burst_frames=limits.burst_messages,
        )

    # --- claims ------------------------------------------------------------------------------------------------------

    def greet(self, link: ServerLink) -> None:
        """Ask who is there."""
        link.send_text(msgspec.json.encode(Challenge(link.nonce)))
        link.set_timer("deadline", self.limits.challenge_timeout_s, link.abort)

    def on_message(self, link: ServerLink, text: bytes) -> None:
        """Act on a message of a party."""
        try:
            message = from_party(text)
        except ValueError:
            link.close(VIOLATION, _LAST_WORDS_S)
            return
        if isinstance(message, RelayClaim) and link.role is Role.PENDING:
            self._on_claim(link, message)
        elif isinstance(message, Declined) and link.role is Role.REGISTERED:
            call = self.calls.get(message.ticket)
            if call is not None and call.callee == link.name:
                self._refuse_call(message.ticket, RelayRefusal.DECLINED)
        elif isinstance(message, PresenceQuery) and link.role is Role.REGISTERED:
            link.send_text(msgspec.json.encode(PresenceReply(message.name, message.name in self.registered)))
        else:
            link.close(VIOLATION, _LAST_WORDS_S)

    def _on_claim(self, link: ServerLink, claim: RelayClaim) -> None:
        if not self._knows(claim.authority):
            self._refuse(link, RelayRefusal.NAME)
            return
        if not claim.proves(link.nonce):
            self.offended(link)
            self._refuse(link, RelayRefusal.PROOF)
            return
        link.name = fingerprint_of(claim.key)
        if self.allow is not None and link.name not in self.allow:
            self._refuse(link, RelayRefusal.NOT_ALLOWED)
            return
        link.stop_timer("deadline")
        self.settled(link)
        {"register": self._register, "dial": self._dial, "answer": self._answer}[claim.kind](link, claim.about)

    def _refuse(self, link: ServerLink, reason: RelayRefusal) -> None:
        self.counts.refused[reason] += 1
        self.refused(f"{reason.value}: {link.name or 'a key'} from {link.origin}")
        link.role = Role.DONE
        link.send_text(msgspec.json.encode(ClaimRefused(reason)))
        link.close(NORMAL, _LAST_WORDS_S)

    # --- registrations -----------------------------------------------------------------------------------------------

    def _register(self, link: ServerLink, instance: str) -> None:
        link.instance, first = instance, self.registered.get(link.name)
        of_origin = sum(other.origin == link.origin for other in self.registered.values())
        if first is None and (
            len(self.registered) >= self.limits.max_registered
            or (self.allow is None and of_origin >= self.limits.max_registered_per_origin)
        ):
            self._refuse(link, RelayRefusal.FULL)
        elif first is None or first.instance == instance:  # it knows best that it has lost the other one
            self._take_place(link)
        else:
            link.role, asked = Role.PROVING, self._loop.time()
            first.ping()
            link.set_timer("deadline", self.limits.give_way_s, lambda: self._decide(link, asked))

    def _decide(self, link: ServerLink, asked: float) -> None:
        """Let the second process with a key take the place of the first, unless that has shown to be alive."""
        first = self.registered.get(link.name)
        if first is not None and first.heard >= asked:
            first.send_text(msgspec.json.encode(Contested()))
            self._refuse(link, RelayRefusal.TAKEN)
        else:
            self._take_place(link)

    def _take_place(self, link: ServerLink) -> None:
        first = self.registered.pop(link.name, None)
        if first is not None:
            first.role = Role.DONE
            first.abort()
        link.role = Role.REGISTERED
        self.registered[link.name] = link
        self.counts.registered += 1
        link.keep_alive(CONTROL_PING_S, CONTROL_PATIENCE_S)
        link.send_text(msgspec.json.encode(Registered()))
        self._log("registered", key=link.name, origin=link.origin, again=first is not None)

    # --- calls -------------------------------------------------------------------------------------------------------

    def _dial(self, link: ServerLink, callee: str) -> None:
        registered, pair = self.registered.get(callee), frozenset((link.name, callee))
        full = self._waiting[callee] >= self.limits.max_waiting or self._pairs[pair] >= self.limits.max_per_pair
        if self.allow is None:
            ends = max(self._per_key[link.name], self._per_key[callee] + self._waiting[callee])
            full |= ends >= self.limits.max_per_key
            full |= self._per_origin[link.origin] >= self.limits.max_calls_per_origin
        if registered is None or callee == link.name:
            self._refuse(link, RelayRefusal.NOT_REGISTERED)
        elif full:
            self._refuse(link, RelayRefusal.FULL)
        else:
            ticket = secrets.token_urlsafe(16)
            self.calls[ticket] = Call(link, callee)
            link.role, link.ticket, link.pair = Role.WAITING, ticket, pair
            self._waiting[callee] += 1
            self._pairs[pair] += 1
            self._per_key[link.name] += 1
            self._per_origin[link.origin] += 1
            registered.send_text(msgspec.json.encode(Incoming(ticket, link.origin)))
            refuse = lambda: self._refuse_call(ticket, RelayRefusal.NO_ANSWER)  # noqa: E731
            link.set_timer("deadline", self.limits.callee_timeout_s, refuse)

    def _end_call(self, ticket: str) -> Call:
        call = self.calls.pop(ticket)
        _count_down(self._waiting, call.callee)
        return call

    def _refuse_call(self, ticket: str, reason: RelayRefusal) -> None:
        self._refuse(self._end_call(ticket).caller, reason)

    def _answer(self, link: ServerLink, ticket: str) -> None:
        call = self.calls.get(ticket)
        if call is None or call.callee != link.name:  # the caller has gone, as it may
            self._refuse(link, RelayRefusal.NOT_REGISTERED)
            return
        self._end_call(ticket)
        caller = call.caller
        caller.stop_timer("deadline")
        caller.partner, link.partner = link, caller
        self._per_key[link.name] += 1
        self.counts.joined += 1
        for end in (caller, link):
            end.role = Role.JOINED
            self.data.add(end)
            end.keep_alive(DATA_PING_S, None)
            end.send_text(msgspec.json.encode(CallJoined()))

    # --- bytes -------------------------------------------------------------------------------------------------------

    def on_piece(self, link: ServerLink, data: bytes | bytearray) -> None:
        """Pass a piece of a stream on; hold back whoever sends faster than the other end reads."""
        partner = link.partner
        if partner is None or link.role is not Role.JOINED:
            link.close(VIOLATION, _LAST_WORDS_S)
            return
        self.counts.bytes += len(data)
        self.pass_on(partner, data)
        if partner.stalled:
            link.hold("partner")

    def on_read(self, link: ServerLink, messages: int, size: int) -> None:
        """Slow down a key that sends more than its share, on all its links."""
        if not link.name:
            return
        now = self._loop.time()
        bucket = self._buckets.get(link.name)
        if bucket is None:
            bucket = self._buckets[link.name] = TokenBuckets(self._rates, now)
            if len(self._buckets) > _MAX_BUCKETS:
                del self._buckets[next(iter(self._buckets))]
        if pause := bucket.take(messages, size, now):
            link.hold("rate")
            link.set_timer("rate", pause, lambda: link.release("rate"))

    def pass_on(self, to: ServerLink, data: bytes | bytearray) -> None:
        """Send a piece on as it came."""
        to.send_data(data)

    def on_writable(self, link: ServerLink) -> None:
        """Let the other end go on."""
        if link.partner is not None:
            link.partner.release("partner")

    # --- ends --------------------------------------------------------------------------------------------------------

    def on_gone(self, link: ServerLink) -> None:
        """Forget a link; the other end of its call is closed, too."""
        role, link.role = link.role, Role.DONE
        if role is Role.REGISTERED:
            del self.registered[link.name]
            self._log("unregistered", key=link.name, origin=link.origin)
        elif role is Role.WAITING:
            self._end_call(link.ticket)
        if link.pair:
            _count_down(self._pairs, link.pair)
            _count_down(self._per_origin, link.origin)
        if link.pair or link in self.data:
            _count_down(self._per_key, link.name)
        self.data.discard(link)
        partner, link.partner = link.partner, None
        if partner is not None and partner.role is Role.JOINED:
            received = link.websocket.close_rcvd
            ended = received is not None and received.code == NORMAL
            partner.close(NORMAL if ended else OTHER_SIDE_LOST, _LINGER_S)

    def allow_only(self, allow: frozenset[str] | None) -> None:
        """Serve these keys from now on; the others are cut off."""
        self.allow = allow
        if allow is None:
            return
        for link in [*self.registered.values(), *(call.caller for call in self.calls.values()), *self.data]:
            if link.name not in allow:
                self._log("cut off", key=link.name, origin=link.origin)
                link.close(NORMAL, _LAST_WORDS_S)

    def dismiss(self) -> None:
        """End all registrations: the relay takes no more calls."""
        for link in list(self.registered.values()):
            link.close(GOING_AWAY, _LAST_WORDS_S)
        for ticket in list(self.calls):
            self._refuse_call(ticket, RelayRefusal.NOT_REGISTERED)

    def hang_up(self) -> None:
        """End all calls."""
        for link in list(self.data):
            link.close(GOING_AWAY, _LAST_WORDS_S)


def _count_down(counter: Counter[_Key], key: _Key) -> None:
    counter[key] -= 1
    if not counter[key]:
        del counter[key]
