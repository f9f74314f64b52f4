"""Frames over mutual TLS 1.3 on loopback: inca's transport beside the bare library.

    python benchmarks/transport.py [--seconds 1.0] [--repeat 3] [--connections 200]
    python benchmarks/transport.py relay [--seconds 1.0] [--repeat 3]
    python benchmarks/transport.py load [--keys 200] [--calls 2000]

The baseline is asyncio's streams with ssl, the same contexts and a length before each frame, and nothing else: no
hello, no limits, no reconnection, no account of what has left. Both ends share one process and one event loop, so a
figure is what both ends cost together. Each line is the best of several runs, which take turns. The last line is the
resident memory of one end of an idle connection; to compare it, the other ends are asyncio's in both cases.

Frames of 8 and 80 MB (a vector of a million and of ten million numbers) are measured in CPU seconds of both ends, and
compared with plain copying: two threads with blocking sockets, `sendall` of one buffer and `recv_into` another.

`relay` and `load` are about blind relays: see `blind_relay.py`.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import multiprocessing
import os
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import asynccontextmanager
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from inca.network.addresses import Address
from inca.network.transport.failures import Failure
from inca.network.transport.frames import HEADER, HELLO, Hello, Received
from inca.network.transport.interface import TransportConfig, TransportEvents
from inca.network.transport.limits import Limits
from inca.network.transport.relay.access import RelayAccess
from inca.network.transport.transport import Transport

SMALL = bytes(64)


class Pair(Protocol):
    """Two ends: frames go from one to the other, which returns them if told so."""

    def send(self, frame: bytes) -> None: ...

    async def drain(self) -> None: ...

    async def back(self, frames: int) -> None: ...

    async def there(self, frames: int) -> None: ...


class Gate:
    """Count, and wake whoever waits for a number."""

    def __init__(self) -> None:
        self.count, self.target = 0, 0
        self.waiter: asyncio.Future[None] | None = None

    def add(self) -> None:
        self.count += 1
        if self.waiter is not None and self.count >= self.target and not self.waiter.done():
            self.waiter.set_result(None)

    async def reach(self, target: int) -> None:
        if self.count < target:
            self.target, self.waiter = target, asyncio.get_running_loop().create_future()
            await self.waiter


class Counting(TransportEvents):
    """Counts frames, and echoes small ones."""

    def __init__(self, echo: bool) -> None:
        self.echo, self.gate = echo, Gate()
        self.send: Callable[[int, bytes], None] = lambda peer, frame: None

    def received(self, peer: int, frame: Received) -> None:
        self.gate.add()
        if self.echo and len(frame) <= len(SMALL):
            self.send(peer, bytes(frame))

    def unsent(self, peer: int, token: object) -> None:
        raise AssertionError(f"a frame to {peer} was given up")

    def down(self, peer: int, failure: Failure) -> None:
        raise AssertionError(failure.detail)


class Ours:
    def __init__(self, node: Transport, near: Counting, far: Counting) -> None:
        self.node, self.near, self.far = node, near, far

    def send(self, frame: bytes) -> None:
        self.node.send(1, frame)

    async def drain(self) -> None:
        await asyncio.sleep(0)

    async def back(self, frames: int) -> None:
        await self.near.gate.reach(frames)

    async def there(self, frames: int) -> None:
        await self.far.gate.reach(frames)


class Bare:
    def __init__(self, writer: asyncio.StreamWriter, near: Gate, far: Gate) -> None:
        self.writer, self.near, self.far = writer, near, far

    def send(self, frame: bytes) -> None:
        self.writer.writelines((len(frame).to_bytes(4, "big"), frame))

    async def drain(self) -> None:
        await self.writer.drain()

    async def back(self, frames: int) -> None:
        await self.near.reach(frames)

    async def there(self, frames: int) -> None:
        await self.far.reach(frames)


Contexts = list[tuple[ssl.SSLContext, ssl.SSLContext]]


def make_contexts(folder: Path) -> tuple[list[bytes], Contexts]:
    """Make the certificates of two parties (a file each, with the key), and a server and a client context for each."""
    names, certificates = ("a", "b"), []
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    for name in names:
        key, subject = Ed25519PrivateKey.generate(), x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(subject).public_key(key.public_key())
        builder = builder.serial_number(x509.random_serial_number()).not_valid_before(now - day)
        certificate = builder.not_valid_after(now + day).sign(key, None)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        (folder / name).write_bytes(secret + certificate.public_bytes(Encoding.PEM))
        certificates.append(certificate.public_bytes(Encoding.DER))
    contexts = []
    for name in names:
        pair = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context in pair:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.check_hostname = False
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=b"".join(certificates))
            context.load_cert_chain(folder / name)
        contexts.append(pair)
    return certificates, contexts


@asynccontextmanager
async def ours(
    certificates: list[bytes],
    contexts: Contexts,
    addresses: list[list[Address]] | None = None,
    access: Sequence[RelayAccess | None] = (None, None),
) -> AsyncIterator[Pair]:
    """Yield a pair of transports; `addresses` and `access` are for parties that are reached elsewhere."""
    addresses = addresses or [[Address("127.0.0.1", 1)]] * 2
    limits = Limits(
        max_frame_bytes=1 << 27,
        max_queue_bytes=1 << 30,
        frames_per_second=1e9,
        burst_frames=1 << 30,
        bytes_per_second=1e12,
        burst_bytes=1 << 50,
    )
    counters, transports = [Counting(False), Counting(True)], []
    for me, counter in enumerate(counters):
        server, client = contexts[me]
        config = TransportConfig(
            me=me,
            addresses=addresses,
            session=bytes(32),
            server=server,
            client=client,
            identify=certificates.index,
            limits=limits,
            relay=access[me],
        )
        transport = Transport(config, counter)
        await transport.start(port=0)
        if access[me] is None and addresses[me][0].port == 1:
            addresses[me] = [Address(*transport.address)]
        counter.send = transport.send
        transports.append(transport)
    try:
        while any(
            node.registered != {address for address in addresses[me] if address.relayed}
            for me, node in enumerate(transports)
        ):
            await asyncio.sleep(0.01)
        yield Ours(transports[0], *counters)
    finally:
        for transport in transports:
            await transport.close()


@asynccontextmanager
async def bare(contexts: Contexts) -> AsyncIterator[Pair]:
    near, far = Gate(), Gate()
    tasks: set[asyncio.Task[None]] = set()

    async def read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, gate: Gate, echo: bool) -> None:
        try:
            while True:
                length = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(length)
                gate.add()
                if echo and length <= len(SMALL):
                    writer.writelines((length.to_bytes(4, "big"), frame))
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read(reader, writer, far, True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=contexts[1][0])
    address = server.sockets[0].getsockname()[:2]
    reader, writer = await asyncio.open_connection(*address, ssl=contexts[0][1], server_hostname="b")
    tasks.add(asyncio.create_task(read(reader, writer, near, False)))
    try:
        yield Bare(writer, near, far)
    finally:
        writer.transport.abort()
        server.close()
        await asyncio.gather(*tasks)
        await asyncio.sleep(0.05)


async def sequential(pair: Pair, seconds: float) -> float:
    """Return round trips per second, one after the other."""
    pair.send(SMALL)
    await pair.back(done := 1)
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(50):
            pair.send(SMALL)
            await pair.back(done := done + 1)
    return (done - 1) / (time.perf_counter() - start)


async def pipelined(pair: Pair, seconds: float) -> float:
    """Return round trips per second with up to 200 under way."""
    done, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(200):
            pair.send(SMALL)
        await pair.drain()
        await pair.back(done := done + 200)
    return done / (time.perf_counter() - start)


def one_way(size: int, clock: Callable[[], float] = time.perf_counter) -> Callable[[Pair, float], Awaitable[float]]:
    """Return a measurement of megabytes per second, with up to 2 MB or two frames under way."""
    frame, window = bytes(size), max(2, 2_000_000 // size)

    async def measure(pair: Pair, seconds: float) -> float:
        sent, start = 0, clock()
        while clock() - start < seconds:
            for _ in range(8 if size < 100_000 else 1):
                pair.send(frame)
                sent += 1
            await pair.drain()
            await pair.there(sent - window)
        await pair.there(sent)
        return sent * size / 1e6 / (clock() - start)

    return measure


def plain_copying(contexts: Contexts, size: int, seconds: float) -> float:
    """Return megabytes per CPU second of both ends, with nothing but a socket of TLS and two buffers."""
    frame, into = bytes(size), memoryview(bytearray(size))
    frames = max(1, int(seconds * 2e8) // size)
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def receive() -> None:
            with contexts[1][0].wrap_socket(listening.accept()[0], server_side=True) as receiving:
                for _ in range(frames):
                    at = 0
                    while at < size:
                        at += receiving.recv_into(into[at:])
                receiving.sendall(b"!")

        thread, start = threading.Thread(target=receive), time.process_time()
        thread.start()
        to = socket.create_connection(listening.getsockname())
        with contexts[0][1].wrap_socket(to, server_hostname="b") as sending:
            for _ in range(frames):
                sending.sendall(frame)
            sending.recv(1)
        thread.join()
    return frames * size / 1e6 / (time.process_time() - start)


class Memory:
    """Opens connections from asyncio's clients, and tells by how much the process has grown."""

    def __init__(self, contexts: Contexts, connections: int) -> None:
        self.contexts, self.connections = contexts, connections
        self.writers: list[asyncio.StreamWriter] = []

    async def of_bare(self) -> float:
        """Return the bytes of both ends of a connection."""
        held = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(writer)

        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=self.contexts[1][0])
        before = resident_bytes()
        for _ in range(self.connections):
            await self._open(server.sockets[0].getsockname()[:2])
        grown = resident_bytes() - before
        server.close()
        for writer in [*held, *self.writers]:
            writer.transport.abort()
        await asyncio.sleep(0.1)
        return grown / self.connections

    async def of_ours(self) -> float:
        """Return the bytes of both ends of a connection, of which the one that accepted is ours."""
        parties = count(1)
        config = TransportConfig(
            me=0,
            addresses=[[Address("127.0.0.1", 1)]] * (self.connections + 1),
            session=bytes(32),
            server=self.contexts[1][0],
            client=self.contexts[1][1],
            identify=lambda certificate: next(parties),  # everyone is another party
            limits=Limits(),
        )
        transport = Transport(config, TransportEvents())
        await transport.start(port=0)
        before = resident_bytes()
        for party in range(1, self.connections + 1):
            reader, writer = await self._open(transport.address)
            hello = Hello(bytes(32), party, bytes(16), 1, bytes(16), bytes(16))
            writer.write(HEADER.pack(len(hello.encode()), HELLO) + hello.encode())
            length, _ = HEADER.unpack(await reader.readexactly(HEADER.size))
            answer = Hello.decode(await reader.readexactly(length))
            confirmation = hello._replace(serial=2, echo=answer.nonce)
            writer.write(HEADER.pack(length, HELLO) + confirmation.encode())
        while len(transport.connected) < self.connections:
            await asyncio.sleep(0.01)
        grown = resident_bytes() - before
        for writer in self.writers:
            writer.transport.abort()
        await transport.close()
        return grown / self.connections

    async def _open(self, address: tuple[str, int]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection(*address, ssl=self.contexts[0][1], server_hostname="b")
        self.writers.append(writer)
        return reader, writer


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def measure_memory(mine: bool, connections: int) -> float:
    """Run in a process of its own, as freed memory stays with the process."""
    with tempfile.TemporaryDirectory() as folder:
        memory = Memory(make_contexts(Path(folder))[1], connections)
        return asyncio.run(memory.of_ours() if mine else memory.of_bare())


def main(seconds: float, repeat: int, connections: int) -> None:
    tests: list[tuple[str, str, Callable[[Pair, float], Awaitable[float]]]] = [
        ("64 bytes, there and back, sequential", "/s", sequential),
        ("64 bytes, there and back, pipelined", "/s", pipelined),
        ("8 kB, one way", "MB/s", one_way(8_000)),
        ("80 kB, one way", "MB/s", one_way(80_000)),
        ("800 kB, one way", "MB/s", one_way(800_000)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        certificates, contexts = make_contexts(Path(folder))

        async def once(mine: bool, test: Callable[[Pair, float], Awaitable[float]]) -> float:
            async with ours(certificates, contexts) if mine else bare(contexts) as pair:
                return await test(pair, seconds)

        print(f"{'':40s} {'inca':>12s} {'bare library':>14s} {'inca / bare':>18s}")
        for name, unit, test in tests:
            best = [0.0, 0.0]
            for _ in range(repeat):
                for which in (0, 1):
                    best[which] = max(best[which], asyncio.run(once(which == 0, test)))
            print(f"{name:40s} {best[0]:12,.0f} {best[1]:14,.0f} {unit:5s} {best[0] / best[1]:12.2f}")
        print(f"{'':40s} {'inca':>12s} {'plain copying':>14s} {'inca / plain':>18s}")
        for size in (8_000_000, 80_000_000):
            best = [0.0, 0.0]
            for _ in range(repeat):
                best[0] = max(best[0], asyncio.run(once(True, one_way(size, time.process_time))))
                best[1] = max(best[1], plain_copying(contexts, size, seconds))
            name = f"{size // 10**6} MB, one way"
            print(f"{name:40s} {best[0]:12,.0f} {best[1]:14,.0f} {'MB/CPU s':8s} {best[0] / best[1]:9.2f}")
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
        both, mixed = (pool.submit(measure_memory, mine, connections).result() / 1024 for mine in (False, True))
    theirs = both / 2
    mine = mixed - theirs
    print(f"{'memory of one end':40s} {mine:12,.0f} {theirs:14,.0f} {'KiB':5s} {mine / theirs:12.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=("frames", "relay", "load"), default="frames")
    parser.add_argument("--seconds", type=float, default=1.0, help="per measurement")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--connections", type=int, default=200, help="of which the memory is measured")
    parser.add_argument("--keys", type=int, default=200, help="registered at a relay under load")
    parser.add_argument("--calls", type=int, default=2000, help="between them, with two data connections each")
    options = parser.parse_args()
    if options.what == "frames":
        main(options.seconds, options.repeat, options.connections)
    else:
        blind_relay = import_module("blind_relay")  # which imports this one
        {"relay": blind_relay.relay, "load": blind_relay.load}[options.what](options)
