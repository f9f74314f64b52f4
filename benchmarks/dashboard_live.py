"""How soon the plan view follows a slider in a real browser, beside the 50 ms that it may take.

    python benchmarks/dashboard_live.py [--moves 30]

From the input event of a slider until a frame with the new answer and the new chart has been painted: the page works
both out by itself. Needs Chromium on this machine (or INCA_CHROMIUM) and `pip install 'inca[dev]'`.
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

LIMIT_MS = 50.0
MOVE = """([label, value]) => new Promise((done, failed) => {
  const slider = document.querySelector(`input[aria-label="${label}, slider"]`);
  const words = (place) => document.querySelector(place).textContent;
  const shown = () => words(".answer") + words(".comparison svg");
  const before = shown();
  const began = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  if (shown() === before) failed(new Error(`${label} at ${value} changed nothing`));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - began), 0));
})"""


def report(page: Page, words: str, label: str, values: list[float]) -> None:
    times = []
    for value in values:
        times.append(float(page.evaluate(MOVE, [label, value])))
        page.wait_for_timeout(30)
    most = max(times)
    verdict = "within" if most <= LIMIT_MS else "NOT within"
    print(f"{words:40s} {np.median(times):6.0f} / {most:6.0f} ms   {verdict} {LIMIT_MS:g} ms", flush=True)


def measure(count: int) -> None:
    print(f"{'':40s} {'median / most':>19s}")
    colluding = [4.0 + 2.0 * (i % 30) for i in range(count)]  # per cent
    epsilons = [-1 + (i % 30) / 15 for i in range(count)]  # in factors of ten, at least a step of the slider apart
    with running() as board, browser() as chromium, watched(chromium, board.root, height=800) as window:
        page = window.page
        for parties in (50, 1000, 10**6):
            page.goto(f"{board.root}/plan?parties={parties}")
            page.locator(".next:not([inert])").wait_for()
            report(page, f"epsilon's slider, {parties:,} parties", "Epsilon", epsilons)
            report(page, f"the slider of colluders, {parties:,} parties", "Colluding", colluding)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--moves", type=int, default=30)
    measure(parser.parse_args().moves)
