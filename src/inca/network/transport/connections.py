"""The connections of a transport: dialled and accepted, one that counts per peer, and how each ends."""

from __future__ import annotations

import asyncio
import contextlib
import math
import secrets
import socket
import ssl
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING

from inca._base.validation import integer, refuse
from inca.errors import TransportViolation
from inca.network.addresses import Address
from inca.network.transport.acceptor import Acceptor
from inca.network.transport.connection import DELIVERING, Connection, ConnectionState
from inca.network.transport.failures import Failure, FailureCause, Unreached, describe_failure
from inca.network.transport.frames import BYE, DATA, HELLO, PING, PING_BODY, PONG, PONG_BODY, Bye, Hello, Received
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.limits import Violations
from inca.network.transport.peers import LONGEST_BACKOFF_S, Peer
from inca.network.transport.streams import READ_BYTES
from inca.network.transport.tcp import dial

if TYPE_CHECKING:
    from inca.network.transport.relay.client import Relays

CLOSED = Failure(FailureCause.CLOSED, "this transport is closed")
_FIRST_HELLO = bytes(16)  # in place of the other's nonce
_CLOSE_TIMEOUT_S = 2.0
_PATIENCE_WITH_OTHERS_S = 5.0  # with an address that does not answer, while the peer has another one
_TURN_BYTES = 1 << 20  # written to one peer before others get their turn
_FORGIVEN = (FailureCause.OTHER_SESSION, FailureCause.OTHER_VERSION, FailureCause.OLD_INCARNATION)  # mere mistakes


