"""The connections of a transport: dialled and accepted, one that counts per peer, and how each ends."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine, Sequence

from inca._base.validation import refuse, whole
from inca.network.transport.acceptor import Door
from inca.network.transport.connection import DELIVERS, Link, Peer, Stage
from inca.network.transport.events import Listener, Unreachable
from inca.network.transport.failures import blame, tls_reason
from inca.network.transport.frames import (
    DATA,
    ECHO,
    HEADER,
    HELLO,
    PING,
    PONG,
    PROBE,
    Bye,
    Fault,
    Hello,
    Limits,
    Strikes,
)
from inca.network.transport.streams import READ, RECORD, Pool

_NOBODY = bytes(16)  # the nonce repeated by a first hello
_BACKOFF = (0.05, 1.0)  # seconds between dials: first and largest
_TURN = 1 << 20  # bytes written to one peer before others get their turn


class Connections:
    """Keeps them for `Transport`, whose arguments it takes; see there for the rules."""

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
        clock: Callable[[], float],
    ) -> None:
        """Prepare; nothing happens before `begin`."""
        if len(session) != 32:
            raise refuse("session", session, "an id of 32 bytes")
        self._me = whole("me", me, least=0, most=len(addresses) - 1)
        self._addresses, self._session, self._identify = addresses, session, identify
        self.server, self.client, self.limits, self.pool = server, client, limits, Pool()
        self._listener, self._clock = listener, clock
        self._life, self._serial = secrets.token_bytes(16), 0
        self.peers: dict[int, Peer] = {}
        self._links: set[Link] = set()
        self._strikes = Strikes(limits)
        self._door = Door(limits, self._strikes, listener, self._admit)
        self._tasks: set[asyncio.Task[None]] = set()
        self._emptied = asyncio.Event()
        self.closed = False

    def begin(self, listening: socket.socket) -> None:
        """Accept from now on; dial when asked."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        self._spawn(self._door.open(listening))

    async def end(self) -> None:
        """Say goodbye to everyone and stop, within about two seconds; frames still waiting are `unsent`."""
        self.closed = True
        for peer in self.peers.values():
            self.flush(peer.party)
            self._give_up(peer, "this transport is closed")
            if peer.timer is not None:
                peer.timer.cancel()
            if peer.dial is not None:
                peer.dial.drop()
        for link in list(self._links):
            link.stage = Stage.DONE
            link.finish(Bye.CLOSING if link.proven else None)
            self._ended(link, "this transport is closed")
        self._door.tell()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._listening.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(2.0):
                while self._links:
                    self._emptied.clear()
                    await self._emptied.wait()

    def greet(self, nonce: bytes, echo: bytes) -> Hello:
        """Return our next hello."""
        self._serial += 1
        return Hello(self._session, self._me, self._life, self._serial, nonce, echo)

    # Dialling, accepting

    def peer(self, party: int) -> Peer:
        """Return what is known about this party, which is not ours."""
        if party not in self.peers:
            if whole("peer", party, least=0, most=len(self._addresses) - 1) == self._me:
                raise refuse("peer", party, "another party")
            self.peers[party] = Peer(party, self.limits, self._loop.time())
        return self.peers[party]

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def wake(self, peer: Peer) -> None:
        """See that what waits for this peer goes out."""
        if peer.live is not None:
            if not peer.flushing and peer.live.writable:
                peer.flushing = True
                self._loop.call_soon(self.flush, peer.party)
        elif (peer.queue or peer.waiters) and not (peer.dial or peer.answered or peer.timer or self.closed):
            pause = max(0.0, peer.next_dial - self._loop.time())
            peer.timer = self._loop.call_later(pause, self._dial, peer)

    def _dial(self, peer: Peer) -> None:
        peer.timer = None
        if peer.live or peer.dial or peer.answered or self.closed:
            return
        now = self._loop.time()
        peer.trying = peer.trying or now
        if (pause := self._strikes.refused(peer.party, now)) > 0:
            self._unreachable(peer, f"party {peer.party} is refused for another {pause:.0f} s after too many errors")
            return
        host, port = self._addresses[peer.party]
        link = peer.dial = Link(self, f"{host}:{port}", host, peer.party)
        link.dial = self._spawn(self._connect(link, host, port))

    async def _connect(self, link: Link, host: str, port: int) -> None:
        try:
            await self._loop.create_connection(lambda: link, host, port)
        except (OSError, ValueError, OverflowError) as error:  # a name or a port may be impossible
            link.dial = None  # it is this task
            self._ended(link, blame(error, link.address))

    async def _admit(self, sock: socket.socket, address: str, host: str) -> None:
        link = Link(self, address, host, None)
        try:
            await self._loop.connect_accepted_socket(lambda: link, sock)
        except OSError as error:
            self.gone(link, error)

    # What happens on a connection

    def opened(self, link: Link) -> None:
        """Keep it."""
        self._links.add(link)

    def secured(self, link: Link) -> None:
        """Learn from its certificate who is there, and let whoever connected say hello."""
        certificate = link.tls.getpeercert(binary_form=True)
        party = None if certificate is None else self._identify(certificate)
        party = None if party is None or not 0 <= party < len(self._addresses) else party
        link.deadline(self.limits.hello, "said no hello")
        if link.outgoing:
            if party != link.peer or party is None:
                whose = "nobody we know" if party is None else f"party {party}"
                raise Fault(f"wrong certificate: it is that of {whose}, not of party {link.peer}")
            link.proven = True
            peer = self.peers[party]
            if peer.live or peer.answered:
                peer.dial = None
                link.drop()
            else:
                link.stage = Stage.GREETED
                link.hello(_NOBODY)
            return
        if party is None:
            raise Fault("showed a certificate of nobody we know")
        if party == self._me:
            raise Fault("showed our own certificate")
        link.peer, link.proven, link.stage = party, True, Stage.WAITING
        if self._strikes.refused(party, self._loop.time()) > 0:
            self._door.refuse(f"party {party} made too many errors")
            link.stage = Stage.DONE
            link.finish(Bye.PENALTY)

    def frame(self, link: Link, kind: int, body: bytes) -> None:
        """Hand on a frame, or act on a control frame."""
        if kind == DATA:
            if link.stage in DELIVERS:
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

    def _hello(self, link: Link, hello: Hello) -> None:
        if hello.session != self._session:
            raise Fault("is in another session", Bye.SESSION, strike=False)
        if hello.party != link.peer:
            raise Fault(f"claims to be party {hello.party}", Bye.IDENTITY)
        if link.stage is Stage.WAITING:
            link.life, link.serial = hello.life, hello.serial
            self._answer(link, self.peers.get(link.peer) or self.peer(link.peer), hello)
        elif link.stage is Stage.GREETED and hello.echo == link.nonce:
            link.life, link.serial = hello.life, hello.serial
            link.hello(hello.nonce)
            self._live(link, self.peers[link.peer])
        elif link.stage is Stage.REPLIED and hello.echo == link.nonce and hello.life == link.life:
            self._live(link, self.peers[link.peer])
        else:
            raise Fault("sent a hello that answers none of ours")

    def _answer(self, link: Link, peer: Peer, hello: Hello) -> None:
        rivals = [other for other in (peer.live, *peer.answered) if other is not None and other.life == link.life]
        greeted = peer.dial is not None and peer.dial.stage is Stage.GREETED and self._me < peer.party
        if greeted or any(link.serial < other.serial for other in rivals):
            link.stage = Stage.DONE
            link.finish(Bye.SIMULTANEOUS)
            return
        for other in rivals:  # the peer has lost them
            self._retire(other, peer)
        if peer.dial is not None:
            peer.dial.drop()
            peer.dial = None
        link.stage = Stage.REPLIED
        peer.answered.add(link)
        link.hello(hello.nonce)

    def _retire(self, link: Link, peer: Peer) -> None:
        peer.answered.discard(link)
        if peer.live is link:
            peer.live = None
            link.stage = Stage.DRAINING
            link.finish(Bye.REPLACED, deaf=False)
        else:
            link.drop()

    def _live(self, link: Link, peer: Peer) -> None:
        peer.answered.discard(link)
        if peer.life not in (b"", link.life):
            if link.life in peer.ended or link.order < peer.order:
                raise Fault("is of an earlier life", Bye.LIFE, strike=False)
            peer.ended.append(peer.life)
            for other in [each for each in self._links if each.peer == peer.party and each.stage in DELIVERS]:
                self._ended(other, f"party {peer.party} has started anew")
                other.abort()
        elif peer.live is not None:
            self._retire(peer.live, peer)
        if peer.dial not in (None, link):
            peer.dial.drop()
        peer.dial, peer.live, peer.life, peer.order, peer.trying = None, link, link.life, link.order, 0.0
        link.stage, link.open, link.began = Stage.LIVE, True, self._loop.time()
        link.after("deadline", self.limits.idle / 2, lambda: self._watch(link))
        self._known(link)
        waiters, peer.waiters = peer.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._listener.note("connected", peer=peer.party, address=link.address, dialled=link.outgoing)
        self._listener.up(peer.party)
        self.wake(peer)

    def _watch(self, link: Link) -> None:
        """Ask a peer that is silent although we wrote to it; close when it stays so, or when nobody wrote at all."""
        now, idle = self._loop.time(), self.limits.idle
        if link.held:
            link.heard = now
        quiet = now - link.heard
        if quiet >= idle:
            link.finish(Bye.IDLE, deaf=False)
            self._ended(link, f"nothing was heard of party {link.peer} for {idle:g} s", keep=True)
            return
        if quiet >= idle / 2 and not link.answered:
            self.ping(link, 0)
        link.after("deadline", idle - quiet if quiet >= idle / 2 else idle / 2 - quiet, lambda: self._watch(link))

    def ping(self, link: Link, number: int) -> None:
        """Ask the other side for its clock, or only for a sign of life (number 0)."""
        link.control(PING, PROBE.pack(number, self._clock()))

    def count(self, link: Link, frames: int, size: int) -> float:
        """Hold back a peer that sends more than its share, and end with one that goes on."""
        link.heard, link.answered = self._loop.time(), True
        if link.stage not in DELIVERS or link.peer is None:
            return 0.0
        bucket = self.peers[link.peer].bucket
        before = bucket.over
        wait = bucket.take(frames, size, link.heard)
        if bucket.over is not None:
            if before is None:
                self._listener.note("throttled", peer=link.peer, address=link.address)
            if link.heard - bucket.over > self.limits.idle:
                raise Fault(f"has sent too much for {self.limits.idle:g} s")
        return wait

    def flush(self, party: int) -> None:
        """Write what waits for this party, as much as the kernel takes in one turn."""
        peer = self.peers[party]
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
            self.wake(peer)

    # Ends

    def broken(self, link: Link, error: Fault | ssl.SSLError) -> None:
        """Name whoever broke the rules, in the log and to its face, and end the connection."""
        if link.stage is Stage.DONE:
            link.abort()
            return
        reason, bye, strike = tls_reason(error), None, True
        if isinstance(error, Fault):
            reason, bye, strike = str(error), error.bye if link.proven else None, error.strike
        name = link.peer if link.proven else None if link.outgoing else link.host
        count = self._strikes.add(name, self._loop.time()) if strike and name is not None else 0
        who = f"party {link.peer}" if link.proven else link.address
        self._listener.note("fault", peer=link.peer, address=link.address, reason=reason, strikes=count)
        link.finish(bye)
        self._ended(link, f"{who} {reason}")

    def gone(self, link: Link, error: Exception | None) -> None:
        """Forget a connection whose socket is closed."""
        self._links.discard(link)
        self._known(link)
        before = "" if link.stage in DELIVERS else " before its hello; it may refuse us or be full"
        self._ended(link, blame(error, link.address) if error else f"{link.address} closed the connection{before}")
        self._emptied.set()

    def _known(self, link: Link) -> None:
        """Count it no longer among those without hello."""
        if link.unknown:
            link.unknown = False
            self._door.known(link.host)

    def _ended(self, link: Link, reason: str, again: bool = False, keep: bool = False) -> None:
        """Do without this connection; `again`: the same dial may succeed soon; `keep`: its last frames still count."""
        stage, link.stage = link.stage, Stage.DRAINING if keep else Stage.DONE
        link.after("deadline", 0, None)
        for _, answer in link.pings.values():
            if not answer.done():
                answer.set_exception(Unreachable(reason))
        if stage is Stage.DONE or link.peer is None or self.closed:
            return
        peer, now = self.peer(link.peer), self._loop.time()
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
            if not again or now - peer.trying > self.limits.handshake + self.limits.hello:
                self._unreachable(peer, reason)
                return
            self._back_off(peer)
        self.wake(peer)

    def _back_off(self, peer: Peer) -> None:
        peer.backoff = min(max(2 * peer.backoff, _BACKOFF[0]), _BACKOFF[1])
        peer.next_dial = self._loop.time() + peer.backoff

    def _unreachable(self, peer: Peer, reason: str) -> None:
        peer.trying = 0.0
        self._back_off(peer)
        self._give_up(peer, reason)
        self._listener.down(peer.party, reason)

    def _give_up(self, peer: Peer, reason: str) -> None:
        queue, peer.queue, peer.queued = peer.queue, deque(), 0
        waiters, peer.waiters = peer.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(Unreachable(reason))
        for _, token in queue:
            self._listener.unsent(peer.party, token)
