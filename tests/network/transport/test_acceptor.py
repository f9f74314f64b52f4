"""Who is let in: with sockets that are made up, so that every connection comes from where the test says."""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections import Counter
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca.network.transport import acceptor as module
from inca.network.transport.acceptor import Acceptor, origin_of
from inca.network.transport.interface import TransportEvents
from inca.network.transport.limits import Limits, Violations


class Socket:
    """An accepted connection: keeps what was done with it."""

    def __init__(self) -> None:
        self.blocking, self.closed, self.linger = True, False, b""

    def setblocking(self, flag: bool) -> None:
        self.blocking = flag

    def setsockopt(self, level: int, option: int, value: bytes) -> None:
        assert (level, option) == (socket.SOL_SOCKET, socket.SO_LINGER)
        self.linger = value

    def close(self) -> None:
        self.closed = True


class Listening:
    """Gives one connection after the other, then says that there is none."""

    def __init__(self, *arrivals: str | OSError) -> None:
        self.arrivals = list(arrivals)
        self.sockets: list[Socket] = []

    def accept(self) -> tuple[Socket, tuple[str, int]]:
        if not self.arrivals:
            raise BlockingIOError
        arrival = self.arrivals.pop(0)
        if isinstance(arrival, OSError):
            raise arrival
        self.sockets.append(Socket())
        return self.sockets[-1], (arrival, 40_000 + len(self.sockets))


class Events(TransportEvents):
    def __init__(self) -> None:
        self.log: list[tuple[str, dict[str, object]]] = []

    def log_event(self, event: str, **fields: object) -> None:
        self.log.append((event, fields))


class Pending:
    """A connection that was let in."""

    def __init__(self, accepting: Accepting, address: str, origin: str) -> None:
        self._accepting, self.address, self.origin = accepting, address, origin

    def give_way(self) -> None:
        self._accepting.gave_way.append(self.address)


class Accepting:
    """An acceptor over made-up sockets; `accepted` are the addresses that were let in."""

    def __init__(self, **limits: Any) -> None:
        self.events, self.violations = Events(), Violations(Limits(**limits))
        self.accepted: list[tuple[str, str]] = []
        self.pending: list[Pending] = []
        self.gave_way: list[str] = []
        self.acceptor = Acceptor(Limits(**limits), self.violations, self.events, self._on_accepted)

    async def _on_accepted(self, sock: Any, address: str, origin: str) -> None:
        assert not sock.blocking and not sock.closed
        self.accepted.append((address, origin))
        self.pending.append(Pending(self, address, origin))
        self.acceptor.now_pending(self.pending[-1])

    def said_hello(self, origin: str) -> None:
        """Let the oldest connection of an address say hello."""
        self.acceptor.no_longer_pending(next(each for each in self.pending if each.origin == origin))

    async def run(self, listening: Any, retry_s: float = 0.0) -> None:
        """Accept until there is nobody left."""
        waiting = asyncio.Event()

        async def readable(_: Any) -> None:
            waiting.set()
            await asyncio.Event().wait()

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_readable", readable)
            patch.setattr(module, "_RETRY_S", retry_s)
            task = asyncio.create_task(self.acceptor.run(listening))
            await asyncio.wait({task, asyncio.create_task(waiting.wait())}, return_when=asyncio.FIRST_COMPLETED)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task


def test_whoever_comes_is_let_in_with_its_address() -> None:
    async def main() -> None:
        accepting = Accepting()
        listening = Listening("10.0.0.1", "2001:db8::7")
        await accepting.run(listening)
        assert accepting.accepted == [("10.0.0.1:40001", "10.0.0.1"), ("2001:db8::7:40002", "2001:db8::/64")]
        assert not any(each.closed for each in listening.sockets) and not accepting.events.log

    asyncio.run(main())


