"""A study written by version 0.1 is read, means the same, and is written back the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from helpers.paths import ROOT
from inca.learn.study import read_study
from inca.network.membership.roster import read_roster

FIXTURES = ROOT / "tests" / "fixtures" / "version-0.1"
SESSION = "d3e181305c183a0761f67c8192f1b7e1f91ffc6287688bd29c85743b41b1d032"  # of the study with the roster, as then


def test_a_study_is_read_and_written_back_the_same(tmp_path: Path) -> None:
    study = read_study(FIXTURES / "study.json")
    fields = json.loads((FIXTURES / "study.json").read_text())
    written = json.loads(msgspec.json.encode(study))
    assert {name: written[name] for name in fields} == fields
    defaults: dict[str, Any] = {
        "target": None,
        "classes": [],
        "steps": 10,
        "rate": 1.0,
        "momentum": 0.5,
        "clip": 1.0,
        "ridge": 0.0,
    }
    assert {name: value for name, value in written.items() if name not in fields} == defaults
    (tmp_path / "study.json").write_text(json.dumps(written))
    assert read_study(tmp_path / "study.json") == study


def test_a_study_has_the_same_id() -> None:
    roster = read_roster(FIXTURES / "sequence" / "roster.json")
    assert read_study(FIXTURES / "study.json").agreement(roster).session.hex() == SESSION
