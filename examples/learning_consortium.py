"""Ten clinics learn to tell tumours apart without showing a record: real processes over TLS, one of which is killed.

    python examples/learning_consortium.py [--steps 6] [--epsilon 3]

Each clinic is a process (`inca learn party`) with a CSV file of its own; together they hold breast cancer records that
ship with scikit-learn, in unequal numbers and with different mixtures of classes. Each step of the training is a
session with fresh noise, and one budget is for all of them. It takes about a minute and a half.
"""

from __future__ import annotations

import argparse
import csv
import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import inca
from inca.learn import divide_records
from inca.network import Identity, Roster, Terms
from inca.network.testing.local_cluster import free_ports

NAMES = ("Aachen", "Bergen", "Cork", "Delft", "Evora", "Faro", "Ghent", "Halle", "Ieper", "Jena")
# What a measurement can be: agreed on beforehand, not taken from the records.
COLUMNS = {"mean radius": (5.0, 30.0), "mean texture": (5.0, 40.0), "mean smoothness": (0.05, 0.17)}
COLUMNS |= {"mean concavity": (0.0, 0.45), "mean symmetry": (0.1, 0.32), "worst concave points": (0.0, 0.3)}
CLASSES = ("malignant", "benign")  # as scikit-learn numbers them
# On an idle machine, where a process loads in two seconds; on a busy one all times grow with it.
LOAD_S, INTERVAL_S, GATHERING_S, PERIOD_S = 2.0, 8.0, 2.0, 2.0
PATIENCE_S = 600.0
ATTEMPTS = 2  # of a clinic's process to come to an answer
FAILURE = 1e-6  # of the plan, in all sessions together

Numbers = NDArray[Any]


