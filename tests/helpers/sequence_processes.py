"""Real processes that go through a sequence of sessions together: each averages over TLS and keeps its outcomes."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from helpers.pace import allowance
from inca._base.types import Array
from inca.errors import IncaError, NoResult, SequencePaused
from inca.learn.averagers.base import RemoteRecords
from inca.learn.averagers.network import NetworkAverager
from inca.learn.budget import Budget
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records
from inca.learn.training.clipping import Clipping
from inca.learn.training.models import LogisticModel
from inca.learn.training.optimizers import SGD
from inca.learn.training.train import TrainingRules, train
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster, read_roster
from inca.network.membership.terms import Terms
from inca.network.node.transport_setup import NetworkAccess
from inca.network.sequence.outcome_log import OutcomeLog
from inca.network.sequence.session_sequence import SessionSequence
from inca.network.testing.fork_server import FORK_SERVER, measure_start_up
from inca.network.testing.local_cluster import free_ports
from inca.network.testing.local_relays import LocalRelays, bypass_proxies

SIZES = (4, 9, 2, 6, 5)  # records of the parties
STEPS = 3
EPSILON = 1e6  # hardly any noise, so that results can be compared with those without
CLIPPING = Clipping(0.5, "record")
LEAD_S, INTERVAL_S, GATHERING_S, PERIOD_S = 4.0, 5.0, 1.5, 1.0  # on an idle machine; a busy one gets more of each
IDLE_START_UP_S = 0.25  # that five processes take to start on an idle machine
SPARE = 1.5  # the machine may get busier than it was at the start
PATIENCE_S = 240.0  # a busy machine takes longer, a party that hangs for ever
PAUSED = 3  # the exit status of a program that is to be started again
SESSIONS_IN_A_ROW, DIMENSION_IN_A_ROW = 30, 50_000


def datasets() -> list[tuple[Array, Array]]:
    """Return the records of all parties: the second class where the first column is positive."""
    rng = np.random.default_rng(7)
    tables = [rng.uniform(-1.0, 1.0, (size, 3)) for size in SIZES]
    return [(table, (table[:, 0] > 0.0).astype(int)) for table in tables]


def model() -> LogisticModel:
    return LogisticModel(features=3, classes=2)


def agree(folder: Path, lead: float, relays: Sequence[str] = (), **changes: Any) -> Roster:
    """Write identities and a roster under the folder; the first session begins after `lead` seconds.

    With relays, no party has an address of its own.
    """
    terms: dict[str, Any] = {"rounds": 4, "schedule": "permutation"}
    terms |= {"sigma_independent": 0.5, "sigma_cancelling": 5.0, "dimension": 1, "lower": 0.0, "upper": 1.0}
    terms |= {"epsilon": 1000.0, "delta": 1e-5, "rule": "analytic", "colluding": 0.0}
    terms |= {"min_participants": 3, "start": time.time() + lead, "period": PERIOD_S, "max_clock_skew": 0.4}
    terms |= {"seed": "ab" * 16}
    cards = []
    folder.mkdir(exist_ok=True)
    for i, port in enumerate(free_ports(len(SIZES))):
        own = [] if relays else [f"127.0.0.1:{port}"]
        cards.append(Identity.create(f"party-{i}").write(folder / str(i), *own))
    roster = Roster("a sequence", Terms(**(terms | changes)), tuple(cards), tuple(relays))
    roster.write(folder / "roster.json")
    return roster


class SequenceProcesses:
    """A roster and a folder per party; whatever still runs at the end is killed.

    All times are in proportion to how long processes take to start on this machine right now, and what is to happen in
    mid-sequence waits for what the parties have done, not for a time.
    """

    def __init__(self, folder: Path, relayed: bool = False) -> None:
        pace = SPARE * allowance() * max(1.0, measure_start_up(len(SIZES)) / IDLE_START_UP_S)
        pace *= 2.0 if relayed else 1.0  # handshakes are two in one, and one process more takes part in everything
        self.interval, self.gathering = INTERVAL_S * pace, GATHERING_S * pace
        self.folder = folder
        self.relays = LocalRelays(folder, free_ports(1) if relayed else [])
        relays = [str(address) for address in self.relays.addresses]
        self.roster = agree(folder, LEAD_S * pace, relays, period=PERIOD_S * pace)
        for number in range(len(relays)):
            self.relays.start(number, frozenset(card.fingerprint for card in self.roster.parties))
        self.processes: dict[int, ForkServerProcess] = {}

    def begin(self, *parties: int) -> None:
        for i in parties:
            arguments = (str(self.folder), i, self.interval, self.gathering, self.relays.ca)
            self.processes[i] = FORK_SERVER.Process(target=program, args=arguments, daemon=True)
            self.processes[i].start()

    def kill(self, *parties: int) -> None:
        for i in parties:
            self.processes[i].kill()
            self.processes[i].join()

    def stop(self) -> None:
        self.kill(*self.processes)
        self.relays.stop()

    def outcomes(self, i: int) -> list[bytes]:
        return OutcomeLog(self.folder / str(i) / "course").outcomes

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until the parties are so far."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, self.outputs()
            time.sleep(0.05)

    def wait_for_session(self, i: int, number: int) -> None:
        """Wait until a party has begun a session."""
        self.wait_until((self.folder / str(i) / "course" / f"{number:04}" / "sessions").exists)

    def finish(self) -> list[dict[str, Any]]:
        """Wait for all, start again who asks for it, and return what each of them learned."""
        deadline = time.monotonic() + PATIENCE_S
        while any(process.exitcode != 0 for process in self.processes.values()):
            for i, process in list(self.processes.items()):
                if process.exitcode == PAUSED:
                    self.begin(i)
                assert process.exitcode in (None, 0, PAUSED) and time.monotonic() < deadline, self.outputs()
            time.sleep(0.05)
        return [json.loads((self.folder / str(i) / "learned.json").read_text()) for i in self.processes]

    def report(self, i: int) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.folder / str(i) / "course" / "course.json").read_text())
        return report

    def outputs(self) -> str:
        """Return what all parties printed."""
        paths = sorted(self.folder.glob("*/output.txt"))
        return "\n".join(f"--- {path.parent.name}\n{path.read_text()}" for path in paths)


def program(folder: str, i: int, interval: float, gathering: float, relay_ca: Path | None) -> None:
    """Run what every party runs: training, and then the mean of all records' columns."""
    home = Path(folder) / str(i)
    with (home / "output.txt").open("a", buffering=1) as output, redirect_stdout(output), redirect_stderr(output):
        try:
            bypass_proxies()
            _learn(Path(folder), home, i, interval, gathering, NetworkAccess(relay_ca=relay_ca))
        except IncaError as error:
            print(error)
            sys.exit(PAUSED if isinstance(error, SequencePaused) else 1)