def test_one_address_has_so_many_without_hello_and_others_have_theirs() -> None:
    async def main() -> None:
        accepting = Accepting(max_pending_per_address=2, max_pending=100)
        listening = Listening(*["10.0.0.1"] * 4, "10.0.0.2")
        await accepting.run(listening)
        assert Counter(origin for _, origin in accepting.accepted) == {"10.0.0.1": 2, "10.0.0.2": 1}
        assert [each.closed for each in listening.sockets] == [False, False, True, True, False]
        # Closed at once and without a trace: refusals must not use up the machine's ports.
        assert {each.linger for each in listening.sockets if each.closed} == {struct.pack("ii", 1, 0)}
        accepting.acceptor.log_refusals()
        fields = {"reason": "too many connections of 10.0.0.1 without hello", "times": 2}
        assert accepting.events.log == [("refused", fields)]
        accepting.acceptor.log_refusals()
        assert len(accepting.events.log) == 1  # each is logged once

    asyncio.run(main())


def test_all_together_have_so_many_without_hello() -> None:
    async def main() -> None:
        accepting = Accepting(max_pending_per_address=10, max_pending=3)
        await accepting.run(Listening(*[f"10.0.0.{i}" for i in range(5)]))
        assert len(accepting.accepted) == 5
        assert accepting.gave_way == ["10.0.0.0:40001", "10.0.0.1:40002"]
        accepting.acceptor.log_refusals()
        reasons = [fields["reason"] for _, fields in accepting.events.log]
        assert reasons == [
            f"too many connections without hello: one of 10.0.0.{i} gave way to another" for i in range(2)
        ]

    asyncio.run(main())


@given(
    st.lists(st.tuples(st.sampled_from(["a", "b", "c", "d"]), st.booleans()), max_size=60),
    st.integers(1, 6),
)
def test_when_there_are_too_many_the_oldest_of_the_largest_origin_gives_way(
    events: list[tuple[str, bool]], most: int
) -> None:
    """Against a list of all that are pending, the oldest first: each event is an arrival, or a hello of the oldest."""

    async def main() -> None:
        accepting, pending = Accepting(max_pending_per_address=100, max_pending=most), list[Pending]()
        for origin, arrives in events:
            if not arrives:
                if said := [each for each in pending if each.origin == origin]:
                    pending.remove(said[0])
                    accepting.acceptor.no_longer_pending(said[0])
                continue
            await accepting.run(Listening(origin))
            pending.append(accepting.pending[-1])
            if len(pending) > most:
                counts = Counter(each.origin for each in pending)
                expected = next(each for each in pending if counts[each.origin] == max(counts.values()))
                assert accepting.gave_way == [expected.address] and expected is not accepting.pending[-1]
                pending.remove(expected)
            else:
                assert not accepting.gave_way
            accepting.gave_way.clear()
        for each in pending:
            accepting.acceptor.no_longer_pending(each)
        assert not accepting.acceptor._pending

    asyncio.run(main())


def test_who_has_said_hello_makes_room_for_another() -> None:
    async def main() -> None:
        accepting = Accepting(max_pending_per_address=2)
        await accepting.run(Listening("10.0.0.1", "10.0.0.1", "10.0.0.1"))
        assert len(accepting.accepted) == 2
        accepting.said_hello("10.0.0.1")
        await accepting.run(Listening("10.0.0.1", "10.0.0.1"))
        assert len(accepting.accepted) == 3
        for each in accepting.pending:  # the first one again, too, as when a connection ends
            accepting.acceptor.no_longer_pending(each)
        assert not accepting.acceptor._pending  # nothing is kept of addresses that are gone

    asyncio.run(main())


def test_an_address_with_too_many_violations_is_let_in_slowly_and_others_are_not_slowed() -> None:
    async def main() -> None:
        accepting = Accepting(max_violations=2, penalty_s=60.0)
        now = asyncio.get_running_loop().time()
        for _ in range(2):
            accepting.violations.add("10.0.0.1", now)
        await accepting.run(Listening("10.0.0.1", "10.0.0.1", "10.0.0.2", "10.0.0.2"))
        assert [origin for _, origin in accepting.accepted] == ["10.0.0.1", "10.0.0.2", "10.0.0.2"]
        accepting.acceptor.log_refusals()
        assert accepting.events.log == [("refused", {"reason": "10.0.0.1 made too many violations", "times": 1})]
        accepting.said_hello("10.0.0.1")
        await accepting.run(Listening("10.0.0.1"))
        assert len(accepting.accepted) == 3  # too soon after the last one
        await asyncio.sleep(0.3)
        await accepting.run(Listening("10.0.0.1"))
        assert len(accepting.accepted) == 4
        for party, violations, accepted in ((7, 0, 5), (7, 2, 5), (8, 0, 6)):
            accepting.acceptor.party_seen("10.0.0.1", party)
            for _ in range(violations):
                accepting.violations.add(party, now)
            await accepting.run(Listening("10.0.0.1"))
            assert len(accepting.accepted) == accepted  # a party that is refused itself speaks for nobody

    asyncio.run(main())


