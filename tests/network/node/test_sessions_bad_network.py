"""Sessions of twelve parties beside noise, false words, and too much of everything."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from helpers.session_processes import (
    LAST,
    OUTSIDE,
    PROCESS_LEAD,
    N,
    Rogue,
    Scene,
    agreed,
    dial,
    hold,
    leave_after,
    load,
    nodes,
    ready,
)
from inca.network.protocol.messages import (
    Accept,
    Account,
    Ack,
    Ask,
    Have,
    Item,
    Items,
    Message,
    Nudge,
    Offer,
    Prepare,
    Promise,
    Resolve,
    Seen,
    Skipped,
    Voided,
    Want,
    Yes,
    encode,
)
from inca.network.protocol.signed_items import KINDS


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    load()


# --- noise ----------------------------------------------------------------------------------------------------------


async def babble(scene: Scene, rng: random.Random) -> None:
    """Send random bytes to all ports, before and in the place of TLS, sometimes after a plausible beginning."""
    beginnings = (b"", b"\x16\x03\x01", b"\x16\x03\x03\x02\0\x01\0\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n", bytes(5))
    await ready(scene)
    while True:
        for peer in range(N):
            with suppress(OSError):
                _, writer = await dial(scene, peer)
                writer.write(rng.choice(beginnings) + rng.randbytes(rng.choice((0, 1, 5, 100, 5_000))))
                with suppress(OSError):
                    await writer.drain()
                writer.transport.abort()
            await asyncio.sleep(0.01)


class Fuzz:
    """Random frames: bytes, well-formed messages with random fields, and such messages with a few bytes changed."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self.rng, self.scene, self.sent = random.Random(seed), scene, 0

    def frame(self) -> bytes:
        self.sent += 1
        kind = self.rng.random()
        if kind < 0.3:
            return self.rng.randbytes(self.rng.choice((0, 1, 3, 20, 300)))
        frame = bytearray(encode(self.message()))
        if kind < 0.6:
            for _ in range(self.rng.randint(1, 4)):
                frame[self.rng.randrange(len(frame))] = self.rng.randrange(256)
        return bytes(frame)

    def message(self) -> Message:
        rng = self.rng
        choices: tuple[Callable[[], Message], ...] = (
            lambda: Offer(self.count(), self.count(), self.payload(), self.account()),
            lambda: Ack(self.count(), self.count()),
            lambda: Voided(self.count(), self.count()),
            lambda: Resolve(self.count(), self.count()),
            lambda: Nudge(self.count()),
            lambda: Skipped(self.count()),
            Ask,
            lambda: Seen([(self.count(), self.count()) for _ in range(3)], self.count(), self.count()),
            lambda: Have({self.kind(): self.bits() for _ in range(3)}, rng.random() < 0.5),
            lambda: Want({self.kind(): self.bits() for _ in range(3)}),
            lambda: Items([Item(self.kind(), self.count(), self.payload(), rng.randbytes(64)) for _ in range(2)]),
            lambda: Prepare(self.ballot()),
            lambda: Promise(self.ballot(), self.ballot(), self.bits(), self.bits()),
            lambda: Accept(self.ballot(), self.bits(), self.bits()),
            lambda: Yes(self.ballot()),
        )
        return rng.choice(choices)()

    def count(self) -> int:
        return self.rng.choice((0, 0, 1, self.rng.randint(0, 12), 2**32 - 1))

    def ballot(self) -> int:
        return self.rng.choice((0, 1, self.rng.randint(0, 100), self.rng.randrange(2**62), 2**62 - 1))

    def bits(self) -> bytes:
        return self.rng.choice((b"", self.rng.randbytes(2), b"\xff\x0f", b"\0\0", self.rng.randbytes(9)))

    def kind(self) -> str:
        return self.rng.choice(("commit", "reveal", "digest", "final", "decision", "", "x\0"))

    def payload(self) -> bytes:
        width = 8 * (self.scene.setting.session.dimension + 1)
        return self.rng.choice((b"", self.rng.randbytes(5), self.rng.randbytes(width), b"\x7f" * width, bytes(width)))

    def account(self) -> Account:
        rounds = [self.count() for _ in range(self.rng.randint(0, 3))]
        credited = [(self.count(), self.count(), self.count()) for _ in range(self.rng.randint(0, 2))]
        return Account(rounds, [[self.count()] for _ in rounds], credited)


