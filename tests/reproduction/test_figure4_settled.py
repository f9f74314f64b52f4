"""Panel (d): the data in docs/reproduction, and that nothing is computed twice or changes what is reproduced."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from helpers.paths import ROOT
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.reproduction.figure4_settled import MECHANISMS, NOT_SETTLED, SETTLED, SettledErrors, draw
from inca.reproduction.figure_reproduction import DataTable, FigureResults, Row, pick
from inca.reproduction.reproduce import read_reproduction, reproduce

DATA = ROOT / "docs" / "reproduction" / "fig4" / "fig4.json"


@pytest.fixture(scope="module")
def full() -> FigureResults:
    return read_reproduction(DATA)[1]


def settled(results: FigureResults) -> Sequence[Row]:
    (table,) = results.supplement
    assert table.name == "settled"
    return table.rows


def relative(rows: Sequence[Row], name: str, rate: float) -> float:
    (row,) = pick(rows, mechanism=name, dropout=rate)
    return float(row["relative"])


def test_it_stands_apart_from_the_reproduction(full: FigureResults) -> None:
    figure, _ = read_reproduction(DATA)
    alone = figure.evaluate(full.tables)
    assert [table.name for table in full.tables] == ["errors", "steps", "planned"]
    assert full.claims == alone.claims and full.notes == alone.notes
    assert [picture.name for picture in full.pictures] == ["fig4", "fig4-planned", "fig4-settled"]


def test_settled_errors_are_what_was_promised(full: FigureResults) -> None:
    rows = settled(full)
    for rate, most in ((0.05, 1.35), (0.1, 1.5), (0.2, 1.95)):
        assert relative(rows, SETTLED, rate) <= most
    for row in pick(rows, mechanism="secure aggregation"):
        assert relative(rows, SETTLED, row["dropout"]) <= 1.1 * row["relative"]
        assert relative(rows, "secure aggregation, no server", row["dropout"]) == row["relative"]
    for row in pick(rows, mechanism="Central DP"):
        assert all(row["relative"] <= relative(rows, name, row["dropout"]) for name in (SETTLED, NOT_SETTLED))


def test_simulated_errors_are_those_expected(full: FigureResults) -> None:
    simulated = [row for row in settled(full) if row["runs"]]
    assert {row["mechanism"] for row in simulated} == {SETTLED}
    assert all(row["runs"] == 1000 for row in simulated)
    assert all(abs(row["mse"] - row["expected"]) < 5 * row["standard_error"] for row in simulated)


def test_what_panel_c_has_is_the_same_in_panel_d(full: FigureResults) -> None:
    planned = full.tables[2].rows
    for of_c, of_d in (("inca, planned", NOT_SETTLED), ("GOPA, one leaver late", "GOPA, one leaver late")):
        for rate in (0.05, 0.1, 0.2):
            (row,) = pick(planned, mechanism=of_c, dropout=rate, messages=20)
            assert relative(settled(full), of_d, rate) == row["relative"]


def test_the_page_says_what_the_data_say(full: FigureResults) -> None:
    page = (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    names = {"secure aggregation, with or without a server": "secure aggregation"}
    own = [name for name in MECHANISMS if name not in names.values() and not name.endswith("no server")]
    for words, name in {**names, **{name: name for name in own}}.items():
        known = {row["dropout"]: f"{row['relative']:.3g}" for row in pick(settled(full), mechanism=name)}
        cells = " | ".join(known.get(rate, "") for rate in (0.0, 0.05, 0.1, 0.2, 0.3))
        assert f"| {words} | {cells} |".replace("|  |", "| |") in page


class Canned:
    """Performs jobs by saying what it is told to, and remembers them."""

    def __init__(self, mse: float | None = 0.01) -> None:
        self.jobs: list[Job] = []
        self.mse = mse

    def __call__(self, heading: str, jobs: Sequence[Job]) -> list[Any]:
        self.jobs += jobs
        return [self._result(job) for job in jobs]

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        yield from enumerate(self("", jobs))

    def _result(self, job: Job) -> Any:
        if job.name == "settled_errors":
            return [0.01 * (number % 3) for number in range(job.settings["runs"])]
        return None if self.mse is None else {"mse": self.mse, "standard_error": 0.0, "messages": 12.0}


PLANNED = [
    {
        "mechanism": name,
        "dropout": 0.1,
        "messages": messages,
        "expected": 1.0,
        "relative": 7.0,
        "relative_error": 0.0,
    }
    for name in ("inca, planned", "GOPA, one leaver late")
    for messages in (8, 12)
]


def test_what_is_known_is_not_computed_again_and_nobody_is_late_where_nobody_leaves() -> None:
    perform = Canned()
    table = SettledErrors((0.0, 0.1), messages=12, views=20, runs=150, seed=3).table(perform, PLANNED)
    asked = [(job.settings["name"], job.settings["requirements"]["dropout"]) for job in perform.jobs]
    assert ("inca, planned", 0.1) not in asked and ("GOPA, one leaver late", 0.1) not in asked
    assert ("inca, planned", 0.0) in asked and relative(table.rows, NOT_SETTLED, 0.1) == 7.0
    assert {row["mechanism"] for row in table.rows} == set(MECHANISMS)
    assert [row["mechanism"] for row in table.rows if row["dropout"] == 0.0 and row["late"]] == []
    pieces = [job.settings for job in perform.jobs if job.name == "settled_errors"]
    assert {(piece["first"], piece["runs"]) for piece in pieces} == {(0, 100), (100, 50)}
    assert all((piece["name"], piece["seed"]) == (SETTLED, 3) for piece in pieces)


def test_mechanisms_that_cannot_be_calibrated_are_left_out_of_the_picture(full: FigureResults) -> None:
    rows = [
        {**row, "relative": None, "expected": None} if row["mechanism"].startswith("GOPA") else row
        for row in settled(full)
    ]
    texts = [text.get_text() for axes in draw(rows).axes for text in axes.texts]
    assert not any("GOPA" in text for text in texts) and any("inca, settled" in text for text in texts)


def test_labels_do_not_overlap(full: FigureResults) -> None:
    figure = draw(settled(full))
    figure.draw_without_rendering()
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) >= 4
        assert not any(one.overlaps(other) for at, one in enumerate(boxes) for other in boxes[:at])


@pytest.mark.slow
def test_it_can_be_added_to_data_that_are_kept(tmp_path: Path, full: FigureResults) -> None:
    """An earlier file, without a supplement, is read, and keeps all it has."""
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
    assert supplement["parameters"]["messages"] == 20
    assert {job.name for job in engine.canned.jobs} == {"predicted", "settled_errors"}
    (table,) = [DataTable(**{**table, "shown": ()}) for table in supplement["tables"]]
    assert [(row["mechanism"], row["dropout"]) for row in table.rows] == [
        (row["mechanism"], row["dropout"]) for row in settled(full)
    ]
    assert (tmp_path / "fig4" / "fig4-settled.svg").exists() and (tmp_path / "fig4" / "settled.csv").exists()
