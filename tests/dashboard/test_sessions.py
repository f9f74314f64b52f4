"""What is public of sessions."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from helpers.dashboard_documents import SESSION, write_ended_session
from helpers.dashboard_server import Dashboard, running
from inca.dashboard.sessions import all_sessions, one_session
from inca.documents.certificate import CertificateDocument
from inca.documents.result import ResultDocument
from inca.errors import InvalidInput
from inca.reporting.session import session_content


def test_sessions_show_what_is_public_and_nothing_else(board: Dashboard) -> None:
    (listed,) = board.ask("sessions")["sessions"]
    assert (listed["party"], listed["round"]) == ("anna", 3)
    one = board.get("/api/session", session=listed["id"])
    assert one.json["content"]["verdict"][0]["text"].startswith("The estimated mean is 97.")
    assert "Certificate" not in one.json["content"]["title"] and len(one.json["content"]["figures"]) == 2
    assert b"0.123456" not in one.body  # the journal


def test_one_folder_of_sessions_is_searched_however_deep(tmp_path: Path) -> None:
    write_ended_session(tmp_path / "anna" / "sessions")
    shutil.copytree(tmp_path / "anna", tmp_path / "far" / "away" / "bert")
    (flat,) = all_sessions([tmp_path / "anna" / "sessions"])
    deep = all_sessions([tmp_path, tmp_path / "anna"])
    assert len(deep) == 2 and {entry["id"] for entry in deep} == {flat["id"]}
    assert one_session([tmp_path], flat["id"])["content"] == one_session([tmp_path / "anna"], flat["id"])["content"]


def test_what_takes_long_is_told_while_the_party_runs(tmp_path: Path) -> None:
    place = write_ended_session(tmp_path) / "status.json"
    fields = json.loads(place.read_text()) | {"stage": "rounds", "bytes_received": 48e6, "bytes_expected": 112e6}
    place.write_text(json.dumps(fields | {"process": os.getpid()}))
    (shown,) = all_sessions([tmp_path])
    assert shown["progress"] == "shares of round 3 of 20 are under way; 48 of about 112 MB received"
    place.write_text(json.dumps(fields | {"process": 2**30}))
    assert all_sessions([tmp_path])[0]["progress"] == ""


def test_what_came_of_a_session_is_what_reporting_says_once_it_has_ended(tmp_path: Path) -> None:
    place = write_ended_session(tmp_path)
    result, certificate = (place / f"{name}.json" for name in ("result", "certificate"))
    expected = session_content(ResultDocument.read(result), CertificateDocument.read(certificate))
    identity = f"{SESSION[:16]}.anna"
    assert one_session([tmp_path], identity)["content"] == expected
    certificate.rename(place / "elsewhere.json")
    assert one_session([tmp_path], identity)["content"] == session_content(ResultDocument.read(result))
    result.rename(place / "later.json")
    assert one_session([tmp_path], identity)["content"] is None


def test_a_result_that_is_none_is_refused_in_a_sentence(tmp_path: Path) -> None:
    result = write_ended_session(tmp_path) / "result.json"
    result.write_text(json.dumps(json.loads(result.read_text()) | {"value": 0.123456}))
    with pytest.raises(InvalidInput, match=r"result\.json cannot be read as a result: value: is not a field of this"):
        one_session([tmp_path], f"{SESSION[:16]}.anna")


@pytest.mark.parametrize("name", ["St. Anna & Co", "a+b", "c#d", "50%", "e/f?g=h"])
def test_a_session_is_found_whatever_its_party_is_called(tmp_path: Path, name: str) -> None:
    write_ended_session(tmp_path / "sessions", party=name)
    with running([tmp_path]) as board:
        (listed,) = board.ask("sessions")["sessions"]
        assert board.ask("session", session=listed["id"])["status"]["party"] == name
