"""Panels (c) and (d): the data in docs/reproduction, and that they change nothing of what is reproduced."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.paths import ROOT
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.reproduction.figure4_plans import (
    FIXED,
    ONE_LATE,
    OVER_MESSAGES,
    OVER_RATES,
    PLANNED,
    RECIPE,
    PlansBeside,
    draw_over_messages,
    draw_over_rates,
)
from inca.reproduction.figure_reproduction import FigureResults, Row, pick
from inca.reproduction.reproduce import read_reproduction, reproduce

DATA = ROOT / "docs" / "reproduction" / "fig4" / "fig4.json"


@pytest.fixture(scope="module")
def full() -> FigureResults:
    return read_reproduction(DATA)[1]


def rows_of(results: FigureResults) -> tuple[Sequence[Row], Sequence[Row]]:
    planned, settled = results.supplement
    assert (planned.name, settled.name) == ("planned", "settled")
    return planned.rows, settled.rows


def relative(rows: Sequence[Row], name: str, rate: float) -> float:
    (row,) = pick(rows, mechanism=name, dropout=rate)
    return float(row["relative"])


def test_they_stand_apart_from_the_reproduction(full: FigureResults) -> None:
    figure, _ = read_reproduction(DATA)
    alone = figure.evaluate(full.tables)
    assert [table.name for table in full.tables] == ["errors", "steps"]
    assert full.claims == alone.claims and full.notes == alone.notes
    assert [picture.name for picture in full.pictures] == ["fig4", "fig4-planned", "fig4-settled"]


def test_plans_have_the_error_of_ideal_secure_aggregation(full: FigureResults) -> None:
    planned, settled = rows_of(full)
    for rate, most in ((0.05, 1.26), (0.1, 1.42), (0.2, 1.82)):
        assert relative(settled, PLANNED, rate) <= most
        (row,) = pick(planned, mechanism=PLANNED, dropout=rate)
        assert row["messages"] <= 9
        others = [other for other in pick(planned, dropout=rate) if other["mechanism"] in (*OVER_MESSAGES, "CorDP-DME")]
        assert all(other["relative"] is None or other["relative"] > row["relative"] for other in others)
    for row in pick(settled, mechanism="secure aggregation"):
        assert row["relative"] < relative(settled, PLANNED, row["dropout"]) <= 1.01 * row["relative"]
        assert relative(settled, "secure aggregation, no server", row["dropout"]) == row["relative"]
    for row in pick(settled, mechanism="Central DP"):
        assert all(row["relative"] <= relative(settled, name, row["dropout"]) for name in (PLANNED, RECIPE))


def test_simulated_errors_are_those_expected(full: FigureResults) -> None:
    simulated = [row for row in rows_of(full)[1] if row["runs"]]
    assert {row["mechanism"] for row in simulated} == {PLANNED}
    assert all(row["runs"] == 1000 for row in simulated)
    assert all(abs(row["mse"] - row["expected"]) < 5 * row["standard_error"] for row in simulated)


def test_the_page_says_what_the_data_say(full: FigureResults) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    names = {"secure aggregation, with or without a server": "secure aggregation"}
    own = [name for name in OVER_RATES if name not in names.values() and not name.endswith("no server")]
    for words, name in {**names, **{name: name for name in own}}.items():
        known = {row["dropout"]: f"{row['relative']:.3g}" for row in pick(rows_of(full)[1], mechanism=name)}
        cells = " | ".join(known.get(rate, "") for rate in (0.0, 0.05, 0.1, 0.2, 0.3))
        assert f"| {words} | {cells} |".replace("|  |", "| |") in page


class Canned:
    """Performs jobs by saying what it is told to, and remembers them."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def __call__(self, heading: str, jobs: Sequence[Job]) -> list[Any]:
        self.jobs += jobs
        return [self._result(job) for job in jobs]

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        yield from enumerate(self("", jobs))

    def _result(self, job: Job) -> Any:
        if job.name == "planned_errors":
            return [0.01 * (number % 3) for number in range(job.settings["runs"])]
        sent = job.settings["requirements"]["messages"]
        return {"mse": 1.0 / sent, "standard_error": 0.0, "messages": 7.0}


def test_both_panels_are_made_of_the_same_jobs_and_nobody_is_late_where_nobody_leaves() -> None:
    perform = Canned()
    beside = PlansBeside((8, 12), (0.1,), 12, (0.0, 0.1), views=20, runs=150, seed=3)
    planned, settled = (table.rows for table in beside.tables(perform))
    predicted = [job.settings for job in perform.jobs if job.name == "predicted"]
    asked = [(each["name"], each["requirements"]["dropout"], each["requirements"]["messages"]) for each in predicted]
    assert len(asked) == len(set(asked))
    assert {row["mechanism"] for row in planned} == {*OVER_MESSAGES, *FIXED}
    assert {row["mechanism"] for row in settled} == set(OVER_RATES)
    assert [row["dropout"] for row in pick(settled, mechanism=ONE_LATE)] == [0.1]
    for name in (RECIPE, ONE_LATE):
        assert [row["messages"] for row in pick(planned, mechanism=name)] == [8, 12]
        (row,) = pick(planned, mechanism=name, messages=12)
        assert relative(settled, name, 0.1) == row["relative"]
    assert [row["messages"] for row in pick(planned, mechanism=PLANNED)] == [7]
    pieces = [job.settings for job in perform.jobs if job.name == "planned_errors"]
    assert {(piece["first"], piece["runs"]) for piece in pieces} == {(0, 100), (100, 50)}
    assert all(piece["seed"] == 3 for piece in pieces)


def test_mechanisms_that_cannot_be_calibrated_are_left_out_of_the_pictures(full: FigureResults) -> None:
    for rows, draw in zip(rows_of(full), (draw_over_messages, draw_over_rates), strict=True):
        fewer = [
            {**row, "relative": None, "expected": None} if row["mechanism"].startswith("GOPA") else row for row in rows
        ]
        texts = [text.get_text() for axes in draw(fewer).axes for text in axes.texts]
        assert not any("GOPA" in text for text in texts) and any("inca" in text for text in texts)


@pytest.mark.slow
def test_they_can_be_added_to_data_that_are_kept(tmp_path: Path, full: FigureResults) -> None:
    """A file without a supplement is read, and keeps all it has."""
    earlier = json.loads(DATA.read_text())
    del earlier["supplement"]
    (tmp_path / "fig4").mkdir()
    path = tmp_path / "fig4" / "fig4.json"
    path.write_text(json.dumps(earlier))
    assert list(read_reproduction(path)[1].supplement) == []

    class Stub(Engine):
        def __init__(self) -> None:
            super().__init__("serial")
            self.canned = Canned()

        def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
            return self.canned.results(jobs)

    engine = Stub()
    reproduce("fig4", tmp_path, keep=True, engine=engine)
    document = json.loads(path.read_text())
    supplement = document.pop("supplement")
    assert document == earlier
    assert supplement["stamp"]["command"] == "inca reproduce fig4 --seed 0 --keep"
    assert supplement["parameters"]["usual_messages"] == 20
    assert {job.name for job in engine.canned.jobs} == {"predicted", "planned_errors"}
    for table, rows in zip(supplement["tables"], rows_of(full), strict=True):
        assert [(row["mechanism"], row["dropout"]) for row in table["rows"]] == [
            (row["mechanism"], row["dropout"]) for row in rows
        ]
        assert (tmp_path / "fig4" / f"fig4-{table['name']}.svg").exists()
        assert (tmp_path / "fig4" / f"{table['name']}.csv").exists()
