"""How long a step of the run view takes in a real browser, beside the 100 ms that still seem instant.

    python benchmarks/dashboard.py [--steps 39]

`work`: what the page itself does for a step (state, words, charts, canvas). `painted`: until the browser has drawn the
next frame, its own work included. Needs Chromium on this machine (or INCA_CHROMIUM) and `pip install 'inca[dev]'`.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import browser, watched
from helpers.dashboard_server import running

LIMIT_MS = 100.0
STEP = """() => new Promise((done) => {
  const began = performance.now(), main = document.querySelector("main");
  const key = new KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true });
  document.querySelector("canvas").dispatchEvent(key);
  requestAnimationFrame(() => setTimeout(() => done([Number(main.dataset.stepMs), performance.now() - began]), 0));
})"""
CASES = ((12, 10, 1), (200, 40, 1), (200, 40, 5), (2000, 40, 1))


def measure(steps: int) -> None:
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


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=39)
    measure(parser.parse_args().steps)
