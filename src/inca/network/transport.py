"""Frames between parties that know each other's certificates: one TLS connection per pair, whoever opened it.

**Hello.** The side that connects says hello first, the other answers, and the first confirms; each hello but the first
repeats the other's nonce. So neither side takes a connection for live before the other has proven to be there *now*,
and what a process left in the network when it died is never taken for one that came later. Each process draws a *life*
at its start: the latest one proven counts, and all connections of earlier ones are closed with nothing more delivered.

**One connection.** Nobody says a first hello while having a live or an answered connection to that peer, and hellos are
numbered. So a first hello with a later number than the hello of the connection at hand shows that the peer has lost the
latter; an earlier number, that it had not seen it yet. When both say a first hello at once, the smaller id's counts.

**Certainty.** A frame is `unsent` only if nothing of it was ever given to TLS. What was given and not answered is in
doubt, and whoever sends has to deal with that.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import math
import secrets
import socket
import ssl
import struct
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from inca.network.framing import (
    DATA,
    ECHO,
    HEADER,
    HELLO,
    PING,
    PONG,
    PROBE,
    READ,
    RECORD,
    Bucket,
    Bye,
    Fault,
    Hello,
    Limits,
    Pool,
    Stream,
    Strikes,
)
from inca.validation import refuse, whole

_NOBODY = bytes(16)  # the nonce repeated by a first hello
_BACKOFF = (0.05, 1.0)  # seconds between dials: first and largest
_TURN = 1 << 20  # bytes written to one peer before others get their turn


class Listener(Protocol):
    """Whoever uses a transport; called in the event loop, so nothing here may block."""

    def received(self, peer: int, frame: bytes) -> None:
        """Take a frame of `peer`."""

    def unsent(self, peer: int, token: object) -> None:
        """Learn that, for certain, no byte of the frame sent with this token ever left."""

    def down(self, peer: int, reason: str) -> None:
        """Learn that `peer` cannot be reached."""

    def up(self, peer: int) -> None:
        """Learn that there is a connection to `peer`."""

    def note(self, event: str, **fields: object) -> None:
        """Log an event, never with contents of frames.

        Events: connected, lost, fault (with strikes), throttled, refused (times in a second), accepting failed.
        """


class Unreachable(Exception):
    """A peer that cannot be reached; the text says whose fault it looks like."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The clock of a peer minus ours, and the round trip of the exchange that says so, in seconds.

    The offset is off by at most half the round trip.
    """

    offset: float
    round_trip: float


class _Stage(Enum):
    SHAKING = auto()  # reaching the peer, TLS
    WAITING = auto()  # for the first hello
    GREETED = auto()  # first hello said
    REPLIED = auto()  # first hello answered
    LIVE = auto()
    DRAINING = auto()  # replaced by a newer one; what the peer has sent still counts
    DONE = auto()


_DELIVERS = (_Stage.LIVE, _Stage.DRAINING)


class _Link(Stream):
    """A connection, and what is known about it."""

    def __init__(self, home: Transport, address: str, host: str, peer: int | None) -> None:
        self.outgoing = peer is not None
        context = home._client if self.outgoing else home._server
        super().__init__(context, home._limits, home._pool, server=not self.outgoing, host=host)
        self.home, self.address, self.host, self.peer = home, address, host, peer
        self.stage = _Stage.SHAKING
        self.proven = False  # whether `peer` is whose certificate it is
        self.nonce, self.order = secrets.token_bytes(16), 0
        self.life, self.serial = b"", 0
        self.began = self.heard = self._loop.time()
        self.answered = True  # whether something was heard after we last wrote
        self.unknown = not self.outgoing  # whether it counts among the connections without hello
        self.pings: dict[int, tuple[float, asyncio.Future[tuple[float, float, float, float]]]] = {}
        self.dial: asyncio.Task[None] | None = None
        self.deadline(home._limits.handshake, "did not agree on TLS")

    def deadline(self, seconds: float, what: str) -> None:
        self.after("deadline", seconds, lambda: self._late(f"{what} within {seconds:g} s"))

    def _late(self, what: str) -> None:
        what = what if self.socket else "does not answer at all (the network, or the peer's machine)"
        self.broken(Fault(f"timed out: {what}"))

    def hello(self, echo: bytes) -> None:
        home = self.home
        home._serial += 1
        self.order = self.order or home._serial
        self.control(HELLO, Hello(home._session, home._me, home._life, home._serial, self.nonce, echo).encode())

    def drop(self) -> None:
        """Forget a dial that is no longer needed."""
        self.stage = _Stage.DONE
        if self.dial is not None and not self.dial.done():
            self.dial.cancel()
        self.after("deadline", 0, None)
        self.finish(None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.home._links.add(self)
        super().connection_made(transport)

    def secured(self) -> None:
        self.home._secured(self)

    def frame(self, kind: int, body: bytes) -> None:
        self.home._frame(self, kind, body)

    def count(self, frames: int, size: int) -> float:
        return self.home._count(self, frames, size)

    def room(self) -> None:
        if self.peer is not None:
            self.home._flush(self.peer)

    def broken(self, error: Fault | ssl.SSLError) -> None:
        self.home._broken(self, error)

    def gone(self, error: Exception | None) -> None:
        self.home._gone(self, error)


class _Peer:
    """What a transport knows about one party."""

    def __init__(self, party: int, limits: Limits, now: float) -> None:
        self.party = party
        self.queue: deque[tuple[bytes, object]] = deque()
        self.queued = 0
        self.live: _Link | None = None
        self.dial: _Link | None = None
        self.answered: set[_Link] = set()
        self.life, self.order = b"", 0
        self.ended: deque[bytes] = deque(maxlen=64)  # lives
        self.bucket = Bucket(limits, now)
        self.flushing = False
        self.backoff, self.next_dial, self.trying = 0.0, 0.0, 0.0
        self.timer: asyncio.TimerHandle | None = None
        self.waiters: list[asyncio.Future[None]] = []


class Transport:
    """Sends frames to the other parties of a session and hands on theirs.

    `addresses` is read at every dial. `identify` tells the party of a certificate (DER), or None; `clock` is what
    `measure` compares. Nothing here raises because of the network, except `measure`.
    """

    def __init__(
        self,
        *,
        me: int,
        addresses: Sequence[tuple[str, int]],
        session: bytes,
        server: ssl.SSLContext,
        client: ssl.SSLContext,
        identify: Callable[[bytes], int | None],
        limits: Limits,
        listener: Listener,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Prepare; nothing happens before `start`."""
        if len(session) != 32:
            raise refuse("session", session, "an id of 32 bytes")
        self._me = whole("me", me, least=0, most=len(addresses) - 1)
        self._addresses, self._session, self._identify = addresses, session, identify
        self._server, self._client, self._limits, self._listener, self._clock = server, client, limits, listener, clock
        self._life, self._serial, self._pool = secrets.token_bytes(16), 0, Pool()
        self._peers: dict[int, _Peer] = {}
        self._links: set[_Link] = set()
        self._unknown: Counter[str] = Counter()  # connections without hello by address
        self._strikes = Strikes(limits)
        self._refusals: Counter[str] = Counter()  # not yet noted
        self._tasks: set[asyncio.Task[None]] = set()
        self._emptied = asyncio.Event()
        self._listening: socket.socket | None = None
        self._closed = False
        self._pings = 0

    @property
    def connected(self) -> set[int]:
        """The peers with a live connection."""
        return {party for party, peer in self._peers.items() if peer.live is not None}

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        if self._listening is None:
            raise RuntimeError("the transport has not been started")
        host, port = self._listening.getsockname()[:2]
        return host, port

    async def start(self, host: str | None = None, port: int | None = None) -> None:
        """Listen, on its own address unless told otherwise."""
        self._loop = asyncio.get_running_loop()
        own = self._addresses[self._me]
        where = (own[0] if host is None else host, own[1] if port is None else port)
        found = await self._loop.getaddrinfo(*where, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        self._listening = socket.create_server(found[0][4][:2], family=found[0][0], backlog=1024)
        self._listening.setblocking(False)
        self._spawn(self._accept(self._listening))

    async def close(self) -> None:
        """Say goodbye to everyone and stop, within about a second; frames still waiting are `unsent`."""
        if self._closed:
            return
        self._closed = True
        for peer in self._peers.values():
            self._flush(peer.party)
            self._give_up(peer, "this transport is closed")
            if peer.timer is not None:
                peer.timer.cancel()
            if peer.dial is not None:
                peer.dial.drop()
        for link in list(self._links):
            link.stage = _Stage.DONE
            link.finish(Bye.CLOSING if link.proven else None)
            self._ended(link, "this transport is closed")
        self._note_refusals()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while self._links:
                    self._emptied.clear()
                    await self._emptied.wait()

    def send(self, peer: int, frame: bytes, token: object = None) -> None:
        """Send a frame when there is a connection, which is opened if need be; see `Listener` for what may follow."""
        if len(frame) > self._limits.frame:
            raise refuse("the length of frame", len(frame), f"at most {self._limits.frame}")
        to = self._peer(peer)
        if self._closed:
            self._loop.call_soon(self._listener.unsent, peer, token)
            return
        to.queue.append((frame, token))
        to.queued += len(frame) + HEADER.size
        while to.queued > self._limits.queue and len(to.queue) > 1:
            old, lost = to.queue.popleft()
            to.queued -= len(old) + HEADER.size
            self._loop.call_soon(self._listener.unsent, peer, lost)
        self._wake(to)

    async def measure(self, peer: int, count: int = 5) -> Measured:
        """Compare clocks with `peer` by `count` exchanges and return the best; raise `Unreachable` if there is none."""
        to = self._peer(peer)
        if self._closed:
            raise Unreachable("this transport is closed")
        if to.live is None:
            waiter = self._loop.create_future()
            to.waiters.append(waiter)
            self._wake(to)
            await waiter  # every dial ends in time
        found = []
        for _ in range(whole("count", count, least=1)):
            if (link := to.live) is None:
                raise Unreachable(f"the connection to party {peer} was lost")
            self._pings += 1
            number, answer = self._pings, self._loop.create_future()
            link.pings[number] = self._clock(), answer
            self._ping(link, number)
            try:
                async with asyncio.timeout(self._limits.hello):
                    t0, t1, t2, t3 = await answer
            except TimeoutError:
                text = f"timed out: party {peer} did not answer a ping within {self._limits.hello:g} s"
                raise Unreachable(text) from None
            finally:
                link.pings.pop(number, None)
            found.append(Measured(((t1 - t0) + (t2 - t3)) / 2, (t3 - t0) - (t2 - t1)))
        found = [each for each in found if each.round_trip >= 0]
        if not found:
            raise Unreachable(f"our clock or that of party {peer} was set while they were compared")
        return min(found, key=lambda each: each.round_trip)

    # Connections: dialling, accepting

    def _peer(self, party: int) -> _Peer:
        if party not in self._peers:
            if whole("peer", party, least=0, most=len(self._addresses) - 1) == self._me:
                raise refuse("peer", party, "another party")
            self._peers[party] = _Peer(party, self._limits, self._loop.time())
        return self._peers[party]

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _wake(self, peer: _Peer) -> None:
        """See that what waits for this peer goes out."""
        if peer.live is not None:
            if not peer.flushing and peer.live.writable:
                peer.flushing = True
                self._loop.call_soon(self._flush, peer.party)
        elif (peer.queue or peer.waiters) and not (peer.dial or peer.answered or peer.timer or self._closed):
            pause = max(0.0, peer.next_dial - self._loop.time())
            peer.timer = self._loop.call_later(pause, self._dial, peer)

    def _dial(self, peer: _Peer) -> None:
        peer.timer = None
        if peer.live or peer.dial or peer.answered or self._closed:
            return
        now = self._loop.time()
        peer.trying = peer.trying or now
        if (pause := self._strikes.refused(peer.party, now)) > 0:
            self._unreachable(peer, f"party {peer.party} is refused for another {pause:.0f} s after too many errors")
            return
        host, port = self._addresses[peer.party]
        link = peer.dial = _Link(self, f"{host}:{port}", host, peer.party)
        link.dial = self._spawn(self._connect(link, host, port))

    async def _connect(self, link: _Link, host: str, port: int) -> None:
        try:
            await self._loop.create_connection(lambda: link, host, port)
        except (OSError, ValueError, OverflowError) as error:  # a name or a port may be impossible
            link.dial = None  # it is this task
            self._ended(link, _blame(error, link.address))

    async def _accept(self, listening: socket.socket) -> None:
        turn = 0
        while True:
            turn += 1
            if turn % 16 == 0:
                await asyncio.sleep(0)  # many may be waiting, but so may be others
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                await self._readable(listening)
                continue
            except OSError as error:  # above all, no file descriptors left: others will be closed
                self._listener.note("accepting failed", reason=_blame(error, "our own socket"))
                await asyncio.sleep(0.1)
                continue
            sock.setblocking(False)
            host = _origin(address[0])
            if why := self._unwelcome(host):
                self._refuse(why)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave no trace of it
                sock.close()
            else:
                await self._admit(sock, f"{address[0]}:{address[1]}", host)

    async def _readable(self, listening: socket.socket) -> None:
        # Not sock_accept, which loses a connection when it is cancelled at the wrong moment.
        ready = asyncio.Event()
        self._loop.add_reader(listening, ready.set)
        try:
            await ready.wait()
        finally:
            self._loop.remove_reader(listening)

    async def _admit(self, sock: socket.socket, address: str, host: str) -> None:
        link = _Link(self, address, host, None)
        self._unknown[host] += 1
        try:
            await self._loop.connect_accepted_socket(lambda: link, sock)
        except OSError as error:
            self._gone(link, error)

    def _unwelcome(self, host: str) -> str:
        if self._strikes.refused(host, self._loop.time()) > 0:
            return f"{host} made too many errors"
        if self._unknown[host] >= self._limits.per_address:
            return f"too many connections of {host} without hello"
        return "too many connections without hello" if self._unknown.total() >= self._limits.unknown else ""

    def _refuse(self, why: str) -> None:
        """Note a refusal, together with others: there may be thousands."""
        if not self._refusals:
            self._loop.call_later(1.0, self._note_refusals)
        self._refusals[why if len(self._refusals) < 64 else "others"] += 1

    def _note_refusals(self) -> None:
        refusals, self._refusals = self._refusals, Counter()
        for why, times in refusals.items():
            self._listener.note("refused", reason=why, times=times)

    # What happens on a connection

    def _secured(self, link: _Link) -> None:
        certificate = link.tls.getpeercert(binary_form=True)
        party = None if certificate is None else self._identify(certificate)
        party = None if party is None or not 0 <= party < len(self._addresses) else party
        link.deadline(self._limits.hello, "said no hello")
        if link.outgoing:
            if party != link.peer or party is None:
                whose = "nobody we know" if party is None else f"party {party}"
                raise Fault(f"wrong certificate: it is that of {whose}, not of party {link.peer}")
            link.proven = True
            peer = self._peers[party]
            if peer.live or peer.answered:
                peer.dial = None
                link.drop()
            else:
                link.stage = _Stage.GREETED
                link.hello(_NOBODY)
            return
        if party is None:
            raise Fault("showed a certificate of nobody we know")
        if party == self._me:
            raise Fault("showed our own certificate")
        link.peer, link.proven, link.stage = party, True, _Stage.WAITING
        if self._strikes.refused(party, self._loop.time()) > 0:
            self._refuse(f"party {party} made too many errors")
            link.stage = _Stage.DONE
            link.finish(Bye.PENALTY)

    def _frame(self, link: _Link, kind: int, body: bytes) -> None:
        if kind == DATA:
            if link.stage in _DELIVERS:
                try:
                    self._listener.received(link.peer or 0, body)
                except Exception as error:  # a mistake there is no reason to lose connections here
                    self._loop.call_exception_handler({"message": "a listener failed", "exception": error})
        elif kind == HELLO:
            self._hello(link, Hello.decode(body))
        elif kind == PING:
            arrived = self._clock()
            if link.writable:  # else it could pile up; whoever does not read gets no answer
                number, sent = PROBE.unpack(body)
                link.control(PONG, ECHO.pack(number, sent, arrived, self._clock()))
        elif kind == PONG:
            number, _, arrived, left = ECHO.unpack(body)
            sent, answer = link.pings.pop(number, (0.0, None))
            if answer is not None and not answer.done() and math.isfinite(arrived) and math.isfinite(left):
                answer.set_result((sent, arrived, left, self._clock()))
        else:
            why = Bye(body[0]) if body[0] in Bye.__members__.values() else Bye.PROTOCOL
            link.finish(Bye.CLOSING)
            self._ended(link, f"party {link.peer} ends the connection: {why.text}", again=why is Bye.SIMULTANEOUS)

    def _hello(self, link: _Link, hello: Hello) -> None:
        if hello.session != self._session:
            raise Fault("is in another session", Bye.SESSION, strike=False)
        if hello.party != link.peer:
            raise Fault(f"claims to be party {hello.party}", Bye.IDENTITY)
        if link.stage is _Stage.WAITING:
            link.life, link.serial = hello.life, hello.serial
            self._answer(link, self._peers.get(link.peer) or self._peer(link.peer), hello)
        elif link.stage is _Stage.GREETED and hello.echo == link.nonce:
            link.life, link.serial = hello.life, hello.serial
            link.hello(hello.nonce)
            self._live(link, self._peers[link.peer])
        elif link.stage is _Stage.REPLIED and hello.echo == link.nonce and hello.life == link.life:
            self._live(link, self._peers[link.peer])
        else:
            raise Fault("sent a hello that answers none of ours")

    def _answer(self, link: _Link, peer: _Peer, hello: Hello) -> None:
        rivals = [other for other in (peer.live, *peer.answered) if other is not None and other.life == link.life]
        greeted = peer.dial is not None and peer.dial.stage is _Stage.GREETED and self._me < peer.party
        if greeted or any(link.serial < other.serial for other in rivals):
            link.stage = _Stage.DONE
            link.finish(Bye.SIMULTANEOUS)
            return
        for other in rivals:  # the peer has lost them
            self._retire(other, peer)
        if peer.dial is not None:
            peer.dial.drop()
            peer.dial = None
        link.stage = _Stage.REPLIED
        peer.answered.add(link)
        link.hello(hello.nonce)

    def _retire(self, link: _Link, peer: _Peer) -> None:
        peer.answered.discard(link)
        if peer.live is link:
            peer.live = None
            link.stage = _Stage.DRAINING
            link.finish(Bye.REPLACED, deaf=False)
        else:
            link.drop()

    def _live(self, link: _Link, peer: _Peer) -> None:
        peer.answered.discard(link)
        if peer.life not in (b"", link.life):
            if link.life in peer.ended or link.order < peer.order:
                raise Fault("is of an earlier life", Bye.LIFE, strike=False)
            peer.ended.append(peer.life)
            for other in [each for each in self._links if each.peer == peer.party and each.stage in _DELIVERS]:
                self._ended(other, f"party {peer.party} has started anew")
                other.abort()
        elif peer.live is not None:
            self._retire(peer.live, peer)
        if peer.dial not in (None, link):
            peer.dial.drop()
        peer.dial, peer.live, peer.life, peer.order, peer.trying = None, link, link.life, link.order, 0.0
        link.stage, link.open, link.began = _Stage.LIVE, True, self._loop.time()
        link.after("deadline", self._limits.idle / 2, lambda: self._watch(link))
        self._known(link)
        waiters, peer.waiters = peer.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._listener.note("connected", peer=peer.party, address=link.address, dialled=link.outgoing)
        self._listener.up(peer.party)
        self._wake(peer)

    def _watch(self, link: _Link) -> None:
        """Ask a peer that is silent although we wrote to it; close when it stays so, or when nobody wrote at all."""
        now, idle = self._loop.time(), self._limits.idle
        if link.held:
            link.heard = now
        quiet = now - link.heard
        if quiet >= idle:
            link.finish(Bye.IDLE, deaf=False)
            self._ended(link, f"nothing was heard of party {link.peer} for {idle:g} s", keep=True)
            return
        if quiet >= idle / 2 and not link.answered:
            self._ping(link, 0)
        link.after("deadline", idle - quiet if quiet >= idle / 2 else idle / 2 - quiet, lambda: self._watch(link))

    def _ping(self, link: _Link, number: int) -> None:
        link.control(PING, PROBE.pack(number, self._clock()))

    def _count(self, link: _Link, frames: int, size: int) -> float:
        link.heard, link.answered = self._loop.time(), True
        if link.stage not in _DELIVERS or link.peer is None:
            return 0.0
        bucket = self._peers[link.peer].bucket
        before = bucket.over
        wait = bucket.take(frames, size, link.heard)
        if bucket.over is not None:
            if before is None:
                self._listener.note("throttled", peer=link.peer, address=link.address)
            if link.heard - bucket.over > self._limits.idle:
                raise Fault(f"has sent too much for {self._limits.idle:g} s")
        return wait

    def _flush(self, party: int) -> None:
        peer = self._peers[party]
        peer.flushing, turn = False, 0
        link = peer.live
        while link is not None and peer.queue and link.writable and turn < _TURN:
            parts: list[bytes] = []
            size = 0
            while peer.queue and size < READ // 4:
                frame, _ = peer.queue.popleft()
                parts += (HEADER.pack(len(frame), DATA), frame)
                size += HEADER.size + len(frame)
            peer.queued -= size
            turn += size
            link.answered = False
            # Fill the records of TLS without copying a long frame.
            view = memoryview(parts.pop())
            cut = -sum(map(len, parts)) % RECORD
            link.write(b"".join((*parts, view[:cut])), view[cut:])
        if turn >= _TURN:
            self._wake(peer)

    # Ends

    def _broken(self, link: _Link, error: Fault | ssl.SSLError) -> None:
        if link.stage is _Stage.DONE:
            link.abort()
            return
        reason, bye, strike = _tls_reason(error), None, True
        if isinstance(error, Fault):
            reason, bye, strike = str(error), error.bye if link.proven else None, error.strike
        name = link.peer if link.proven else None if link.outgoing else link.host
        count = self._strikes.add(name, self._loop.time()) if strike and name is not None else 0
        who = f"party {link.peer}" if link.proven else link.address
        self._listener.note("fault", peer=link.peer, address=link.address, reason=reason, strikes=count)
        link.finish(bye)
        self._ended(link, f"{who} {reason}")

    def _gone(self, link: _Link, error: Exception | None) -> None:
        self._links.discard(link)
        self._known(link)
        before = "" if link.stage in _DELIVERS else " before its hello; it may refuse us or be full"
        self._ended(link, _blame(error, link.address) if error else f"{link.address} closed the connection{before}")
        self._emptied.set()

    def _known(self, link: _Link) -> None:
        """Count it no longer among those without hello."""
        if link.unknown:
            link.unknown = False
            self._unknown[link.host] -= 1
            if not self._unknown[link.host]:
                del self._unknown[link.host]

    def _ended(self, link: _Link, reason: str, again: bool = False, keep: bool = False) -> None:
        """Do without this connection; `again`: the same dial may succeed soon; `keep`: its last frames still count."""
        stage, link.stage = link.stage, _Stage.DRAINING if keep else _Stage.DONE
        link.after("deadline", 0, None)
        for _, answer in link.pings.values():
            if not answer.done():
                answer.set_exception(Unreachable(reason))
        if stage is _Stage.DONE or link.peer is None or self._closed:
            return
        peer, now = self._peer(link.peer), self._loop.time()
        peer.answered.discard(link)
        if peer.live is link:
            peer.live = None
            self._listener.note("lost", peer=peer.party, address=link.address, reason=reason)
            peer.backoff = 0.0
            if now - link.began < _BACKOFF[1]:  # else one that dies at every frame would be dialled without end
                self._back_off(peer)
        elif peer.dial is link:
            peer.dial = None
            link.drop()
            if not again or now - peer.trying > self._limits.handshake + self._limits.hello:
                self._unreachable(peer, reason)
                return
            self._back_off(peer)
        self._wake(peer)

    def _back_off(self, peer: _Peer) -> None:
        peer.backoff = min(max(2 * peer.backoff, _BACKOFF[0]), _BACKOFF[1])
        peer.next_dial = self._loop.time() + peer.backoff

    def _unreachable(self, peer: _Peer, reason: str) -> None:
        peer.trying = 0.0
        self._back_off(peer)
        self._give_up(peer, reason)
        self._listener.down(peer.party, reason)

    def _give_up(self, peer: _Peer, reason: str) -> None:
        queue, peer.queue, peer.queued = peer.queue, deque(), 0
        waiters, peer.waiters = peer.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(Unreachable(reason))
        for _, token in queue:
            self._listener.unsent(peer.party, token)


def _origin(address: str) -> str:
    """Return what counts as one address: with IPv6, a whole network is given to one customer."""
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if parsed.version == 6 and parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def _tls_reason(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"wrong certificate: {error.verify_message}"
    reason = str(getattr(error, "reason", None) or error)
    if "ALERT" in reason:
        return f"refuses us in TLS: {reason}"
    return (
        f"showed no certificate ({reason})" if "DID_NOT_RETURN" in reason else f"does not speak TLS with us: {reason}"
    )


def _blame(error: Exception, where: str) -> str:
    """Say what an error of a socket means and whose fault it looks like."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None and f"[Errno {errno.ECONNREFUSED}]" in str(error):  # several addresses, all tried
        number = errno.ECONNREFUSED
    for numbers, text in _BLAME:
        if number in numbers:
            return text.format(where)
    if isinstance(error, socket.gaierror | ValueError | OverflowError):
        return f"no address: {where} cannot be looked up (our roster, or the name service)"
    return f"{where} broke the connection off" if isinstance(error, ConnectionError) else f"{where}: {error}"


_BLAME = (
    ((errno.ECONNREFUSED,), "refused: nothing listens at {} (the peer is not running, or its address is wrong)"),
    ((errno.ETIMEDOUT,), "timed out: nothing answers at {} (the network, or the peer's machine)"),
    (
        (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN),
        "no route to {} (the network, ours or the peer's)",
    ),
    (
        (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM),
        "our own machine has no file descriptors or memory left for {}",
    ),
)
