"""Party-rounds per second of the simulator beside plain versions of the same job, and its memory.

    python benchmarks/simulation.py [--parties 1000000] [--rounds 20] [--repeat 5]
    python benchmarks/simulation.py --vectors 1000000  # vectors of so many coordinates, of 100 parties: 2 GB

All versions draw their own schedule and noise, for k = 1 and everyone present; the plain ones are single lines
of NumPy and SciPy as one would write them first. Each figure is the best of several runs, taken in turns.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import scipy.sparse as sp

import inca
from inca._base.kernels import renew_all, scatter_one
from inca._base.randomness import fill, split
from inca._base.threads import Crew
from inca.protocol.noise import BLOCK_ENTRIES


def ours(n: int, rounds: int, rng: np.random.Generator) -> None:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=1), inca.incremental_injection(rounds))
    inca.simulate(execution, np.zeros(n), inca.NoiseLevels(independent=1.0, cancelling=1.0), rng)


def plain(n: int, rounds: int, rng: np.random.Generator, mix: Callable[..., np.ndarray]) -> None:
    u = rng.standard_normal(n)
    mask = rng.standard_normal(n)
    y = u / (rounds + 1) + mask
    everyone = np.arange(n)
    for t in range(1, rounds + 1):
        receivers = rng.integers(0, n - 1, n)
        receivers += receivers >= everyone
        y = mix(y, receivers, everyone) + u / (rounds + 1) - mask
        if t < rounds:
            mask = rng.standard_normal(n)
            y += mask


def with_bincount(y: np.ndarray, receivers: np.ndarray, everyone: np.ndarray) -> np.ndarray:
    return y / 2 + np.bincount(receivers, weights=y / 2, minlength=y.size)


def with_scipy(y: np.ndarray, receivers: np.ndarray, everyone: np.ndarray) -> np.ndarray:
    rows, columns = np.concatenate([receivers, everyone]), np.concatenate([everyone, everyone])
    weights = sp.coo_array((np.full(2 * y.size, 0.5), (rows, columns)), shape=(y.size, y.size))
    return np.asarray(weights.tocsr() @ y)


def noise_alone(n: int, rounds: int, rng: np.random.Generator, threads: int) -> None:
    """Draw what the simulator draws and as it does, round by round into one array, but mix nothing."""
    parts = np.array_split(np.empty(n), -(-n // BLOCK_ENTRIES))
    jobs = [partial(fill, stream, part) for stream, part in zip(split(rng, len(parts)), parts, strict=True)]
    with Crew(threads) as crew:
        for _ in range(rounds + 1):
            crew.work(jobs)


def compare(n: int, rounds: int, repeat: int) -> None:
    threads = len(os.sched_getaffinity(0))
    versions: dict[str, Callable[[], None]] = {
        "inca": lambda: ours(n, rounds, np.random.default_rng(1)),
        "SciPy sparse matrix, COO to CSR": lambda: plain(n, rounds, np.random.default_rng(1), with_scipy),
        "np.bincount": lambda: plain(n, rounds, np.random.default_rng(1), with_bincount),
        "noise alone, same generator and threads": lambda: noise_alone(n, rounds, np.random.default_rng(1), threads),
    }
    ours(1000, 2, np.random.default_rng(1))  # compile before the clock runs
    best = dict.fromkeys(versions, float("inf"))
    for _ in range(repeat):
        for name, run in versions.items():
            start = time.perf_counter()
            run()
            best[name] = min(best[name], time.perf_counter() - start)
    print(f"n = {n:,}, T = {rounds}, k = 1, {threads} threads, best of {repeat}")
    for name, seconds in best.items():
        rate = n * rounds / seconds / 1e6
        print(f"  {name:42s} {rate:8.1f} million party-rounds/s   inca is {seconds / best['inca']:5.2f} times as fast")


def parts(n: int) -> None:
    """Time the pieces of a round alone, on one core."""
    stream = split(np.random.default_rng(1), 1)[0]
    schedule = inca.RandomReceivers(n, 2, seed=1)
    held, mask, u = np.zeros((3, 1, n))
    receivers = schedule.round(1).receivers.reshape(-1)

    def noise() -> None:
        for lo in range(0, n, BLOCK_ENTRIES):
            fill(stream, mask[0, lo : lo + BLOCK_ENTRIES])

    pieces: dict[str, Callable[[], object]] = {
        "noise": noise,
        "receivers": lambda: schedule.round(2),
        "messages, and what is kept": lambda: renew_all(held, mask, u, 1.0, 0.5, 0.05, 0, n),
        "sending": lambda: scatter_one(held[0], mask[0], receivers, 0.5, 0, n),
    }
    print("\nnanoseconds per party and round, each piece alone on one core")
    for name, run in pieces.items():
        seconds = float("inf")
        for _ in range(6):
            start = time.perf_counter()
            run()
            seconds = min(seconds, time.perf_counter() - start)
        print(f"  {name:28s} {seconds / n * 1e9:5.1f}")


def linearity() -> None:
    print("\nseconds as one size doubles (base: n = 200,000, T = 10, k = 1, d = 1)")
    base = {"n": 200_000, "T": 10, "k": 1, "d": 1}
    for name, start_size in base.items():
        for factor in (1, 2, 4):
            size = base | {name: start_size * factor}
            schedule = inca.RandomReceivers(size["n"], size["T"], size["k"], seed=1)
            execution = inca.Execution(schedule, inca.incremental_injection(size["T"]))
            values = np.zeros((size["n"], size["d"]))
            seconds = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                inca.simulate(
                    execution, values, inca.NoiseLevels(independent=1.0, cancelling=1.0), np.random.default_rng(1)
                )
                seconds = min(seconds, time.perf_counter() - start)
            print(f"  {name} = {size[name]:>9,}: {seconds:.3f}", end="")
        print()


def memory(n: int) -> None:
    """Run n parties in a process of its own, with a tenth of them leaving, and print its peak memory."""
    code = (
        "import numpy as np, inca, resource, time\n"
        f"n, T = {n}, 20\n"
        "rng = np.random.default_rng(1)\n"
        "presence = inca.Presence.leaving(n, T, 0.1, rng)\n"
        "execution = inca.Execution(inca.RandomReceivers(n, T, seed=1), inca.incremental_injection(T), presence)\n"
        "start = time.perf_counter()\n"
        "levels = inca.NoiseLevels(independent=1.0, cancelling=1.0)\n"
        "outcome = inca.simulate(execution, np.zeros(n), levels, rng)\n"
        "outcome.estimate\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20\n"
        "print(f'n = {n:,}, T = 20, 10 % leaving: {time.perf_counter() - start:.1f} s, peak {peak:.2f} GiB')\n"
    )
    print()
    subprocess.run([sys.executable, "-c", code], check=True)


VECTORS = """
import resource, time
import numpy as np, inca
from inca._base.randomness import fill, split

