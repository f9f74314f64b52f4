"""Studies that parties agree on in a file: what they mean, what is refused, and what comes out of known averages."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.averages import averaged
from helpers.paths import ROOT
from helpers.sequence_processes import SIZES, agree
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.learn.averagers.network import NetworkAverager
from inca.learn.budget import Budget
from inca.learn.statistics.records import Records
from inca.learn.study import Study, read_records, read_study, run_study
from inca.learn.training.models import LogisticModel
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.sequence.outcome_log import OutcomeLog, SessionResult
from inca.network.sequence.session_sequence import SessionSequence

NAMES = [f"party-{i}" for i in range(len(SIZES))]
FIELDS: dict[str, Any] = {
    "format": "inca-study/1",
    "name": "a study",
    "task": "moments",
    "columns": {"age": [0, 100], "weight": [20, 220]},
    "records": dict(zip(NAMES, SIZES, strict=True)),
    "epsilon": 2.0,
    "delta": 1e-5,
    "interval": 4.0,
    "gathering": 1.0,
}
LOGISTIC = {"task": "logistic", "target": "ill", "classes": ["no", "yes"], "steps": 2}
REGRESSION = {"task": "regression", "target": "age"}


def write(folder: Path, **changes: Any) -> Path:
    path = folder / "study.json"
    path.write_text(json.dumps(FIELDS | changes))
    return path


def study(folder: Path, **changes: Any) -> Study:
    return read_study(write(folder, **changes))


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_study_is_read_with_its_columns_in_order(tmp_path: Path) -> None:
    both = study(tmp_path)
    assert both.inputs == ["age", "weight"] and both.sessions == 1
    assert [ends.tolist() for ends in both.bounds] == [[0.0, 20.0], [100.0, 220.0]]
    line = study(tmp_path, **REGRESSION)
    assert line.inputs == ["weight", "age"], "a regression's target comes last"
    assert study(tmp_path, **LOGISTIC).sessions == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "inca-study/2"}, "format must be inca-study/1.*, got 'inca-study/2'"),
        ({"format": "inca-roster/1", "terms": {}}, "format must be inca-study/1.*, got 'inca-roster/1'"),
        ({"task": "magic"}, "task"),
        ({"columns": {}}, "the number of columns must be at least 1"),
        ({"columns": {"age": [100, 0]}}, "the upper bound of age must be .*got 0"),
        ({"columns": {"age": [0, "much"]}}, "columns"),
        ({"records": {"party-0": -1}}, "the number of records of party-0 must be .*got -1"),
        ({"epsilon": 0.0}, "epsilon must be .*got 0"),
        ({"delta": 0.0}, "must be a guarantee that Gaussian noise can give"),
        ({"target": "age"}, "target must be None for the task moments.*, got 'age'"),
        ({"task": "regression", "target": "height"}, "target must be one of at least two columns.*, got 'height'"),
        (LOGISTIC | {"target": "age"}, "target must be a column with classes.*, got 'age'"),
        (LOGISTIC | {"classes": ["no"]}, "classes must be at least two.*, got \\['no'\\]"),
        (LOGISTIC | {"classes": ["no", "no"]}, "classes must be at least two"),
        (LOGISTIC | {"records": {"party-0": 0}}, "the number of records of party-0 must be .*got 0"),
        (LOGISTIC | {"steps": 0}, "steps must be .*got 0"),
        ({"clip": -1.0}, "clip must be .*got -1"),
        ({"ridge": -1.0}, "ridge must be .*got -1"),
        ({"momentum": 2.0}, "momentum must be .*got 2"),
        ({"surprise": 1}, "surprise"),
        ({"columns": {"age": [0, 5e-324]}}, "the width of age must be at least 1e-100"),
        ({"clip": 1e-170}, "clip must be from 1e-100"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(InvalidInput, match=sentence) as refusal:
        read_study(path)
    assert "not a valid inca-study/1 file" in str(refusal.value)


def test_files_that_are_no_study_are_refused(tmp_path: Path) -> None:
    for text in (b"", b"[]", b"{}", b"\xff", b'{"format": "inca-study/1"}'):
        (tmp_path / "study.json").write_bytes(text)
        with pytest.raises(InvalidInput, match="not a valid"):
            read_study(tmp_path / "study.json")
    with pytest.raises(InvalidInput, match="cannot be read"):
        read_study(tmp_path / "nothing.json")


def test_study_and_roster_must_name_the_same_parties(tmp_path: Path) -> None:
    roster = agree(tmp_path, 100.0)
    assert study(tmp_path).sizes(roster) == list(SIZES)
    with pytest.raises(InvalidInput, match="must name the same parties, got 'stranger' in the study only"):
        study(tmp_path, records=FIELDS["records"] | {"stranger": 3}).sizes(roster)
    with pytest.raises(InvalidInput, match="must name the same parties, got 'party-0' in the roster only"):
        study(tmp_path, records=dict.fromkeys(NAMES[1:], 1)).sizes(roster)


def test_study_and_roster_have_one_delta(tmp_path: Path) -> None:
    """What a party has lost is told at the roster's delta, and was printed beside the study's: 0.57 for 1.35."""
    with pytest.raises(InvalidInput, match=r"the roster's delta must be 1e-08 by the analytic rule, .*got '1e-05 by"):
        study(tmp_path, delta=1e-8).sizes(agree(tmp_path, 100.0))
    (tmp_path / "again").mkdir()
    place = Place(tmp_path / "again")
    other = NetworkAverager(SessionSequence(place.roster, Identity.read(place.folder), place.folder / "course"))
    with pytest.raises(InvalidInput, match=r"the delta of the budget must be 1e-05 by the analytic rule, .*'1e-06 by"):
        other.expect(Budget(1.0, 1e-6), 1)


def test_parties_with_different_studies_are_in_different_sessions(tmp_path: Path) -> None:
    roster = agree(tmp_path, 100.0)
    swapped = {"columns": dict(reversed(FIELDS["columns"].items()))}
    variants: list[dict[str, Any]] = [{}, {"epsilon": 2.1}, swapped, {"name": "b"}, {"clip": 0.5}]
    sessions = [study(tmp_path, **changes).agreement(roster).session for changes in variants]
    assert len(set(sessions)) == len(sessions)


# --- a party's records ----------------------------------------------------------------------------------------------


def test_records_come_in_the_order_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffill,name, weight ,age\nyes,anna,70,30\nno,bert, 80.5,41\n\n")
    table, labels = read_records(tmp_path / "a.csv", study(tmp_path, **LOGISTIC))
    assert table.tolist() == [[30.0, 70.0], [41.0, 80.5]] and labels == ["yes", "no"]
    assert read_records(tmp_path / "a.csv", study(tmp_path, **REGRESSION))[0].tolist() == [[70.0, 30.0], [80.5, 41.0]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "must have one column named 'age', got 0"),
        ("age,weight,ill,age\n", "must have one column named 'age', got 2"),
        ("age,weight,ill\n30,70\n", "line 2 of .* must have 3 cells, as its header, got 2"),
        (
            "age,weight,ill\n30,70,no\n31,7777,no\n",
            "weight in line 3 of .* must be from 20 to 220, got something else",
        ),
        ("age,weight,ill\n30,secret,no\n", "weight in line 2"),
        ("age,weight,ill\nnan,70,no\n", "age in line 2"),
        ("age,weight,ill\n30,,no\n", "weight in line 2"),
        ("age,weight,ill\n30,70,secret\n", "ill in line 2 of .* must be one of the study's classes"),
    ],
)
def test_records_that_are_not_as_agreed_are_refused_without_showing_them(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InvalidInput, match=sentence) as refusal:
        read_records(tmp_path / "a.csv", study(tmp_path, **LOGISTIC))
    assert "secret" not in str(refusal.value) and "7777" not in str(refusal.value)


def test_numbers_outside_can_be_clipped_but_not_what_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,weight\n-5,999\ninf,70\n")
    assert read_records(tmp_path / "a.csv", study(tmp_path), clip=True)[0].tolist() == [[0.0, 220.0], [100.0, 70.0]]
    (tmp_path / "a.csv").write_text("age,weight\nnan,70\n")
    with pytest.raises(InvalidInput, match="age in line 2"):
        read_records(tmp_path / "a.csv", study(tmp_path), clip=True)
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidInput, match="it is not a CSV file in UTF-8"):
        read_records(tmp_path / "a.csv", study(tmp_path))


# --- what comes out -------------------------------------------------------------------------------------------------


class Place:
    """Party 1 of a sequence whose averages are already known: what everyone's records would give."""

    def __init__(self, folder: Path, *, failure: Any = None, **changes: Any) -> None:
        rng = np.random.default_rng(3)
        low, high = np.array([0.0, 20.0]), np.array([100.0, 220.0])
        self.tables = [rng.uniform(low, high, (size, 2)) for size in SIZES]
        self.study = study(folder, **changes)
        self.roster: Roster = self.study.agreement(agree(folder, -1000.0, failure=failure))
        self.folder = folder / "1"

    def averager(self) -> NetworkAverager:
        identity, folder = Identity.read(self.folder), self.folder / "course"
        return NetworkAverager(SessionSequence(self.roster, identity, folder, interval=4.0, gathering=1.0))

    @property
    def outcome_log(self) -> OutcomeLog:
        return OutcomeLog(self.folder / "course")

    def everything(self) -> Array:
        return np.concatenate(self.tables)