def test_a_failure_to_accept_is_logged_and_gone_on_after() -> None:
    async def main() -> None:
        accepting = Accepting()
        await accepting.run(Listening(OSError(errno.EMFILE, "too many open files"), "10.0.0.1"))
        assert [event for event, _ in accepting.events.log] == ["accepting failed"]
        assert "no file descriptors" in str(accepting.events.log[0][1]["reason"])
        assert len(accepting.accepted) == 1
        await accepting.run(Listening(InterruptedError(), "10.0.0.1"))
        assert len(accepting.events.log) == 1  # an interruption is no failure

    asyncio.run(main())


def test_after_a_failure_the_acceptor_waits_until_others_may_have_closed_something() -> None:
    async def main() -> None:
        accepting, pauses, sleep = Accepting(), list[float](), asyncio.sleep

        async def kept(seconds: float) -> None:
            pauses.append(seconds)
            await sleep(0)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(asyncio, "sleep", kept)
            await accepting.run(Listening(OSError(errno.EMFILE, "too many open files"), "10.0.0.1"), retry_s=0.1)
        assert pauses == [0.1]

    asyncio.run(main())


def test_thousands_of_reasons_are_told_as_others() -> None:
    async def main() -> None:
        accepting = Accepting()
        for number in range(100):
            accepting.acceptor.refuse(f"reason {number}")
        accepting.acceptor.log_refusals()
        times = {str(fields["reason"]): fields["times"] for _, fields in accepting.events.log}
        assert len(times) == 65 and times["others"] == 36 and times["reason 63"] == 1

    asyncio.run(main())


def test_refusals_are_logged_together_a_second_after_the_first() -> None:
    async def main() -> None:
        accepting = Accepting()
        loop = asyncio.get_running_loop()
        later: list[tuple[float, Any]] = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "call_later", lambda delay, call: later.append((delay, call)))
            for _ in range(3):
                accepting.acceptor.refuse("a reason")
        assert [delay for delay, _ in later] == [1.0]
        later[0][1]()
        assert accepting.events.log == [("refused", {"reason": "a reason", "times": 3})]

    asyncio.run(main())


def test_many_arrivals_let_others_have_their_turn() -> None:
    async def main() -> None:
        accepting = Accepting(max_pending_per_address=1000, max_pending=1000)
        seen_by_other: list[int] = []

        async def other() -> None:
            while len(accepting.accepted) < 160:
                seen_by_other.append(len(accepting.accepted))
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        await accepting.run(Listening(*["10.0.0.1"] * 160))
        await task
        steps = [after - before for before, after in pairwise(seen_by_other)]
        assert len(steps) >= 8 and max(steps) <= 16

    asyncio.run(main())


@pytest.mark.parametrize(
    ("address", "origin"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.7", "::ffff:192.0.2.7"),  # IPv4 after all: one customer, one address
        ("not an address", "not an address"),
    ],
)
def test_a_whole_ipv6_network_counts_as_one_address(address: str, origin: str) -> None:
    assert origin_of(address) == origin


def test_a_listening_socket_is_waited_for_and_left_alone_afterwards() -> None:
    async def main() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ours.setblocking(False)
            task = asyncio.create_task(module._readable(ours))
            await asyncio.sleep(0)
            assert not task.done()
            theirs.send(b"x")
            await asyncio.wait_for(task, 60)
            assert not asyncio.get_running_loop().remove_reader(ours)  # nobody reads from it any more

    asyncio.run(main())
