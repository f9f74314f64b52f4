from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, call, refused
from helpers.patients import LINE, PATIENTS, column, stats


def test_the_line_is_near_the_truth(capsys: Capture) -> None:
    report = stats(capsys, "regression", *LINE, "--epsilon", 20, "--seed", 1)
    intercept, slope = report["estimates"]
    assert (intercept["name"], slope["name"]) == ("intercept", "age") and report["remarks"] == []
    truth = np.polyfit(column("age"), column("pressure"), 1)
    # Six standard errors: false alarms 4e-9 if errors are normal, which they are to first order.
    assert abs(slope["estimate"] - truth[0]) < 6 * slope["standard_error"] < 0.4
    assert abs(intercept["estimate"] - truth[1]) < 6 * intercept["standard_error"]
    assert report["features"] == [{"name": "age", "domain": [18, 100]}]
    assert report["target"] == {"name": "pressure", "domain": [80, 200]}
    assert report["epsilon_spent"] == pytest.approx(20, rel=1e-9) and report["eigenvalues_raised"] == 0


def test_what_noise_hides_is_said(capsys: Capture) -> None:
    words = [*LINE, "--feature", "bmi:15:45", "--epsilon", 0.2, "--level", "party", "--seed", 1]
    report = stats(capsys, "regression", *words)
    said = " ".join(report["remarks"])
    assert report["eigenvalues_raised"] > 0 and "too narrow to rely on" in said and "intervals hold 0" in said
    assert report["says_nothing"] and "guessing 140, the middle of the bounds of pressure, would do as well" in said
    close = stats(capsys, "regression", *LINE, "--feature", "bmi:15:45", "--epsilon", 4, "--seed", 1)
    assert 1 <= close["smallest_eigenvalue"] < 3 and "hardly above the noise" in close["remarks"][0]


def test_a_picture_and_narrow_text(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    status, out, err = call(capsys, "stats", "regression", *LINE, "--epsilon", 4, "--ridge", 0.01, "--picture", path)
    assert (status, err) == (0, "") and path.stat().st_size > 1000
    assert max(len(line) for line in out.splitlines() if str(path) not in line) <= 80


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--feature", "bmi"], "--feature must be a column and its bounds, as in age:18:100, got 'bmi'"),
        (["--feature", "bmi:a:b"], "--feature must be a column and its bounds, as in age:18:100, got 'bmi:a:b'"),
        (["--feature", "bmi:45:15"], "the upper bound of column 'bmi' must be above the lower one (45), got 15.0"),
        (["--feature", "bmi:nan:15"], "the lower bound of column 'bmi' must be a finite number, got nan"),
        (["--feature", "size:0:2"], f"--feature must be a name in the first line of {PATIENTS}, got 'size'"),
        (["--feature", "age:18:90"], "column 'age' must be asked for once, got it 2 times"),
        (["--feature", "clinic:0:1"], "--party must be another column than those of numbers, got 'clinic'"),
        (["--ridge", -1], "--ridge must be at least 0, got -1.0"),
    ],
)
def test_what_is_refused(words: list[object], sentence: str, capsys: Capture) -> None:
    assert refused(capsys, "stats", "regression", *LINE, "--epsilon", 1, *words) == sentence
