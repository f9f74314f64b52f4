"""How fast the runs of Figure 3 are, beside other ways to do them, and what the engines cost.

    python benchmarks/reproduction.py [--parties 5000] [--colluding 0.5] [--runs 200]

A run draws receivers round by round, none of them twice, until hidden messages connect the honest parties. All ways
do that in one thread; their mean number of rounds is printed, since they must agree.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

import inca
from inca._base.kernels import Ids
from inca.jobs.checkpoint import Checkpoint, complete_jobs
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.privacy.theorems.rank_by_round import rounds_to_connect
from inca.reproduction.rounds_to_connect import rounds_needed
from inca.reproduction.runs import first_rounds

ROUNDS = 30


def compiled(n: int, colluding: int, runs: int) -> float:
    counts = rounds_needed(n, colluding, runs, seed=1)
    return float(counts @ np.arange(counts.size) / runs)


def schedules(n: int, colluding: int, runs: int) -> float:
    """The library's schedule, round by round until union-find says that all are connected."""
    flags = np.arange(n) < colluding
    total = 0
    for seed in range(runs):
        schedule = inca.UnrepeatedReceivers(n, ROUNDS, seed=seed)
        drawn: list[Ids] = []
        needed = None
        while needed is None:
            drawn += [schedule.round(len(drawn) + 1).receivers[:, 0]]
            needed = rounds_to_connect(np.stack(drawn), flags)
        total += needed
    return total / runs


def numpy_and_scipy(n: int, colluding: int, runs: int) -> float:
    """What one would write: draws by NumPy, repeats drawn again, components by SciPy after each round."""
    rng = np.random.default_rng(1)
    honest = np.arange(colluding, n)
    total = 0
    for _ in range(runs):
        chosen = np.empty((honest.size, 0), dtype=np.int64)
        parts = 2
        while parts > 1:
            fresh = rng.integers(0, n - 1, honest.size)
            fresh += fresh >= honest
            while (again := (chosen == fresh[:, np.newaxis]).any(axis=1)).any():
                draws = rng.integers(0, n - 1, int(again.sum()))
                fresh[again] = draws + (draws >= honest[again])
            chosen = np.column_stack([chosen, fresh])
            tails, rounds = np.nonzero(chosen >= colluding)
            heads = chosen[tails, rounds] - colluding
            graph = sp.coo_array((np.ones(tails.size, bool), (tails, heads)), shape=(honest.size, honest.size))
            parts = int(connected_components(graph, directed=False)[0])
        total += chosen.shape[1]
    return total / runs


def compare(n: int, colluding: int, runs: int) -> None:
    ways: dict[str, tuple[Callable[[int, int, int], float], int]] = {
        "compiled, all in one": (compiled, 20 * runs),
        "the library's schedule and union-find": (schedules, runs),
        "NumPy draws, SciPy components": (numpy_and_scipy, runs),
    }
    print(f"runs of Figure 3, n = {n:,}, {colluding:,} colluding, one thread")
    compiled(n, colluding, 1)
    schedules(n, colluding, 1)
    base = 0.0
    for name, (way, number) in ways.items():
        began = time.perf_counter()
        rounds = way(n, colluding, number)
        taken = (time.perf_counter() - began) / number
        base = base or taken
        print(f"  {name:40s} {1e3 * taken:9.3f} ms a run   {taken / base:7.1f} times   {rounds:.2f} rounds on average")


def engines(jobs: int) -> None:
    """Time tiny jobs, so that what remains is the engine; each is warmed up first."""
    print(f"{jobs} tiny jobs, written to a checkpoint")
    settings = [{"parties": 10, "colluding": 2, "first": i, "runs": 1, "seed": 1} for i in range(jobs)]
    work = [Job(first_rounds, arguments) for arguments in settings]
    for kind in ("serial", "processes", "dask"):
        with tempfile.TemporaryDirectory() as folder, Engine(kind) as engine:
            complete_jobs(
                work[:4], engine, Checkpoint(Path(folder) / "warm.jsonl", "reproduction"), lambda done, total: None
            )
            began = time.perf_counter()
            complete_jobs(
                work, engine, Checkpoint(Path(folder) / "work.jsonl", "reproduction"), lambda done, total: None
            )
            print(f"  {kind:10s} {1e3 * (time.perf_counter() - began) / jobs:8.2f} ms a job")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=5000)
    parser.add_argument("--colluding", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=200)
    options = parser.parse_args()
    compare(options.parties, int(options.colluding * options.parties), options.runs)
    engines(500)
