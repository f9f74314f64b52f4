"""Files and options that are refused: one sentence, which shows nothing of what a record holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from helpers.command_line import Capture, instead, refused
from helpers.patients import PRESSURE
from inca.cli.stats import records_file
from inca.cli.stats.records_file import read_parties

MEAN: list[object] = ["--party", "clinic", "--column", "age", "--domain", 0, 100, "--epsilon", 1]
ROWS = "clinic,age\na,41\nb,52\n"

FILES: dict[str, tuple[str, str]] = {
    "empty": ("", "FILE must have the names of its columns in the first line, got an empty file"),
    "no rows": ("clinic,age\n", "FILE must have one row per record, got no row below the names of its columns"),
    "text": (ROWS + "b,old\n", "column 'age' in line 4 of FILE must be a number, got something that is not one"),
    "nan": (ROWS + "b,nan\n", "column 'age' in line 4 of FILE must be a finite number, got one that is not"),
    "infinite": (ROWS + "\nb,inf\n", "column 'age' in line 5 of FILE must be a finite number, got one that is not"),
    "empty cell": (ROWS + "b, \n", "column 'age' in line 4 of FILE must be a number, got an empty cell"),
    "no party": (ROWS + " ,9\n", "column 'clinic' in line 4 of FILE must name a party, got an empty cell"),
    "a cell too many": (ROWS + "b,9,9\n", "line 4 of FILE must have 2 cells, got 3; decimals have a point, as in 3.14"),
    "semicolons": (
        "clinic;age\na;41\n",
        "FILE must have commas between cells and points in decimals, as in 3.14, got semicolons between cells",
    ),
    "a decimal comma": (
        ROWS + 'b,"4,5"\n',
        "column 'age' in line 4 of FILE must be a number with a point, as in 3.14, got one with a comma",
    ),
    "one party": ("clinic,age\na,41\n", "the number of parties in column 'clinic' of FILE must be at least 2, got 1"),
    "no party column": ("site,age\na,41\n", "--party must be a name in the first line of FILE, got 'clinic'"),
    "no column": ("clinic,size\na,41\n", "--column must be a name in the first line of FILE, got 'age'"),
    "no names": ("a,41\nb,52\n", "--party must be a name in the first line of FILE, got 'clinic'"),
    "a column twice": (
        "clinic,age,age\na,41,2\n",
        "column 'age' must be in the first line of FILE once, got it 2 times",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_refused(case: str, capsys: Capture, tmp_path: Path) -> None:
    text, sentence = FILES[case]
    path = tmp_path / "records.csv"
    path.write_text(text)
    assert refused(capsys, "stats", "mean", path, *MEAN) == sentence.replace("FILE", str(path))


def test_what_is_no_text_file_is_refused(capsys: Capture, tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    assert refused(capsys, "stats", "mean", path, *MEAN).startswith("RECORDS must be an existing file, got ")
    for content, sentence in (
        (b"\xff\xfe\x00", "must be CSV, got a file that is not text in UTF-8 but in UTF-16"),
        (b"clinic,age\n\xff\xff,3\n", "cannot be read: it is not text in UTF-8"),
        (b"PK\x03\x04", "must be CSV, got a ZIP archive, as Excel workbooks (.xlsx) are"),
        (b"PAR1", "must be CSV, got Parquet (.parquet)"),
        (b"\x93NUMPY", "must be CSV, got NumPy (.npy)"),
    ):
        path.write_bytes(content)
        assert refused(capsys, "stats", "mean", path, *MEAN) == f"{path} {sentence}"
    assert refused(capsys, "stats", "mean", tmp_path, *MEAN) == f"RECORDS must be a file, got the folder {tmp_path}"


OPTIONS: list[tuple[list[object], str]] = [
    (["--domain", 200, 80], "the upper bound of column 'pressure' must be above the lower one (200), got 80.0"),
    (["--domain", 0, "inf"], "the upper bound of column 'pressure' must be a finite number, got inf"),
    (["--party", "pressure"], "--party must be another column than those of numbers, got 'pressure'"),
    (["--epsilon", 0], "epsilon must be above 0, got 0.0"),
    (["--delta", 0], "--delta must be between 0 and 1, got 0.0"),
    (["--level", "patient"], "--level must be record or party, got 'patient'"),
    (["--confidence", 1], "--confidence must be between 0 and 1, got 1.0"),
    (["--seed", -1], "--seed must be at least 0, got -1"),
    (["--dropout", 2], "dropout must be from 0 to 1, got 2.0"),
    (["--picture", "one.pdf"], "--picture must be a file name that ends in .png or .svg, got 'one.pdf'"),
]


@pytest.mark.parametrize(("words", "sentence"), OPTIONS)
def test_options_that_are_refused(words: list[object], sentence: str, capsys: Capture) -> None:
    assert refused(capsys, "stats", *instead(["mean", *PRESSURE, "--epsilon", 1], *words)) == sentence


def test_a_picture_that_cannot_be_written_is_refused_before_anything_is_read(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(records_file, "read_parties", None)  # would fail if it were called
    path = tmp_path / "nowhere" / "one.png"
    for verb in ("mean", "variance", "histogram", "quantiles"):
        sentence = refused(capsys, "stats", verb, *PRESSURE, "--epsilon", 1, "--picture", path)
        assert sentence == f"{path} cannot be written: No such file or directory"


def test_parties_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "records.csv"
    path.write_text("\ufeffage,clinic,size\n1,b,7\n2,a,8\n\n3, b ,9\n", encoding="utf-8")
    first, second = read_parties(path, "clinic", [("--feature", "size"), ("--feature", "age")])
    assert np.array_equal(first, [[7, 1], [9, 3]]) and np.array_equal(second, [[8, 2]])
