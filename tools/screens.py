"""Take the pictures of the dashboard for the docs: `python tools/screens.py`, with Chromium on this machine."""

from __future__ import annotations

import sys
from pathlib import Path

from playwright.sync_api import expect

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.browser import browser, watched
from helpers.dashboard_server import running

DOCS = Path(__file__).parents[1] / "docs"
VIEWS = {
    "plan": ("/plan?parties=200&epsilon=0.5", ".shown[aria-busy=false]", 880),
    "run": ("/run?parties=14&rounds=12&t=6&absent=5:5-+9:4-7&colluding=2+11&party=8&seed=4", "main[data-step-ms]", 970),
    "eyes": ("/eyes?parties=12&rounds=10&colluding=1+5&seed=1", "main svg[role=img]", 1300),
}


def main() -> None:
    """Write docs/pictures/dashboard-*.png."""
    with running() as board, browser() as chromium:
        for name, (address, ready, height) in VIEWS.items():
            with watched(chromium, board.root, height=height) as window:
                window.page.goto(board.root + address)
                expect(window.page.locator(ready).first).to_be_visible()
                window.page.wait_for_load_state("networkidle")
                window.page.wait_for_timeout(1500)
                window.page.screenshot(path=DOCS / "pictures" / f"dashboard-{name}.png")
                window.check()


if __name__ == "__main__":
    main()
