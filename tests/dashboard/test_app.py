"""Pages and what they load."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from helpers.dashboard_server import RUN, Dashboard, running
from inca.dashboard import app
from inca.dashboard.questions import PlanQuestion
from inca.reporting.svg import FIGURE_STYLE


def static_place(board: Dashboard, page: str = "/plan") -> str:
    """Return where the files are that a page loads."""
    (script,) = re.findall(r'src="(/static/[0-9a-f]{16})/js/app.js"', board.get(page).body.decode())
    return str(script)


@pytest.mark.parametrize("path", ["../server.py", "%2e%2e/server.py", "..%2fserver.py", "js"])
def test_only_static_files_are_served(board: Dashboard, path: str) -> None:
    assert board.get(f"{static_place(board)}/{path}").status == 404


def test_all_pages_and_what_they_load_are_there(board: Dashboard) -> None:
    (place,) = {static_place(board, page) for page in ("/", "/plan", "/run", "/adversary", "/sessions", "/file")}
    for name in ("plan", "run", "adversary", "sessions", "file"):
        answer = board.get(f"{place}/js/views/{name}.js")
        assert answer.status == 200 and "javascript" in answer.headers["content-type"]
    for path in re.findall(r'(?:src|href)="(/(?:static/|figures)[^"]+)"', board.get("/plan").body.decode()):
        assert board.get(path).status == 200
    drawn = board.get("/figures.css")
    assert drawn.body.decode() == FIGURE_STYLE and drawn.headers["content-type"].startswith("text/css")


def test_browsers_keep_files_and_nothing_else(board: Dashboard) -> None:
    assert "immutable" in board.get(f"{static_place(board)}/js/app.js").headers["cache-control"]
    for path in ("/plan", "/api/files", "/nothing", f"{static_place(board)}/nothing.js"):
        assert board.get(path).headers["cache-control"] == "no-store"


def test_changed_files_have_another_address(tmp_path: Path) -> None:
    digests = set()
    for name, text in (("a.js", "1"), ("a.js", "2"), ("b.js", "2"), ("b.js", "")):
        (tmp_path / name).write_text(text)
        digests.add(app._digest(tmp_path))
    (tmp_path / "folder").mkdir()
    (tmp_path / "b.js").rename(tmp_path / "folder" / "b.js")
    assert len(digests | {app._digest(tmp_path)}) == 5


def test_an_address_decides_everything(board: Dashboard) -> None:
    assert board.get("/api/run", **RUN).body == board.get("/api/run", **RUN).body


def test_long_computations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is opened over and over must not fill the machine with work."""
    begun, may_end = threading.Semaphore(0), threading.Event()

    def work(question: PlanQuestion) -> Iterator[dict[str, object]]:
        begun.release()
        may_end.wait(60.0)
        yield {"done": True}

    monkeypatch.setattr(app, "slow_mechanisms", work)
    monkeypatch.setattr(app, "_MAX_LONG_JOBS", 2)
    with running() as board, ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(board.get, "/api/slow-mechanisms") for _ in range(2)]
        assert all(begun.acquire(timeout=60.0) for _ in jobs)
        (refused,) = board.get("/api/slow-mechanisms").lines
        assert refused["error"] == "at most 2 long computations can be under way, got one more: cancel one"
        may_end.set()
        assert all(job.result().lines == [{"done": True}] for job in jobs)
        assert board.get("/api/slow-mechanisms").lines == [{"done": True}]  # there is room again
