"""Sessions of twelve parties over real TLS on the loopback interface, each with something that goes wrong.

The parties are nodes in one event loop, each with a folder of its own; where it matters, some are processes. Whatever
happens, the others must end before the session's deadline, with one and the same result. Attackers from outside come
from an address of their own (127.0.0.2): an address that misbehaves is refused with all that connect from there.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inca.network import node as node_module
from inca.network.ending import Result
from inca.network.gossip import KINDS
from inca.network.identity import Identity
from inca.network.journal import Journal
from inca.network.ledger import Opened
from inca.network.local import free_ports
from inca.network.node import Ended, Node, limits_for
from inca.network.replay import replay
from inca.network.report import write_report
from inca.network.roster import Roster, Terms
from inca.network.setting import Setting
from inca.network.tls import client_context, server_context
from inca.network.transport import Transport
from inca.network.wire import (
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
    decode,
    encode,
)
from inca.transcript import Transcript, digest, read_execution

N = 12
LAST = N - 1
OUTSIDE = "127.0.0.2"
LEAD = 3.5  # seconds before the start; nodes need about one, twice as long beside another test
PROCESS_LEAD = 9.0  # the same with processes, which need two to four
MOST = 14  # periods from the end of the last round to the end of everything, at the very most

Run = Coroutine[Any, Any, Ended]


class Scene:
    """A roster with its identities, values and folders: all that a session needs."""

    def __init__(
        self,
        folder: Path,
        *,
        rounds: int = 10,
        period: float = 1.0,
        pace: float = 0.0,
        lead: float = LEAD,
        dimension: int = 3,
        seed: str = "ab" * 16,
    ) -> None:
        self.folder = folder
        self.identities = [Identity.create(f"party-{i}") for i in range(N)]
        self.values = np.random.default_rng(1).random((N, dimension))
        terms = Terms(
            rounds=rounds,
            receivers=1,
            schedule="permutation",
            quiet_rounds=1,
            sigma_independent=0.5,
            sigma_cancelling=5.0,
            dimension=dimension,
            lower=0.0,
            upper=1.0,
            epsilon=1000.0,
            delta=1e-5,
            rule="exact",
            colluding=0.0,
            coalitions=3,
            least_cohort=2,
            start=time.time() + lead,
            period=period,
            clock_bound=0.4 * period,
            pace=pace,
            seed=seed,
        )
        ports = free_ports(N)
        cards = [identity.card("127.0.0.1", port) for identity, port in zip(self.identities, ports, strict=True)]
        self.setting = Setting(Roster("a test", terms, tuple(cards)))

    @property
    def deadline(self) -> float:
        """When everything must be over, by the clock."""
        session = self.setting.session
        return session.deadline(session.rounds) + MOST * session.period

    @property
    def addresses(self) -> list[tuple[str, int]]:
        return [(card.host, card.port) for card in self.setting.roster.parties]

    def place(self, i: int) -> Path:
        return self.folder / self.identities[i].name / "sessions" / self.setting.session.id.hex()[:16]

    def node(self, i: int, kind: type[Node] = Node, echo: Callable[[dict[str, Any]], None] | None = None) -> Node:
        return kind(self.setting, self.identities[i], self.place(i), lambda: self.values[i], echo=echo)

    def log(self, i: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.place(i) / "log.jsonl").read_text().splitlines()]

    def told(self, i: int, event: str, culprit: int | str, *words: str) -> bool:
        """Whether the log of i has such an event that names the culprit (a party, or an address) with these words."""
        name = self.identities[culprit].name if isinstance(culprit, int) else culprit
        lines = [json.dumps(entry) for entry in self.log(i) if entry["event"] == event]
        return any(all(word in line for word in (name, *words)) for line in lines)

    def opening(self, i: int) -> Opened | None:
        """What the journal of a party began with: its private side."""
        path = self.place(i) / "journal.db"
        if not path.exists():
            return None
        with closing(Journal(path, session=self.setting.session.id, party=i)) as journal:
            return next((record for record in journal.read() if isinstance(record, Opened)), None)

    def process(self, i: int, before: str = "") -> subprocess.Popen[str]:
        """Start a party as a process; `before` is run in it first."""
        home = self.folder / self.identities[i].name
        host, port = self.addresses[i]
        self.identities[i].write(home, host, port)
        np.save(home / "value.npy", self.values[i])
        roster = self.folder / "roster.json"
        self.setting.roster.write(roster)
        arguments = ["inca", "node", "run", str(roster), "--quiet", "--identity", str(home)]
        arguments += ["--state", str(home / "sessions"), "--value", str(home / "value.npy")]
        program = f"import sys\nsys.argv = {arguments!r}\n{before}\nfrom inca.cli import main\nmain()\n"
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
        return subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=environment,
            text=True,
        )


async def hold(scene: Scene, runs: dict[int, Run], *troubles: Coroutine[Any, Any, None]) -> dict[int, Ended]:
    """Let the parties run, with troubles beside them that last until all have ended; nothing may outlast the session.

    The deadlines of rounds that a faulty peer owes are part of the session's, and nothing else may slow it down.
    """
    async with asyncio.timeout(scene.deadline - time.time()):
        beside = [asyncio.create_task(trouble) for trouble in troubles]
        try:
            ended = await asyncio.gather(*runs.values())
        finally:
            for task in beside:
                task.cancel()
            outcomes = await asyncio.gather(*beside, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return dict(zip(runs, ended, strict=True))


def nodes(scene: Scene, parties: Iterable[int] = range(N)) -> dict[int, Run]:
    return {i: scene.node(i).run() for i in parties}


def agreed(scene: Scene, ended: dict[int, Ended], *, exact: bool = True) -> Result:
    """Return the one result that all have; `exact`: it must be that of the journals and the execution, to the unit."""
    found: list[Result] = []
    for i, each in ended.items():
        assert each.result is not None, f"party {i} has no result: {each.reason}"
        found.append(each.result)
    first = found[0]
    for other in found:
        assert other.total.tolist() == first.total.tolist()
        assert (other.weight, other.finals, other.realised.doubts) == (
            first.weight,
            first.finals,
            first.realised.doubts,
        )
        assert digest(Transcript(other.realised.execution)) == digest(Transcript(first.realised.execution))
    if exact:
        assert first.realised.exact
        openings = {i: side for i in range(N) if (side := scene.opening(i)) is not None}
        last = replay(scene.setting.session, first.realised.execution, openings)
        total = np.sum([last[i] for i in sorted(first.finals)], axis=0)
        assert total.tolist() == [*first.total.tolist(), first.weight]
    return first


class Rogue:
    """A party of the roster that says what it likes: the transport without the state machine."""

    def __init__(self, scene: Scene, i: int, session: bytes | None = None) -> None:
        roster = scene.setting.roster
        self.downs: list[str] = []
        self.heard = 0
        self.transport = Transport(
            me=i,
            addresses=scene.addresses,
            session=session or roster.session,
            server=server_context(scene.identities[i], roster),
            client=client_context(scene.identities[i], roster),
            identify=roster.index,
            limits=limits_for(scene.setting),
            listener=self,
        )

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Transport]:
        await self.transport.start()
        try:
            yield self.transport
        finally:
            await self.transport.close()

    def received(self, peer: int, frame: bytes) -> None:
        self.heard += 1

    def unsent(self, peer: int, token: object) -> None:
        pass

    def down(self, peer: int, reason: str) -> None:
        self.downs.append(reason)

    def up(self, peer: int) -> None:
        pass

    def note(self, event: str, **fields: object) -> None:
        pass


async def ready(scene: Scene, i: int = 0) -> None:
    """Wait until a party listens."""
    while not (scene.place(i) / "log.jsonl").exists() or not scene.log(i):
        await asyncio.sleep(0.05)


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    """Load and compile what nodes need before any start is agreed on."""
    importlib.import_module("inca.network.loaded")


# --- nothing goes wrong ---------------------------------------------------------------------------------------------


class Recording(Node):
    """A node that keeps all frames it hears."""

    def received(self, peer: int, frame: bytes) -> None:
        self.__dict__.setdefault("frames", []).append((peer, frame))
        super().received(peer, frame)


class Quiet:
    """A session without faults, and the frames of it."""

    def __init__(self, folder: Path) -> None:
        self.scene = Scene(folder)
        parties = {i: self.scene.node(i, Recording) for i in range(N)}
        self.ended = asyncio.run(hold(self.scene, {i: node.run() for i, node in parties.items()}))
        self.heard: dict[int, list[tuple[int, bytes]]] = {i: vars(node)["frames"] for i, node in parties.items()}


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Quiet:
    return Quiet(tmp_path_factory.mktemp("quiet"))


def test_without_faults_everyone_has_the_exact_result(quiet: Quiet) -> None:
    scene = quiet.scene
    result = agreed(scene, quiet.ended)
    assert result.finals == frozenset(range(N))
    assert not result.realised.doubts
    assert result.weight == N * 2**40
    reports = {i: write_report(scene.place(i), scene.setting, i, ended) for i, ended in quiet.ended.items()}
    one = reports[0]
    assert all(
        each["estimate"] == one["estimate"] and each["execution"] == one["execution"] for each in reports.values()
    )
    assert one["present"] == one["weight"] == N
    # Six standard errors: by chance about once in 10^8 coordinates.
    difference = np.abs(np.array(one["estimate"]) - scene.values.mean(axis=0))
    assert (difference < 6 * one["standard_error"]).all()
    transcript = read_execution(scene.place(3) / "execution.json")
    assert f"sha256:{digest(transcript)}" == one["execution"]
    certificate = json.loads((scene.place(3) / "certificate.json").read_text())
    assert certificate["epsilon"][3] == pytest.approx(reports[3]["epsilon"])


# --- peers that do not take part ------------------------------------------------------------------------------------


async def mute(scene: Scene, i: int, *, tls: bool) -> None:
    """Listen at the address of a party, take connections, agree on TLS if told so, and say nothing."""
    held: list[asyncio.StreamWriter] = []

    async def keep(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)
        with suppress(OSError):
            while await reader.read(1 << 16):
                pass

    context = server_context(scene.identities[i], scene.setting.roster) if tls else None
    server = await asyncio.start_server(keep, *scene.addresses[i], ssl=context)
    try:
        await asyncio.Event().wait()
    finally:
        server.close()
        for writer in held:
            writer.transport.abort()
        await asyncio.sleep(0.05)


def impatient(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Let all nodes wait less for others: what they do then is the same."""
    monkeypatch.setattr(
        node_module, "limits_for", lambda setting: replace(limits_for(setting), handshake=seconds, hello=seconds)
    )