def _learn(folder: Path, home: Path, i: int, interval: float, gathering: float, access: NetworkAccess) -> None:
    features, targets = datasets()[i]
    rng = np.random.default_rng(0)
    sequence = SessionSequence(
        read_roster(folder / "roster.json"),
        Identity.read(home),
        home / "course",
        interval=interval,
        gathering=gathering,
        access=access,
        notify=lambda text: print(f"{time.time():.1f} {text}"),
    )
    with NetworkAverager(sequence) as averager:
        budget = Budget(EPSILON, 1e-5)
        result = train(
            model(),
            averager.with_others((features, targets), SIZES),
            averager,
            budget,
            STEPS,
            rng,
            TrainingRules(CLIPPING, optimizer=SGD(2.0), mu=budget.part(1.0 / (STEPS + 1))),
            on_step=lambda step, parameters: print("step", step, parameters),
        )
        fields: dict[str, Any] = {
            "parameters": result.parameters.tolist(),
            "skipped": [step.skipped for step in result.history],
            "means": [],
            "errors": [],
        }
        held: list[Array | RemoteRecords] = averager.with_others(features, SIZES)
        try:
            mean = moments(Records.of(held, ([-1.0] * 3, [1.0] * 3)), averager, budget, rng).mean
        except NoResult as error:  # on a very busy machine
            print(error)
        else:
            fields |= {"means": np.ravel(mean.estimate).tolist(), "errors": np.ravel(mean.standard_error).tolist()}
        (home / "learned.json").write_text(json.dumps(fields | {"epsilon": budget.epsilon_spent}))


def hold_in_a_row(folder: str, i: int, pace: float) -> None:
    """Hold many sessions in one process, and write what memory, descriptors and disk each of them leaves in use."""
    home, rows = Path(folder) / str(i), list[dict[str, Any]]()
    sequence = SessionSequence(
        read_roster(Path(folder) / "three.json"),
        Identity.read(home),
        home / "course",
        interval=5.0 * pace,
        gathering=0.8 * pace,
    )
    process, value = psutil.Process(), np.full(DIMENSION_IN_A_ROW, 0.5)
    for number in range(1, SESSIONS_IN_A_ROW + 1):
        outcome = sequence.average(value, max_norm=0.5 * DIMENSION_IN_A_ROW**0.5, distance=1.0, mu=100.0)
        files = [path for path in sequence.outcome_log.session_folder(number).rglob("*") if path.is_file()]
        rows.append(
            {
                "result": outcome.estimate is not None,
                "memory": process.memory_info().rss,
                "descriptors": process.num_fds(),
                "disk": sum(path.stat().st_size for path in files),
                "private": [path.name for path in files if path.name.startswith("journal.db")],
            }
        )
    (home / "in_a_row.json").write_text(json.dumps(rows))
