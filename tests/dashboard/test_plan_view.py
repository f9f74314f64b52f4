"""Plans, and mechanisms that take long."""

from __future__ import annotations

import json
from pathlib import Path
from urllib.parse import parse_qs

import inca
from helpers.dashboard_documents import as_json
from helpers.dashboard_server import Dashboard
from inca.mechanisms.muffliato import Muffliato
from inca.reporting.plan import plan_content


def test_a_plan_is_told_and_can_be_used(board: Dashboard, tmp_path: Path) -> None:
    answer = board.ask("plan", parties=30, epsilon=2)
    (tmp_path / "plan.json").write_text(json.dumps(answer["plan"]))
    plan = inca.read_plan(tmp_path / "plan.json")
    assert plan == inca.plan(inca.Requirements(30, 2.0))
    assert answer["content"] == as_json(plan_content(plan.document()))
    (run, _) = (parse_qs(href.partition("?")[2]) for _, href in answer["links"])
    assert board.ask("run", **{name: value for name, (value,) in run.items()})["rounds"] == plan.design.rounds


def test_mechanisms_that_take_long_come_one_by_one(board: Dashboard) -> None:
    lines = board.get("/api/slow-mechanisms", parties=8, epsilon=4, colluding=0, dropout=0).lines
    entries = {line["entry"]["mechanism"]: line["entry"] for line in lines}
    assert [name.partition(",")[0] for name in entries] == 5 * ["GOPA"] + ["Muffliato"]
    requirements = inca.Requirements(8, 4.0, colluding=0.0, dropout=0.0)
    assert entries["Muffliato, hypercube"]["mse"] == Muffliato(requirements, "hypercube").expected_error(0.0).mse
    assert entries["Muffliato, hypercube"]["weaker"] and not entries["GOPA, no leaver late"]["weaker"]
    (refused,) = board.get("/api/slow-mechanisms", parties="few").lines
    assert refused["error"] == "parties: must be a whole number, got text"
