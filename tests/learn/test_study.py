"""Studies that parties agree on in a file: what they mean, what is refused, and what records must be like."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.sequence_processes import SIZES, agree
from helpers.studies import AGE, FIELDS, HISTOGRAM, LOGISTIC, QUANTILES, REGRESSION, Place, study, write_study
from inca.errors import InvalidInput
from inca.learn.averagers.network import NetworkAverager
from inca.learn.budget import Budget
from inca.learn.study import read_records, read_study
from inca.network.membership.identity import Identity
from inca.network.sequence.session_sequence import SessionSequence

NAMES = list(FIELDS["records"])


# --- the file -------------------------------------------------------------------------------------------------------


def test_a_study_is_read_with_its_columns_in_order(tmp_path: Path) -> None:
    both = study(tmp_path)
    assert both.inputs == ["age", "weight"] and both.sessions == 1
    assert [ends.tolist() for ends in both.bounds] == [[0.0, 20.0], [100.0, 220.0]]
    line = study(tmp_path, **REGRESSION)
    assert line.inputs == ["weight", "age"], "a regression's target comes last"
    assert study(tmp_path, **LOGISTIC).sessions == 2


def test_bins_are_a_number_or_edges_and_quantiles_have_a_grid(tmp_path: Path) -> None:
    assert study(tmp_path, **HISTOGRAM).histogram_edges().tolist() == [0.0, 25.0, 50.0, 75.0, 100.0]
    assert study(tmp_path, **(HISTOGRAM | {"bins": [0, 18, 65]})).histogram_edges().tolist() == [0.0, 18.0, 65.0]
    several = study(tmp_path, **QUANTILES)
    assert several.quantile_shares() == [0.25, 0.5, 0.75] and several.grid_points == 127
    assert study(tmp_path, **(QUANTILES | {"points": 9})).grid_points == 9
    assert several.sessions == study(tmp_path, **HISTOGRAM).sessions == 1


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"format": "inca-study/2"}, "format must be inca-study/1.*, got 'inca-study/2'"),
        ({"format": "inca-roster/3", "terms": {}}, "format must be inca-study/1.*, got 'inca-roster/3'"),
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
        (HISTOGRAM | {"columns": FIELDS["columns"]}, "the number of columns must be 1 for the task histogram, got 2"),
        (HISTOGRAM | {"target": "age"}, "target must be None for the task histogram.*, got 'age'"),
        (AGE | {"task": "histogram"}, "bins must be said for the task histogram, how many or their edges, got nothing"),
        (HISTOGRAM | {"bins": 1}, "bins must be from 2 to 1000, got 1"),
        (HISTOGRAM | {"bins": 1001}, "bins must be from 2 to 1000, got 1001"),
        (HISTOGRAM | {"bins": [0, 100]}, "the number of edges in bins must be at least 3, got 2"),
        (HISTOGRAM | {"bins": [0, 50, 50]}, "edges in bins must be increasing numbers"),
        (HISTOGRAM | {"bins": [0, 50, 101]}, "an edge in bins must be from 0 to 100, got 101"),
        (HISTOGRAM | {"bins": list(range(1002)), "columns": {"age": [0, 2000]}}, "edges in bins must be at most 1001"),
        (QUANTILES | {"columns": FIELDS["columns"]}, "the number of columns must be 1 for the task quantiles, got 2"),
        (AGE | {"task": "quantiles"}, "quantiles must be said for the task quantiles, at least one, got nothing"),
        (QUANTILES | {"quantiles": []}, "quantiles must be said for the task quantiles, at least one, got nothing"),
        (QUANTILES | {"quantiles": [0.5, 1.0]}, "a quantile must be between 0 and 1, got 1.0"),
        (QUANTILES | {"quantiles": [0.5, 0.5]}, "quantiles must be different ones"),
        (QUANTILES | {"points": 2001}, "points must be from 1 to 2000, got 2001"),
        ({"bins": 4}, "bins must be left out for the task moments, got 4"),
        (HISTOGRAM | {"points": 9}, "points must be left out for the task histogram, got 9"),
        (QUANTILES | {"bins": [0, 1]}, "bins must be left out for the task quantiles"),
        ({"columns": {"age": [0, 5e-324]}}, "the width of age must be at least 1e-100"),
        ({"clip": 1e-170}, "clip must be from 1e-100"),
    ],
)
def test_a_study_that_makes_no_sense_is_refused(tmp_path: Path, changes: dict[str, Any], sentence: str) -> None:
    path = write_study(tmp_path, **changes)
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
    variants += [HISTOGRAM, HISTOGRAM | {"bins": 5}, HISTOGRAM | {"bins": [0, 10, 20]}]
    variants += [QUANTILES, QUANTILES | {"quantiles": [0.5]}, QUANTILES | {"points": 9}]
    sessions = [study(tmp_path, **changes).agreement(roster).session for changes in variants]
    assert len(set(sessions)) == len(sessions)
    relayed = study(tmp_path).agreement(replace(roster, relays=("wss://relay.example.org/inca",)))
    assert relayed.session not in sessions and relayed.relays


def test_the_plan_may_fail_in_all_sessions_together_with_delta_at_most(tmp_path: Path) -> None:
    logistic = study(tmp_path, **LOGISTIC)  # two sessions
    assert logistic.failure_probability(agree(tmp_path / "unknown", 1000.0)) is None
    assert logistic.failure_probability(agree(tmp_path / "small", 1000.0, failure=1e-6)) == pytest.approx(2e-6)
    sentence = "the roster's probability of failure must be at most 5e-06, delta over 2 sessions, got 8e-06"
    with pytest.raises(InvalidInput, match=sentence):
        logistic.sizes(agree(tmp_path / "large", 1000.0, failure=8e-6))


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
