"""The stream through a relay, as a transport of asyncio: bytes in, the same bytes out, whatever the chunks."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.blind_relays import RelayNetwork, address_of, quiet, registered
from helpers.transports import run, until
from inca.network.addresses import Address
from inca.network.transport.failures import FailureCause, Unreached
from inca.network.transport.interface import TransportEvents
from inca.network.transport.relay.client import AnswerCall, Relays
from inca.network.transport.relay.link import CHUNK_BYTES
from inca.network.transport.relay.server import Relay
from inca.network.transport.relay.stream import RelayedStream

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> RelayNetwork:
    return RelayNetwork(tmp_path_factory.mktemp("certificates"))


class End(asyncio.BufferedProtocol):
    """One end of a stream: keeps what it reads, and pauses as it likes."""

    def __init__(self, at_end: bool = False) -> None:
        self.stream: RelayedStream | None = None
        self.read, self.ended, self.over = bytearray(), False, False
        self.error: Exception | None = None
        self.paused = False
        self._at_end = at_end
        self._buffer = bytearray(1000)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, RelayedStream)
        self.stream = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self._buffer)

    def buffer_updated(self, nbytes: int) -> None:
        assert not self.ended and not self.over
        self.read += self._buffer[:nbytes]

    def eof_received(self) -> bool:
        self.ended = True
        return self._at_end

    def pause_writing(self) -> None:
        assert not self.paused
        self.paused = True

    def resume_writing(self) -> None:
        assert self.paused
        self.paused = False

    def connection_lost(self, exc: Exception | None) -> None:
        assert not self.over
        self.over, self.error = True, exc

    @property
    def open(self) -> RelayedStream:
        assert self.stream is not None
        return self.stream


class Party:
    """A party at a relay, that takes all calls."""

    def __init__(self, network: RelayNetwork, relay: Relay, me: int, at_end: bool) -> None:
        self.calls: list[End] = []
        self._at_end = at_end
        self._tasks: list[asyncio.Task[None]] = []
        buffer = memoryview(bytearray(1 << 17))
        own = [address_of(relay)]
        self.relays = Relays(network.access(me), own, buffer, TransportEvents(), self._on_call)

    def _on_call(self, relay: Address, origin: str, answer: AnswerCall) -> bool:
        self.calls.append(End(self._at_end))

        async def take() -> None:
            await answer(self.calls[-1])

        self._tasks.append(asyncio.ensure_future(take()))
        return True


@asynccontextmanager
async def streams(
    network: RelayNetwork, at_end: bool = False, **limits: float
) -> AsyncIterator[tuple[Relay, End, End]]:
    async with network.relay(limits=limits) as relay:
        anna, bert = (Party(network, relay, me, at_end) for me in range(2))
        for party in (anna, bert):
            party.relays.start()
        try:
            await registered(relay, 2)
            near = End(at_end)
            await anna.relays.dial(near, address_of(relay), 1)
            await until(lambda: bert.calls and bert.calls[0].stream)
            yield relay, near, bert.calls[0]
            for end in (near, bert.calls[0]):
                end.open.abort()
            await until(lambda: near.over and bert.calls[0].over)
        finally:
            await anna.relays.close()
            await bert.relays.close()


chunks = st.lists(
    st.one_of(st.integers(1, 3000), st.sampled_from([CHUNK_BYTES - 1, CHUNK_BYTES, CHUNK_BYTES + 1, 300_000])),
    max_size=12,
)
SEEDS = st.integers(0, 2**32 - 1)


@given(there=chunks, back=chunks, seed=SEEDS)
def test_bytes_arrive_as_they_were_sent_both_ways(
    tmp_path_factory: pytest.TempPathFactory, there: list[int], back: list[int], seed: int
) -> None:
    """In chunks of any size, with pauses of the readers; one side says that it has ended, then the other."""
    network, rng = shared(tmp_path_factory), random.Random(seed)

    async def send(end: End, sizes: list[int]) -> bytes:
        sent = b""
        for size in sizes:
            chunk = rng.randbytes(size)
            end.open.write(rng.choice((bytes, bytearray, memoryview))(chunk))
            sent += chunk
            if rng.random() < 0.3:
                await asyncio.sleep(0)
        end.open.write_eof()
        return sent

    async def pause(end: End, other: End) -> None:
        while not (end.ended and other.ended):
            end.open.pause_reading()
            await asyncio.sleep(rng.choice((0, 0.001)))
            end.open.resume_reading()
            await asyncio.sleep(rng.choice((0, 0.001)))

    async def main() -> None:
        async with streams(network, at_end=True) as (_, near, far):
            pausing = [asyncio.create_task(pause(near, far)), asyncio.create_task(pause(far, near))]
            sent = await asyncio.gather(send(near, there), send(far, back))
            await asyncio.gather(*pausing)
            assert [bytes(end.read) for end in (far, near)] == list(sent)
            near.open.close()
            await until(lambda: near.over and far.over)
            assert near.error is None and far.error is None

    run(main())


@given(sizes=chunks, seed=SEEDS)
def test_what_arrived_before_a_close_at_any_time_is_the_beginning_of_what_was_sent(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], seed: int
) -> None:
    network, rng = shared(tmp_path_factory), random.Random(seed)
    sent = b"".join(rng.randbytes(size) for size in sizes)

    async def main() -> None:
        async with streams(network) as (_, near, far):
            near.open.write(sent)
            for _ in range(rng.randrange(20)):
                await asyncio.sleep(0)
            if rng.random() < 0.5:
                far.open.pause_reading()
                asyncio.get_running_loop().call_later(0.05, far.open.resume_reading)
            orderly = rng.random() < 0.5
            (near.open.close if orderly else near.open.abort)()
            await until(lambda: near.over and far.over)
            assert sent.startswith(far.read)
            if orderly:
                assert far.read == sent and far.error is None
            near.open.write(b"too late")
            near.open.write_eof()

    run(main())


_shared: dict[str, RelayNetwork] = {}


def shared(factory: pytest.TempPathFactory) -> RelayNetwork:
    """Return one set of certificates for all examples."""
    if "network" not in _shared:
        _shared["network"] = RelayNetwork(Path(factory.mktemp("shared")))
    return _shared["network"]


def test_a_reader_that_pauses_holds_the_writer_back_and_the_relay_keeps_little(network: RelayNetwork) -> None:
    async def main() -> None:
        async with streams(network) as (relay, near, far):
            near.open.set_write_buffer_limits(high=0)
            far.open.pause_reading()
            sent = 0
            while sent < 200_000_000:
                near.open.write(bytes(CHUNK_BYTES))
                sent += CHUNK_BYTES
                if near.paused:
                    await quiet(0.2)
                    if near.paused:
                        break
                await asyncio.sleep(0)
            assert near.paused and sent < 100_000_000  # kernels have room for megabytes
            await quiet(0.3)
            assert relay.switchboard.counts.bytes < sent
            far.open.resume_reading()
            await until(lambda: len(far.read) == sent and not near.paused)

    run(main())


def test_a_paused_reader_is_not_taken_for_dead(network: RelayNetwork, monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers no pings, but its connection is pinged: proxies cut those that are idle."""
    monkeypatch.setattr("inca.network.transport.relay.switchboard.DATA_PING_S", 0.05)
    monkeypatch.setattr("inca.network.transport.relay.stream.DATA_PING_S", 0.05)

    async def main() -> None:
        async with streams(network) as (relay, near, far):
            links = list(relay.switchboard.data)
            far.open.pause_reading()
            near.open.write(b"x" * 10)
            heard = {link: link.heard for link in links}
            await until(lambda: all(link.heard > heard[link] for link in links))  # pings of both ends
            await quiet(0.5)
            assert not near.over and not far.over
            far.open.resume_reading()
            await until(lambda: far.read == b"x" * 10)

    run(main())


