"""All parties' exact losses and calibration beside the plain dense methods, and how the cost grows.

    python benchmarks/privacy.py [--quick] [--largest] [--growth PICTURE]
    python benchmarks/privacy.py --eight [--sizes N ...]
    python benchmarks/privacy.py --device cuda [--sizes N ...]

T = 20, random receivers, a random adversary. "dense" is this library's reference method (B and A written down,
rank-revealing factorisation); "textbook" forms Sigma = (B, A) Sigma_g (B, A)^T from the same B and A and solves
by Cholesky, which is faster but says nothing about dependent rows. Each figure is the best of several runs.
With --eight, the losses of eight parties by conjugate gradients beside the filter, which works out those of all.
With --device cuda, a GPU beside the CPU of the same machine, up to n = 10,000, and alone beyond.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import brentq

import inca
from inca._base.palette import OWN
from inca._base.plotting import canvas, headline, look, save
from inca._base.types import Array
from inca.privacy._device import Device

RATIO = 10.0
LEVELS = inca.NoiseLevels(independent=1.0, cancelling=RATIO)


def drawn(n: int, rounds: int = 20, k: int = 1, colluding: float = 0.1, seed: int = 1) -> inca.View:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, k, seed=seed), inca.incremental_injection(rounds))
    return inca.View(execution, inca.Adversary.random(n, rounds, np.random.default_rng(seed), colluding=colluding))


def best(run: Callable[[], object], repeat: int) -> float:
    seconds = []
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def losses(b: Array, sigma: Array) -> Array:
    """Return h^T Sigma^-1 h for all columns h of B."""
    return np.asarray(np.einsum("ij,ij->j", b, cho_solve(cho_factor(sigma), b)))


def textbook(view: inca.View) -> Array:
    system = np.hstack([view.value, RATIO * view.noise])
    return losses(view.value, system @ system.T)


def all_losses(n: int) -> None:
    inca.account(drawn(20), LEVELS, sensitivity=1.0)  # compile before the clock runs
    fast = best(lambda: inca.account(drawn(n), LEVELS, sensitivity=1.0), 5)
    plain = best(lambda: textbook(drawn(n)), 2)
    dense = best(lambda: inca.account(drawn(n), LEVELS, method="dense", sensitivity=1.0), 1)
    same = np.allclose(textbook(drawn(n)), inca.account(drawn(n), LEVELS, sensitivity=1.0).mu ** 2, rtol=1e-9)
    print(f"all losses, n = {n:,}, T = 20, k = 1, 10 % colluding; the numbers agree: {same}")
    for name, seconds in (("state-space", fast), ("textbook", plain), ("dense", dense)):
        print(f"  {name:12s} {seconds:8.3f} s   state-space is {seconds / fast:6.1f} times as fast")


def calibration(n: int) -> None:
    mu = inca.mu_for(0.2, 1e-5)
    own = 1.3**0.5 / (mu * drawn(n).honest.size ** 0.5)

    def repeated(tuned: bool) -> float:
        """Bisect with one dense solve for each level tried; `tuned` forms B B^T and A A^T only once."""
        view = drawn(n)
        b, a = view.value, view.noise
        formed = (b @ b.T, a @ a.T) if tuned else None

        def excess(log_level: float) -> float:
            of_values, of_noise = formed or (b @ b.T, a @ a.T)
            return float(losses(b, own**2 * of_values + np.exp(2 * log_level) * of_noise).max()) - mu**2

        return float(np.exp(brentq(excess, np.log(own), np.log(own * 1e3), rtol=1e-12)))

    def once() -> float:
        return inca.Tradeoff(drawn(n)).sigma_cancelling(mu, sigma_independent=own)

    fast = best(once, 10)
    print(f"calibration of sigma_cancelling, n = {n}: {once():.6f}, {repeated(False):.6f}, {repeated(True):.6f}")
    print(f"  one factorisation                      {fast:8.3f} s")
    for name, tuned in (("repeated dense solves", False), ("the same, B B^T and A A^T formed once", True)):
        seconds = best(partial(repeated, tuned), 3)
        print(f"  {name:38s} {seconds:8.3f} s   one factorisation is {seconds / fast:.1f} times as fast")


def settled(n: int) -> None:
    """Account for final messages that were settled, beside an execution in which nobody left."""
    rounds, seconds = 20, {}
    for leaving in (0.0, 0.02, 0.05, 0.1):
        presence = inca.Presence.leaving(n, rounds, leaving, np.random.default_rng(2))
        plain = inca.Execution(inca.RandomReceivers(n, rounds, seed=1), inca.incremental_injection(rounds), presence)
        execution = plain.settled(presence.row(rounds)) if leaving else plain
        adversary = inca.Adversary.random(n, rounds, np.random.default_rng(1), colluding=0.1)
        levels = inca.NoiseLevels(independent=1.0, cancelling=RATIO, topup=0.5 if leaving else 0.0)
        inca.account(inca.View(execution, adversary), levels, sensitivity=1.0)
        seconds[leaving] = best(partial(account_settled, execution, adversary, levels), 3)
    print(f"all losses, n = {n:,}, T = 20, k = 1, 10 % colluding, leavers settled out")
    for leaving, taken in seconds.items():
        print(f"  {leaving:4.0%} leave {taken:8.3f} s   {taken / seconds[0.0]:5.2f} times as long as if nobody leaves")


def account_settled(execution: inca.Execution, adversary: inca.Adversary, levels: inca.NoiseLevels) -> None:
    inca.account(inca.View(execution, adversary), levels, sensitivity=1.0)


def far_apart(sizes: Sequence[int]) -> None:
    """Account for settled runs at four times the noise that is proven to suffice, beside ten times the independent."""
    rounds = 7
    print("all losses, T = 7, k = 1, 10 % colluding, 10 % leave and are settled out")
    for n in sizes:
        presence = inca.Presence.leaving(n, rounds, 0.1, np.random.default_rng(2))
        plain = inca.Execution(inca.RandomReceivers(n, rounds, seed=1), inca.incremental_injection(rounds), presence)
        execution, needed = plain.settled(presence.row(rounds)), 0.9 * n * np.sqrt(200.0 * (rounds + 6))
        adversary = inca.Adversary(range(n // 10))
        for name, ratio in (("usual", RATIO), ("four times the proven level", 4.0 * needed)):
            levels = inca.NoiseLevels(independent=1.0, cancelling=ratio, topup=0.5)
            seconds = best(partial(account_settled, execution, adversary, levels), 3)
            print(f"  n = {n:6,}, ratio {ratio:11,.0f} ({name}): {seconds:.3f} s")


def largest(n: int) -> None:
    """Account for n parties in a process of its own and print time and peak memory."""
    code = (
        "import resource, sys, time\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "import inca, privacy\n"
        "inca.account(privacy.drawn(20), privacy.LEVELS, sensitivity=1.0)\n"
        f"start, view = time.perf_counter(), privacy.drawn({n})\n"
        "losses = inca.account(view, privacy.LEVELS, sensitivity=1.0)\n"
        "seconds, peak = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20\n"
        f"print(f'all losses, n = {n:,}: {{seconds:.0f}} s, peak {{peak:.1f}} GiB, {{view.shape[0]:,}} rows, '\n"
        "      f'method {losses.method}, worst mu {losses.max_mu:.5f}')\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


EIGHT_SIZES = (500, 1_000, 2_000, 10_000, 100_000)
FILTER_TOO = 2_000  # up to this size the filter is timed as well


def eight(sizes: Sequence[int]) -> None:
    """Time the losses of eight parties and print them beside the filter's where that ends soon."""
    print("losses of 8 parties, T = 20, k = 1, 10 % colluding, by conjugate gradients")
    inca.account(drawn(20), LEVELS, sensitivity=1.0, method="conjugate-gradients")  # compile before the clock runs
    inca.account(drawn(20), LEVELS, sensitivity=1.0, method="state-space")
    for n in sizes:
        view = drawn(n)
        of_eight = partial(inca.account, sensitivity=1.0, parties=view.honest[:8], method="conjugate-gradients")
        start = time.perf_counter()
        losses = of_eight(view, LEVELS)
        seconds = time.perf_counter() - start
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        text = f"  n = {n:9,}: {seconds:8.3f} s, peak {peak:5.2f} GiB"
        if n <= FILTER_TOO:
            filtered = partial(inca.account, drawn(n), LEVELS, sensitivity=1.0, method="state-space", device="cpu")
            apart = np.abs(losses.mu / filtered().mu[:8] - 1.0).max()
            taken = best(filtered, 3)
            text += f"; the filter, for all: {taken:8.3f} s, {taken / seconds:6.2f} times as long, apart by {apart:.0e}"
        print(f"{text}; largest mu of the eight {losses.max_mu:.6f}", flush=True)


