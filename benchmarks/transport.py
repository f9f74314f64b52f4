"""Frames over mutual TLS 1.3 on loopback: inca's transport beside the bare library.

    python benchmarks/transport.py [--seconds 1.0] [--repeat 3]

The baseline is asyncio's streams with ssl, the same contexts and a length before each frame, and nothing else: no
hello, no limits, no reconnection, no account of what has left. Both ends share one process and one event loop, so a
figure is what both ends cost together. Each line is the best of several runs, which take turns.
"""

from __future__ import annotations

import argparse
import asyncio
import datetime
import ssl
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from inca.network.transport.frames import Limits
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


class Counting:
    """A listener that counts, and echoes small frames."""

    def __init__(self, echo: bool) -> None:
        self.echo, self.gate = echo, Gate()
        self.send: Callable[[int, bytes], None] = lambda peer, frame: None

    def received(self, peer: int, frame: bytes) -> None:
        self.gate.add()
        if self.echo and len(frame) <= len(SMALL):
            self.send(peer, frame)

    def unsent(self, peer: int, token: object) -> None:
        raise AssertionError(f"a frame to {peer} was given up")

    def down(self, peer: int, reason: str) -> None:
        raise AssertionError(reason)

    def up(self, peer: int) -> None: ...

    def note(self, event: str, **fields: object) -> None: ...


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


def contexts(folder: Path) -> tuple[list[bytes], list[tuple[ssl.SSLContext, ssl.SSLContext]]]:
    """Make the certificates of two parties, and a server and a client context for each."""
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
    made = []
    for name in names:
        pair = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        for context in pair:
            context.minimum_version = ssl.TLSVersion.TLSv1_3
            context.check_hostname = False
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata=b"".join(certificates))
            context.load_cert_chain(folder / name)
        made.append(pair)
    return certificates, made


@asynccontextmanager
async def ours(certificates: list[bytes], made: list[tuple[ssl.SSLContext, ssl.SSLContext]]) -> AsyncIterator[Pair]:
    addresses = [("127.0.0.1", 0)] * 2
    limits = Limits(queue=1 << 30, frames_per_second=1e9, burst=1 << 30, bytes_per_second=1e12, burst_bytes=1 << 50)
    listeners, nodes = [Counting(False), Counting(True)], []
    for me, listener in enumerate(listeners):
        server, client = made[me]
        node = Transport(
            me=me,
            addresses=addresses,
            session=bytes(32),
            server=server,
            client=client,
            identify=certificates.index,
            limits=limits,
            listener=listener,
        )
        await node.start()
        addresses[me] = node.address
        listener.send = node.send
        nodes.append(node)
    try:
        yield Ours(nodes[0], *listeners)
    finally:
        for node in nodes:
            await node.close()


@asynccontextmanager
async def bare(made: list[tuple[ssl.SSLContext, ssl.SSLContext]]) -> AsyncIterator[Pair]:
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

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=made[1][0])
    address = server.sockets[0].getsockname()[:2]
    reader, writer = await asyncio.open_connection(*address, ssl=made[0][1], server_hostname="b")
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


def one_way(size: int) -> Callable[[Pair, float], Awaitable[float]]:
    """Return a measurement of megabytes per second, with up to 2 MB under way."""
    frame, window = bytes(size), max(2, 2_000_000 // size)

    async def measure(pair: Pair, seconds: float) -> float:
        sent, start = 0, time.perf_counter()
        while time.perf_counter() - start < seconds:
            for _ in range(8 if size < 100_000 else 1):
                pair.send(frame)
                sent += 1
            await pair.drain()
            await pair.there(sent - window)
        await pair.there(sent)
        return sent * size / 1e6 / (time.perf_counter() - start)

    return measure


def main(seconds: float, repeat: int) -> None:
    tests: list[tuple[str, str, Callable[[Pair, float], Awaitable[float]]]] = [
        ("64 bytes, there and back, sequential", "/s", sequential),
        ("64 bytes, there and back, pipelined", "/s", pipelined),
        ("8 kB, one way", "MB/s", one_way(8_000)),
        ("80 kB, one way", "MB/s", one_way(80_000)),
        ("800 kB, one way", "MB/s", one_way(800_000)),
    ]
    with tempfile.TemporaryDirectory() as folder:
        certificates, made = contexts(Path(folder))

        async def once(mine: bool, test: Callable[[Pair, float], Awaitable[float]]) -> float:
            async with ours(certificates, made) if mine else bare(made) as pair:
                return await test(pair, seconds)

        print(f"{'':40s} {'inca':>12s} {'bare library':>14s} {'inca / bare':>12s}")
        for name, unit, test in tests:
            best = [0.0, 0.0]
            for _ in range(repeat):
                for which in (0, 1):
                    best[which] = max(best[which], asyncio.run(once(which == 0, test)))
            print(f"{name:40s} {best[0]:12,.0f} {best[1]:14,.0f} {unit:5s} {best[0] / best[1]:6.2f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.0, help="per measurement")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    main(options.seconds, options.repeat)
