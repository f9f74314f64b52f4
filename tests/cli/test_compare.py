from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from helpers.command_line import Capture, call, instead, refused

SETTING: list[object] = ["--parties", 16, "--epsilon", 1, "--messages", 8, "--dropout", 0.1, "--views", 2]


def test_it_prints_a_table_and_plots(capsys: Capture, tmp_path: Path) -> None:
    plot = tmp_path / "compare.svg"
    status, out, err = call(capsys, "compare", *SETTING, "--plot", plot, "--runs", 20)
    assert (status, err) == (0, "")
    assert "guessing the middle of the domain" in out
    assert "inca, settled" in out and "Muffliato, hypercube *" in out and "+-" in out
    assert out.endswith(f"The plot is in {plot}.\n")
    assert plot.read_text().startswith("<?xml") and "weaker promise" in plot.read_text()
    assert "guessing the middle of the domain" in plot.read_text()
    assert_called_a_guess(out)


def assert_called_a_guess(out: str) -> None:
    assert re.search(
        r"^At dropout 0\.1, inca, settled: The expected error [\d.]+ is a large part of a range of 1: if all values "
        r"lie in one, guessing its middle would do as well\.$",
        out,
        flags=re.MULTILINE,
    )


@pytest.mark.slow
def test_a_result_that_says_nothing_at_all_is_called_that(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *SETTING, "--epsilon", 0.05)
    assert status == 0
    assert_called_a_guess(out)


def test_it_prints_json(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *SETTING, "--json")
    report = json.loads(out)
    assert status == 0 and len(report["entries"]) == 15 and report["central_mse"] > 0
    assert report["guess"] == {"mse": 0.25, "relative": 0.25 / report["central_mse"]}
    (remark,) = report["remarks"]
    assert remark.startswith("At dropout 0.1, inca, settled: The expected error 0.")
    assert set(report["entries"][0]) == {
        "mechanism", "dropout", "mse", "relative", "messages", "promise", "weaker", "why_not", "measured"
    }  # fmt: skip


def test_a_mechanism_that_cannot_be_calibrated_says_why(capsys: Capture) -> None:
    status, out, _ = call(capsys, "compare", *instead(SETTING, "--messages", 1))
    assert status == 0 and "inca, settled: messages " in " ".join(out.split())


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
