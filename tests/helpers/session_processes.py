"""Sessions of twelve parties over real TLS on the loopback interface, each with something that goes wrong."""

from __future__ import annotations

import asyncio
import json
import os
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from helpers.pace import allowance
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.membership.tls import client_context, server_context
from inca.network.node.journal import Journal
from inca.network.node.node import Node, SessionEnd
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess, limits_for, transport_for
from inca.network.protocol.finalization import Result
from inca.network.protocol.ledger import Ledger
from inca.network.testing.expected_sum import expected_sum
from inca.network.testing.local_cluster import free_ports
from inca.network.transport.failures import Failure
from inca.network.transport.interface import TransportEvents
from inca.network.transport.transport import Transport
from inca.protocol.execution_files import digest
from inca.protocol.transcript import Transcript

# The parties are nodes in one event loop, each with a folder of its own; where it matters, some are processes. Whatever
# happens, the others must end before the session's deadline, with one and the same result. Attackers from outside come
# from an address of their own (127.0.0.2): an address that misbehaves is refused with all that connect from there.
#
# All times are in proportion to how long a part of a node's work takes on this machine right now, and processes have
# loaded the program before a start is agreed on. Should the machine get slower later, `helpers.pace` says what happens.

N = 12
LAST = N - 1
OUTSIDE = "127.0.0.2"
LEAD_S, PROCESS_LEAD_S = 3.0, 5.0  # before the start, on an idle machine
MAX_PERIODS_AFTER_ROUNDS = 14  # to the end of everything
IDLE_CONTEXTS_S = 0.25  # that the TLS contexts of all parties take on an idle machine
PATIENCE_S = 240.0  # a busy machine takes longer, a process that hangs for ever

Run = Coroutine[Any, Any, SessionEnd]


class TwelveParties:
    """A roster with its identities, values and folders: all that a session needs."""

    def __init__(
        self,
        folder: Path,
        *,
        rounds: int = 10,
        period: float = 1.0,
        min_round_duration: float = 0.0,
        lead: float = LEAD_S,
        dimension: int = 3,
        seed: str = "ab" * 16,
        identities: list[Identity] | None = None,
        **changes: Any,
    ) -> None:
        self.folder = folder
        self.identities = identities or [Identity.create(f"party-{i}") for i in range(N)]
        self.values = np.random.default_rng(1).random((N, dimension))
        ports = free_ports(N)
        cards = [identity.card(f"127.0.0.1:{port}") for identity, port in zip(self.identities, ports, strict=True)]

        def roster(slowness: float) -> Roster:
            fields: dict[str, Any] = {
                "rounds": rounds,
                "schedule": "permutation",
                "sigma_independent": 0.5,
                "sigma_cancelling": 5.0,
                "dimension": dimension,
                "lower": 0.0,
                "upper": 1.0,
                "epsilon": 1000.0,
                "delta": 1e-5,
                "rule": "analytic",
                "colluding": 0.0,
                "min_participants": 2,
                "start": time.time() + slowness * lead,
                "period": slowness * period,
                "max_clock_skew": 0.4 * slowness * period,
                "min_round_duration": min_round_duration,
                "seed": seed,
                "sigma_together": 1.73,  # twelve have as much, and fewer lack some
            }
            terms = Terms(**(fields | changes))
            return Roster("a test", terms, tuple(cards))

        self.slowness = allowance() * measure_slowness(self.identities, roster(1.0))
        self.setup = SessionSetup(roster(self.slowness))

    @property
    def deadline(self) -> float:
        """When everything must be over, by the clock."""
        session = self.setup.session
        return session.deadline(session.rounds) + MAX_PERIODS_AFTER_ROUNDS * session.period

    @property
    def addresses(self) -> list[tuple[str, int]]:
        roster = self.setup.roster
        found = [roster.addresses_of(i)[0] for i in range(len(roster.parties))]
        return [(address.host, address.port) for address in found]

    def session_folder(self, i: int) -> Path:
        return self.folder / self.identities[i].name / "sessions" / self.setup.session.id.hex()[:16]

    def node(self, i: int, kind: type[Node] = Node, **options: Any) -> Node:
        return kind(self.setup, self.identities[i], self.session_folder(i), lambda: self.values[i], **options)

    def log(self, i: int) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.session_folder(i) / "log.jsonl").read_text().splitlines()]

    def logged(self, i: int, event: str, culprit: int | str, *words: str) -> bool:
        """Whether the log of i has such an event that names the culprit (a party, or an address) with these words."""
        name = self.identities[culprit].name if isinstance(culprit, int) else culprit
        lines = [json.dumps(entry) for entry in self.log(i) if entry["event"] == event]
        return any(all(word in line for word in (name, *words)) for line in lines)

    def ledger(self, i: int) -> Ledger:
        """What the journal of a party adds up to: its private side included."""
        ledger = Ledger(self.setup.session, i)
        path = self.session_folder(i) / "journal.db"
        with closing(Journal(path, session=self.setup.session.id, party=i)) as journal:
            for record in journal.read():
                ledger.apply(record)
        return ledger

    def arguments(self, i: int) -> list[str]:
        """Write what a party needs as a process, and return its command line."""
        home = self.folder / self.identities[i].name
        self.identities[i].write(home, *self.setup.roster.addresses_of(i))
        np.save(home / "value.npy", self.values[i])
        roster = self.folder / "roster.json"
        self.setup.roster.write(roster)
        arguments = ["inca", "node", "run", str(roster), "--quiet", "--identity", str(home)]
        return [*arguments, "--state", str(home / "sessions"), "--value", str(home / "value.npy")]


