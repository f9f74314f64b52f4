"""Studies for tests, as files, and a party whose averages are known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from helpers.sequence_processes import SIZES, agree
from inca._base.types import Array
from inca.learn.averagers.network import NetworkAverager
from inca.learn.study import Study, read_study
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.sequence.outcome_log import OutcomeLog
from inca.network.sequence.session_sequence import SessionSequence

FIELDS: dict[str, Any] = {
    "format": "inca-study/1",
    "name": "a study",
    "task": "moments",
    "columns": {"age": [0, 100], "weight": [20, 220]},
    "records": {f"party-{i}": size for i, size in enumerate(SIZES)},
    "epsilon": 2.0,
    "delta": 1e-5,
    "interval": 4.0,
    "gathering": 1.0,
}
LOGISTIC: dict[str, Any] = {"task": "logistic", "target": "ill", "classes": ["no", "yes"], "steps": 2}
REGRESSION: dict[str, Any] = {"task": "regression", "target": "age"}
AGE: dict[str, Any] = {"columns": {"age": [0, 100]}}
HISTOGRAM: dict[str, Any] = {"task": "histogram", "bins": 4, **AGE}
QUANTILES: dict[str, Any] = {"task": "quantiles", "quantiles": [0.25, 0.5, 0.75], **AGE}


def write_study(folder: Path, **changes: Any) -> Path:
    """Write a study of two columns for the parties of `helpers.sequence_processes`."""
    path = folder / "study.json"
    path.write_text(json.dumps(FIELDS | changes))
    return path


def study(folder: Path, **changes: Any) -> Study:
    """Return such a study, read from its file."""
    return read_study(write_study(folder, **changes))


class Place:
    """Party 1 of a sequence whose averages are already known: what everyone's records would give."""

    def __init__(self, folder: Path, *, failure: Any = None, **changes: Any) -> None:
        rng = np.random.default_rng(3)
        low, high = np.array([0.0, 20.0]), np.array([100.0, 220.0])
        both = [rng.uniform(low, high, (size, 2)) for size in SIZES]
        self.study = study(folder, **changes)
        self.tables = [table[:, : len(self.study.columns)] for table in both]
        self.roster: Roster = self.study.agreement(agree(folder, -1000.0, failure=failure))
        self.folder = folder / "1"

    def averager(self) -> NetworkAverager:
        """Return this party's averager, as a program that was just started has it."""
        identity, folder = Identity.read(self.folder), self.folder / "course"
        return NetworkAverager(SessionSequence(self.roster, identity, folder, interval=4.0, gathering=1.0))

    @property
    def outcome_log(self) -> OutcomeLog:
        """What this party knows of sessions that are over."""
        return OutcomeLog(self.folder / "course")

    def everything(self) -> Array:
        """Return the records of all parties."""
        return np.concatenate(self.tables)