def test_moments_have_names_and_intervals(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.outcome_log.append(
        1, SessionResult(averaged(place.averager(), Records.of(place.tables, place.study.bounds), "moments"), 1e-7)
    )
    answer = run_study(place.study, place.averager(), place.tables[1], [])
    truth = place.everything()
    assert answer["mean"]["weight"]["value"] == pytest.approx(truth[:, 1].mean())
    assert answer["variance"]["age"]["value"] == pytest.approx(truth[:, 0].var())
    row = answer["mean"]["age"]
    assert row["population_low"] < row["low"] <= row["value"] <= row["high"] < row["population_high"]
    assert answer["epsilon"] == pytest.approx(2.0) and answer["format"] == "inca-answer/1"
    assert math.isfinite(json.loads(json.dumps(answer))["mean"]["age"]["standard_error"])


@pytest.mark.parametrize("failure", [None, 1e-6])
def test_an_answer_tells_how_likely_the_plan_fails(tmp_path: Path, failure: float | None) -> None:
    place = Place(tmp_path, failure=failure)
    records = Records.of(place.tables, place.study.bounds)
    place.outcome_log.append(1, SessionResult(averaged(place.averager(), records, "moments"), 1e-7))
    answer = run_study(place.study, place.averager(), place.tables[1], [])
    assert (answer["delta"], answer["failure_probability"]) == (1e-5, failure)


def test_the_plan_may_fail_in_all_sessions_together_with_delta_at_most(tmp_path: Path) -> None:
    logistic = study(tmp_path, **LOGISTIC)  # two sessions
    assert logistic.failure_probability(agree(tmp_path / "unknown", 1000.0)) is None
    assert logistic.failure_probability(agree(tmp_path / "small", 1000.0, failure=1e-6)) == pytest.approx(2e-6)
    sentence = "the roster's probability of failure must be at most 5e-06, delta over 2 sessions, got 8e-06"
    with pytest.raises(InvalidInput, match=sentence):
        logistic.sizes(agree(tmp_path / "large", 1000.0, failure=8e-6))


def test_no_private_value_is_shown_when_records_are_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, **LOGISTIC)
    labels = ["yes"] * 8 + ["secret"]
    with pytest.raises(
        InvalidInput, match=r"labels\[8\] must be one of the study's classes, got something else"
    ) as one:
        run_study(place.study, place.averager(), place.tables[1], labels)
    table = place.tables[1].copy()
    table[3, 1] = 7777.25
    where = r"column 1 of data\[1\]\[3\] must be from 20 to 220, got something else"
    with pytest.raises(InvalidInput, match=where) as two:
        run_study(place.study, place.averager(), table, ["yes"] * 9, clip=False)
    words = [["7777.25 kg", "1"]] * 9
    with pytest.raises(InvalidInput, match=r"data\[1\] must be an array of numbers") as three:
        run_study(place.study, place.averager(), words, ["yes"] * 9)  # type: ignore[arg-type]
    for refusal in (one, two, three):
        assert "secret" not in str(refusal.value) and "7777" not in str(refusal.value)