GPU_SIZES = (1_000, 2_000, 10_000, 20_000, 40_000, 55_000)
CPU_TOO = 10_000  # up to this size the CPU is timed as well


def on_gpu(sizes: Sequence[int]) -> None:
    """Time all losses on the GPU, compare them with the CPU's where that ends in time, and name memory and rate."""
    import torch

    print(f"all losses, T = 20, k = 1, 10 % colluding, on one {torch.cuda.get_device_name()} in double precision,")
    print(f"and on {os.cpu_count()} cores; PyTorch {torch.__version__}")
    for device in ("cuda", "cpu"):  # compile, and start the device, before the clock runs
        inca.account(drawn(50), LEVELS, sensitivity=1.0, device=device)
    for n in sizes:
        view = drawn(n)
        torch.cuda.reset_peak_memory_stats()
        losses, seconds = timed_on("cuda", view, 3 if n <= CPU_TOO else 1)
        text = f"  n = {n:6,}: {seconds:8.3f} s, {torch.cuda.max_memory_allocated() / 2**30:6.2f} GiB, "
        text += f"{gpu_operations(view) / seconds / 1e12:5.1f} Tflop/s"
        if n <= CPU_TOO:
            expected, cpu = timed_on("cpu", view, 3 if n < CPU_TOO else 1)
            apart = np.abs(losses.mu / expected.mu - 1.0).max()
            text += f"; CPU {cpu:8.3f} s, {cpu / seconds:5.1f} times as long, apart by {apart:.0e}"
        print(f"{text}; worst mu {losses.max_mu:.6f}", flush=True)


