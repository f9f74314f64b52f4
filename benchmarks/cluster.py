"""The same jobs with every engine, and with a worker killed in between: what scales on a cluster, and what does not.

    python benchmarks/cluster.py [--jobs 32] [--runs 3000] [--one-account 1000] [--repeat 3]

One dask scheduler and its workers are processes of their own, as on several machines, with one thread each. Times are
those of jobs alone, after every worker has done one of the same kind: medians of a few repetitions, with the shortest
and the longest. Ratios are against one process, in the same run. Results are compared, too: they must be equal.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))  # the processes are those of the tests

from distributed import Client

from helpers.dask_processes import DaskProcesses, dask_processes
from inca._base.threads import available_cores
from inca.jobs.checkpoint import complete_jobs
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.reproduction.runs import first_rounds, noise_needed

Progress = Callable[[int, int], None]


def say_nothing(done: int, total: int) -> None:
    """Show no progress."""


def independent_jobs(jobs: int, runs: int, seed: int) -> list[Job]:
    """Return jobs of Figure 3, each with runs of its own."""
    settings = [
        {"parties": 2000, "colluding": 900, "first": at * runs, "runs": runs, "seed": seed} for at in range(jobs)
    ]
    return [Job(first_rounds, setting) for setting in settings]


def one_account(parties: int) -> list[Job]:
    """Return a single job: all losses of one view."""
    setting = {"parties": parties, "receivers": 1, "rounds": 10, "colluding": 0.1, "dropout": 0.0, "own": [0.01]}
    return [Job(noise_needed, {**setting, "first": 0, "runs": 1, "seed": 1})]


def seconds(engine: Engine, jobs: Sequence[Job], progress: Progress) -> tuple[float, list[Any]]:
    began = time.perf_counter()
    results = complete_jobs(jobs, engine, None, progress)
    return time.perf_counter() - began, results


def measure(title: str, jobs: Sequence[Job], warm: Sequence[Job], kill: bool, repeat: int) -> None:
    print(title, flush=True)
    base, expected = 0.0, None

    def show(name: str, engine: Engine, times_to_run: int = repeat, progress: Progress = say_nothing) -> None:
        nonlocal base, expected
        complete_jobs(warm, engine, None, say_nothing)
        times = []
        for _ in range(times_to_run):
            taken, results = seconds(engine, jobs, progress)
            times.append(taken)
            expected = results if expected is None else expected
            if results != expected:
                raise SystemExit(f"{name}: other results")
        taken = median(times)
        base = base or taken
        spread = f"{min(times):.1f} to {max(times):.1f} s"
        print(f"  {name:34s} {taken:7.1f} s  ({spread:14s})  {base / taken:5.2f} times as fast as serial", flush=True)

    with Engine("serial") as engine:
        show("serial", engine)
    with Engine("processes", 2) as engine:
        show("processes, 2", engine)
    for workers in (1, 2):
        with cluster(workers, warm[0]) as (_, engine):
            show(f"dask, {workers} worker{'s' * (workers > 1)}", engine)
    if kill:
        with cluster(2, warm[0]) as (processes, engine):

            def replace(done: int, total: int) -> None:
                if done == total // 3:
                    processes.kill(processes.processes[1])
                    processes.start_worker()

            show("dask, 2, one killed and replaced", engine, 1, replace)


@contextmanager
def cluster(workers: int, warm: Job) -> Iterator[tuple[DaskProcesses, Engine]]:
    """Start dask's processes, and an engine once all workers are there and each has done a job."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        dask_processes(Path(folder), workers) as processes,
        Client(processes.address) as client,
        Engine("dask", address=processes.address) as engine,
    ):
        client.wait_for_workers(workers, timeout=120)
        client.run(warm.run, **warm.settings)
        yield processes, engine


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=32)
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--one-account", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    print(f"{available_cores()} cores, shared with whatever else runs")
    many = independent_jobs(options.jobs, options.runs, seed=1)
    measure(f"{options.jobs} independent jobs of Figure 3", many, independent_jobs(6, 50, seed=2), True, options.repeat)
    alone = one_account(options.one_account)
    measure(f"one account of {options.one_account} parties: one job", alone, one_account(40) * 4, False, options.repeat)
