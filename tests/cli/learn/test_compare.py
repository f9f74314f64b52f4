from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, call, instead, refused

QUICK = [
    "learn",
    "compare",
    "--parties",
    "12",
    "--steps",
    "2",
    "--seeds",
    "2",
    "--epsilon",
    "3",
    "--dropout",
    "0",
]


def test_it_prints_tables_and_json(capsys: Capture) -> None:
    status, out, err = call(capsys, *QUICK, "--json", "--clip-length", 0.5)
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["task"]["parties"] == 12 and report["task"]["clip"] == 0.5 and len(report["scores"]) == 2 + 5
    last = report["scores"][-1]
    assert last["aggregator"] == "local" and last["accuracy"] == pytest.approx(np.mean(last["accuracies"]))
    assert list(last) == [
        "aggregator", "epsilon", "dropout", "accuracies", "why_not", "accuracy", "standard_error"
    ]  # fmt: skip
    status, out, err = call(capsys, *QUICK)
    assert (status, err) == (0, "")
    for part in ("not private", "inca, epsilon 3", "gopa, epsilon 3", "+-", "inca minus, at dropout"):
        assert part in out


def test_it_takes_some_averagers_and_plots(capsys: Capture, tmp_path: Path) -> None:
    words = [*QUICK, "--averager", "central", "--averager", "local", "--averager", "local", "--epsilon", 3]
    for name in ("one.svg", "one.png"):
        status, out, err = call(capsys, *words, "--plot", tmp_path / name)
        assert (status, err) == (0, "") and out.endswith(f"The plot is in {tmp_path / name}.\n")
        assert out.count("local, epsilon 3") == 1 and "minus" not in out and "inca" not in out.splitlines()[2]
        assert (tmp_path / name).stat().st_size > 1000
    sentence = refused(capsys, *words, "--plot", "one.pdf")
    assert sentence == "--plot must be a file name that ends in .png or .svg, got 'one.pdf'"


def test_what_cannot_be_calibrated_is_said_in_the_table(capsys: Capture) -> None:
    few = "learn compare --parties 4 --colluding 0.5 --steps 9 --seeds 2 --epsilon 3 --dropout 0.25 --averager"
    status, out, _ = call(capsys, *few.split(), "inca", "--averager", "local")
    assert status == 0 and "cannot" in out and "inca: of 4 parties 2 may collude and 1 may leave" in out


@pytest.mark.parametrize(
    ("option", "known"),
    [
        ("--data", "breast_cancer or digits"),
        ("--sizes", "equal or unequal"),
        ("--mix", "similar or skewed"),
        ("--level", "record or party"),
        ("--averager", "one of inca, central, gopa, cordp, local"),
    ],
)
def test_other_words_are_refused(capsys: Capture, option: str, known: str) -> None:
    assert refused(capsys, *instead(QUICK, option, "iris")) == f"{option} must be {known}, got 'iris'"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--seeds", 1], "seeds must be at least 2, got 1"),
        (["--epsilon", 0], "epsilon must be above 0, got 0.0"),
        (["--dropout", 2], "must be from 0 to 1, got 2.0"),
    ],
)
def test_bad_numbers_are_refused(words: list[object], sentence: str, capsys: Capture) -> None:
    assert sentence in refused(capsys, *instead(QUICK, *words))
