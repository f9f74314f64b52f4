"""Pages and what they load."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from helpers.dashboard_server import RUN, Dashboard, running
from inca._base.types import Progress
from inca.dashboard import app
from inca.dashboard.api import DashboardApi
from inca.dashboard.questions import PlanQuestion


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py"])
def test_only_static_files_are_served(board: Dashboard, path: str) -> None:
    assert board.get(path).status == 404


def test_all_pages_and_what_they_load_are_there(board: Dashboard) -> None:
    for page in ("/", "/plan", "/run", "/adversary", "/sessions", "/file"):
        assert b'src="/static/js/app.js"' in board.get(page).body
    for name in ("plan", "run", "adversary", "sessions", "file"):
        answer = board.get(f"/static/js/views/{name}.js")
        assert answer.status == 200 and "javascript" in answer.headers["content-type"]


def test_an_address_decides_everything(board: Dashboard) -> None:
    assert board.get("/api/run", **RUN).body == board.get("/api/run", **RUN).body


def test_long_computations_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is opened over and over must not fill the machine with work."""
    begun, may_end = threading.Semaphore(0), threading.Event()

    def work(api: DashboardApi, question: PlanQuestion, progress: Progress) -> dict[str, object]:
        begun.release()
        may_end.wait(60.0)
        return {"done": True}

    monkeypatch.setattr(DashboardApi, "plan", work)
    monkeypatch.setattr(app, "_MAX_LONG_JOBS", 2)
    with running() as board, ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(board.get, "/api/plan") for _ in range(2)]
        assert all(begun.acquire(timeout=60.0) for _ in jobs)
        (refused,) = board.get("/api/plan").lines
        assert refused["error"] == "at most 2 long computations can be under way, got one more: cancel one"
        may_end.set()
        assert all(job.result().lines == [{"done": True}] for job in jobs)
        assert board.get("/api/plan").lines == [{"done": True}]  # there is room again
