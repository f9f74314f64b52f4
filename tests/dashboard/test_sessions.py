"""What is public of sessions."""

from __future__ import annotations

from helpers.dashboard_server import Dashboard


def test_sessions_show_what_is_public_and_nothing_else(board: Dashboard) -> None:
    (listed,) = board.ask("sessions")["sessions"]
    assert (listed["party"], listed["round"]) == ("anna", 3)
    one = board.get("/api/session", session=listed["id"])
    assert one.json["result"]["estimate"] == 0.5 and one.json["certificate"] is None
    assert b"0.123456" not in one.body  # the journal
