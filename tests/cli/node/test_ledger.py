"""`inca node ledger`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import Capture, call, refused
from helpers.documents import result

SESSION: dict[str, Any] = {"name": "stays", "coalitions": 5, "all_coalitions": False}


@pytest.fixture
def state(tmp_path: Path) -> Path:
    for name, datum, ended in (("a", "stays", 86400.0), ("b", "stays", 2 * 86400.0), ("c", "costs", 3 * 86400.0)):
        (tmp_path / name).mkdir()
        result(**SESSION, session=name * 64).write(tmp_path / name / "result.json")
        (tmp_path / name / "status.json").write_text(json.dumps({"round": 9}))
        (tmp_path / name / "ended.json").write_text(json.dumps({"ended": ended}))
        (tmp_path / name / "datum.json").write_text(json.dumps({"datum": datum}))
    return tmp_path


def test_it_says_what_each_session_cost_and_those_about_one_datum_together(capsys: Capture, state: Path) -> None:
    status, out, err = call(capsys, "node", "ledger", state)
    assert (status, err) == (0, "")
    assert out == (
        "stays\n"
        "  1970-01-02  aaaaaaaa  epsilon 1  stays\n"
        "              as agreed, since not all coalitions were checked\n"
        "  1970-01-03  bbbbbbbb  epsilon 1  stays\n"
        "              as agreed, since not all coalitions were checked\n"
        "  together    epsilon 1.47 at delta 1.2e-05\n"
        "costs\n"
        "  1970-01-04  cccccccc  epsilon 1  stays\n"
        "              as agreed, since not all coalitions were checked\n"
        "  together    epsilon 1 at delta 1.1e-05\n"
    )


def test_a_failure_that_is_not_known_is_named(capsys: Capture, state: Path) -> None:
    result(**SESSION, session="c" * 64, failure=None).write(state / "c" / "result.json")
    _, out, _ = call(capsys, "node", "ledger", state)
    assert out.endswith("  together    epsilon 1 at delta 1e-05 + an unknown probability of failure\n")


def test_sessions_without_a_datum_say_how_to_give_one(capsys: Capture, state: Path) -> None:
    (state / "c" / "datum.json").unlink()
    _, out, _ = call(capsys, "node", "ledger", state)
    assert "unnamed (`inca node run --datum LABEL` names what a value is about)\n" in out


def test_it_prints_json(capsys: Capture, state: Path) -> None:
    status, out, _ = call(capsys, "node", "ledger", state, "--json", "--delta", 1e-6)
    stays, costs = json.loads(out)
    assert status == 0 and (stays["datum"], costs["datum"]) == ("stays", "costs")
    assert len(stays["sessions"]) == 2 and stays["epsilon"] > costs["epsilon"] > 1.0  # at a smaller delta
    assert costs["delta"] == pytest.approx(2e-6) and costs["sessions"][0]["basis"].startswith("as agreed")


def test_bad_input_is_refused(capsys: Capture, tmp_path: Path, state: Path) -> None:
    (empty := tmp_path / "empty").mkdir()
    assert refused(capsys, "node", "ledger", empty).startswith("FOLDER must be a --state folder with a session in it")
    assert refused(capsys, "node", "ledger", state, "--delta", 2).startswith("--delta must be")
