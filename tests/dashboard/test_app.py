"""Pages and what they load."""

from __future__ import annotations

import pytest

from helpers.dashboard_server import RUN, Dashboard


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
