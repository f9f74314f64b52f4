"""Party-rounds per second of the simulator beside plain versions of the same job, and its memory.

    python benchmarks/simulation.py [--parties 1000000] [--rounds 20] [--repeat 5]

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
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

import inca
from inca.simulation import _BLOCK  # the noise alone is drawn in the simulator's own blocks


def ours(n: int, rounds: int, rng: np.random.Generator) -> None:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=1), inca.incremental(rounds))
    inca.simulate(execution, np.zeros(n), 1.0, 1.0, rng)


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
    """Draw as many normals, one stream per block and all threads, as the simulator does."""
    parts = np.array_split(np.empty(n), -(-n // _BLOCK))
    blocks = iter(list(zip(rng.spawn(len(parts)), parts, strict=True)))

    def take() -> None:
        for stream, part in blocks:
            for _ in range(rounds + 1):
                stream.standard_normal(out=part)

    with ThreadPoolExecutor(threads) as pool:
        for job in [pool.submit(take) for _ in range(threads)]:
            job.result()


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


def linearity() -> None:
    print("\nseconds as one size doubles (base: n = 200,000, T = 10, k = 1, d = 1)")
    base = {"n": 200_000, "T": 10, "k": 1, "d": 1}
    for name, start_size in base.items():
        for factor in (1, 2, 4):
            size = base | {name: start_size * factor}
            schedule = inca.RandomReceivers(size["n"], size["T"], size["k"], seed=1)
            execution = inca.Execution(schedule, inca.incremental(size["T"]))
            values = np.zeros((size["n"], size["d"]))
            seconds = float("inf")
            for _ in range(3):
                start = time.perf_counter()
                inca.simulate(execution, values, 1.0, 1.0, np.random.default_rng(1))
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
        "execution = inca.Execution(inca.RandomReceivers(n, T, seed=1), inca.incremental(T), presence)\n"
        "start = time.perf_counter()\n"
        "outcome = inca.simulate(execution, np.zeros(n), 1.0, 1.0, rng)\n"
        "outcome.estimate\n"
        "peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20\n"
        "print(f'n = {n:,}, T = 20, 10 % leaving: {time.perf_counter() - start:.1f} s, peak {peak:.2f} GiB')\n"
    )
    print()
    subprocess.run([sys.executable, "-c", code], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=10**6)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="only the comparison")
    options = parser.parse_args()
    compare(options.parties, options.rounds, options.repeat)
    if not options.quick:
        linearity()
        memory(10**7)