def measure_slowness(identities: list[Identity], roster: Roster) -> float:
    """Return how much longer a part of what nodes do at their start takes than on an idle machine; at least 1."""
    began = time.perf_counter()
    for identity in identities:
        server_context(identity, roster)
        client_context(identity, roster)
    return max(1.0, (time.perf_counter() - began) / IDLE_CONTEXTS_S)


PARTY = """
import inca.cli, inca.cli.node.run, inca.network.node.runner
from inca.network.node.warm_up import warm_up
warm_up()
"""


class PreparedProcess:
    """A process that has loaded what it needs, and waits to be told its arguments.

    `load` is run in it at once, `work` when it knows its arguments.
    """

    def __init__(self, load: str, work: str) -> None:
        told = "print('ready', flush=True)\nsys.argv = json.loads(sys.stdin.readline())"
        program = f"import json, sys\n{load}\n{told}\n{work}\n"
        self.process = subprocess.Popen(
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"},
            text=True,
        )

    def wait_until_ready(self) -> None:
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == "ready\n"

    def start(self, arguments: list[str]) -> None:
        """Let it work."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()

    def ending(self) -> tuple[int, str]:
        """Wait for its end, and return its status and what it said."""
        said, _ = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, said


@contextmanager
def prepared(count: int = 1, load: str = PARTY, work: str = "inca.cli.main()") -> Iterator[list[PreparedProcess]]:
    """Prepare processes, by default to be parties; whatever still runs at the end is killed."""
    processes = [PreparedProcess(load, work) for _ in range(count)]
    try:
        for process in processes:
            process.wait_until_ready()
        yield processes
    finally:
        for process in processes:
            process.process.kill()
            process.process.communicate()


async def hold(
    parties: TwelveParties, runs: dict[int, Run], *troubles: Coroutine[Any, Any, None]
) -> dict[int, SessionEnd]:
    """Let the parties run, with troubles beside them that last until all have ended; nothing may outlast the session.

    The deadlines of rounds that a faulty peer owes are part of the session's, and nothing else may slow it down.
    """
    async with asyncio.timeout(parties.deadline - time.time()):
        beside = [asyncio.create_task(trouble) for trouble in troubles]
        try:
            ends = await asyncio.gather(*runs.values())
        finally:
            for task in beside:
                task.cancel()
            outcomes = await asyncio.gather(*beside, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return dict(zip(runs, ends, strict=True))


def nodes(parties: TwelveParties, numbers: Iterable[int] = range(N)) -> dict[int, Run]:
    return {i: parties.node(i).run() for i in numbers}


def common_result(parties: TwelveParties, ends: dict[int, SessionEnd], *, exact: bool = True) -> Result:
    """Return the one result that all have; `exact`: it must be what the journals of its cohort give, to the unit."""
    results: list[Result] = []
    for i, end in ends.items():
        assert end.result is not None, f"party {i} has no result: {end.reason}"
        results.append(end.result)
    first = results[0]
    for other in results:
        assert other.total.tolist() == first.total.tolist()
        assert (other.weight, other.exact, other.beacon) == (first.weight, first.exact, first.beacon)
        assert other.realized.contradictions == first.realized.contradictions
        assert digest(Transcript(other.realized.execution)) == digest(Transcript(first.realized.execution))
    if exact:
        assert first.exact
        ledgers = [parties.ledger(i) for i in sorted(first.realized.cohort)]
        expected = expected_sum(parties.setup.session, ledgers)
        assert expected.tolist() == [*first.total.tolist(), first.weight]
    return first


class Rogue(TransportEvents):
    """A party of the roster that says what it likes: the transport without the state machine."""

    def __init__(self, parties: TwelveParties, i: int, session: bytes | None = None) -> None:
        roster, limits = parties.setup.roster, limits_for(parties.setup.session)
        self.downs: list[Failure] = []
        self.transport = transport_for(roster, parties.identities[i], limits, self, NetworkAccess(), session=session)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Transport]:
        await self.transport.start()
        try:
            yield self.transport
        finally:
            await self.transport.close()

    def down(self, peer: int, failure: Failure) -> None:
        self.downs.append(failure)


async def ready(parties: TwelveParties, i: int = 0) -> None:
    """Wait until a party listens."""
    while not (parties.session_folder(i) / "log.jsonl").exists() or not parties.log(i):
        await asyncio.sleep(0.05)


async def dial(
    parties: TwelveParties, i: int, context: ssl.SSLContext | None = None
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a party from outside."""
    return await asyncio.open_connection(*parties.addresses[i], ssl=context, local_addr=(OUTSIDE, 0))


async def leave_after(periods: float, parties: TwelveParties, trouble: Coroutine[Any, Any, None]) -> None:
    """Make trouble until so many periods after the start: whoever is gone is not waited for."""
    session = parties.setup.session
    with suppress(TimeoutError):
        async with asyncio.timeout(session.start + periods * session.period - time.time()):
            await trouble


def on_round(t: int, action: Callable[[], None]) -> Callable[[dict[str, Any]], None]:
    """Return what a node calls with its events, to do something in round t."""

    def on_event(entry: dict[str, Any]) -> None:
        if entry["event"] == "round" and entry["round"] == t:
            action()

    return on_event
