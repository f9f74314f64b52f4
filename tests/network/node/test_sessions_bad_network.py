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

import msgspec
import pytest

from helpers.session_processes import (
    LAST,
    OUTSIDE,
    PROCESS_LEAD_S,
    N,
    Rogue,
    TwelveParties,
    common_result,
    dial,
    hold,
    leave_after,
    nodes,
    prepared,
    ready,
)
from inca.network.node.warm_up import warm_up
from inca.network.protocol.messages import (
    Accept,
    Account,
    Ack,
    Ask,
    Decision,
    Decisions,
    Fetch,
    Goodbye,
    Have,
    Item,
    ItemProof,
    Items,
    Lock,
    Message,
    Nudge,
    Offer,
    OfferProof,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Seen,
    Skipped,
    Voided,
    Vote,
    Want,
    Yes,
    encode,
)
from inca.network.protocol.opening.cohort_keys import COHORTS
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.opening.shamir import SHARE_BYTES
from inca.network.protocol.signed_items import KINDS, Digest, Key, Refusal

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    warm_up()


# --- noise ----------------------------------------------------------------------------------------------------------


async def babble(parties: TwelveParties, rng: random.Random) -> None:
    """Send random bytes to all ports, before and in the place of TLS, sometimes after a plausible beginning."""
    beginnings = (b"", b"\x16\x03\x01", b"\x16\x03\x03\x02\0\x01\0\x01\xfc\x03\x03", b"GET / HTTP/1.1\r\n", bytes(5))
    await ready(parties)
    while True:
        for peer in range(N):
            with suppress(OSError):
                _, writer = await dial(parties, peer)
                writer.write(rng.choice(beginnings) + rng.randbytes(rng.choice((0, 1, 5, 100, 5_000))))
                with suppress(OSError):
                    await writer.drain()
                writer.transport.abort()
            await asyncio.sleep(0.01)


class Fuzz:
    """Random frames: bytes, well-formed messages with random fields, and such messages with a few bytes changed."""

    def __init__(self, parties: TwelveParties, seed: int) -> None:
        self.rng, self.parties, self.sent = random.Random(seed), parties, 0

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
            lambda: Offer(self.count(), self.payload(), rng.randbytes(64)),
            lambda: Ack(self.count()),
            lambda: Voided(self.count()),
            lambda: Nudge(self.count()),
            lambda: Skipped(self.count()),
            Goodbye,
            Ask,
            lambda: Seen([self.proof() for _ in range(3)], self.count(), self.count(), [self.item_proof()]),
            lambda: Have({self.kind(): self.bits() for _ in range(3)}, self.count(), rng.random() < 0.5),
            lambda: Want({self.kind(): self.bits() for _ in range(3)}, self.count()),
            lambda: Fetch(self.kind(), self.contents()),
            lambda: Items(
                [Item(self.kind(), self.count(), self.body(), rng.randbytes(64), self.payload()) for _ in range(2)]
            ),
            lambda: Decisions(self.count(), [Decision(self.ballot(), self.proposal(), self.contents())]),
            lambda: Prepare(self.count(), self.ballot()),
            lambda: Promise(self.count(), self.ballot(), self.lock(), rng.randbytes(64)),
            lambda: Propose(self.count(), self.ballot(), self.proposal(), [(LAST, 0, rng.randbytes(64))], []),
            lambda: Vote(self.count(), self.ballot(), rng.randbytes(64)),
            lambda: Accept(self.count(), self.lock()),
            lambda: Yes(self.count(), self.ballot(), rng.randbytes(64)),
        )
        return rng.choice(choices)()

    def lock(self) -> Lock:
        return Lock(self.ballot(), self.proposal(), self.contents())

    def proof(self) -> OfferProof:
        return OfferProof(self.count(), self.rng.randbytes(8), self.rng.randbytes(32), self.rng.randbytes(64))

    def item_proof(self) -> ItemProof:
        return ItemProof(self.kind(), self.rng.randbytes(32), self.rng.randbytes(64))

    def count(self) -> int:
        return self.rng.choice((0, 0, 1, self.rng.randint(0, 12), 2**32 - 1))

    def ballot(self) -> int:
        return self.rng.choice((0, 1, self.rng.randint(0, 100), self.rng.randrange(2**62), 2**62 - 1))

    def bits(self) -> bytes:
        return self.rng.choice((b"", self.rng.randbytes(2), b"\xff\x0f", b"\0\0", self.rng.randbytes(9)))

    def kind(self) -> str:
        return self.rng.choice((*KINDS, "", "x\0"))

    def payload(self) -> bytes:
        width = 8 * (self.parties.setup.session.dimension + 1)
        return self.rng.choice((b"", self.rng.randbytes(5), self.rng.randbytes(width), b"\x7f" * width, bytes(width)))

    def contents(self) -> list[tuple[int, bytes]]:
        return [(self.count(), self.rng.randbytes(self.rng.choice((5, 32)))) for _ in range(self.rng.randint(0, 3))]

    def proposal(self) -> Proposal:
        return Proposal(self.rng.choice(("cohort", "commit")), self.contents())

    def body(self) -> bytes:
        cohort, hash_ = self.count(), self.rng.randbytes(32)
        spoken = (
            Digest(self.account(), hash_, [self.rng.randbytes(32) for _ in range(COHORTS)]),
            Deposit(cohort, hash_, self.rng.randbytes(32), self.rng.randbytes(32), self.rng.randbytes(N * SHARE_BYTES)),
            Refusal(cohort, hash_, "no"),
            Key(cohort, hash_),
        )
        return self.rng.choice((self.payload(), *map(msgspec.msgpack.encode, spoken)))

    def account(self) -> Account:
        rounds = [self.count() for _ in range(self.rng.randint(0, 3))]
        credited = [self.count() for _ in range(self.rng.randint(0, 2))]
        return Account(rounds, [self.count() for _ in rounds], credited)


