"""Every view and every step in a real browser, at both sizes, light and dark, by keyboard alone, and at 200 %."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from playwright.sync_api import Browser, Page, expect

from helpers.browser import Watched, watched
from helpers.dashboard_server import Dashboard
from helpers.dashboard_views import VIEWS, board_with_files, move_slider, observe_shifts, open_view, shift_of

MAX_SHIFT = 0.05
QUICK = {("plan", 1280, True), ("run", 390, False), ("adversary", 390, True), ("file, certificate", 1280, False)}
"""What is tried at every commit; the rest with the slow suites."""

MAX_TABS = 400
CONTROLS = """() => {
  const usable = (control) => !control.disabled && control.tabIndex >= 0 && control.checkVisibility();
  const all = [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")].filter(usable);
  all.forEach((control, i) => { control.dataset.control = i; });
  return all.length;
}"""
FOCUSED = """() => {
  const control = document.activeElement;
  const style = getComputedStyle(control);
  const box = control.getBoundingClientRect();
  const header = document.querySelector("header");
  const below = getComputedStyle(header).position === "sticky" && control.className !== "skip";
  const above = !below || header.contains(control);
  const covered = above ? 0 : header.getBoundingClientRect().bottom;
  return {
    control: control.dataset.control ?? null,
    html: control.outerHTML.slice(0, 90),
    ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1,
    seen: box.bottom > covered + 2 && box.top < innerHeight - 2 && box.right > 0 && box.left < innerWidth,
  };
}"""
CUT_OFF = """() => {
  const problems = [];
  const width = document.documentElement.clientWidth;
  const asked = document.documentElement.scrollWidth;
  if (asked > width) problems.push(`scrolls sideways: ${asked}`);
  for (const element of document.querySelectorAll("main *, header *")) {
    if (!element.checkVisibility() || element.closest(".scroll, pre, .visually-hidden, [popover]")) continue;
    const box = element.getBoundingClientRect();
    const name = `${element.tagName} ${element.getAttribute("class")} ${element.textContent.slice(0, 40)}`;
    if (box.width && (box.right > width + 1 || box.left < -1)) problems.push(`outside: ${name}`);
    const hidden = getComputedStyle(element).overflowX === "hidden" || element.tagName === "BUTTON";
    if (hidden && element.scrollWidth > element.clientWidth + 1) problems.push(`cut off: ${name}`);
    if (element.tagName !== "text" || !box.width) continue;
    const frame = element.ownerSVGElement.getBoundingClientRect();
    if (box.left < frame.left - 2 || box.right > frame.right + 2) problems.push(`label cut off: ${name}`);
  }
  return problems;
}"""


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with board_with_files() as dashboard:
        yield dashboard


def cases() -> list[object]:
    """Return every view at every size and in every theme; those that are not quick are marked as slow."""
    return [
        pytest.param(*case, id=f"{case[0]}-{case[1]}-{'dark' if case[2] else 'light'}", marks=marks)
        for case in product(VIEWS, (390, 1280), (False, True))
        for marks in ([] if case in QUICK else [pytest.mark.slow],)
    ]


def tab_through(page: Page) -> None:
    """Every control is reached by the tab key, and says by its outline that it is."""
    page.evaluate("document.activeElement.blur()")
    count: int = page.evaluate(CONTROLS)
    reached: set[str] = set()
    for _ in range(MAX_TABS):
        page.keyboard.press("Tab")
        focused = page.evaluate(FOCUSED)
        if focused["control"] is None or focused["control"] in reached:
            if len(reached) >= count:
                break
            continue
        reached.add(focused["control"])
        assert focused["ring"] and focused["seen"], focused
    missing = sorted(set(map(str, range(count))) - reached, key=int)
    named = "(control) => control.outerHTML.slice(0, 90)"
    assert not missing, [page.locator(f"[data-control='{place}']").evaluate(named) for place in missing[:5]]


@pytest.mark.parametrize(("view", "width", "dark"), cases())
def test_every_view_in_both_sizes_and_themes_by_keyboard(
    window: Watched, board: Dashboard, view: str, width: int, dark: bool
) -> None:
    window.begin(width=width, dark=dark)
    open_view(window, board, view, load=True)  # else the first control would not be the first that is reached
    theme = window.page.evaluate("document.documentElement.dataset.theme")
    assert theme == ("dark" if dark else "light")
    assert window.page.evaluate(CUT_OFF) == []
    tab_through(window.page)


@pytest.mark.parametrize(
    "view", [pytest.param(view, marks=[] if view == "plan" else [pytest.mark.slow]) for view in VIEWS]
)
@pytest.mark.parametrize("width", [640, 320], ids=["half of 1280", "the narrowest that must be borne"])
def test_nothing_is_cut_off_at_200_percent(window: Watched, board: Dashboard, view: str, width: int) -> None:
    """At 200 % a screen of 1280 shows 640 pixels of a page; 320 are asked for by the rules of the web (WCAG 1.4.10)."""
    window.begin(width=width, height=450)
    open_view(window, board, view)
    assert window.page.evaluate(CUT_OFF) == []


MOVING = ["story step 1", "plan", "run", "adversary", "adversary, variants", "sessions", "file", "file, certificate"]
MOVING += ["run of a file", "adversary of a file"]
QUICKLY_MOVING = {("plan", 390), ("run", 1280)}


@pytest.fixture(scope="module")
def observed_window(chromium: Browser, board: Dashboard) -> Iterator[Watched]:
    """A page in which movements are added up."""
    with watched(chromium, board.root, own=True) as window:
        observe_shifts(window.page)
        yield window


@pytest.mark.parametrize(
    ("view", "width"),
    [
        pytest.param(*case, marks=[] if case in QUICKLY_MOVING else [pytest.mark.slow])
        for case in product(MOVING, (390, 1280))
    ],
)
def test_nothing_is_pushed_away_while_a_view_loads_or_a_slider_moves(
    observed_window: Watched, board: Dashboard, view: str, width: int
) -> None:
    page = observed_window.page
    observed_window.begin(width=width)
    open_view(observed_window, board, view, load=True)
    assert shift_of(page) < MAX_SHIFT
    if move_slider(page):
        assert shift_of(page) < MAX_SHIFT
    else:
        expect(page.locator("main input[type=range]:visible")).to_have_count(0)
    observed_window.check()
