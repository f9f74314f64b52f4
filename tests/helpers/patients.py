"""`inca stats` on the example file, and what is true of it."""

from __future__ import annotations

import csv
import json
from typing import Any

import numpy as np

from helpers.command_line import Capture, call
from helpers.paths import ROOT
from inca._base.types import Array

PATIENTS = ROOT / "examples" / "patients.csv"
PRESSURE: list[object] = [PATIENTS, "--party", "clinic", "--column", "pressure", "--domain", 80, 200]
LINE: list[object] = [PATIENTS, "--party", "clinic", "--feature", "age:18:100", "--target", "pressure:80:200"]


def column(name: str) -> Array:
    """Return a column of the example file."""
    with PATIENTS.open() as file:
        return np.array([float(row[name]) for row in csv.DictReader(file)])


def stats(capsys: Capture, verb: str, *words: object) -> dict[str, Any]:
    """Return what a verb of `inca stats` prints for programs."""
    status, out, err = call(capsys, "stats", verb, *words, "--json")
    assert (status, err) == (0, "")
    report: dict[str, Any] = json.loads(out)
    return report