def test_numbers_outside_are_clipped_and_training_goes_on(tmp_path: Path) -> None:
    place = Place(tmp_path, **(LOGISTIC | {"steps": 1}))
    place.outcome_log.append(1, SessionResult(np.zeros(3)))
    table = place.tables[1].copy()
    table[0], table[1] = (7777.25, np.nan), (np.inf, -np.inf)
    assert run_study(place.study, place.averager(), table, ["yes"] * 9)["steps_without_result"] == 0


def test_a_regression_is_that_of_all_records(tmp_path: Path) -> None:
    place = Place(tmp_path, **REGRESSION)
    tables = [table[:, ::-1].copy() for table in place.tables]
    place.outcome_log.append(
        1, SessionResult(averaged(place.averager(), Records.of(tables, place.study.bounds), "regression"), 1e-9)
    )
    answer = run_study(place.study, place.averager(), tables[1], [])
    x, y = place.everything()[:, 1], place.everything()[:, 0]
    slope, height = np.polyfit(x, y, 1)
    assert answer["coefficients"]["weight"]["value"] == pytest.approx(slope, rel=1e-4)
    assert answer["intercept"]["value"] == pytest.approx(height, rel=1e-4)


def test_weights_are_for_the_columns_as_they_are(tmp_path: Path) -> None:
    """One step from 0 along a known average: the score of a record is that of the scaled columns."""
    place = Place(tmp_path, **(LOGISTIC | {"steps": 1, "rate": 1.0}))
    gradient = np.array([0.3, -0.2, 0.1])
    place.outcome_log.append(1, SessionResult(gradient))
    answer = run_study(place.study, place.averager(), place.tables[1], ["yes", "no", "no"] * 3)
    (row,) = answer["coefficients"].values()
    assert list(answer["coefficients"]) == ["yes"] and answer["steps_without_result"] == 0
    record = np.array([30.0, 70.0])
    scaled = np.array([(30.0 - 50.0) / 50.0, (70.0 - 120.0) / 100.0, 1.0])
    expected = LogisticModel(3, 2).scores(-gradient, scaled[np.newaxis])[0, 0]
    assert answer["intercept"]["yes"] + record @ [row["age"], row["weight"]] == pytest.approx(expected)


