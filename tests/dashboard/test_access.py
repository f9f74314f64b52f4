"""Who may ask: pages of this very application, and nobody else's."""

from __future__ import annotations

import pytest

from helpers.dashboard_server import CONSORTIUM, Dashboard


@pytest.mark.parametrize("path", ["/plan", "/api/files", "/api/sessions", "/static/css/base.css", "/nothing"])
def test_another_host_name_is_refused(board: Dashboard, path: str) -> None:
    """A page elsewhere could give this machine's address a name of its own."""
    for host in ("evil.example", f"evil.example:{board.port}", "127.0.0.1", f"127.0.0.1:{board.port + 1}"):
        answer = board.get(path, {"Host": host})
        assert answer.status == 403 and answer.body == b"refused: the request names another host\n"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_other_sites_are_refused(board: Dashboard, headers: dict[str, str]) -> None:
    answer = board.get("/api/files", headers)
    assert answer.status == 403 and b"another site" in answer.body
    assert board.post("/api/open", b"{}", headers).status == 403


def test_a_file_from_nowhere_is_refused(board: Dashboard) -> None:
    request = board.post("/api/open?name=x.json", CONSORTIUM.read_bytes(), {"Origin": "http://127.0.0.1"})
    assert request.status == 403


def test_a_link_from_elsewhere_may_be_followed_and_its_page_loads_nothing_from_elsewhere(board: Dashboard) -> None:
    answer = board.get("/run", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert answer.status == 200 and b"<main" in answer.body
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "http" not in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in answer.headers
