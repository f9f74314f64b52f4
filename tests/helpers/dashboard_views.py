"""Every view of the dashboard, when it is ready, and how far its contents are moved by what comes later."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Page, expect

from helpers.browser import Watched
from helpers.dashboard_documents import proven_plan, write_ended_session
from helpers.dashboard_server import CONSORTIUM, Dashboard, running

VIEWS = {
    **{f"story step {step}": f"/story?step={step}" for step in range(1, 7)},
    "plan": "/plan?parties=30&epsilon=2&messages=8",
    "plan, none": "/plan?parties=5&colluding=0.5&dropout=0.5",
    "run": "/run?parties=12&rounds=8&seed=3",
    "adversary": "/adversary?parties=9&colluding=2",
    "adversary, variants": "/adversary?parties=9&colluding=2&compare=1",
    "sessions": "/sessions",
    "a session": "/sessions?session={session}",
    "file": "/file",
    "file, certificate": "/file?file={certificate.json}",
    "file, plan": "/file?file={plan.json}",
    "file, result": "/file?file={result.json}",
    "file, execution": "/file?file={consortium.json}",
    "run of a file": "/run?file={consortium.json}",
    "adversary of a file": "/adversary?file={consortium.json}",
}
"""Addresses by the name of the view, and of the step or kind of file; in braces, what only the server knows."""

_READY = {
    "/story": "main[data-ready]",
    "/plan": ".headline:has(.error), .next:not([inert])",
    "/run": "main[data-step-ms]:not([aria-busy=true])",
    "/adversary": ".results:not([hidden]):not(.outdated)",
    "/sessions": "main .card",
    "/file": "main .card.recently li",
}
_OBSERVE = """window.layoutShift = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) window.layoutShift += entry.value;
}).observe({ type: "layout-shift", buffered: true });"""
_MOVE = """async () => {
  const slider = [...document.querySelectorAll("main input[type=range]")].find((field) => field.checkVisibility());
  if (!slider) return false;
  slider.focus({ preventScroll: true });
  window.layoutShift = 0;
  const step = Number(slider.step) || (slider.max - slider.min) / 30;
  for (const way of [1, 1, 1, -1, -1, -1]) {
    slider.value = Number(slider.value) + way * step;
    for (const name of ["input", "change"]) slider.dispatchEvent(new Event(name, { bubbles: true }));
    await new Promise((done) => setTimeout(done, 350)); // longer than a view waits before it asks
  }
  return true;
}"""


@contextmanager
def board_with_files() -> Iterator[Dashboard]:
    """Serve a dashboard that has something to show in every view."""
    with TemporaryDirectory() as folder:
        session = write_ended_session(Path(folder))
        proven_plan().write(Path(folder) / "plan.json")
        files = [session / "result.json", session / "certificate.json", CONSORTIUM, Path(folder) / "plan.json"]
        with running([Path(folder)], files) as board:
            yield board


def address_of(board: Dashboard, view: str) -> str:
    """Return the address of a view on a server."""
    known = {file["name"]: file["id"] for file in board.ask("files")["files"]}
    known["session"] = board.ask("sessions")["sessions"][0]["id"]
    address = VIEWS[view]
    for name, identity in known.items():
        address = address.replace(f"{{{name}}}", identity)
    return address


def open_view(window: Watched, board: Dashboard, view: str, *, load: bool = False) -> None:
    """Open a view, and wait until all of it is there; `load` asks for a page that is loaded with it."""
    page, address = window.page, address_of(board, view)
    if load:
        page.goto(window.root + address)
    else:
        window.visit(address)
    path = VIEWS[view].partition("?")[0]
    expect(page.locator(_READY[path]).first).to_be_visible()
    if "compare" in VIEWS[view]:
        expect(page.locator("figure").filter(has_text="One noise term").locator("svg")).to_be_visible()
    page.wait_for_load_state("networkidle")


def observe_shifts(page: Page) -> None:
    """From now on, every page adds up by how much of it is moved by what comes later (cumulative layout shift)."""
    page.add_init_script(_OBSERVE)


def shift_of(page: Page) -> float:
    """Return how much has moved since the page was opened, or since the last call of `move_slider`.

    Unlike the measure of the same name it also counts what moves at once after a key or a click.
    """
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))")
    return float(page.evaluate("window.layoutShift"))


def move_slider(page: Page) -> bool:
    """Move the first slider to and fro, as a person does; return whether there is one."""
    moved = bool(page.evaluate(_MOVE))
    page.wait_for_load_state("networkidle")
    return moved
