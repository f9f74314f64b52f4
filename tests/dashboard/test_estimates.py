"""Errors of mechanisms, and plans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import inca
from helpers.dashboard_documents import as_json
from helpers.dashboard_server import Dashboard
from inca.mechanisms.central_local import LocalDP
from inca.reporting.plan import plan_content

REQUIRED = {"parties": 30, "epsilon": 2.0, "delta": 1e-5, "colluding": 0.1, "dropout": 0.1, "messages": 8}


def test_estimates_come_one_by_one(board: Dashboard) -> None:
    first, *rest = board.get("/api/estimate", **REQUIRED).lines
    requirements = inca.Requirements(30, 2.0, 1e-5, colluding=0.1, dropout=0.1, messages=8)
    counts = {"parties": 30, "colluders": 3, "leavers": 3}
    assert first["head"] | {"slow": []} == counts | {"guess_mse": 0.25, "slow": []}
    assert all(name.startswith("GOPA") for name in first["head"]["slow"])
    entries = {part["entry"]["mechanism"]: part["entry"] for part in rest}
    assert entries["Local DP"]["mse"] == LocalDP(requirements).expected_error(0.1).mse
    own = entries["inca, quick estimate"]
    assert sum(own["parts"].values()) == pytest.approx(own["mse"])
    assert own["relative"] == own["mse"] / requirements.central_mse
    assert entries["Central DP"]["mse"] < own["mse"] < entries["Local DP"]["mse"]


def test_mechanisms_that_are_no_better_than_a_guess_say_so(board: Dashboard) -> None:
    _, *rest = board.get("/api/estimate", **REQUIRED).lines
    for entry in (part["entry"] for part in rest):
        useless = entry["mse"] is not None and entry["mse"] >= 0.0625
        assert entry["remark"].endswith("guessing its middle would do as well.") if useless else entry["remark"] == ""
    assert {bool(part["entry"]["remark"]) for part in rest} == {True, False}


def test_a_plan_is_told_with_progress_and_can_be_used(board: Dashboard, tmp_path: Path) -> None:
    *progress, last = board.get("/api/plan", **REQUIRED | {"parties": 12, "views": 10, "dropout": 1 / 12}).lines
    assert progress and progress[-1]["progress"][0] == progress[-1]["progress"][1]
    (tmp_path / "plan.json").write_text(json.dumps(last["plan"]))
    plan = inca.read_plan(tmp_path / "plan.json")
    assert plan.requirements.parties == 12 and last["entry"]["mse"] == pytest.approx(plan.expected_mse)
    assert last["content"] == as_json(plan_content(plan.document()))


def test_requirements_that_cannot_be_met_are_answered(board: Dashboard) -> None:
    _, *parts = board.get("/api/estimate", **REQUIRED | {"messages": 1}).lines
    (own,) = (part["entry"] for part in parts if part["entry"]["mechanism"] == "inca")
    assert own["mse"] is None and "hid" in own["why_not"]
    (refused,) = board.get("/api/plan", **REQUIRED | {"epsilon": 0}).lines
    assert "epsilon must be above 0, got 0.0" in refused["error"]
    (unread,) = board.get("/api/estimate", **REQUIRED | {"parties": "few"}).lines
    assert unread["error"] == "parties: must be a whole number, got text"
