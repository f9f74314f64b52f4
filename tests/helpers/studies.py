"""Studies for tests, as files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from helpers.sequence_processes import SIZES

LOGISTIC: dict[str, Any] = {"task": "logistic", "target": "ill", "classes": ["no", "yes"], "steps": 2}


def write_study(folder: Path, **changes: Any) -> Path:
    """Write a study of two columns for the parties of `helpers.sequence_processes`."""
    fields: dict[str, Any] = {"format": "inca-study/1", "name": "a study", "task": "moments"}
    fields |= {"columns": {"age": [0, 100], "weight": [20, 220]}, "epsilon": 2.0, "delta": 1e-5}
    fields |= {"records": {f"party-{i}": size for i, size in enumerate(SIZES)}, "interval": 4.0, "gathering": 1.0}
    path = folder / "study.json"
    path.write_text(json.dumps(fields | changes))
    return path
