from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, call, refused
from helpers.patients import PRESSURE, column, stats


def test_intervals_hold_the_quantiles(capsys: Capture) -> None:
    words = [*PRESSURE, "--epsilon", 2, "--seed", 1, "--confidence", 0.9999999]
    report = stats(capsys, "quantiles", *words)
    assert report["quantiles"] == [0.25, 0.5, 0.75]
    for row, share in zip(report["estimates"], report["quantiles"], strict=True):
        # False alarms 3e-7 over three quantiles.
        truth = np.quantile(column("pressure"), share, method="inverted_cdf")
        assert row["interval"][0] <= truth <= row["interval"][1] < 200
        assert row["interval"][0] <= row["estimate"] <= row["interval"][1]


def test_several_cost_as_much_as_one(capsys: Capture) -> None:
    words = [*PRESSURE, "--epsilon", 1, "--seed", 3]
    one = stats(capsys, "quantiles", *words, "--quantile", 0.5)
    three = stats(capsys, "quantiles", *words, "--quantile", 0.9, "--quantile", 0.5, "--quantile", 0.1)
    assert three["quantiles"] == [0.1, 0.5, 0.9] and len(one["estimates"]) == 1
    assert one["epsilon_spent"] == three["epsilon_spent"] == pytest.approx(1, rel=1e-9)
    assert one["estimates"][0] == three["estimates"][1]  # the same noise, to the last digit


def test_a_guess_that_would_do_as_well_is_said(capsys: Capture) -> None:
    report = stats(capsys, "quantiles", *PRESSURE, "--epsilon", 0.02, "--level", "party", "--quantile", 0.5)
    assert report["says_nothing"] and report["remarks"][0].startswith("Quantile 0.5: the standard error")
    assert report["remarks"][0].endswith("guessing 140, the middle, would do as well.")


def test_a_picture_and_narrow_text(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    words = [*PRESSURE, "--epsilon", 1, "--quantile", 0.3, "--picture", path]
    status, out, err = call(capsys, "stats", "quantiles", *words)
    assert (status, err) == (0, "") and path.stat().st_size > 1000 and "quantile 0.3" in out
    assert max(len(line) for line in out.splitlines() if str(path) not in line) <= 80


@pytest.mark.parametrize("share", [0.0, 1.0, -0.5, 2.0])
def test_other_shares_are_refused(share: float, capsys: Capture) -> None:
    sentence = refused(capsys, "stats", "quantiles", *PRESSURE, "--epsilon", 1, "--quantile", share)
    assert sentence == f"--quantile must be between 0 and 1, got {share}"


def test_other_grids_are_refused(capsys: Capture) -> None:
    sentence = refused(capsys, "stats", "quantiles", *PRESSURE, "--epsilon", 1, "--points", 0)
    assert sentence == "--points must be from 1 to 2000, got 0"
