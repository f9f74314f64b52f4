from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helpers.command_line import Capture, call, instead, refused
from inca import Requirements
from inca.mechanisms import compare
from inca.mechanisms.central_local import CentralDP

SETTING: list[object] = ["--parties", 16, "--epsilon", 1, "--messages", 8, "--dropout", 0.1, "--views", 2]
ROWS = 13  # and one for the paper's recipe


def test_it_prints_a_table_and_plots(capsys: Capture, tmp_path: Path) -> None:
    plot = tmp_path / "compare.svg"
    status, out, err = call(capsys, "compare", *SETTING, "--plot", plot, "--runs", 20)
    assert (status, err) == (0, "")
    assert "guessing the middle of the domain" in out
    assert "\ninca  " in out and "paper's recipe" not in out and "Muffliato, hypercube *" in out and "+-" in out
    assert out.endswith(f"The plot is in {plot}.\n")
    assert plot.read_text().startswith("<?xml") and "weaker promise" in plot.read_text()
    assert "guessing the middle of the domain" in plot.read_text()
    assert_called_a_guess(out)


def assert_called_a_guess(out: str) -> None:
    assert re.search(
        r"^At dropout 0\.1, inca: The expected error [\d.]+ is a large part of a range of 1: if all values "
        r"lie in one, guessing its middle would do as well\.$",
        out,
        flags=re.MULTILINE,
    )


@pytest.mark.slow
def test_a_result_that_says_nothing_at_all_is_called_that(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *instead(SETTING, "--epsilon", 0.05))
    assert status == 0
    assert_called_a_guess(out)


def test_the_papers_recipe_is_compared_if_asked_for(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *SETTING, "--paper", "--json")
    entries = json.loads(out)["entries"]
    assert status == 0 and len(entries) == ROWS + 1 and entries[1]["mechanism"] == "inca, the paper's recipe"
    assert entries[1]["mse"] > entries[0]["mse"]


def test_rows_are_printed_as_they_come(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the second mechanism is made the first one's row is there, with the numbers of a table at the end."""
    printed = []

    class Seen(CentralDP):
        def __init__(self, requirements: Requirements) -> None:
            super().__init__(requirements)
            printed.append(capsys.readouterr().out)

    monkeypatch.setattr(compare, "CentralDP", Seen)
    status, rest, _ = call(capsys, "compare", *SETTING)
    monkeypatch.setenv("COLUMNS", "30")
    _, table, _ = call(capsys, "compare", *SETTING)
    assert status == 0 and printed[0].splitlines()[-1].startswith("inca  ")
    assert printed[1] == ""  # in a narrow terminal columns are known only in the end
    numbers = [line.split()[-2:] for line in (printed[0] + rest).splitlines()[: ROWS + 2]]
    assert [line.split()[-1] for line in table.splitlines()[: ROWS + 2]] == [error for error, _ in numbers]


def test_it_prints_json(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *SETTING, "--json")
    report = json.loads(out)
    assert status == 0 and len(report["entries"]) == ROWS and report["central_mse"] > 0
    assert report["guess"] == {"mse": 0.25, "relative": 0.25 / report["central_mse"]}
    (remark,) = report["remarks"]
    assert remark.startswith("At dropout 0.1, inca: The expected error 0.")
    assert set(report["entries"][0]) == {
        "mechanism", "dropout", "mse", "relative", "messages", "promise", "weaker", "why_not", "measured"
    }  # fmt: skip


def test_a_mechanism_that_cannot_be_calibrated_says_why(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *instead(SETTING, "--messages", 2))
    assert status == 0 and re.search(r"^inca +- ", out, flags=re.MULTILINE)
    assert "inca: 1 round is too few to join every honest party" in " ".join(out.split())


def test_a_result_that_says_something_is_not_called_a_guess(capsys: Capture) -> None:
    """Whereas the tables above, of an epsilon that is too small for so few parties, are."""
    words = ["--parties", 16, "--epsilon", 8, "--messages", 8, "--dropout", 0, "--views", 2]
    status, out, _ = call(capsys, "compare", *words)
    assert status == 0 and "would do as well" not in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--plot", "x.pdf"], "--plot must be a file name that ends in .png or .svg, got 'x.pdf'"),
        (["--dropout", 2], "a dropout rate must be from 0 to 1, got 2.0"),
        (["--runs", -1], "runs must be at least 0, got -1"),
        (["--rule", "renyi"], "--rule must be analytic or classic, got 'renyi'"),
    ],
)
def test_bad_input_is_refused(words: list[object], sentence: str, capsys: Capture) -> None:
    assert refused(capsys, "compare", *SETTING, *words) == sentence