def test_three_classes_have_a_row_each_and_a_step_without_result_is_counted(tmp_path: Path) -> None:
    place = Place(tmp_path, **(LOGISTIC | {"classes": ["a", "b", "c"]}))
    place.outcome_log.append(1, SessionResult(np.zeros(9)))
    place.outcome_log.append(2, None)
    answer = run_study(place.study, place.averager(), place.tables[1], ["a"] * 9)
    assert list(answer["intercept"]) == ["a", "b", "c"] and answer["steps_without_result"] == 1


def test_the_agreed_number_of_records_is_insisted_on(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    place = Place(tmp_path)
    with pytest.raises(InvalidInput, match="the number of records must be 9, as the study says, got 2"):
        run_study(place.study, place.averager(), place.tables[1][:2], [])
    classified = Place(tmp_path / "again", **LOGISTIC)
    with pytest.raises(InvalidInput, match="the number of labels must be 9, one for each record, got 1"):
        run_study(classified.study, classified.averager(), place.tables[1], ["yes"])


@pytest.mark.slow
def test_the_clinics_learn_together() -> None:
    path = ROOT / "examples" / "learning_consortium.py"
    done = subprocess.run([sys.executable, str(path), "--steps", "4"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # On a busy machine the killed clinic may come back when the others are gone: then it is named, and they go on.
    assert "clinics have the same model: True" in done.stdout
    assert done.stdout.count("has no answer") <= 1
    assert ("All 10 clinics" in done.stdout) == ("has no answer" not in done.stdout)
