"""Real processes that go through a course together: each averages over TLS and keeps its outcomes on disk."""

from __future__ import annotations

import json
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import InputError
from inca.learn.averagers.base import Elsewhere
from inca.learn.averagers.network import Sessions
from inca.learn.budget import Budget
from inca.learn.statistics.estimates import NoResult
from inca.learn.statistics.moments import mean
from inca.learn.statistics.records import Records
from inca.learn.training.models import LogisticModel
from inca.learn.training.train import Clipping, Descent, train
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster, Terms, read_roster
from inca.network.sequence.session_sequence import Course
from inca.network.testing.local_cluster import _FORKS, free_ports

SIZES = (4, 9, 2, 6, 5)  # records of the parties
STEPS = 3
INTERVAL, GATHERING = 5.0, 1.5  # seconds
EPSILON = 1e6  # hardly any noise, so that results can be compared with those without
CLIPPING = Clipping(0.5, "record")


def parts() -> list[tuple[Array, Array]]:
    """Return the records of all parties: the second class where the first column is positive."""
    rng = np.random.default_rng(7)
    tables = [rng.uniform(-1.0, 1.0, (size, 3)) for size in SIZES]
    return [(table, (table[:, 0] > 0.0).astype(int)) for table in tables]


def model() -> LogisticModel:
    return LogisticModel(features=3, classes=2)


def agreed(folder: Path, lead: float, **changes: Any) -> Roster:
    """Write identities and a roster under the folder; the first session begins after `lead` seconds."""
    terms: dict[str, Any] = {"rounds": 4, "receivers": 1, "schedule": "permutation", "quiet_rounds": 0}
    terms |= {"sigma_independent": 0.5, "sigma_cancelling": 5.0, "dimension": 1, "lower": 0.0, "upper": 1.0}
    terms |= {"epsilon": 1000.0, "delta": 1e-5, "rule": "exact", "colluding": 0.0, "coalitions": 1}
    terms |= {"least_cohort": 3, "start": time.time() + lead, "period": 1.0, "clock_bound": 0.4, "seed": "ab" * 16}
    cards = []
    for i, port in enumerate(free_ports(len(SIZES))):
        identity = Identity.create(f"party-{i}")
        identity.write(folder / str(i), "127.0.0.1", port)
        cards.append(identity.card("127.0.0.1", port))
    roster = Roster("a course", Terms(**(terms | changes)), tuple(cards))
    roster.write(folder / "roster.json")
    return roster


def program(folder: str, i: int, interval: float) -> None:
    """Run what every party runs: training, and then the mean of all records' columns."""
    home = Path(folder) / str(i)
    with (home / "output.txt").open("a", buffering=1) as output, redirect_stdout(output), redirect_stderr(output):
        try:
            _learn(Path(folder), home, i, interval)
        except InputError as error:
            print(error)
            sys.exit(error.status)


def _learn(folder: Path, home: Path, i: int, interval: float) -> None:
    features, targets = parts()[i]
    rng = np.random.default_rng(0)
    identity = Identity.read(home)
    course = Course(
        read_roster(folder / "roster.json"),
        identity,
        home / "course",
        interval=interval,
        gathering=GATHERING,
        tell=lambda text: print(f"{time.time():.1f} {text}"),
    )
    with Sessions(course) as sessions:
        budget = Budget(EPSILON, 1e-5)
        each = budget.part(1.0 / (STEPS + 1))
        found = train(
            model(),
            sessions.with_others((features, targets), SIZES),
            sessions,
            budget,
            STEPS,
            rng,
            clipping=CLIPPING,
            optimiser=Descent(2.0),
            mu=each,
            after=lambda step, parameters: print("step", step, parameters),
        )
        held: list[Array | Elsewhere] = sessions.with_others(features, SIZES)
        fields: dict[str, Any] = {
            "parameters": found.parameters.tolist(),
            "skipped": [step.skipped for step in found.history],
        }
        try:
            answer = mean(Records.of(held, ([-1.0] * 3, [1.0] * 3)), sessions, budget, rng)
            fields |= {"means": np.asarray(answer.value).tolist(), "errors": np.asarray(answer.standard_error).tolist()}
        except NoResult:  # on a very busy machine
            fields |= {"means": [], "errors": []}
        fields |= {"epsilon": budget.epsilon_spent}
        (home / "learned.json").write_text(json.dumps(fields))


def begin(folder: Path, i: int, interval: float = INTERVAL) -> ForkServerProcess:
    process = _FORKS.Process(target=program, args=(str(folder), i, interval), daemon=True)
    process.start()
    return process


def learned(folder: Path, i: int) -> dict[str, Any]:
    path = folder / str(i) / "learned.json"
    found: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return found
