"""What a blind relay costs; `python benchmarks/transport.py relay` and `... load`.

`relay`: round trips of 64 bytes and throughput of frames of 80 kB between two transports in one process, directly,
through a plain TCP splice and through a relay, each in a process of its own; and the CPU seconds of the relay for a
gigabyte. The three take turns, and each figure is the best of several runs: compare ratios.

`load`: a relay with many keys registered and many calls among them, made by a few processes; its memory, its
descriptors, and round trips while each call has one every two seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from asyncio import sslproto
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trustme
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from inca.network.addresses import Address
from inca.network.keys import fingerprint_of, raw_key, signed_text
from inca.network.transport.interface import TransportEvents
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.relay.client import AnswerCall, Relays

if TYPE_CHECKING:
    from benchmarks.transport import Contexts, Pair, make_contexts, one_way, ours, sequential
else:
    from transport import Contexts, Pair, make_contexts, one_way, ours, sequential

PATH = "/inca"
RELAY = """
import asyncio, json, sys
from pathlib import Path
from inca.network.transport.relay.server import RelayLimits, RelayOptions, serve
options = json.loads(sys.argv[1])
limits = RelayLimits(**options.pop("limits"))
options = RelayOptions(host="127.0.0.1", port=0, limits=limits, certificate=Path(options.pop("certificate")))
asyncio.run(serve(options, ready=lambda place: print(place[1], flush=True)))
"""
SPLICE = """
import asyncio, sys
async def copy(reader, writer):
    while chunk := await reader.read(1 << 17):
        writer.write(chunk)
        await writer.drain()
async def serve(reader, writer):
    there, back = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    await asyncio.gather(copy(reader, back), copy(there, writer), return_exceptions=True)
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""
UNLIMITED = {
    "bytes_per_second": 1e12,
    "burst_bytes": 1 << 50,
    "messages_per_second": 1e12,
    "burst_messages": 1 << 50,
    "max_pending_per_origin": 256,
    "max_calls_per_origin": 10**6,
}


