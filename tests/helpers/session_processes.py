"""Sessions of twelve parties over real TLS on the loopback interface, each with something that goes wrong."""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path
from typing import Any

import numpy as np

from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster, Terms
from inca.network.membership.tls import client_context, server_context
from inca.network.node.journal import Journal
from inca.network.node.node import Ended, Node, limits_for
from inca.network.node.session_setup import Setting
from inca.network.protocol.finalization import Result
from inca.network.protocol.ledger import Opened
from inca.network.testing.local_cluster import free_ports
from inca.network.testing.replay import replay
from inca.network.transport.transport import Transport
from inca.protocol.transcript import Transcript, digest

# The parties are nodes in one event loop, each with a folder of its own; where it matters, some are processes. Whatever
# happens, the others must end before the session's deadline, with one and the same result. Attackers from outside come
# from an address of their own (127.0.0.2): an address that misbehaves is refused with all that connect from there.

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


async def dial(
    scene: Scene, i: int, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a party from outside."""
    return await asyncio.open_connection(*scene.addresses[i], ssl=context, local_addr=(OUTSIDE, 0))


async def leave_after(seconds: float, scene: Scene, trouble: Coroutine[Any, Any, None]) -> None:
    """Make trouble until so many seconds after the start: whoever is gone is not waited for."""
    with suppress(TimeoutError):
        async with asyncio.timeout(scene.setting.session.start + seconds - time.time()):
            await trouble


def load() -> None:
    """Load and compile what nodes need before any start is agreed on."""
    importlib.import_module("inca.network.testing.preload")