async def fuzz(rogue: Rogue, me: int, source: Fuzz) -> None:
    """Send random frames to everyone as a party of the roster."""
    async with rogue.open() as transport:
        await ready(source.scene)
        while True:
            for peer in range(N):
                if peer != me:
                    for _ in range(3):
                        transport.send(peer, source.frame())
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("seconds", [0.7, 1000.0])
def test_random_bytes_and_random_frames_change_nothing(tmp_path: Path, seconds: float) -> None:
    scene = Scene(tmp_path)
    source = Fuzz(scene, 5)
    troubles = leave_after(seconds, scene, fuzz(Rogue(scene, LAST), LAST, source)), babble(scene, random.Random(6))
    # An offer among them may fit: then it is the word of that party, of which there is no journal to compare with.
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), *troubles)), exact=False)
    assert result.finals == frozenset(range(LAST))
    assert source.sent >= 2000
    assert all(scene.told(i, "nonsense", LAST) for i in range(LAST))
    assert all(scene.told(i, "fault", OUTSIDE) for i in range(LAST))


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        Prepare((2**62 - 1) // N * N - 1),  # its own ballot, and the last there is
        Accept(N + LAST, b"\0\0", b"\0\0"),  # an empty result
        Have(dict.fromkeys(KINDS, b"\xff\x0f"), True),  # everyone has everything
    ],
    ids=lambda message: type(message).__name__,
)
def test_a_word_of_one_party_takes_the_result_from_nobody(tmp_path: Path, message: Message) -> None:
    async def interrupt(rogue: Rogue) -> None:
        async with rogue.open() as transport:
            while True:
                for peer in range(LAST):
                    transport.send(peer, encode(message))
                await asyncio.sleep(0.2)

    scene = Scene(tmp_path, rounds=4)
    trouble = interrupt(Rogue(scene, LAST))
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), trouble)))
    assert result.finals == frozenset(range(LAST))


# --- too much of everything -----------------------------------------------------------------------------------------


CONNECTIONS = """
import resource, socket, sys
count, ports = int(sys.argv[1]), [int(port) for port in sys.argv[2:]]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
most = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
held = []
for i in range(count):
    one = socket.socket()
    one.setblocking(False)
    one.bind(("127.0.0.2", 0))
    one.connect_ex(("127.0.0.1", ports[i % len(ports)]))
    held.append(one)
    if len(held) >= most:  # the oldest have had their time
        for old in held[: most // 2]:
            old.close()
        del held[: most // 2]
print(count, flush=True)
sys.stdin.read()
"""


@contextmanager
def many_connections(scene: Scene, count: int) -> Iterator[subprocess.Popen[str]]:
    """Open so many connections from one address, as fast as a process of its own can."""
    ports = [str(port) for _, port in scene.addresses]
    with subprocess.Popen(
        [sys.executable, "-c", CONNECTIONS, str(count), *ports],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        try:
            yield child
        finally:
            child.kill()


@pytest.mark.slow
def test_ten_thousand_connections_from_one_address(tmp_path: Path) -> None:
    scene, done = Scene(tmp_path, rounds=20, pace=0.2), threading.Event()

    async def storm() -> None:
        await asyncio.sleep(scene.setting.session.start - time.time() - 1.0)
        with many_connections(scene, 10_000) as child:
            assert child.stdout is not None
            assert await asyncio.to_thread(child.stdout.readline) == "10000\n"
            done.set()
            await asyncio.Event().wait()

    result = agreed(scene, asyncio.run(hold(scene, nodes(scene), storm())))
    assert done.is_set()
    assert result.finals == frozenset(range(N))
    # Those that accept slowly leave most of them to the kernel.
    assert any(scene.told(i, "refused", OUTSIDE, "too many connections") for i in range(N))


FLOOD = """
import asyncio, sys
from pathlib import Path
from inca.network.membership.identity import Identity
from inca.network.node.node import limits_for
from inca.network.membership.roster import read_roster
from inca.network.node.session_setup import Setting
from inca.network.membership.tls import client_context, server_context
from inca.network.transport.transport import Transport
from inca.network.protocol.messages import Ask, Have, encode

class Deaf:
    def received(self, peer, frame): pass
    unsent = down = received
    def up(self, peer): pass
    def note(self, event, **fields): pass

async def main():
    roster, identity = read_roster(sys.argv[1]), Identity.read(sys.argv[2])
    me, frames = roster.index(identity.certificate), [encode(Ask()), encode(Have({}, False))]
    transport = Transport(
        me=me, addresses=[(card.host, card.port) for card in roster.parties], session=roster.session,
        server=server_context(identity, roster), client=client_context(identity, roster), identify=roster.index,
        limits=limits_for(Setting(roster)), listener=Deaf(),
    )
    await transport.start()
    while True:
        for peer in range(3):
            for _ in range(100):
                for frame in frames:
                    transport.send(peer, frame)
        await asyncio.sleep(0)

asyncio.run(main())
"""


@pytest.mark.slow
def test_flooding_peer_is_held_back(tmp_path: Path) -> None:
    # Three parties are flooded: here all share a core, and each reads up to 2,000 frames a second.
    scene = Scene(tmp_path, period=2.0, rounds=6, lead=PROCESS_LEAD)
    home = tmp_path / "flood"
    scene.identities[LAST].write(home, *scene.addresses[LAST])
    scene.setting.roster.write(tmp_path / "roster.json")
    with subprocess.Popen([sys.executable, "-c", FLOOD, str(tmp_path / "roster.json"), str(home)]) as child:
        try:
            result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)))))
            assert child.poll() is None
        finally:
            child.kill()
    assert result.finals == frozenset(range(LAST))
    assert all(scene.told(i, "throttled", LAST) for i in range(3))
