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
from helpers.command_line import call
from helpers.paths import ROOT
from helpers.sequence_processes import SIZES, agreed
from inca._base.types import Array
from inca._base.validation import InputError
from inca.learn.averagers.network import Sessions
from inca.learn.statistics.records import Records
from inca.learn.study import Study, carry_out, read_records, read_study
from inca.learn.training.models import LogisticModel
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.sequence.outcome_log import Chain
from inca.network.sequence.session_sequence import Course

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
    found = study(tmp_path)
    assert found.inputs == ["age", "weight"] and found.sessions == 1
    assert [each.tolist() for each in found.bounds] == [[0.0, 20.0], [100.0, 220.0]]
    line = study(tmp_path, **REGRESSION)
    assert line.inputs == ["weight", "age"], "a regression's target comes last"
    assert study(tmp_path, **LOGISTIC).sessions == 2


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "inca-study/2"}, "format is 'inca-study/2', but inca-study/1"),
        ({"format": "inca-roster/1", "terms": {}}, "format is 'inca-roster/1', but inca-study/1"),
        ({"task": "magic"}, "task"),
        ({"columns": {}}, "columns is empty"),
        ({"columns": {"age": [100, 0]}}, "the upper bound of age is 0"),
        ({"columns": {"age": [0, "much"]}}, "columns"),
        ({"records": {"party-0": -1}}, "the records of party-0 is -1"),
        ({"epsilon": 0.0}, "epsilon is 0"),
        ({"delta": 0.0}, "no Gaussian noise can promise"),
        ({"target": "age"}, "target is 'age', but none for the task moments"),
        ({"task": "regression", "target": "height"}, "target is 'height', but one of at least two columns"),
        (LOGISTIC | {"target": "age"}, "target is 'age', but a column with classes"),
        (LOGISTIC | {"classes": ["no"]}, "classes is \\['no'\\], but at least two"),
        (LOGISTIC | {"classes": ["no", "no"]}, "classes is"),
        (LOGISTIC | {"records": {"party-0": 0}}, "the records of party-0 is 0"),
        (LOGISTIC | {"steps": 0}, "steps is 0"),
        ({"clip": -1.0}, "clip is -1"),
        ({"ridge": -1.0}, "ridge is -1"),
        ({"momentum": 2.0}, "momentum is 2"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = write(tmp_path, **changes)
    with pytest.raises(InputError, match=sentence) as refusal:
        read_study(path)
    assert "not a valid inca-study/1 file" in str(refusal.value)


def test_files_that_are_no_study_are_refused(tmp_path: Path) -> None:
    for text in (b"", b"[]", b"{}", b"\xff", b'{"format": "inca-study/1"}'):
        (tmp_path / "study.json").write_bytes(text)
        with pytest.raises(InputError, match="not a valid"):
            read_study(tmp_path / "study.json")
    with pytest.raises(InputError, match="cannot be read"):
        read_study(tmp_path / "nothing.json")


def test_study_and_roster_must_name_the_same_parties(tmp_path: Path) -> None:
    roster = agreed(tmp_path, 100.0)
    assert study(tmp_path).sizes(roster) == list(SIZES)
    with pytest.raises(InputError, match="a party of the study is 'stranger'"):
        study(tmp_path, records=FIELDS["records"] | {"stranger": 3}).sizes(roster)
    with pytest.raises(InputError, match="a party of the roster is 'party-0'"):
        study(tmp_path, records=dict.fromkeys(NAMES[1:], 1)).sizes(roster)


def test_parties_with_different_studies_are_in_different_sessions(tmp_path: Path) -> None:
    roster = agreed(tmp_path, 100.0)
    swapped = {"columns": dict(reversed(FIELDS["columns"].items()))}
    variants: list[dict[str, Any]] = [{}, {"epsilon": 2.1}, swapped, {"name": "b"}, {"clip": 0.5}]
    made = [study(tmp_path, **each).agreement(roster).session for each in variants]
    assert len(set(made)) == len(made)


# --- a party's records ----------------------------------------------------------------------------------------------


def test_records_come_in_the_order_of_the_study(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("\ufeffill,name, weight ,age\nyes,anna,70,30\nno,bert, 80.5,41\n\n")
    table, labels = read_records(tmp_path / "a.csv", study(tmp_path, **LOGISTIC))
    assert table.tolist() == [[30.0, 70.0], [41.0, 80.5]] and labels == ["yes", "no"]
    assert read_records(tmp_path / "a.csv", study(tmp_path, **REGRESSION))[0].tolist() == [[70.0, 30.0], [80.5, 41.0]]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "has 0 columns named 'age'"),
        ("age,weight,ill,age\n", "has 2 columns named 'age'"),
        ("age,weight,ill\n30,70\n", "there are 2 cells in line 2 of .*, but 3 were expected"),
        (
            "age,weight,ill\n30,70,no\n31,7777,no\n",
            "weight in line 3 of .* is something else than a number from 20 to 220",
        ),
        ("age,weight,ill\n30,secret,no\n", "weight in line 2"),
        ("age,weight,ill\nnan,70,no\n", "age in line 2"),
        ("age,weight,ill\n30,,no\n", "weight in line 2"),
        ("age,weight,ill\n30,70,secret\n", "ill in line 2 of .* is none of the study's classes"),
    ],
)
def test_records_that_are_not_as_agreed_are_refused_without_showing_them(
    tmp_path: Path, text: str, sentence: str
) -> None:
    (tmp_path / "a.csv").write_text(text)
    with pytest.raises(InputError, match=sentence) as refusal:
        read_records(tmp_path / "a.csv", study(tmp_path, **LOGISTIC))
    assert "secret" not in str(refusal.value) and "7777" not in str(refusal.value)