class Connections:
    """Keeps the connections for `Transport`; see the package for the rules."""

    def __init__(self, config: TransportConfig, events: TransportEvents) -> None:
        self._config, self._limits, self._events = config, config.limits, events
        self._incarnation, self._serial = secrets.token_bytes(16), 0
        self._buffer = memoryview(bytearray(READ_BYTES))
        self._violations = Violations(config.limits)
        self._acceptor = Acceptor(config.limits, self._violations, events, self._on_accepted)
        self._tasks: set[asyncio.Task[None]] = set()
        self._relays: Relays | None = None
        self._one_closed = asyncio.Event()
        self.peers: dict[int, Peer] = {}
        self.open: set[Connection] = set()
        self.closed = False

    def start(self, listening: socket.socket | None) -> None:
        """Accept from now on, where we listen and where we are registered; dial when asked."""
        self._loop = asyncio.get_running_loop()
        self._listening = listening
        if listening is not None:
            self._spawn(self._acceptor.run(listening))
        if self._config.relay is not None:
            from inca.network.transport.relay.client import Relays

            own = [address for address in self._config.addresses[self._config.me] if address.relayed]
            self._relays = Relays(self._config.relay, own, self._buffer, self._events, self._on_call)
            self._relays.start()

    @property
    def registered(self) -> set[Address]:
        """The relays at which others can call us now."""
        return set() if self._relays is None else self._relays.registered

    async def close(self) -> None:
        """Say goodbye to everyone and stop, within about two seconds; frames still waiting are `unsent`."""
        self.closed = True
        for peer in self.peers.values():
            self.flush(peer)
            self._give_up(peer, CLOSED)
            if peer.dial_timer is not None:
                peer.dial_timer.cancel()
            if peer.dialled is not None:
                peer.dialled.drop()
        for connection in list(self.open):
            connection.state = ConnectionState.DONE
            connection.finish(Bye.CLOSING if connection.proven else None)
            self._end(connection, CLOSED)
        self._acceptor.log_refusals()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listening is not None:
            self._listening.close()
        await asyncio.gather(self._all_closed(), *([] if self._relays is None else [self._relays.close()]))

    async def _all_closed(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                while self.open:
                    self._one_closed.clear()
                    await self._one_closed.wait()

    # --- violations that others notice ------------------------------------------------------------------------------

    def refused_for(self, party: int) -> float:
        """Return for how many more seconds a party is refused: 0 if it is not."""
        return self._violations.refused_for(party, self._loop.time())

    def report_violation(self, party: int, what: str) -> int:
        """Count a violation of a party; end its connections if there were too many."""
        peer = self.peer(party)
        count = self._violations.add(party, self._loop.time())
        address = str(self._config.addresses[party][0]) if peer.live is None else peer.live.address
        self._events.violated(party, address, Failure(FailureCause.VIOLATION, f"party {party} {what}"), count)
        if self.refused_for(party) > 0:
            failure = self._penalty(peer)
            dialled = set() if peer.dialled is None else {peer.dialled}
            for connection in dialled | {one for one in self.open if one.peer == party}:
                connection.finish(Bye.PENALTY if connection.proven else None)
                self._end(connection, failure)
        return count

    def _penalty(self, peer: Peer) -> Failure:
        left = self.refused_for(peer.party)
        detail = f"party {peer.party} is refused for another {left:.0f} s after too many violations"
        return Failure(FailureCause.PENALTY, detail)

    # --- dialling and accepting -------------------------------------------------------------------------------------

    def peer(self, party: int) -> Peer:
        """Return what is known about this party, which is not ours."""
        if party not in self.peers:
            if integer("peer", party, min=0, max=len(self._config.addresses) - 1) == self._config.me:
                refuse("peer", party, "another party")
            self.peers[party] = Peer(party, self._limits, self._loop.time())
        return self.peers[party]

    def _spawn(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def wake(self, peer: Peer) -> None:
        """See that what waits for this peer goes out."""
        if peer.live is not None:
            if not peer.flush_scheduled and peer.live.writable:
                peer.flush_scheduled = True
                self._loop.call_soon(self.flush, peer)
        elif (peer.queue or peer.waiters) and not (peer.dialled or peer.answered or peer.dial_timer or self.closed):
            pause = max(0.0, peer.next_dial - self._loop.time())
            peer.dial_timer = self._loop.call_later(pause, self._dial, peer)

    def _dial(self, peer: Peer) -> None:
        peer.dial_timer = None
        if peer.live or peer.dialled or peer.answered or self.closed:
            return
        now = self._loop.time()
        peer.trying_since = peer.trying_since or now
        if self.refused_for(peer.party) > 0:
            self._unreachable(peer, self._penalty(peer))
            return
        address = peer.routes.next(self._config.addresses[peer.party], now)
        relay = address if address.relayed else None
        connection = Connection(self, self._config, self._buffer, address=str(address), peer=peer.party, relay=relay)
        if peer.routes.more:
            connection.hasten(_PATIENCE_WITH_OTHERS_S)
        connection.dial_task = self._spawn(self._connect(connection, address))
        peer.dialled = connection

    async def _connect(self, connection: Connection, address: Address) -> None:
        try:
            if address.relayed and self._relays is not None and connection.peer is not None:
                await self._relays.dial(connection, address, connection.peer)
            else:
                await dial(connection, address)
        except (OSError, ValueError, OverflowError) as error:  # a name or a port may be impossible
            connection.dial_task = None  # it is this task
            self._end(connection, describe_failure(error, connection.address))

    async def _on_accepted(self, sock: socket.socket, address: str, origin: str) -> None:
        connection = Connection(self, self._config, self._buffer, address=address, origin=origin)
        self._acceptor.now_pending(connection)
        try:
            await self._loop.connect_accepted_socket(lambda: connection, sock)
        except OSError as error:
            self.on_closed(connection, error)

    def _on_call(
        self, relay: Address, origin: str, answer: Callable[[Connection], Coroutine[object, object, None]]
    ) -> bool:
        """Take a call at a relay like a connection that comes in; `origin` is a label of where it comes from."""
        origin = f"{origin} at {relay}"
        if refusal := self._acceptor.refusal(origin):
            self._acceptor.refuse(refusal)
            return False
        connection = Connection(self, self._config, self._buffer, address=str(relay), origin=origin, relay=relay)
        connection.dial_task = self._spawn(answer(connection))
        self._acceptor.now_pending(connection)
        return True

    # --- what happens on a connection -------------------------------------------------------------------------------

    def on_opened(self, connection: Connection) -> None:
        """Keep it."""
        self.open.add(connection)

    def on_secured(self, connection: Connection) -> None:
        """Learn from its certificate who is there, and let whoever connected say hello."""
        party, me = self._config.party(connection.tls.getpeercert(binary_form=True)), self._config.me
        connection.set_deadline(self._limits.hello_timeout_s, "said no hello")
        if party is None or party == me or (connection.outgoing and party != connection.peer):
            whose = "of nobody we know" if party is None else "our own" if party == me else f"of party {party}"
            expected = f", not of party {connection.peer}" if connection.outgoing else ""
            detail = f"shows a wrong certificate: {whose}{expected}"
            raise TransportViolation(detail, FailureCause.WRONG_CERTIFICATE)
        connection.peer, connection.proven = party, True
        if connection.outgoing:
            peer = self.peers[party]
            if peer.live or peer.answered:
                peer.dialled = None
                connection.drop()
            else:
                connection.state = ConnectionState.HELLO_SENT
                self._say_hello(connection, _FIRST_HELLO)
            return
        connection.state = ConnectionState.AWAITING_HELLO
        self._acceptor.party_seen(connection.origin, party)
        if self.refused_for(party) > 0:
            self._violations.add(connection.origin, self._loop.time())  # it may come again and again
            self._acceptor.refuse(f"party {party} made too many violations")
            connection.state = ConnectionState.DONE
            connection.finish(Bye.PENALTY)

    def on_frame(self, connection: Connection, kind: int, body: Received) -> None:
        """Hand on a frame, or act on a control frame."""
        if kind == DATA:
            if connection.state in DELIVERING:
                try:
                    self._events.received(connection.peer or 0, body)
                except Exception as error:  # a mistake there is no reason to lose connections here
                    self._loop.call_exception_handler({"message": "an event handler failed", "exception": error})
        elif kind == HELLO:
            self._on_hello(connection, Hello.decode(body))
        elif kind == PING:
            number, sent = PING_BODY.unpack(body)
            if number or connection.writable:  # else we are writing, which is a sign of life
                connection.unanswered_ping = number, sent, self._config.clock()
                self._pong(connection)
        elif kind == PONG:
            number, _, arrived, left = PONG_BODY.unpack(body)
            sent, answer = connection.pings.pop(number, (0.0, None))
            if answer is not None and not answer.done() and math.isfinite(arrived) and math.isfinite(left):
                answer.set_result((sent, arrived, left, self._config.clock()))
        elif kind == BYE:
            bye = Bye.read(body)
            connection.finish(Bye.CLOSING)
            failure = Failure(bye.cause, f"{connection.who} ends the connection: {bye.meaning}")
            self._end(connection, failure, again=bye is Bye.SIMULTANEOUS)

    def on_read(self, connection: Connection, frames: int, size: int) -> float:
        """Hold back a peer that sends more than its share, and end with one that goes on."""
        connection.last_heard, connection.heard_since_write = self._loop.time(), True
        if connection.state not in DELIVERING or connection.peer is None:
            return 0.0
        buckets, timeout = self.peers[connection.peer].buckets, self._limits.idle_timeout_s
        already_over = buckets.over_since is not None
        pause = buckets.take(frames, size, connection.last_heard)
        if buckets.over_since is not None:
            if not already_over:
                self._events.log_event("throttled", peer=connection.peer, address=connection.address)
            if connection.last_heard - buckets.over_since > timeout:
                raise TransportViolation(f"has sent too much for {timeout:g} s", FailureCause.VIOLATION)
        return pause

    def _pong(self, connection: Connection) -> None:
        """Answer the last ping between two frames; not while the peer does not read, or answers could pile up."""
        if connection.unanswered_ping is not None and connection.writable:
            ping, connection.unanswered_ping = connection.unanswered_ping, None
            connection.write_control(PONG, PONG_BODY.pack(*ping, self._config.clock()))

    def on_writable(self, connection: Connection) -> None:
        """Go on writing."""
        self._pong(connection)
        if connection.peer is not None:
            self.flush(self.peer(connection.peer))

    def flush(self, peer: Peer) -> None:
        """Write what waits for this peer, as much as the kernel takes in one turn."""
        peer.flush_scheduled, written = False, 0
        connection = peer.live
        while connection is not None and peer.queue and connection.writable and written < _TURN_BYTES:
            self._pong(connection)
            batch, tokens = peer.next_batch()
            connection.tokens += [token for token in tokens if token is not None]
            written += sum(map(len, batch))
            connection.heard_since_write = False
            connection.write(*batch)
        if written >= _TURN_BYTES:
            self.wake(peer)

    def ping(self, connection: Connection, number: int) -> None:
        """Ask the other side for its clock, or only for a sign of life (number 0)."""
        connection.write_control(PING, PING_BODY.pack(number, self._config.clock()))

    # --- hellos -----------------------------------------------------------------------------------------------------

    def _say_hello(self, connection: Connection, echo: bytes) -> None:
        self._serial += 1
        connection.own_serial = connection.own_serial or self._serial
        config = self._config
        hello = Hello(config.session, config.me, self._incarnation, self._serial, connection.nonce, echo)
        connection.write_control(HELLO, hello.encode())

    def _on_hello(self, connection: Connection, hello: Hello) -> None:
        if hello.session != self._config.session:
            raise TransportViolation("is in another session", FailureCause.OTHER_SESSION)
        if connection.peer is None or hello.party != connection.peer:
            raise TransportViolation(f"claims to be party {hello.party}", FailureCause.IMPERSONATION)
        peer, fresh = self.peer(connection.peer), hello.echo == connection.nonce
        same = hello.incarnation == connection.incarnation
        if connection.state is ConnectionState.AWAITING_HELLO:
            connection.incarnation, connection.peer_serial = hello.incarnation, hello.serial
            self._answer(connection, peer, hello)
        elif connection.state is ConnectionState.HELLO_SENT and fresh:
            connection.incarnation, connection.peer_serial = hello.incarnation, hello.serial
            self._say_hello(connection, hello.nonce)
            self._make_live(connection, peer)
        elif connection.state is ConnectionState.HELLO_ANSWERED and fresh and same:
            self._make_live(connection, peer)
        else:
            raise TransportViolation("sent a hello that answers none of ours", FailureCause.VIOLATION)

    def _answer(self, connection: Connection, peer: Peer, hello: Hello) -> None:
        """Answer a first hello, unless another connection between the two is ahead of this one."""
        others = peer.connections_of(connection.incarnation)
        greeted = peer.dialled is not None and peer.dialled.state is ConnectionState.HELLO_SENT
        ours_counts = greeted and self._config.me < peer.party
        if ours_counts or any(connection.peer_serial < other.peer_serial for other in others):
            connection.state = ConnectionState.DONE
            connection.finish(Bye.SIMULTANEOUS)
            return
        for other in others:  # the peer has lost them
            self._retire(other, peer)
        if peer.dialled is not None:
            peer.dialled.drop()
            peer.dialled = None
        connection.state = ConnectionState.HELLO_ANSWERED
        peer.answered.add(connection)
        self._say_hello(connection, hello.nonce)

    def _retire(self, connection: Connection, peer: Peer) -> None:
        peer.answered.discard(connection)
        if peer.live is connection:
            peer.live = None
            for older in [one for one in self.open if one.peer == peer.party]:
                if older.state is ConnectionState.DRAINING:
                    older.abort()  # each may hold a part of a large frame, and a peer can connect again and again
            connection.state = ConnectionState.DRAINING
            connection.finish(Bye.REPLACED, deaf=False)
            self._report_doubts(connection, peer)
        else:
            connection.drop()

    def _make_live(self, connection: Connection, peer: Peer) -> None:
        """Let this connection be the one that counts; those of earlier incarnations deliver nothing more."""
        peer.answered.discard(connection)
        if peer.incarnation not in (b"", connection.incarnation):
            if connection.incarnation in peer.past_incarnations or connection.own_serial < peer.own_serial:
                raise TransportViolation("is an earlier incarnation", FailureCause.OLD_INCARNATION)
            peer.past_incarnations.append(peer.incarnation)
            failure = Failure(FailureCause.RESTARTED, f"party {peer.party} has started anew")
            for other in [old for old in self.open if old.peer == peer.party and old.state in DELIVERING]:
                self._end(other, failure)
                other.abort()
        elif peer.live is not None:
            self._retire(peer.live, peer)
        if peer.dialled not in (None, connection):
            peer.dialled.drop()
        peer.dialled, peer.live, peer.trying_since = None, connection, 0.0
        peer.routes.reached(by_us=connection.outgoing)
        peer.incarnation, peer.own_serial = connection.incarnation, connection.own_serial
        connection.state, connection.greeted, connection.live_since = ConnectionState.LIVE, True, self._loop.time()
        connection.set_timer("deadline", self._limits.idle_timeout_s / 2, lambda: self._check_silence(connection))
        self._acceptor.no_longer_pending(connection)
        peer.wake_waiters()
        way = {} if connection.relay is None else {"relay": connection.relay}
        where = {"address": connection.address, "dialled": connection.outgoing}
        self._events.log_event("connected", peer=peer.party, **where, **way)
        self._events.up(peer.party)
        self.wake(peer)

    def _check_silence(self, connection: Connection) -> None:
        """Ask a peer that is silent although we wrote to it; close when it stays so, or when nobody wrote at all."""
        now, timeout = self._loop.time(), self._limits.idle_timeout_s
        if connection.held_back:
            connection.last_heard = now
        silence = now - connection.last_heard
        if silence >= timeout:
            connection.finish(Bye.IDLE, deaf=False)
            detail = f"nothing was heard of party {connection.peer} for {timeout:g} s"
            cause = FailureCause.IDLE if connection.heard_since_write else FailureCause.UNRESPONSIVE
            self._end(connection, Failure(cause, detail), keep=True)
            return
        if silence >= timeout / 2 and not connection.heard_since_write:
            self.ping(connection, 0)
        left = (timeout if silence >= timeout / 2 else timeout / 2) - silence
        connection.set_timer("deadline", left, lambda: self._check_silence(connection))

    # --- ends -------------------------------------------------------------------------------------------------------

    def on_broken(self, connection: Connection, error: TransportViolation | ssl.SSLError) -> None:
        """Name whoever broke the rules, in the log and to its face, and end the connection."""
        if connection.state is ConnectionState.DONE:
            connection.abort()
            return
        failure = describe_failure(error, connection.who)
        told = connection.proven and isinstance(error, TransportViolation)
        # Silence, and bytes that TLS does not accept, may be the doing of a relay, or of anyone else between us.
        spoke = told and failure.cause is not FailureCause.UNRESPONSIVE
        culprit = connection.peer if spoke else None if connection.outgoing else connection.origin
        count = 0
        if connection.socket is None:  # nobody was there to break a rule
            self._acceptor.no_longer_pending(connection)
        else:
            if culprit is not None and failure.cause not in _FORGIVEN:
                count = self._violations.add(culprit, self._loop.time())
            self._events.violated(connection.peer, connection.address, failure, count)
        connection.finish(Bye.because_of(failure.cause) if told else None)
        self._end(connection, failure)
        if connection.socket is None:
            connection.drop()  # or the dial, or the answer to a call, would go on

    def on_closed(self, connection: Connection, error: Exception | None) -> None:
        """Forget a connection whose socket is closed."""
        self.open.discard(connection)
        self._acceptor.no_longer_pending(connection)
        if connection.outgoing and connection.state is ConnectionState.CONNECTING and not isinstance(error, Unreached):
            detail = f"{connection.address} took the connection and closed it: a tunnel or relay, or one that is full"
            failure = Failure(FailureCause.NO_ANSWER, detail)
        elif error is not None:
            failure = describe_failure(error, connection.address)
        elif connection.state in DELIVERING:
            failure = Failure(FailureCause.LOST, f"{connection.address} closed the connection")
        else:
            detail = f"{connection.address} closed the connection before its hello; it may refuse us or be full"
            failure = Failure(FailureCause.HUNG_UP, detail)
        self._end(connection, failure)
        self._one_closed.set()

    def _end(self, connection: Connection, failure: Failure, again: bool = False, keep: bool = False) -> None:
        """Do without this connection; `again`: the same dial may succeed soon; `keep`: its last frames still count."""
        state, connection.state = connection.state, ConnectionState.DRAINING if keep else ConnectionState.DONE
        connection.stop_timer("deadline")
        for _, answer in connection.pings.values():
            if not answer.done():
                answer.set_exception(failure.as_error())
        if state is ConnectionState.DONE or connection.peer is None or self.closed:
            return
        peer, now = self.peer(connection.peer), self._loop.time()
        peer.answered.discard(connection)
        if peer.live is connection:
            peer.live = None
            self._events.lost(peer.party, failure)
            self._report_doubts(connection, peer)
            peer.forget_back_off()
            if now - connection.live_since < LONGEST_BACKOFF_S:
                peer.back_off(now)  # else one that dies at every frame would be dialled without end
        elif peer.dialled is connection:
            peer.dialled = None
            connection.drop()
            patience = self._limits.handshake_timeout_s + self._limits.hello_timeout_s
            if again and now - peer.trying_since <= patience:
                peer.routes.again()
                peer.back_off(now)
            elif (told := peer.routes.failed(failure, now)) is not None:
                self._unreachable(peer, told)
                return
        self.wake(peer)

    def _report_doubts(self, connection: Connection, peer: Peer) -> None:
        """Tell which frames were written to a connection that no longer counts."""
        tokens, connection.tokens = connection.tokens, []
        for token in tokens:
            self._events.in_doubt(peer.party, token)

    def _unreachable(self, peer: Peer, failure: Failure) -> None:
        peer.trying_since = 0.0
        peer.back_off(self._loop.time())
        self._give_up(peer, failure)
        self._events.down(peer.party, failure)

    def _give_up(self, peer: Peer, failure: Failure) -> None:
        peer.wake_waiters(failure)
        for token in peer.empty_queue():
            self._events.unsent(peer.party, token)
