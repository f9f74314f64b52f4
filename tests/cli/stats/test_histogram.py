from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, call, refused
from helpers.patients import PRESSURE, column, stats


def test_shares_are_near_the_truth(capsys: Capture) -> None:
    report = stats(capsys, "histogram", *PRESSURE, "--epsilon", 2, "--bins", 6, "--seed", 1)
    assert report["edges"] == [80, 100, 120, 140, 160, 180, 200] and len(report["estimates"]) == 6
    truth = np.histogram(column("pressure"), report["edges"])[0] / 276
    for row, share in zip(report["estimates"], truth, strict=True):
        # 5.5 standard errors of exactly normal noise: false alarms 2.3e-7 over six bins.
        assert abs(row["unconstrained"] - share) < 5.5 * row["standard_error"]
    assert report["estimates"][0]["name"] == "80 to 100" and not report["says_nothing"]
    assert report["epsilon_spent"] == pytest.approx(2, rel=1e-9)


def test_small_bins_and_guesses_are_said(capsys: Capture) -> None:
    report = stats(capsys, "histogram", *PRESSURE, "--epsilon", 1, "--bins", 40)
    assert "cannot be told from an empty one" in report["remarks"][0] and not report["says_nothing"]
    report = stats(capsys, "histogram", *PRESSURE, "--epsilon", 0.05)
    assert report["says_nothing"] and report["remarks"][0].endswith("guessing 1/10 for every bin would do as well.")


def test_a_picture_and_narrow_text(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    status, out, err = call(capsys, "stats", "histogram", *PRESSURE, "--epsilon", 1, "--picture", path)
    assert (status, err) == (0, "") and path.stat().st_size > 1000
    assert max(len(line) for line in out.splitlines() if str(path) not in line) <= 80


def test_one_bin_is_refused(capsys: Capture) -> None:
    sentence = refused(capsys, "stats", "histogram", *PRESSURE, "--epsilon", 1, "--bins", 1)
    assert sentence == "--bins must be from 2 to 1000, got 1"
