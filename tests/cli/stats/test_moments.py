from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, call
from helpers.patients import PRESSURE, column, stats
from inca import Conditions, Interval
from inca.cli.stats.records_file import read_parties
from inca.learn.averagers.simulated import calibrated
from inca.learn.budget import Budget
from inca.learn.statistics.moments import moments
from inca.learn.statistics.records import Records

ROW = [
    "name",
    "estimate",
    "unconstrained",
    "standard_error",
    "interval",
    "population_standard_error",
    "population_interval",
    "says_nothing",
]


def test_the_mean_and_the_variance_are_near_the_truth(capsys: Capture) -> None:
    held = column("pressure")
    report = stats(capsys, "variance", *PRESSURE, "--epsilon", 1, "--seed", 1)
    variance, mean = report["estimates"]
    assert (variance["name"], mean["name"]) == ("variance", "mean")
    # Five standard errors: false alarms 6e-7 for the mean; the variance's error is nearly normal.
    assert abs(mean["estimate"] - held.mean()) < 5 * mean["standard_error"] < 10
    assert abs(variance["unconstrained"] - held.var()) < 5 * variance["standard_error"]


def test_fields_for_programs(capsys: Capture) -> None:
    report = stats(capsys, "mean", *PRESSURE, "--epsilon", 1, "--colluding", 0.1, "--dropout", 0.1)
    assert list(report["estimates"][0]) == ROW and len(report["estimates"]) == 1
    assert (report["statistic"], report["column"], report["domain"]) == ("mean", "pressure", [80, 200])
    assert (report["records"], report["parties"], report["level"]) == (276, 12, "record")
    assert (report["colluders"], report["leavers"], report["private"]) == (2, 2, True)
    assert "one record" in report["protects"] and report["against"].endswith("collude, 2 of them")
    assert (report["epsilon"], report["delta"], report["confidence"]) == (1, 1e-5, 0.95)
    assert report["epsilon_spent"] == pytest.approx(1, rel=1e-9) and report["failure_probability"] == 0.0  # a circle
    (row,) = report["estimates"]
    assert row["interval"][0] < row["estimate"] < row["interval"][1]
    assert row["population_interval"][0] < row["interval"][0] and report["remarks"] == []


def test_the_command_is_the_library(capsys: Capture) -> None:
    report = stats(capsys, "mean", *PRESSURE, "--epsilon", 2, "--seed", 5, "--level", "party", "--confidence", 0.5)
    tables = read_parties(Path(str(PRESSURE[0])), "clinic", [("--column", "pressure")])
    records = Records.of([table[:, 0] for table in tables], Interval(80, 200), level="party")
    averager, budget = calibrated("inca", 12, Conditions()), Budget(2.0, 1e-5)
    both = moments(records, averager, budget, np.random.default_rng(5))
    (row,) = report["estimates"]
    assert (row["estimate"], row["standard_error"]) == (both.mean.estimate, both.mean.standard_error)
    assert tuple(row["interval"]) == both.mean.interval(0.5)
    assert report["private"] is False and "one party" in report["protects"]


def test_numbers_outside_the_domain_count_as_its_nearer_end(capsys: Capture) -> None:
    words = [*PRESSURE[:5], "--domain", 130, 140, "--epsilon", 1, "--seed", 1]
    (row,) = stats(capsys, "mean", *words)["estimates"]
    assert abs(row["estimate"] - np.clip(column("pressure"), 130, 140).mean()) < 5 * row["standard_error"]


def test_a_party_needs_more_noise_than_a_record(capsys: Capture) -> None:
    errors = [
        stats(capsys, "mean", *PRESSURE, "--epsilon", 1, "--level", level)["estimates"][0]["standard_error"]
        for level in ("record", "party")
    ]
    assert errors[1] > 10 * errors[0]


def test_a_guess_that_would_do_as_well_is_said(capsys: Capture) -> None:
    words = [*PRESSURE, "--epsilon", 0.05, "--level", "party", "--seed", 2]
    report = stats(capsys, "variance", *words)
    assert report["says_nothing"] and all(row["says_nothing"] for row in report["estimates"])
    ends = [sentence for sentence in report["remarks"] if sentence.endswith("the middle, would do as well.")]
    assert len(ends) == 2 and "guessing 1800" in ends[0] and "guessing 140" in ends[1]
    assert any("is the nearest that can be" in sentence for sentence in report["remarks"])


def test_text_says_whose_privacy_it_is_and_is_narrow(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, err = call(capsys, "stats", "variance", *PRESSURE, "--epsilon", 0.1, "--seed", 1)
    assert (status, err) == (0, "") and max(map(len, out.splitlines())) <= 80
    for part in (
        "protects  one record, that is one row",
        "epsilon 0.1 at delta 1e-05, planned, not audited",
        "collude, 2 of them",
        "All parties are simulated here",
        "therefore not private",
    ):
        assert part in out, part
    status, out, _ = call(capsys, "stats", "mean", *PRESSURE, "--epsilon", 1, "--level", "party", "--colluding", 0)
    assert "not parties that look" in out
    assert "protects  one party, with all its records" in out and "seed" not in out


@pytest.mark.parametrize("verb", ["mean", "variance"])
def test_a_picture(verb: str, capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "one.svg"
    status, out, err = call(capsys, "stats", verb, *PRESSURE, "--epsilon", 1, "--picture", path)
    assert (status, err) == (0, "") and out.endswith(f"The picture is in {path}.\n")
    assert path.stat().st_size > 1000