def timed_on(device: Device, view: inca.View, repeat: int) -> tuple[inca.Losses, float]:
    """Account for a view as if it were new, so that what it derives from the execution is worked out again."""
    results = []

    def run() -> None:
        fresh = inca.View(view.execution, view.adversary)
        results.append(inca.account(fresh, LEVELS, sensitivity=1.0, device=device))

    seconds = best(run, repeat)
    return results[0], seconds


def gpu_operations(view: inca.View) -> float:
    """Return the multiplications and additions that the filter needs: 4 n_H^2 a message, 4/3 n_H^3 at the end."""
    honest, rows = view.honest.size, len(view.rows)
    return 4.0 * honest**2 * (rows - honest) + 4.0 / 3.0 * honest**3


GROWTH: dict[str, tuple[Callable[[float], inca.View], list[float]]] = {
    "n": (lambda x: drawn(int(x)), [125, 250, 500, 1000, 2000]),
    "T": (lambda x: drawn(500, rounds=int(x)), [5, 10, 20, 40, 80]),
    "k": (lambda x: drawn(500, k=int(x)), [1, 2, 4, 8, 16]),
    "colluding": (lambda x: drawn(500, colluding=x), [0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9]),
}


def account_for(make: Callable[[float], inca.View], size: float) -> None:
    inca.account(make(size), LEVELS, sensitivity=1.0)


def growth(picture: Path | None) -> None:
    print("seconds for all losses as one size grows (base: n = 500, T = 20, k = 1, 10 % colluding)")
    figures: dict[str, list[float]] = {}
    for name, (make, sizes) in GROWTH.items():
        figures[name] = [best(partial(account_for, make, size), 3) for size in sizes]
        row = "  ".join(f"{size:g}: {s:.3f}" for size, s in zip(sizes, figures[name], strict=True))
        print(f"  {name:10s} {row}")
    if picture is None:
        return
    with look():
        draw_growth(figures, picture)


def draw_growth(figures: dict[str, list[float]], picture: Path) -> None:
    from matplotlib.ticker import NullLocator

    figure, panels = canvas(10, 3.1, columns=len(GROWTH))
    for axes, (name, (_, sizes)) in zip(panels, GROWTH.items(), strict=True):
        axes.plot(sizes, figures[name], "o-", color=OWN)
        axes.set(xlabel=name if name != "colluding" else "fraction colluding")
        if name == "colluding":
            axes.set(ylim=(0, None))
        else:
            axes.set(xscale="log", yscale="log")
            axes.set_xticks(sizes, [f"{size:g}" for size in sizes])
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_minor_locator(NullLocator())
            low, high = axes.get_ylim()
            ticks = [tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10) if low <= tick <= high]
            axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_title(f"growth with {name}", fontsize=9)
    panels[0].set_ylabel("seconds, all losses")
    slowest = max(figures, key=lambda name: figures[name][-1])
    headline(figure, f"All losses in {figures[slowest][-1]:.2g} seconds at most, in the largest of these sizes")
    save(figure, picture)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, a few seconds")
    parser.add_argument("--largest", action="store_true", help="also n = 10,000, some minutes")
    parser.add_argument("--growth", type=Path, help="draw how the cost grows")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu", help="cuda: time a GPU, and nothing else")
    parser.add_argument("--eight", action="store_true", help="time the losses of eight parties, and nothing else")
    parser.add_argument("--sizes", type=int, nargs="+", help="numbers of parties, with --eight or --device cuda")
    options = parser.parse_args()
    if options.eight:
        eight(options.sizes or EIGHT_SIZES)
        sys.exit()
    if options.device == "cuda":
        on_gpu(options.sizes or GPU_SIZES)
        sys.exit()
    all_losses(200 if options.quick else 1000)
    settled(200 if options.quick else 3000)
    far_apart((200,) if options.quick else (200, 1_000))
    calibration(60 if options.quick else 200)
    if not options.quick:
        growth(options.growth)
    if options.largest:
        largest(10_000)
