from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser

from helpers.browser import Watched, browser, watched
from helpers.dashboard_documents import write_ended_session
from helpers.dashboard_server import CONSORTIUM, Dashboard, running

_CHROMIUM = pytest.StashKey[Browser]()


@pytest.fixture(scope="module")
def chromium(request: pytest.FixtureRequest) -> Browser:
    """A real browser, one for all files of this folder that a process tests, which ends when the folder is left.

    Fixtures of packages do that for folders with an __init__.py only. While the browser runs, this thread has an event
    loop, so that tests in this folder must run others in threads of their own.
    """
    folder: pytest.Collector = request.node.parent
    if _CHROMIUM not in folder.stash:
        running_browser = ExitStack()
        folder.stash[_CHROMIUM] = running_browser.enter_context(browser())
        folder.addfinalizer(running_browser.close)
        folder.addfinalizer(lambda: folder.stash.__delitem__(_CHROMIUM))
    return folder.stash[_CHROMIUM]


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    """A dashboard that watches a session and has opened an execution."""
    state = tmp_path_factory.mktemp("state")
    (write_ended_session(state) / "journal.db").write_text("the private value is 0.123456")
    with running([state], [CONSORTIUM]) as dashboard:
        yield dashboard


@pytest.fixture(scope="module")
def shared_window(chromium: Browser, board: Dashboard) -> Iterator[Watched]:
    """A page of the module's dashboard."""
    with watched(chromium, board.root) as window:
        yield window


@pytest.fixture
def window(shared_window: Watched, request: pytest.FixtureRequest) -> Iterator[Watched]:
    """The module's page, in which nothing goes wrong; a test that fails leaves nothing of itself to the next."""
    failed = request.session.testsfailed
    shared_window.begin()
    yield shared_window
    try:
        shared_window.check()
    finally:
        if request.session.testsfailed > failed:
            shared_window.forget()