def test_each_end_learns_how_the_other_has_ended(network: RelayNetwork) -> None:
    async def main() -> None:
        async with streams(network) as (_, near, far):
            near.open.abort()
            await until(lambda: far.over)
            assert isinstance(far.error, Unreached) and far.error.failure.cause is FailureCause.LOST
            assert "has lost the other side" in far.error.failure.detail
        async with streams(network) as (relay, near, far):
            relay.switchboard.hang_up()
            await until(lambda: near.over and far.over)
            for end in (near, far):
                assert isinstance(end.error, Unreached) and "is shutting down" in end.error.failure.detail
        async with streams(network) as (relay, near, far):
            for link in list(relay.switchboard.data):
                link.abort()
            await until(lambda: near.over and far.over)
            for end in (near, far):
                assert isinstance(end.error, Unreached) and "broke the connection off" in end.error.failure.detail

    run(main())


def test_closing_takes_no_longer_than_a_moment(network: RelayNetwork) -> None:
    async def main() -> None:
        async with streams(network) as (_, near, far):
            far.open.pause_reading()
            near.open.write(bytes(30_000_000))  # more than the kernels take
            assert near.open.get_extra_info("socket") is not None and near.open.can_write_eof()
            near.open.close()
            at_most = near.open._link._timers["end"].when() - asyncio.get_running_loop().time()
            assert at_most <= 1.0  # a library of WebSockets waits for 10 seconds, TLS of asyncio for 30
            assert near.open.is_closing()
            await until(lambda: near.over)

    run(main())


def test_a_party_that_floods_is_slowed_and_others_are_not(network: RelayNetwork) -> None:
    async def main() -> None:
        async with streams(network, bytes_per_second=1e6, burst_bytes=1_000_000) as (relay, near, far):
            near.open.write(bytes(3_000_000))
            await until(lambda: len(far.read) >= 1_000_000)
            await until(lambda: [link.name for link in relay.switchboard.data if link._held] == [network.names[0]])
            far.open.write(b"x" * 500_000)
            await until(lambda: len(near.read) == 500_000)
            assert len(far.read) < 3_000_000  # bert was faster
            await until(lambda: len(far.read) == 3_000_000)

    run(main())


def test_a_flood_of_tiny_messages_is_slowed(network: RelayNetwork) -> None:
    async def main() -> None:
        async with streams(network, burst_messages=500, messages_per_second=100.0) as (relay, near, far):
            for _ in range(700):
                near.open.write(b"x")
            await until(lambda: any(link._held for link in relay.switchboard.data))
            assert len(far.read) < 700
            await until(lambda: len(far.read) == 700)

    run(main())