def test_numbers_outside_can_be_clipped_but_not_what_is_no_number(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("age,weight\n-5,999\ninf,70\n")
    assert read_records(tmp_path / "a.csv", study(tmp_path), clip=True)[0].tolist() == [[0.0, 220.0], [100.0, 70.0]]
    (tmp_path / "a.csv").write_text("age,weight\nnan,70\n")
    with pytest.raises(InputError, match="age in line 2"):
        read_records(tmp_path / "a.csv", study(tmp_path), clip=True)
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="it is not a CSV file in UTF-8"):
        read_records(tmp_path / "a.csv", study(tmp_path))


# --- what comes out -------------------------------------------------------------------------------------------------


class Place:
    """Party 1 of a course whose averages are already known: what everyone's records would give."""

    def __init__(self, folder: Path, **changes: Any) -> None:
        rng = np.random.default_rng(3)
        low, high = np.array([0.0, 20.0]), np.array([100.0, 220.0])
        self.tables = [rng.uniform(low, high, (size, 2)) for size in SIZES]
        self.study = study(folder, **changes)
        self.roster: Roster = self.study.agreement(agreed(folder, -1000.0))
        self.folder = folder / "1"

    def sessions(self) -> Sessions:
        identity, folder = Identity.read(self.folder), self.folder / "course"
        return Sessions(Course(self.roster, identity, folder, interval=4.0, gathering=1.0))

    @property
    def chain(self) -> Chain:
        return Chain(self.folder / "course")

    def everything(self) -> Array:
        return np.concatenate(self.tables)


