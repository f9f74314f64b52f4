from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.command_line import Capture, call, instead, refused
from helpers.sequence_processes import SIZES, agree
from helpers.studies import HISTOGRAM, LOGISTIC, QUANTILES, write_study
from inca.learn.study import read_study
from inca.network.sequence.outcome_log import OutcomeLog, SessionResult

ME = 1


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """The folder of a study of one step whose average is known, long after the time to catch up: no network needed."""
    study = read_study(write_study(tmp_path, **(LOGISTIC | {"steps": 1})))
    roster = study.agreement(agree(tmp_path, -1000.0))
    folder = tmp_path / "state" / roster.session.hex()[:16]
    OutcomeLog(folder).append(1, SessionResult(np.array([0.3, -0.2, 0.1]), None, bytes(32)))
    rows = np.random.default_rng(3).uniform((0.0, 20.0), (100.0, 220.0), (SIZES[ME], 2))
    lines = ["age,weight,ill", *(f"{age},{weight},no" for age, weight in rows)]
    (tmp_path / "records.csv").write_text("\n".join(lines))
    return folder


def words(folder: Path) -> list[object]:
    files: list[object] = [folder / "study.json", folder / "roster.json"]
    files += ["--identity", folder / str(ME), "--state", folder / "state", "--records", folder / "records.csv"]
    return ["learn", "party", *files]


def test_it_prints_the_answer(tmp_path: Path, state: Path, capsys: Capture) -> None:
    status, out, err = call(capsys, *words(tmp_path))
    assert status == 0, err
    for part in ("yes: weight", "intercept yes", "steps without result", "epsilon 2 at delta 1e-05, all sessions"):
        assert part in out
    assert out.endswith(f"kept in                      {state}\n") and "given away by this party" in out
    assert "plans fail with probability  not said by the roster; it adds to delta" in out
    assert "given away by this party     epsilon 0 at delta 1e-05" in out


@pytest.mark.parametrize(
    ("changes", "width", "labels"),
    [
        (HISTOGRAM, 4, ["share from 0 to 25", "share from 75 to 100"]),
        (QUANTILES | {"points": 3}, 4, ["quantile 0.25", "quantile 0.75"]),
    ],
)
def test_it_prints_a_distribution(
    tmp_path: Path, capsys: Capture, changes: dict[str, Any], width: int, labels: list[str]
) -> None:
    study = read_study(write_study(tmp_path, **changes))
    folder = tmp_path / "state" / study.agreement(agree(tmp_path, -1000.0, min_participants=5)).session.hex()[:16]
    OutcomeLog(folder).append(1, SessionResult(np.full(width, sum(SIZES) / len(SIZES) / width), 1e-6, bytes(32)))
    (tmp_path / "records.csv").write_text("\n".join(["age", *(str(10 * record) for record in range(SIZES[ME]))]))
    status, out, err = call(capsys, *words(tmp_path))
    assert status == 0, err
    for label in labels:
        assert f"{label:28} " in out
    assert "with 95 %" in out and "epsilon 2 at delta 1e-05, all sessions" in out


def test_it_keeps_the_answer(tmp_path: Path, state: Path, capsys: Capture) -> None:
    status, out, err = call(capsys, *words(tmp_path), "--json")
    answer, kept = json.loads(out), json.loads((state / "answer.json").read_text())
    assert status == 0 and err == "" and kept["coefficients"] == answer["coefficients"]
    assert answer["format"] == kept["format"] == "inca-answer/1" and "own_epsilon" in answer
    assert json.loads((state / "course.json").read_text())["format"] == "inca-course/1"


def test_bad_records_are_refused(tmp_path: Path, state: Path, capsys: Capture) -> None:
    records = tmp_path / "records.csv"
    lines = records.read_text().splitlines()
    for text, sentence in (
        ("\n".join(lines[:3]), "the number of records must be 9, as the study says, got 2"),
        ("\n".join([lines[0], "1000,50,no"]), "line 2"),
        ("nothing\n1", "'age'"),
    ):
        records.write_text(text)
        refusal = refused(capsys, *words(tmp_path), "--quiet")
        assert sentence in refusal and "1000" not in refusal
    records.unlink()
    assert "records.csv cannot be read" in refused(capsys, *words(tmp_path))


def test_numbers_outside_can_be_moved_to_their_bounds(tmp_path: Path, state: Path, capsys: Capture) -> None:
    records = tmp_path / "records.csv"
    lines = records.read_text().splitlines()
    records.write_text("\n".join([*lines[:-1], "1000,50,no"]))
    assert call(capsys, *words(tmp_path), "--clip", "--quiet")[0] == 0


def test_a_file_where_a_folder_should_be_is_refused(tmp_path: Path, state: Path, capsys: Capture) -> None:
    options = words(tmp_path)
    options[options.index("--state") + 1] = tmp_path / "records.csv"
    assert "cannot be used: Not a directory" in refused(capsys, *options)


def test_other_bad_options_are_refused(tmp_path: Path, state: Path, capsys: Capture) -> None:
    assert refused(capsys, *words(tmp_path), "--listen", "7001") == "--listen must be HOST:PORT, got '7001'"
    assert "identity.pem cannot be read" in refused(
        capsys, *instead(words(tmp_path), "--identity", tmp_path / "nobody")
    )