def used():
    return time.process_time(), time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20

for n, d in ((100, 700), (100, {d})):  # the first compiles, and takes what an interpreter takes
    plan = inca.plan(inca.Requirements(n, 1.0, sensitivity=d**0.5))
    execution, levels = plan.execution(seed=1), plan.noise_levels
    before = used()
    values = np.full((n, d), 0.5)
    {run}
    cpu, wall, peak = (after - then for after, then in zip(used(), before))
print(execution.rounds, cpu, wall, peak, n * d * 8 / 2**30)
"""
VERSIONS = {
    "numpy draws as many normals, and nothing else": """
    stream, block = split(np.random.default_rng(1), 1)[0], np.empty(1 << 15)
    for _ in range(n * d * (execution.rounds + 1) // block.size):
        fill(stream, block)""",
    "simulate": "inca.simulate(execution, values, levels, np.random.default_rng(1)).estimate",
    "simulate, the system's randomness": "inca.simulate(execution, values, levels, inca.SystemNormals()).estimate",
    "average, with its plan, run and audit": "inca.average(values, inca.Interval(0, 1), plan)",
}


def vectors(d: int) -> None:
    """Run 100 parties with long vectors, each version in a process of its own, and print CPU and memory."""
    baseline = None
    for name, run in VERSIONS.items():
        code = VECTORS.format(d=d, run=run.strip())
        done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
        rounds, cpu, wall, peak, size = map(float, done.stdout.split())
        if baseline is None:
            baseline = cpu
            print(f"n = 100, d = {d:,}, T = {rounds:.0f} as planned; memory beyond the interpreter's, values included")
        print(
            f"  {name:46s} {cpu:6.1f} s of CPU ({cpu / baseline:4.2f} times the first), {wall:6.1f} s, "
            f"{peak:5.2f} GiB ({peak / size:4.2f} times the values)"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=10**6)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only the comparison")
    parser.add_argument("--vectors", type=int, metavar="D", help="only vectors of so many coordinates")
    options = parser.parse_args()
    if options.vectors is not None:
        vectors(options.vectors)
        sys.exit()
    compare(options.parties, options.rounds, options.repeat)
    if not options.quick:
        parts(options.parties)
        linearity()
        memory(10**7)