class Process:
    """A program that prints a port; `cpu` is what it has used so far."""

    def __init__(self, program: str, argument: str) -> None:
        command = [sys.executable, "-c", program, argument]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())

    @property
    def folder(self) -> Path:
        return Path("/proc") / str(self._process.pid)

    @property
    def cpu(self) -> float:
        user, system = (self.folder / "stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    @property
    def resident_bytes(self) -> int:
        return int((self.folder / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    @property
    def descriptors(self) -> int:
        return len(list((self.folder / "fd").iterdir()))

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextmanager
def relay_process(folder: Path, **limits: Any) -> Iterator[Process]:
    """Run a relay whose certificate is that of the authority in `authority.pem`."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "authority.pem")
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(folder / "relay.pem")
    options = {"certificate": str(folder / "relay.pem"), "limits": UNLIMITED | limits}
    process = Process(RELAY, json.dumps(options))
    try:
        yield process
    finally:
        process.kill()


def access(keys: list[Ed25519PrivateKey], me: int, folder: Path) -> RelayAccess:
    """Return who a party is at relays."""
    names = [fingerprint_of(key.public_key()) for key in keys]
    sign = keys[me].sign
    ca = folder / "authority.pem"
    return RelayAccess(
        key=raw_key(keys[me].public_key()), sign=lambda message: sign(signed_text(message)), names=names, ca=ca
    )


Test = Callable[[Pair, float], Awaitable[float]]


async def measure(
    way: str, test: Test, folder: Path, parties: tuple[list[bytes], Contexts], relay: Process, seconds: float
) -> tuple[float, float]:
    """Return the rate that a test measures, and the CPU seconds a second of what is between."""
    addresses, between = [[Address("127.0.0.1", 1)]] * 2, None
    who: list[RelayAccess | None] = [None, None]
    if way == "relay":
        between, addresses = relay, [[Address("127.0.0.1", relay.port, PATH)]] * 2
        keys = [load_pem_private_key((folder / name).read_bytes(), None) for name in ("a", "b")]
        made = [key for key in keys if isinstance(key, Ed25519PrivateKey)]
        who = [access(made, me, folder) for me in range(2)]
    try:
        async with ours(*parties, addresses, who) as pair:
            if way == "splice":
                between = Process(SPLICE, str(addresses[1][0].port))
                addresses[1] = [Address("127.0.0.1", between.port)]
            cpu, began = 0.0 if between is None else between.cpu, time.perf_counter()
            rate = await test(pair, seconds)
            return rate, 0.0 if between is None else (between.cpu - cpu) / (time.perf_counter() - began)
    finally:
        if way == "splice" and between is not None:
            between.kill()


def relay(options: argparse.Namespace) -> None:
    """Print what it costs that something is between."""
    ways = ("direct", "splice", "relay")
    best = {way: [0.0, 0.0, float("inf")] for way in ways}
    with tempfile.TemporaryDirectory() as name, relay_process(Path(name)) as process:
        folder = Path(name)
        parties = make_contexts(folder)
        for _ in range(options.repeat):
            for way in ways:
                trips, _ = asyncio.run(measure(way, sequential, folder, parties, process, options.seconds))
                rate, cpu = asyncio.run(measure(way, one_way(80_000), folder, parties, process, options.seconds))
                a_gigabyte = cpu / rate * 1e3
                best[way] = [max(best[way][0], trips), max(best[way][1], rate), min(best[way][2], a_gigabyte)]
    print(f"{'':8s} {'64 bytes, there and back':>26s} {'80 kB, one way':>16s} {'CPU s/GB between':>18s}")
    for way in ways:
        trips, rate, a_gigabyte = best[way]
        print(f"{way:8s} {trips:14,.0f} /s {1e3 / trips:5.2f} ms {rate:11,.0f} MB/s {a_gigabyte:17.2f}")
    trips, rate = (best["relay"][which] / best["direct"][which] for which in (0, 1))
    print(f"relay / direct: {trips:.2f} as many round trips, {rate:.2f} the throughput")


# --- load ----------------------------------------------------------------------------------------------------------


class Echo(asyncio.BufferedProtocol):
    """An end of a call that returns what it hears, or waits for it."""

    def __init__(self) -> None:
        self.stream: asyncio.Transport | None = None
        self.back: asyncio.Future[None] | None = None
        self._buffer = memoryview(bytearray(4096))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.stream = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self.back is not None:
            self.back.set_result(None)
            self.back = None
        elif self.stream is not None:
            self.stream.write(bytes(self._buffer[:nbytes]))

    async def trip(self) -> float:
        """Return the seconds of a round trip."""
        assert self.stream is not None
        self.back, began = asyncio.get_running_loop().create_future(), time.perf_counter()
        self.stream.write(bytes(64))
        await self.back
        return time.perf_counter() - began


class Member:
    """A key at the relay, which takes all calls."""

    def __init__(self, keys: list[Ed25519PrivateKey], me: int, folder: Path, address: Address) -> None:
        self.me, self._address = me, address
        self.calls: list[Echo] = []
        self._taken: list[Echo] = []
        self._tasks: set[asyncio.Task[None]] = set()
        buffer = memoryview(bytearray(1 << 17))
        self.relays = Relays(access(keys, me, folder), [address], buffer, TransportEvents(), self._on_call)

    def _on_call(self, relay: Address, origin: str, answer: AnswerCall) -> bool:
        self._taken.append(Echo())

        async def take() -> None:
            await answer(self._taken[-1])

        task = asyncio.ensure_future(take())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def call(self, other: int) -> None:
        echo = Echo()
        for left in reversed(range(50)):
            try:
                await self.relays.dial(echo, self._address, other)
                break
            except OSError:  # all begin at once
                if not left:
                    raise
                await asyncio.sleep(0.2)
        self.calls.append(echo)


def generate(secrets: list[bytes], mine: range, folder: Path, port: int, each: int, pipe: Any) -> None:
    """Run some of the keys: register, call the next ones in a circle, and make round trips when told so."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    sslproto.SSLProtocol.max_size = 1 << 14  # asyncio takes 256 KiB a connection
    keys = [Ed25519PrivateKey.from_private_bytes(secret) for secret in secrets]
    address = Address("127.0.0.1", port, PATH)

    async def step(name: str) -> None:
        pipe.send(name)
        while not pipe.poll():
            await asyncio.sleep(0.05)
        pipe.recv()

    async def main() -> None:
        members = [Member(keys, me, folder, address) for me in mine]
        for member in members:
            member.relays.start()
        while not all(member.relays.registered for member in members):
            await asyncio.sleep(0.05)
        await step("registered")
        for hop in range(1, each + 1):
            await asyncio.gather(*(member.call((member.me + hop) % len(keys)) for member in members))
        await step("called")
        calls = [call for member in members for call in member.calls]
        seconds: list[float] = []

        async def trips(call: Echo, offset: float) -> None:
            await asyncio.sleep(offset)
            for _ in range(5):
                seconds.append(await call.trip())
                await asyncio.sleep(2.0)

        await asyncio.gather(*(trips(call, 2.0 * at / len(calls)) for at, call in enumerate(calls)))
        pipe.send(seconds)
        pipe.recv()
        os._exit(0)  # thousands of connections need not be closed one by one

    asyncio.run(main())


def load(options: argparse.Namespace) -> None:
    """Print what many calls cost a relay."""
    processes, each = 2, -(-options.calls // options.keys)
    secrets = [Ed25519PrivateKey.generate().private_bytes_raw() for _ in range(options.keys)]
    cuts = [options.keys * part // processes for part in range(processes + 1)]
    with tempfile.TemporaryDirectory() as name, relay_process(Path(name), max_registered_per_origin=10**6) as relay:
        context = multiprocessing.get_context("spawn")
        generators = []
        for first, last in pairwise(cuts):
            here, there = context.Pipe()
            arguments = (secrets, range(first, last), Path(name), relay.port, each, there)
            context.Process(target=generate, args=arguments, daemon=True).start()
            generators.append(here)
        empty = relay.resident_bytes

        def together() -> list[Any]:
            return [pipe.recv() for pipe in generators]

        def go() -> None:
            for pipe in generators:
                pipe.send(None)

        together()
        registered = relay.resident_bytes
        print(f"{options.keys} keys registered: {(registered - empty) / 1e6:.1f} MB more than {empty / 1e6:.1f} MB")
        began = time.perf_counter()
        go()
        together()
        took, ends = time.perf_counter() - began, 2 * each * options.keys
        grown = relay.resident_bytes - registered
        print(f"{ends} data connections in {took:.1f} s: {grown / 1e6:.1f} MB, {grown / ends / 1024:.1f} KiB each")
        print(f"{relay.descriptors} descriptors, {relay.cpu / ends * 2e3:.1f} ms of CPU a call, registrations included")
        cpu, began = relay.cpu, time.perf_counter()
        go()
        seconds = sorted(second for part in together() for second in part)
        busy = (relay.cpu - cpu) / (time.perf_counter() - began)
        median, late = statistics.median(seconds), seconds[int(0.99 * len(seconds))]
        print(
            f"{len(seconds)} round trips of 64 bytes, {len(seconds) / 10:.0f} a second: median {median * 1e3:.1f} ms, "
        )
        print(
            f"99 % within {late * 1e3:.1f} ms; the relay took {busy:.0%} of a core; {relay.resident_bytes / 1e6:.1f} MB"
        )
        go()