def share_out(folder: Path) -> tuple[Numbers, Numbers, Numbers]:
    """Write each clinic's records; return all of them, which nobody ever has, their classes and their owners."""
    data = load_breast_cancer()
    places = [list(data.feature_names).index(name) for name in COLUMNS]
    table, target, rng = data.data[:, places], data.target, np.random.default_rng(1)
    owner = np.full(len(target), -1)  # nobody trains on a quarter of them
    trained = rng.permutation(len(target))[len(target) // 4 :]
    owner[trained] = divide_records(target[trained], len(NAMES), rng, sizes="unequal", mix="skewed")
    for i, name in enumerate(NAMES):
        with (folder / f"{name}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow([*COLUMNS, "diagnosis"])
            rows.writerows([*table[k], CLASSES[target[k]]] for k in np.flatnonzero(owner == i))
    return table, target, owner


def agree(folder: Path, sizes: list[int], steps: int, epsilon: float) -> None:
    """Write the study and the roster, which all clinics have."""
    load_s = seconds_to_load()
    pace = max(1.0, load_s / LOAD_S)
    study: dict[str, Any] = {"format": "inca-study/1", "name": "tumours", "task": "logistic", "columns": COLUMNS}
    study |= {"target": "diagnosis", "classes": ["benign", "malignant"], "level": "record", "clip": 1.0, "rate": 4.0}
    study |= {"records": dict(zip(NAMES, sizes, strict=True)), "steps": steps, "epsilon": epsilon, "delta": 1e-5}
    study |= {"interval": pace * INTERVAL_S, "gathering": pace * GATHERING_S}
    (folder / "study.json").write_text(json.dumps(study, indent=1))
    requirements = inca.Requirements(
        parties=len(NAMES), epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1, failure=FAILURE / steps
    )
    plan = inca.plan(requirements)  # against any one of them; each session scales its noise
    cards = []
    for name, port in zip(NAMES, free_ports(len(NAMES)), strict=True):
        cards.append(Identity.create(name).write(folder / name, f"127.0.0.1:{port}"))
    terms = Terms.from_plan(
        plan,
        dimension=1,
        lower=0.0,
        upper=1.0,
        min_participants=len(NAMES) // 2 + 1,
        start=time.time() + 5.0 + 2.0 * len(NAMES) * load_s,
        period=pace * PERIOD_S,
        max_clock_skew=0.1 * PERIOD_S,
        seed=secrets.token_hex(16),  # without one they would flip coins for it, which needs all of them
    )
    Roster("tumours", terms, tuple(cards)).write(folder / "roster.json")


def seconds_to_load() -> float:
    """Return how long a process takes to load, which decides how soon all of them can be there."""
    began = time.monotonic()
    subprocess.run([sys.executable, "-c", "import inca.network.testing.preload"], check=True)
    return time.monotonic() - began


def begin(folder: Path, name: str) -> subprocess.Popen[str]:
    """Start the process of a clinic."""
    command = [sys.executable, "-m", "inca", "learn", "party", "study.json", "roster.json", "--identity", name]
    command += ["--state", f"{name}/state", "--records", f"{name}.csv", "--clip", "--json"]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def begun(folder: Path, name: str, number: int, mark: str) -> int | None:
    """Return the first session from this number on of which a clinic keeps a file or folder; None if there is none."""
    numbers = [int(path.parent.name) for path in (folder / name / "state").glob(f"*/[0-9]*/{mark}")]
    return min((session for session in numbers if session >= number), default=None)


def wait_until(happened: Callable[[], bool]) -> None:
    """Wait until something has happened; on a busy machine it may never, and then whatever there is goes on."""
    deadline = time.monotonic() + PATIENCE_S
    while not happened() and time.monotonic() < deadline:
        time.sleep(0.1)


def interrupt(folder: Path, parties: dict[str, subprocess.Popen[str]], name: str) -> None:
    """Kill the process of a clinic in its second session, and start it again when others are past that one.

    No clinic has to take part in any one session: who is late for one waits for the next. So this looks at the first
    session from the second on that the clinic is part of, and at whichever of the others is first.
    """
    process, others = parties[name], [other for other in NAMES if other != name]
    wait_until(lambda: process.poll() is not None or begun(folder, name, 2, "sessions") is not None)
    session = begun(folder, name, 2, "sessions")
    if session is None or process.poll() is not None:
        print(f"{name} was in no session after the first, so its process is not killed.", flush=True)
        return
    print(
        f"In session {session} the process of {name} is killed; when others are past it, it is started again.",
        flush=True,
    )
    process.kill()
    process.communicate()

    def past() -> bool:
        ended = all(parties[other].poll() is not None for other in others)
        return ended or any(begun(folder, other, session + 1, "asked.json") for other in others)

    wait_until(past)
    parties[name] = begin(folder, name)


def answer_of(folder: Path, parties: dict[str, subprocess.Popen[str]], name: str) -> dict[str, Any] | str:
    """Return the answer that a clinic has, or why it has none."""
    errors = ""
    for attempt in range(ATTEMPTS):
        if attempt:  # started again, as a service manager would
            parties[name] = begin(folder, name)
        try:
            output, errors = parties[name].communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            parties[name].kill()
            parties[name].communicate()
            return f"it was not done after {PATIENCE_S:g} s"
        if not parties[name].returncode:
            return dict(json.loads(output))
    return errors.strip().splitlines()[-1] if errors.strip() else f"exit status {parties[name].returncode}"


def learn(folder: Path) -> tuple[dict[str, dict[str, Any]], dict[str, str]]:
    """Let all clinics take part; return the answers that they have, and why others have none."""
    parties = {name: begin(folder, name) for name in NAMES}
    try:
        interrupt(folder, parties, "Cork")
        answers: dict[str, dict[str, Any]] = {}
        missing: dict[str, str] = {}
        for name in NAMES:
            if isinstance(answer := answer_of(folder, parties, name), str):
                missing[name] = answer
            else:
                answers[name] = answer
        return answers, missing
    finally:
        for process in parties.values():
            process.kill()


def accuracy(answer: dict[str, Any], table: Numbers, target: Numbers) -> float:
    """Return the share of records that the clinics' model puts in the right class."""
    low, high = np.array(list(COLUMNS.values())).T
    weights = np.array([answer["coefficients"]["malignant"][name] for name in COLUMNS])
    scores = np.clip(table, low, high) @ weights + answer["intercept"]["malignant"]
    return float(np.mean((scores > 0.0) == (target == CLASSES.index("malignant"))))


def main(steps: int, epsilon: float) -> None:
    """Hold the study and print its result."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table, target, owner = share_out(folder)
        agree(folder, np.bincount(owner[owner >= 0]).tolist(), steps, epsilon)
        command = [sys.executable, "-m", "inca", "learn", "agree", "study.json", "roster.json"]
        subprocess.run(command, cwd=folder, check=True)
        answers, missing = learn(folder)
    for name, reason in missing.items():
        print(f"{name} has no answer, and the others go on without it: {reason}")
    if not answers:
        raise SystemExit("no clinic has an answer")
    one, test = next(iter(answers.values())), owner < 0
    same = all(answer["coefficients"] == one["coefficients"] for answer in answers.values())
    held = steps - one["steps_without_result"]
    have = f"All {len(answers)} clinics" if not missing else f"{len(answers)} of {len(NAMES)} clinics"
    print(f"{have} have the same model: {same}; {held} of {steps} sessions had a result")
    for column, weight in one["coefficients"]["malignant"].items():
        print(f"  {column:24} {weight:+.3f}")
    plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(table[~test], target[~test])
    print(f"accuracy on {test.sum()} other records: {accuracy(one, table[test], target[test]):.3f}")
    print(f"the same if all records were in one place and not private: {plain.score(table[test], target[test]):.3f}")
    print(f"agreed: epsilon {one['epsilon']:.3g} at delta 1e-5 for each record; what was given away in the end:")
    print("  " + ", ".join(f"{name} {answer['own_epsilon']:.2f}" for name, answer in answers.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=6, help="sessions, each a step of the training")
    parser.add_argument("--epsilon", type=float, default=3.0, help="for all of them together")
    options = parser.parse_args()
    main(options.steps, options.epsilon)
