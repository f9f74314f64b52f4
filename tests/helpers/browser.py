"""A real browser for tests: every request and every error of its pages is kept."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

TIMEOUT_MS = 120_000  # on a busy machine the server's first answer takes many seconds
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")
_FLAGS = ["--no-sandbox", "--no-first-run", *(f"--disable-{feature}" for feature in _QUIET)]


def browser_path() -> str | None:
    """Return where the browser is: INCA_CHROMIUM, or one of the usual names; None if there is none."""
    return os.environ.get("INCA_CHROMIUM") or next(filter(None, map(shutil.which, _NAMES)), None)


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

    def check(self) -> None:
        """Nothing went wrong, and no request left the machine."""
        assert not self.errors, self.errors
        strangers = [url for url in self.requests if not url.startswith((f"{self.root}/", "blob:", "data:"))]
        assert self.requests and not strangers, strangers


@contextmanager
def watched(
    browser: Browser, root: str, *, width: int = 1280, height: int = 900, dark: bool = False
) -> Iterator[Watched]:
    """Open an empty page that is watched."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        accept_downloads=True,
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    expect.set_options(timeout=TIMEOUT_MS)
    window = Watched(page, root)
    page.on("request", lambda request: window.requests.append(request.url))
    page.on("pageerror", lambda error: window.errors.append(f"{error}"))
    page.on("console", lambda line: window.errors.append(line.text) if line.type == "error" else None)
    try:
        yield window
    finally:
        context.close()
