"""A cluster of real processes on this machine: for demonstrations, tests and measurements.

Every party has an identity, a folder and a process of its own, and they talk over TLS on the loopback interface: to
each other, or through relays, which are processes, too. The processes are forked from one that has loaded the program
already: to load it takes seconds, and there may be a hundred.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.types import Array
from inca.documents.result import ResultDocument
from inca.errors import IncaError
from inca.network.addresses import Address
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster, read_roster
from inca.network.membership.terms import Terms
from inca.network.node.event_log import fields_of
from inca.network.node.journal import Journal
from inca.network.node.node import NodeOptions
from inca.network.node.runner import run_party
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess
from inca.network.protocol.ledger import Ledger
from inca.network.testing.expected_sum import expected_sum
from inca.network.testing.fork_server import FORK_SERVER
from inca.network.testing.local_relays import HOST, LocalRelays, bypass_proxies
from inca.protocol.execution_files import read_execution

_POLL_S = 0.05
_LOWEST_PORT, _USUAL_EPHEMERAL_PORT = 10_000, 32_768
_PORTS_TRIED = 4  # for each that is wanted: some are in use


@dataclass
class LocalCluster:
    """Identities, values and a roster under a folder; processes are started, killed and waited for by party id."""

    folder: Path
    values: Array = field(repr=False)  # a row for each party
    names: Sequence[str]
    terms: Terms
    relay_count: int = 0  # with any relays, only the parties in `direct` have a port of their own
    direct: Collection[int] = ()
    roster: Roster = field(init=False)
    relays: LocalRelays = field(init=False)
    processes: dict[int, ForkServerProcess] = field(default_factory=dict)

    def __post_init__(self) -> None:
        ports = free_ports(len(self.names) + self.relay_count)
        self.relays = LocalRelays(self.folder, ports[len(self.names) :])
        cards = []
        for i, name in enumerate(self.names):
            own = [Address(HOST, ports[i])] if i in self.direct or not self.relay_count else []
            cards.append(Identity.create(name).write(self.party_folder(i), *own))
            np.save(self.party_folder(i) / "value.npy", np.atleast_1d(self.values[i]))
        self.roster = Roster("on this machine", self.terms, tuple(cards), tuple(map(str, self.relays.addresses)))
        self.roster.write(self.folder / "roster.json")

    def party_folder(self, i: int) -> Path:
        """Return the folder of a party."""
        return self.folder / f"party-{i:03}"

    def session_folder(self, i: int) -> Path:
        """Return the folder of a party's session."""
        return self.party_folder(i) / "sessions" / self.roster.session.hex()[:16]

    def start(
        self, i: int, options: NodeOptions | None = None, *, shred: bool = False, dies_after_commit: bool = False
    ) -> None:
        """Start a party's process, or start it again; one that is to die does so once it knows of commit.

        Relays are started with the first party.
        """
        for number in range(self.relay_count):
            if number not in self.relays.processes:
                self.start_relay(number)
        folders = (self.folder / "roster.json", self.party_folder(i), self.session_folder(i))
        arguments = (*folders, replace(options or NodeOptions(), access=self.access(i)), shred, dies_after_commit)
        self.processes[i] = FORK_SERVER.Process(target=self.main_of(i), args=arguments, daemon=True)
        self.processes[i].start()

    def start_relay(self, number: int) -> None:
        """Start a relay for the parties of the roster, or start it again."""
        self.relays.start(number, frozenset(card.fingerprint for card in self.roster.parties))

    def main_of(self, i: int) -> Callable[..., None]:
        """Return what a party's process runs."""
        return run_local_party

    def access(self, i: int) -> NetworkAccess:
        """Return how a party takes part in the network."""
        return NetworkAccess(relay_ca=self.relays.ca)

    def kill(self, i: int) -> None:
        """Kill a party's process without warning (SIGKILL)."""
        self.processes[i].kill()
        self.processes[i].join()

    def stop(self) -> None:
        """Kill whatever still runs."""
        for i in self.running():
            self.kill(i)
        self.relays.stop()

    def running(self) -> list[int]:
        """Return the parties whose process runs."""
        return [i for i, process in self.processes.items() if process.is_alive()]

    def wait(self, deadline: float) -> list[int]:
        """Wait until all processes have ended or the deadline (Unix time); return the parties that still run."""
        while (left := self.running()) and time.time() < deadline:
            time.sleep(_POLL_S)
        return left

    def status(self, i: int) -> dict[str, Any]:
        """Return what a party's status file says; empty before there is one."""
        return fields_of(self.session_folder(i) / "status.json")

    def result(self, i: int) -> dict[str, Any]:
        """Return what a party reported at the end; empty if it has not."""
        return fields_of(self.session_folder(i) / "result.json")

    def sums(self, i: int) -> list[int]:
        """Return the sums in a party's result: coordinates, then the weight."""
        folder = self.session_folder(i)
        document = ResultDocument.read(folder / "result.json")
        return [*document.vector(folder, "total").tolist(), document.total_weight]

    @property
    def setup(self) -> SessionSetup:
        """The session as its parties have it."""
        return SessionSetup(self.roster)

    def expected_sum(self, i: int) -> list[int]:
        """Return the sums that the journals of the cohort of party i's result give: coordinates, then the weight."""
        cohort = read_execution(self.session_folder(i) / "execution.json").execution.cohort
        assert cohort is not None
        ledgers, session = [], self.setup.session
        for party in np.flatnonzero(cohort).tolist():
            journal = Journal(self.session_folder(party) / "journal.db", session=session.id, party=party)
            ledger = Ledger(session, party)
            for record in journal.read():
                ledger.apply(record)
            journal.close()
            ledgers.append(ledger)
        return [int(number) for number in expected_sum(session, ledgers)]

    def log(self, i: int) -> list[dict[str, Any]]:
        """Return the events that a party logged."""
        path = self.session_folder(i) / "log.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_local_party(
    roster: Path, home: Path, session: Path, options: NodeOptions, shred: bool, dies_after_commit: bool
) -> None:
    """Do what `inca node run` does, in a process of its own."""
    with (home / "output.txt").open("a", buffering=1) as output:
        sys.stdout = sys.stderr = output
        bypass_proxies()
        try:
            result = run_party(
                SessionSetup(read_roster(roster)),
                Identity.read(home),
                session,
                lambda: np.load(home / "value.npy"),
                options,
                shred=shred,
                leave_on_sigterm=True,
                on_event=_die_after_commit if dies_after_commit else None,
            )
        except IncaError as error:
            print(error)
            sys.exit(1)
        if result is None or not result.has_result:
            sys.exit(1)


def _die_after_commit(event: dict[str, Any]) -> None:
    if event["event"] == "decided" and event["what"] == "commit":
        os.kill(os.getpid(), signal.SIGKILL)


def free_ports(count: int) -> list[int]:
    """Return ports that nobody listens on just now, and that the kernel gives to no outgoing connection.

    Hundreds of processes have thousands of connections before the last of them listens: a port among those that the
    kernel draws from for them is likely to be taken by then.
    """
    sockets: list[socket.socket] = []
    others, tried = range(_LOWEST_PORT, first_ephemeral_port()), _PORTS_TRIED * count
    try:
        for port in random.SystemRandom().sample(others, tried) if len(others) >= tried else [0] * count:
            probe = socket.socket()
            sockets.append(probe)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                sockets.pop().close()
            if len(sockets) == count:
                break
        return [int(probe.getsockname()[1]) for probe in sockets]
    finally:
        for probe in sockets:
            probe.close()


def first_ephemeral_port() -> int:
    """Return the lowest port that the kernel gives to outgoing connections."""
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError):  # it is no Linux: this is below what others use
        return _USUAL_EPHEMERAL_PORT
