"""A real browser for tests: every request and every error of its pages is kept."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

TIMEOUT_MS = 120_000  # on a busy machine the server's first answer takes many seconds
# The shell shows the same pages, and takes a quarter less for the tests: the others have windows that nobody sees.
_NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
_FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{feature}" for feature in _QUIET)]
_FLAGS += ["--renderer-process-limit=1"]  # else it prepares a process for every page that might come next
_GO_TO = """async (address) => {
  const { goTo } = await import(new URL("lib/navigation.js", document.scripts[0].src));
  const { pathname, searchParams } = new URL(address, location.href);
  scrollTo(0, 0);
  goTo(pathname.slice(1), Object.fromEntries(searchParams));
}"""


def browser_path() -> str | None:
    """Return where the browser is: INCA_CHROMIUM, or one of the usual names; None if there is none."""
    return os.environ.get("INCA_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


def numbers(text: str) -> list[float]:
    """Return all numbers that a page says."""
    return [float(word.replace(",", "")) for word in re.findall(r"-?\d[\d,]*\.?\d*(?:e-?\d+)?", text)]


@contextmanager
def browser() -> Iterator[Browser]:
    """Start one, or skip; the summary of the tests says so in red (tests/conftest.py)."""
    if (path := browser_path()) is None:
        pytest.skip("no Chromium: install it, or name it in INCA_CHROMIUM")
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=path, args=list(_FLAGS), timeout=TIMEOUT_MS)
        try:
            yield chromium
        finally:
            chromium.close()


@dataclass
class Watched:
    """A page, what it asked for and what went wrong in it."""

    page: Page
    root: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def visit(self, address: str) -> Page:
        """Show a view of the dashboard as a link to it does, and return the page.

        Only the first view is loaded: that takes four times as long as to go from one to the next.
        """
        if self.page.url.startswith(f"{self.root}/"):
            self.page.evaluate(_GO_TO, address)
        else:
            self.page.goto(self.root + address)
        return self.page

    def begin(self, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Let a test begin: it may go on in a page of others, and what was before is not its business."""
        self.page.unroute_all()
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        self.requests.clear()
        self.errors.clear()

    def forget(self) -> None:
        """Let nothing be left of what was done in the page, or kept by it."""
        _forget(self.page, self.root)

    def check(self) -> None:
        """Nothing went wrong, and no request left the machine."""
        assert not self.errors, self.errors
        strangers = [url for url in self.requests if not url.startswith((f"{self.root}/", "blob:", "data:"))]
        assert not strangers, strangers


_kept: WeakKeyDictionary[Browser, Page] = WeakKeyDictionary()
"""A page of each browser for the next test: to open one, with a context and a process of its own, takes as long as to
load a view."""


@contextmanager
def watched(
    browser: Browser, root: str, *, width: int = 1280, height: int = 900, dark: bool = False, own: bool = False
) -> Iterator[Watched]:
    """Watch an empty page.

    It may have been used by another test, of which nothing is left; `own` asks for a new one, and must be said where
    something is done to it that cannot be undone.
    """
    page = None if own else _kept.pop(browser, None)
    if page is None:
        page = browser.new_context(accept_downloads=True).new_page()
        page.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    window = Watched(page, root)
    window.begin(width=width, height=height, dark=dark)
    listeners: dict[str, Callable[[Any], None]] = {
        "request": lambda request: window.requests.append(request.url),
        "pageerror": lambda error: window.errors.append(f"{error}"),
        "console": lambda line: window.errors.append(line.text) if line.type == "error" else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)  # type: ignore[call-overload]
    again = False
    try:
        yield window
        again = not own
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        if again and browser not in _kept and len(page.context.pages) == 1:
            _forget(page, root)
            _kept[browser] = page
        else:
            page.context.close()


def _forget(page: Page, root: str) -> None:
    """Let nothing be left of what was done in a page, or kept by it."""
    page.unroute_all()
    if page.url.startswith(root):
        page.evaluate("sessionStorage.clear()")  # which belongs to the window, and is not among the data of an origin
    page.goto("about:blank")
    page.context.clear_cookies()
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": root, "storageTypes": "all"})
    session.detach()
