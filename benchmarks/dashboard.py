"""What the dashboard costs and how it feels, in a real browser and a real process.

    python benchmarks/dashboard.py [--steps 39] [--only steps|shifts|memory]

steps: how long a step of the run view takes, beside the 100 ms that still seem instant. `work`: what the page itself
does for a step (state, words, charts, canvas). `painted`: until the browser has drawn the next frame, its own work
included.

shifts: how much of a view is pushed away by what comes later, while it loads and while its first slider moves to and
fro (cumulative layout shift, the sum of all of them, moves after an input included), beside 0.05. A view without a
slider has none to move.

memory: the resident memory of `inca dashboard`, a process of its own, after each of the largest things that it is asked
for, beside 500 MB.

Needs Chromium on this machine (or INCA_CHROMIUM) and `pip install 'inca[dev]'`.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import browser, watched
from helpers.dashboard_server import Dashboard, running
from helpers.dashboard_views import VIEWS, board_with_files, move_slider, observe_shifts, open_view, shift_of

LIMIT_MS = 100.0
LIMIT_SHIFT = 0.05
LIMIT_MB = 500.0
STEP = """() => new Promise((done) => {
  const began = performance.now(), main = document.querySelector("main");
  const key = new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true });
  document.querySelector("canvas").dispatchEvent(key);
  requestAnimationFrame(() => setTimeout(() => done([Number(main.dataset.stepMs), performance.now() - began]), 0));
})"""
CASES = ((12, 10, 1), (200, 40, 1), (200, 40, 5), (2000, 40, 1))
WIDTHS = (1280, 390)
LARGEST = ((5000, 80, 8), (2000, 200, 1))
"""One slider at its end, the other as far as 400,000 messages allow; the server keeps the last eight runs."""


def measure_steps(steps: int) -> None:
    columns = ("parties", "rounds", "receivers", "opens", "work", "painted", f"of {LIMIT_MS:g} ms")
    print("{:>8s} {:>7s} {:>10s} {:>8s} {:>14s} {:>14s} {:>11s}   (ms: median / most)".format(*columns))
    with running() as board, browser() as chromium:
        for parties, rounds, receivers in CASES:
            with watched(chromium, board.root) as window:
                page, began = window.page, time.perf_counter()
                page.goto(f"{board.root}/run?parties={parties}&rounds={rounds}&receivers={receivers}")
                page.locator("main[data-step-ms]").wait_for()
                opened = time.perf_counter() - began
                page.wait_for_timeout(500)
                steps_ms = []
                for _ in range(min(steps, rounds - 1)):
                    steps_ms.append(page.evaluate(STEP))
                    page.wait_for_timeout(50)
                work, painted = np.array(steps_ms).T
                shown = [f"{np.median(times):.0f} / {times.max():.0f}" for times in (work, painted)]
                sizes = f"{parties:8d} {rounds:7d} {receivers:10d} {opened:6.1f} s"
                share = painted.max() / LIMIT_MS
                print(f"{sizes} {shown[0]:>14s} {shown[1]:>14s} {share:11.2f}", flush=True)


def measure_shifts() -> None:
    head = " ".join(f"{f'{when}, {width}':>12s}" for width in WIDTHS for when in ("loads", "moves"))
    print(f"{'layout shift of':24s} {head}   (limit {LIMIT_SHIFT:g})")
    with board_with_files() as board, browser() as chromium:
        for view in VIEWS:
            shifts = []
            for width in WIDTHS:
                with watched(chromium, board.root, width=width) as window:
                    observe_shifts(window.page)
                    open_view(window, board, view, load=True)
                    shifts.append(f"{shift_of(window.page):.3f}")
                    shifts.append(f"{shift_of(window.page):.3f}" if move_slider(window.page) else "none")
            print(f"{view:24s} " + " ".join(f"{shift:>12s}" for shift in shifts), flush=True)


@contextmanager
def dashboard_process() -> Iterator[tuple[Dashboard, int]]:
    """Start `inca dashboard` as a user does, and return how to ask it and the id of its process."""
    command = [sys.executable, "-m", "inca", "dashboard", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = re.search(r":(\d+)/", process.stdout.readline())
            assert address is not None
            yield Dashboard(int(address[1])), process.pid
        finally:
            process.terminate()


def resident_mb(process: int) -> float:
    """Return the resident memory of a process."""
    told = subprocess.run(["ps", "-o", "rss=", "-p", str(process)], capture_output=True, text=True, check=True)
    return int(told.stdout) * 1024 / 1e6


def measure_memory() -> None:
    print(f"{'resident memory of inca dashboard':60s} {'MB':>6s} {f'of {LIMIT_MB:g} MB':>11s}")
    with dashboard_process() as (board, process):

        def tell(after: str) -> None:
            resident = resident_mb(process)
            print(f"{after:60s} {resident:6.0f} {resident / LIMIT_MB:11.2f}", flush=True)

        board.ask("files")
        tell("it listens")
        for parties, rounds, runs in LARGEST:
            for seed in range(runs):
                board.ask("run", parties=parties, rounds=rounds, seed=seed)
            tell(f"{runs} x the run of {parties:,} parties in {rounds} rounds")
        board.ask("adversary", parties=1000, rounds=20, colluding=" ".join(map(str, range(100))))
        tell("the adversary's view of 1,000 parties in 20 rounds")
        board.ask("plan", parties=1_000_000)
        tell("a plan for 1,000,000 parties")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=39)
    parser.add_argument("--only", choices=("steps", "shifts", "memory"))
    arguments = parser.parse_args()
    if arguments.only in (None, "steps"):
        measure_steps(arguments.steps)
    if arguments.only in (None, "shifts"):
        measure_shifts()
    if arguments.only in (None, "memory"):
        measure_memory()