@pytest.mark.parametrize("tls", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_silent_peer_is_named_and_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    impatient(monkeypatch, 1.5)
    scene = Scene(tmp_path, rounds=6)
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), mute(scene, LAST, tls=tls))))
    assert result.finals == frozenset(range(LAST))
    what = "said no hello" if tls else "did not agree on TLS"
    assert all(scene.told(i, "down", LAST, what) for i in range(LAST))


@pytest.mark.slow
@pytest.mark.parametrize("tls", [False, True])
def test_silent_peer_with_the_usual_patience(tmp_path: Path, tls: bool) -> None:
    scene = Scene(tmp_path, period=1.5, lead=5.0)
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), mute(scene, LAST, tls=tls))))
    assert result.finals == frozenset(range(LAST))
    assert any(scene.told(i, "down", LAST, "timed out") for i in range(LAST))


async def dial(
    scene: Scene, i: int, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a party from outside."""
    return await asyncio.open_connection(*scene.addresses[i], ssl=context, local_addr=(OUTSIDE, 0))


async def stranger(scene: Scene, i: int) -> None:
    """Take the place of a party with another certificate: listen at its address, and dial everyone."""
    roster = scene.setting.roster
    identity = Identity.create(scene.identities[i].name)
    # Its own roster has it in the party's place, else it could not begin.
    cards = list(roster.parties)
    cards[i] = identity.card(cards[i].host, cards[i].port)
    forged = Roster(roster.name, roster.terms, tuple(cards))

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    context = client_context(identity, forged)
    server = await asyncio.start_server(listen, *scene.addresses[i], ssl=server_context(identity, forged))
    try:
        await ready(scene)
        while True:
            for peer in range(N):
                if peer != i:
                    with suppress(OSError, asyncio.IncompleteReadError):
                        reader, writer = await dial(scene, peer, context)
                        with suppress(OSError):
                            await reader.read(1)
                        writer.transport.abort()
            await asyncio.sleep(0.1)
    finally:
        server.close()
        await asyncio.sleep(0.05)


@pytest.mark.slow
def test_stranger_in_the_place_of_a_party_is_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(LAST)), stranger(scene, LAST))))
    assert result.finals == frozenset(range(LAST))
    for i in range(LAST):
        assert scene.told(i, "down", LAST, "wrong certificate")
        assert scene.told(i, "fault", OUTSIDE)


# --- yesterday's messages -------------------------------------------------------------------------------------------


async def leave_after(seconds: float, scene: Scene, trouble: Coroutine[Any, Any, None]) -> None:
    """Make trouble until so many seconds after the start: whoever is gone is not waited for."""
    with suppress(TimeoutError):
        async with asyncio.timeout(scene.setting.session.start + seconds - time.time()):
            await trouble


async def of_another_session(rogue: Rogue, me: int) -> None:
    """Say hello to everyone, again and again, in a session that is over."""
    async with rogue.open() as transport:
        while True:
            for peer in range(N):
                if peer != me:
                    transport.send(peer, encode(Ask()))
            await asyncio.sleep(0.2)


async def repeat_all(rogue: Rogue, me: int, frames: dict[int, list[bytes]]) -> None:
    """Say in this session what was heard in an earlier one."""
    async with rogue.open() as transport:
        while True:
            for peer, old in frames.items():
                if peer != me:
                    for frame in old:
                        transport.send(peer, frame)
            await asyncio.sleep(0.5)


def again(folder: Path, before: Scene, seed: str, **sizes: Any) -> Scene:
    """Return a session of the same parties on other terms: their certificates are still good."""
    scene = Scene(folder, seed=seed, **sizes)
    scene.identities[:] = before.identities
    cards = [identity.card(*place) for identity, place in zip(scene.identities, scene.addresses, strict=True)]
    scene.setting = Setting(replace(scene.setting.roster, parties=tuple(cards)))
    return scene


@pytest.mark.parametrize("seconds", [0.7, pytest.param(1000.0, marks=pytest.mark.slow)])
def test_replayed_session_is_refused(tmp_path: Path, quiet: Quiet, seconds: float) -> None:
    seed, replayer = "cd" * 16, LAST - 1
    scene = again(tmp_path, quiet.scene, seed)
    new = scene.setting.session
    receivers = new.topology(bytes.fromhex(seed)).receivers

    def stale(peer: int, frame: bytes) -> bool:
        # A party may offer anything that the schedule has: an offer that happens to fit would be its own word today.
        match decode(frame):
            case Offer(round=t):
                return receivers[t][replayer][0] != peer
            case message:
                return isinstance(message, Items)

    frames = {peer: [frame for _, frame in heard if stale(peer, frame)] for peer, heard in quiet.heard.items()}
    assert sum(len(each) for each in frames.values()) > 100
    late, parrot = Rogue(scene, LAST, session=quiet.scene.setting.session.id), Rogue(scene, replayer)
    troubles = of_another_session(late, LAST), leave_after(seconds, scene, repeat_all(parrot, replayer, frames))
    result = agreed(scene, asyncio.run(hold(scene, nodes(scene, range(replayer)), *troubles)))
    assert result.finals == frozenset(range(replayer))
    execution = result.realised.execution
    assert not any(execution.presence.row(t)[[replayer, LAST]].any() for t in range(1, new.rounds + 1))
    assert any("another session" in reason for reason in late.downs)
    for i in range(replayer):
        assert scene.told(i, "fault", LAST, "another session")
        assert scene.told(i, "nonsense", replayer)


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
from inca.network.identity import Identity
from inca.network.node import limits_for
from inca.network.roster import read_roster
from inca.network.setting import Setting
from inca.network.tls import client_context, server_context
from inca.network.transport import Transport
from inca.network.wire import Ask, Have, encode

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


# --- machines that fail ---------------------------------------------------------------------------------------------


def ended_by_itself(child: subprocess.Popen[str], seconds: float = 60.0) -> tuple[int, str]:
    """Return the status of a process and what it said."""
    try:
        said, _ = child.communicate(timeout=seconds)
    finally:
        child.kill()
    return child.returncode, said


@pytest.mark.slow
def test_full_disk_stops_one_party_cleanly(tmp_path: Path) -> None:
    # Its journal needs 16 kB for each share, but no file of this process may grow beyond 150 kB.
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))"
    scene = Scene(tmp_path, dimension=2000, lead=PROCESS_LEAD, period=2.0)
    with scene.process(LAST, full) as child:
        ended = asyncio.run(hold(scene, nodes(scene, range(LAST))))
        status, said = ended_by_itself(child)
    result = agreed(scene, ended)
    assert result.finals == frozenset(range(LAST))
    assert 0 < result.realised.heard[LAST] < scene.setting.session.rounds
    assert status == 1
    assert len(said.splitlines()) == 1
    assert "journal" in said
    assert "Traceback" not in said


def test_clock_ten_seconds_off_is_refused(tmp_path: Path) -> None:
    ahead = "import time\nhonest = time.time\ntime.time = lambda: honest() + 10.0"
    scene = Scene(tmp_path, lead=7.0)
    with scene.process(LAST, ahead) as child:
        ended = asyncio.run(hold(scene, nodes(scene, range(LAST))))
        status, said = ended_by_itself(child)
    result = agreed(scene, ended)
    assert result.finals == frozenset(range(LAST))
    assert status == 2
    assert "clock" in said
    assert "+10.0" in said
    assert any(scene.told(i, "clock", LAST) for i in range(LAST))


# --- parties that go, and come back ---------------------------------------------------------------------------------


async def stop_and_come_back(scene: Scene, i: int, at: int, pause: float) -> Ended:
    """Stop a party cleanly in a round, and start it again after a while."""
    node: Node

    def listen(entry: dict[str, Any]) -> None:
        if entry["event"] == "round" and entry["round"] == at:
            node.stop()

    node = scene.node(i, echo=listen)
    first = await node.run()
    assert first.stopped
    assert first.result is None
    await asyncio.sleep(pause)
    return await scene.node(i).run()


@pytest.mark.slow
def test_party_that_was_stopped_comes_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path, rounds=25, pace=0.2)
    runs = nodes(scene, range(LAST)) | {LAST: stop_and_come_back(scene, LAST, 5, 0.5)}
    result = agreed(scene, asyncio.run(hold(scene, runs)))
    assert result.finals == frozenset(range(N))
    assert any(entry["event"] == "comes back" for entry in scene.log(LAST))
    attended = sum(bool(result.realised.execution.presence.row(t)[LAST]) for t in range(1, 26))
    assert 5 < attended < 25


@pytest.mark.slow
def test_survivors_of_two_killed_parties_agree(tmp_path: Path) -> None:
    scene, victims = Scene(tmp_path, rounds=25, pace=0.2, lead=PROCESS_LEAD), (LAST - 1, LAST)
    children = [scene.process(i) for i in victims]

    def listen(entry: dict[str, Any]) -> None:
        if entry["event"] == "round" and entry["round"] in (7, 12):
            child = children[entry["round"] == 12]
            assert child.poll() is None
            child.send_signal(signal.SIGKILL)

    try:
        runs = nodes(scene, range(1, LAST - 1)) | {0: scene.node(0, echo=listen).run()}
        ended = asyncio.run(hold(scene, runs))
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert [child.returncode for child in children] == [-signal.SIGKILL] * 2
    survivors = frozenset(range(LAST - 1))
    # A share of the dead may have turned up without an account of it: then there is nothing to compare with.
    result = agreed(scene, ended, exact=ended[0].result is not None and ended[0].result.realised.exact)
    assert result.finals == survivors
    assert all(i in result.realised.heard for i in victims)
    assert all(scene.told(i, "down", victim) for i in survivors for victim in victims)