async def fuzz(rogue: Rogue, me: int, source: Fuzz) -> None:
    """Send random frames to everyone as a party of the roster."""
    async with rogue.open() as transport:
        await ready(source.parties)
        while True:
            for peer in range(N):
                if peer != me:
                    for _ in range(3):
                        transport.send(peer, source.frame())
            await asyncio.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("periods", [0.7, 1000.0])
def test_random_bytes_and_random_frames_change_nothing(tmp_path: Path, periods: float) -> None:
    parties = TwelveParties(tmp_path)
    source = Fuzz(parties, 5)
    troubles = (
        leave_after(periods, parties, fuzz(Rogue(parties, LAST), LAST, source)),
        babble(parties, random.Random(6)),
    )
    # An offer among them may fit: then it is the word of that party, of which there is no journal to compare with.
    result = common_result(parties, asyncio.run(hold(parties, nodes(parties, range(LAST)), *troubles)), exact=False)
    assert result.realized.cohort == frozenset(range(LAST))
    assert source.sent >= 2000
    assert all(parties.logged(i, "invalid message", LAST) for i in range(LAST))
    assert all(parties.logged(i, "violation", OUTSIDE) for i in range(LAST))


@pytest.mark.slow
@pytest.mark.parametrize(
    "message",
    [
        Prepare(0, (2**62 - 1) // N * N - 1),  # its own ballot, and the last there is
        Propose(0, N, Proposal("cohort", []), [], []),  # an empty cohort
        Have(dict.fromkeys(KINDS, b"\xff\x0f"), 3, True),  # everyone has everything
        Decisions(0, [Decision(N + LAST, Proposal("cohort", [(0, bytes(32)), (1, bytes(32))]), [])]),  # by nobody
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

    parties = TwelveParties(tmp_path, rounds=4)
    trouble = interrupt(Rogue(parties, LAST))
    result = common_result(parties, asyncio.run(hold(parties, nodes(parties, range(LAST)), trouble)))
    assert result.realized.cohort == frozenset(range(LAST))


# --- too much of everything -----------------------------------------------------------------------------------------


CONNECTIONS = """
import resource, socket, sys
count, ports = int(sys.argv[1]), [int(port) for port in sys.argv[2:]]
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
most = min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
held = []
sys.stdin.readline()
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
def many_connections(parties: TwelveParties, count: int) -> Iterator[subprocess.Popen[str]]:
    """Start a process that opens so many connections from one address, as fast as it can, once it is sent a line."""
    ports = [str(port) for _, port in parties.addresses]
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
    parties, done = TwelveParties(tmp_path, rounds=20, min_round_duration=0.5), threading.Event()

    async def storm() -> None:
        with many_connections(parties, 10_000) as child:
            await asyncio.sleep(parties.setup.session.start - time.time() - 1.0)
            print(file=child.stdin, flush=True)
            assert child.stdout is not None
            assert await asyncio.to_thread(child.stdout.readline) == "10000\n"
            done.set()
            await asyncio.Event().wait()

    result = common_result(parties, asyncio.run(hold(parties, nodes(parties), storm())))
    assert done.is_set()
    assert result.realized.cohort == frozenset(range(N))
    # Those that accept slowly leave most of them to the kernel.
    assert any(parties.logged(i, "refused", OUTSIDE, "too many connections") for i in range(N))


LOAD_FLOOD = """
import asyncio
from inca.network.membership.identity import Identity
from inca.network.membership.roster import read_roster
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import limits_for, transport_for
from inca.network.protocol.messages import Ask, Have, encode
from inca.network.transport.interface import TransportEvents

async def main():
    roster, identity = read_roster(sys.argv[0]), Identity.read(sys.argv[1])
    frames = [encode(Ask()), encode(Have({}, 0, False))]
    transport = transport_for(roster, identity, limits_for(SessionSetup(roster).session), TransportEvents())
    await transport.start()
    while True:
        for peer in range(3):
            for _ in range(100):
                for frame in frames:
                    transport.send(peer, frame)
        await asyncio.sleep(0)
"""


@pytest.mark.slow
def test_flooding_peer_is_held_back(tmp_path: Path) -> None:
    # Three parties are flooded: here all share a core, and each reads up to 2,000 frames a second.
    with prepared(load=LOAD_FLOOD, work="asyncio.run(main())") as (flood,):
        parties = TwelveParties(tmp_path, period=2.0, rounds=6, lead=PROCESS_LEAD_S)
        roster, home = tmp_path / "roster.json", tmp_path / "flood"
        parties.identities[LAST].write(home, *parties.setup.roster.addresses_of(LAST))
        parties.setup.roster.write(roster)
        flood.start([str(roster), str(home)])
        result = common_result(parties, asyncio.run(hold(parties, nodes(parties, range(LAST)))))
        assert flood.process.poll() is None
    assert result.realized.cohort == frozenset(range(LAST))
    assert all(parties.logged(i, "throttled", LAST) for i in range(3))
