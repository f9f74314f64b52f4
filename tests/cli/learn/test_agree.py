from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from helpers import sequence_processes
from helpers.command_line import Capture, call, refused
from helpers.sequence_processes import SIZES
from helpers.studies import HISTOGRAM, LOGISTIC, QUANTILES, write_study


@pytest.fixture
def roster(tmp_path: Path) -> Path:
    sequence_processes.agree(tmp_path, 1000.0)
    return tmp_path / "roster.json"


def test_it_says_what_a_study_means(tmp_path: Path, roster: Path, capsys: Capture) -> None:
    study = write_study(tmp_path, **(LOGISTIC | {"steps": 9}))
    status, out, err = call(capsys, "learn", "agree", study, roster)
    assert (status, err) == (0, "")
    for part in ("a study: logistic of age, weight", f"{len(SIZES)} with {sum(SIZES)} records", "9, each epsilon"):
        assert part in out
    assert "each record, with epsilon 2 at delta 1e-05 in all" in out and ", ...\n" in out
    assert "failure    not said by the roster; it adds to delta" in out
    sequence_processes.agree(tmp_path / "planned", 1000.0, failure=1e-7)
    _, out, _ = call(capsys, "learn", "agree", study, tmp_path / "planned" / "roster.json")
    assert "at most 9e-07 in all sessions, which adds to delta" in out


def test_it_says_which_bins_and_quantiles(tmp_path: Path, roster: Path, capsys: Capture) -> None:
    for changes, text, name, value in (
        (HISTOGRAM, "a study: histogram of age, 4 bins from 0 to 100", "edges", [0.0, 25.0, 50.0, 75.0, 100.0]),
        (QUANTILES, "a study: quantiles of age, 0.25, 0.5, 0.75", "quantiles", [0.25, 0.5, 0.75]),
    ):
        study = write_study(tmp_path, **changes)
        _, out, _ = call(capsys, "learn", "agree", study, roster)
        assert f"{text}\n" in out and "1, each epsilon 2 on its own" in out
        fields = json.loads(call(capsys, "learn", "agree", study, roster, "--json")[1])
        assert fields[name] == value and fields["sessions"] == 1
        assert fields["session_epsilon"] == pytest.approx(2.0)


def test_a_delta_that_is_not_the_rosters_is_refused(tmp_path: Path, roster: Path, capsys: Capture) -> None:
    sentence = refused(capsys, "learn", "agree", write_study(tmp_path, delta=1e-8), roster)
    assert "the roster's delta must be 1e-08 by the analytic rule, as in the study" in sentence


def test_it_prints_json(tmp_path: Path, roster: Path, capsys: Capture) -> None:
    study = write_study(tmp_path, **(LOGISTIC | {"steps": 9}))
    fields = json.loads(call(capsys, "learn", "agree", study, roster, "--json")[1])
    assert fields["sessions"] == len(fields["starts"]) == 9 and fields["records"] == sum(SIZES)
    assert fields["session_epsilon"] < 2.0 and len(fields["id"]) == 64


def test_the_id_tells_studies_apart(tmp_path: Path, roster: Path, capsys: Capture) -> None:
    ids = []
    for epsilon in (2.0, 2.0, 3.0):
        words = ["learn", "agree", write_study(tmp_path, epsilon=epsilon), roster, "--json"]
        ids.append(json.loads(call(capsys, *words)[1])["id"])
    assert ids[0] == ids[1] != ids[2]


def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, roster: Path, capsys: Capture) -> None:
    study = write_study(tmp_path, records={"party-0": 3, "stranger": 4})
    assert "got '" in refused(capsys, "learn", "agree", study, roster)
    assert "is not a valid inca-study/1 file" in refused(capsys, "learn", "agree", roster, roster)
    assert "cannot be read" in refused(capsys, "learn", "agree", tmp_path / "none.json", roster)


def test_without_cryptography_it_says_what_is_needed(
    tmp_path: Path, roster: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = write_study(tmp_path)
    monkeypatch.setitem(sys.modules, "cryptography", None)
    sentence = refused(capsys, "learn", "agree", study, roster)
    assert sentence == "inca learn agree needs cryptography and websockets: pip install 'inca[network]'"
