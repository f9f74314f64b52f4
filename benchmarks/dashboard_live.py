"""How soon the plan view follows a slider in a real browser, beside the 50 ms and the second that it may take.

    python benchmarks/dashboard_live.py [--moves 30]

`formulas`: from the input event of a slider until a frame with the new bars has been painted, for those that have
formulas (Local DP's is looked at). `tables`: the same for inca's own figure where it is looked up. `range`: until
inca's own is there as a range from sampled views, with eavesdroppers; requests wait until a slider has rested for
150 ms, which is counted. Needs Chromium on this machine (or INCA_CHROMIUM) and `pip install 'inca[dev]'`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from playwright.sync_api import Page

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import browser, watched
from helpers.dashboard_server import running

FORMULA_LIMIT_MS, RANGE_LIMIT_MS = 50.0, 1000.0
PATIENCE_MS = 10_000
MOVE = """([label, value, what, patience]) => new Promise((done, failed) => {
  const slider = document.querySelector(`input[aria-label="${label}, slider"]`);
  const bars = () => document.querySelector(".shown svg[role=img]")?.getAttribute("aria-label") ?? "";
  const now = {
    formulas: () => bars().match(/Local DP [0-9.e-]+/)?.[0],
    tables: () => bars().match(/inca, quick estimate [0-9.e-]+/)?.[0],
    range: () => bars().match(/inca, quick estimate [0-9.e-]+/)?.[0],
  }[what];
  const before = now();
  const began = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  const look = () => {
    if (performance.now() - began > patience) return failed(new Error(`${label} at ${value} changed no figure`));
    const shown = now();
    const ready = shown && shown !== before;
    requestAnimationFrame(() => (ready ? setTimeout(() => done(performance.now() - began), 0) : look()));
  };
  look();
})"""


def moves(page: Page, label: str, values: list[float], what: str, pause_ms: int) -> list[float]:
    times = []
    for value in values:
        times.append(float(page.evaluate(MOVE, [label, value, what, PATIENCE_MS])))
        page.wait_for_timeout(pause_ms)
    return times


def report(name: str, times: list[float], limit: float) -> None:
    most = max(times)
    verdict = "within" if most <= limit else "NOT within"
    print(f"{name:52s} {np.median(times):6.0f} / {most:6.0f} ms   {verdict} {limit:g} ms", flush=True)


def measure(count: int) -> None:
    print(f"{'200 parties, 20 messages':52s} {'median / most':>19s}")
    epsilons = [-1 + (i % 30) / 15 for i in range(count)]  # in factors of ten, at least a step of the slider apart
    parties = [2.15 + 0.05 * (i % 5) for i in range(count)]  # 140 to 220, in factors of ten
    with running() as board, browser() as chromium, watched(chromium, board.root, height=800) as window:
        page = window.page
        page.goto(f"{board.root}/plan?parties=200")
        page.locator(".shown[aria-busy=false]").wait_for()
        page.wait_for_timeout(500)
        report("formulas, epsilon's slider", moves(page, "Epsilon", epsilons, "formulas", 30), FORMULA_LIMIT_MS)
        report("formulas, the slider of parties", moves(page, "Parties", parties, "formulas", 30), FORMULA_LIMIT_MS)
        report("inca's own, looked up, the slider of parties", moves(page, "Parties", parties, "tables", 300), 1000.0)
        page.goto(f"{board.root}/plan?parties=200&eavesdropped=0.35")
        page.locator(".tradeoff .range").wait_for(state="attached")  # a line has no width
        few = [6.0 + 0.5 * (i % 6) for i in range(max(3, count // 5))]
        report(
            "inca's own as a range, 35 % eavesdropped, colluders",
            moves(page, "Colluding", few, "range", 500),
            RANGE_LIMIT_MS,
        )
        report(
            "inca's own as a range, epsilon's slider",
            moves(page, "Epsilon", epsilons[::3], "range", 30),
            RANGE_LIMIT_MS,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=30)
    measure(parser.parse_args().moves)