def test_moments_have_names_and_intervals(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.chain.settle(1, averaged(place.sessions(), Records.of(place.tables, place.study.bounds), "moments"), 1e-7)
    answer = carry_out(place.study, place.sessions(), place.tables[1], [])
    truth = place.everything()
    assert answer["mean"]["weight"]["value"] == pytest.approx(truth[:, 1].mean())
    assert answer["variance"]["age"]["value"] == pytest.approx(truth[:, 0].var())
    row = answer["mean"]["age"]
    assert row["population_low"] < row["low"] <= row["value"] <= row["high"] < row["population_high"]
    assert answer["epsilon"] == pytest.approx(2.0) and answer["format"] == "inca-answer/1"
    assert math.isfinite(json.loads(json.dumps(answer))["mean"]["age"]["standard_error"])


def test_a_regression_is_that_of_all_records(tmp_path: Path) -> None:
    place = Place(tmp_path, **REGRESSION)
    tables = [table[:, ::-1].copy() for table in place.tables]
    place.chain.settle(1, averaged(place.sessions(), Records.of(tables, place.study.bounds), "regression"), 1e-9)
    answer = carry_out(place.study, place.sessions(), tables[1], [])
    x, y = place.everything()[:, 1], place.everything()[:, 0]
    slope, height = np.polyfit(x, y, 1)
    assert answer["coefficients"]["weight"]["value"] == pytest.approx(slope, rel=1e-4)
    assert answer["intercept"]["value"] == pytest.approx(height, rel=1e-4)


def test_weights_are_for_the_columns_as_they_are(tmp_path: Path) -> None:
    """One step from 0 along a known average: the score of a record is that of the scaled columns."""
    place = Place(tmp_path, **(LOGISTIC | {"steps": 1, "rate": 1.0}))
    gradient = np.array([0.3, -0.2, 0.1])
    place.chain.settle(1, gradient)
    answer = carry_out(place.study, place.sessions(), place.tables[1], ["yes", "no", "no"] * 3)
    (row,) = answer["coefficients"].values()
    assert list(answer["coefficients"]) == ["yes"] and answer["steps_without_result"] == 0
    record = np.array([30.0, 70.0])
    scaled = np.array([(30.0 - 50.0) / 50.0, (70.0 - 120.0) / 100.0, 1.0])
    expected = LogisticModel(3, 2).scores(-gradient, scaled[np.newaxis])[0, 0]
    assert answer["intercept"]["yes"] + record @ [row["age"], row["weight"]] == pytest.approx(expected)


def test_three_classes_have_a_row_each_and_a_step_without_result_is_counted(tmp_path: Path) -> None:
    place = Place(tmp_path, **(LOGISTIC | {"classes": ["a", "b", "c"]}))
    place.chain.settle(1, np.zeros(9))
    chain = place.chain
    chain.settle(2, None)
    answer = carry_out(place.study, place.sessions(), place.tables[1], ["a"] * 9)
    assert list(answer["intercept"]) == ["a", "b", "c"] and answer["steps_without_result"] == 1


def test_the_agreed_number_of_records_is_insisted_on(tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    place = Place(tmp_path)
    with pytest.raises(InputError, match="the number of records is 2, but 9, as the study says"):
        carry_out(place.study, place.sessions(), place.tables[1][:2], [])
    classified = Place(tmp_path / "again", **LOGISTIC)
    with pytest.raises(InputError, match="the number of labels is 1, but one for each of 9 records"):
        carry_out(classified.study, classified.sessions(), place.tables[1], ["yes"])


# --- the commands ---------------------------------------------------------------------------------------------------


def test_agree_says_what_it_means(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    agreed(tmp_path, 1000.0)
    files = write(tmp_path, **(LOGISTIC | {"steps": 9})), tmp_path / "roster.json"
    status, said, _ = call(capsys, "learn", "agree", *files)
    assert status == 0 and "9, each epsilon" in said and "each record, with epsilon 2" in said
    fields = json.loads(call(capsys, "learn", "agree", *files, "--json")[1])
    assert fields["sessions"] == len(fields["starts"]) == 9 and fields["records"] == sum(SIZES)
    assert fields["session_epsilon"] < 2.0


def test_the_command_gives_the_answer_that_is_on_disk_and_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """All averages are known, and the last meeting is long over: nothing of the network is needed."""
    place = Place(tmp_path, **(LOGISTIC | {"steps": 1}))
    state = tmp_path / "state" / place.roster.session.hex()[:16]
    Chain(state).settle(1, np.array([0.3, -0.2, 0.1]))
    rows = "".join(f"{age},{weight},no\n" for age, weight in place.tables[1])
    (tmp_path / "a.csv").write_text(f"age,weight,ill\n{rows}")
    words = ["learn", "party", tmp_path / "study.json", tmp_path / "roster.json", "--identity", tmp_path / "1"]
    words += ["--state", tmp_path / "state", "--records"]
    status, said, errors = call(capsys, *words, tmp_path / "a.csv")
    assert status == 0, errors
    assert "yes: weight" in said and "epsilon 2 at delta 1e-05 was agreed" in said
    answer = json.loads(call(capsys, *words, tmp_path / "a.csv", "--json")[1])
    kept = json.loads((state / "answer.json").read_text())
    assert kept["coefficients"] == answer["coefficients"]
    assert json.loads((state / "course.json").read_text())["format"] == "inca-course/1"
    status, _, errors = call(capsys, *words, tmp_path / "nothing.csv")
    assert status == 2 and "cannot be read" in errors
    words[words.index("--state") + 1] = tmp_path / "a.csv"  # a file where a folder should be
    status, _, errors = call(capsys, *words, tmp_path / "a.csv")
    assert status == 2 and "cannot be used: Not a directory" in errors and errors.count("\n") == 1


@pytest.mark.slow
def test_the_clinics_learn_together() -> None:
    path = ROOT / "examples" / "learning_consortium.py"
    done = subprocess.run([sys.executable, str(path), "--steps", "4"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "All 10 clinics have the same model: True" in done.stdout
