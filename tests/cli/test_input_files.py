from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inca.cli.input_files import MOST_BYTES, read_numpy, read_values
from inca.errors import InvalidInput

TABLE = np.random.default_rng(1).random((50, 2)).round(6)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "v.npy", TABLE)
    np.savetxt(tmp_path / "bare.csv", TABLE, delimiter=",", fmt="%.6f")
    (tmp_path / "names.csv").write_text("a,b\n" + "\n".join(f"{a},{b}" for a, b in TABLE) + "\n\n")
    (tmp_path / "bom.csv").write_text("\ufeffa,b\n" + "\n".join(f"{a},{b}" for a, b in TABLE))
    pq.write_table(pa.table({"a": TABLE[:, 0], "b": TABLE[:, 1]}), tmp_path / "v.parquet")
    return tmp_path


@pytest.mark.parametrize("name", ["v.npy", "bare.csv", "names.csv", "bom.csv", "v.parquet"])
def test_all_formats_give_the_same_values(name: str, folder: Path) -> None:
    np.testing.assert_array_equal(read_values(folder / name).values, TABLE)


@pytest.mark.parametrize("name", ["names.csv", "bom.csv", "v.parquet"])
def test_columns_are_picked_by_name(name: str, folder: Path) -> None:
    np.testing.assert_array_equal(read_values(folder / name, ["b"]).values, TABLE[:, 1])
    np.testing.assert_array_equal(read_values(folder / name, ["b", "a"]).values, TABLE[:, ::-1])
    with pytest.raises(InvalidInput, match=r"^--column must be one of a, b, got 'hours'$"):
        read_values(folder / name, ["hours"])


def test_a_file_without_names_does_not_show_its_first_line(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^--column must be a name in the first line of .*bare.csv") as refusal:
        read_values(folder / "bare.csv", ["hours"])
    assert not any(f"{number:.6f}" in str(refusal.value) for number in TABLE[0])


def test_columns_can_be_called_by_numbers(tmp_path: Path) -> None:
    (tmp_path / "years.csv").write_text("2019,2020\n1,2\n3,4\n")
    assert read_values(tmp_path / "years.csv", ["2020"]).values.tolist() == [2.0, 4.0]


def test_a_numpy_file_has_no_columns(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--column cannot be combined with .*v.npy: a NumPy file has no column"):
        read_values(folder / "v.npy", ["a"])


def test_integers_are_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(3))
    assert read_numpy(tmp_path / "v.npy").tolist() == [0.0, 1.0, 2.0]


MUST_BE = "v.csv must be CSV, Parquet (.parquet) or NumPy (.npy)"
MUST_BE_X = MUST_BE.replace("csv", "xlsx", 1)
FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("v.csv", b"", "v.csv must have one row per party, got an empty file"),
    "text": (
        "v.csv",
        b"minutes\n3\nfour\n",
        "cell 1 in line 3 of v.csv must be a number, got something that is not one",
    ),
    "ragged": ("v.csv", b"1,2\n3\n", "line 2 of v.csv must have 2 cells, got 1"),
    "not text": ("v.csv", b"\xc3\x28\x00", "v.csv cannot be read: it is not text"),
    "a huge cell": ("v.csv", b"1," + b"9" * 200_000, "v.csv cannot be read: field larger than field limit"),
    "utf-16": ("v.csv", "1\n2\n".encode("utf-16"), f"{MUST_BE}, got a file that is not text in UTF-8 but in UTF-16"),
    "a workbook": ("v.xlsx", b"PK\x03\x04...", f"{MUST_BE_X}, got a ZIP archive, as Excel workbooks (.xlsx) are"),
    "a picture": ("v.csv", b"\x89PNG\r\n\x1a\n...", f"{MUST_BE}, got a PNG picture"),
    "a document": ("v.csv", b"%PDF-1.7 ...", f"{MUST_BE}, got a PDF document"),
    "an archive": ("v.csv", b"\x1f\x8b...", f"{MUST_BE}, got a gzip archive"),
    "parquet as csv": ("v.csv", b"PAR1...", "v.csv must have a name that ends in .parquet"),
    "text ids": (
        "v.csv",
        b"name,minutes\nanna,3\nbert,4\n",
        "cell 1 in line 2 of v.csv must be a number, got something that is not one; --column takes some columns only, "
        "of name, minutes",
    ),
    "an empty cell": ("v.csv", b"minutes\n3\n,\n", "line 3 of v.csv must have 1 cells, got 2"),
    "no value": ("v.csv", b"a,b\n3,\n", "cell 2 in line 2 of v.csv must be a number, got an empty cell; --column"),
    "text ids without a header": (
        "v.csv",
        b"anna,3\nbert,4\n",
        "the first line of v.csv must be names or numbers, got",
    ),
    "ids": (
        "v.csv",
        b"id,minutes\n7,3\n5,4\n",
        "column 'id' of v.csv looks like ids, which are not averaged: name the columns to take with --column, of id, "
        "minutes",
    ),
    "numbered rows": ("v.csv", b"who,minutes\n1,3\n2,4\n3,9\n", "column 'who' of v.csv looks like ids"),
    "numbered rows without a header": ("v.csv", b"0,3\n1,4\n2,9\n", "column 1 of v.csv numbers the rows"),
    "semicolons": (
        "v.csv",
        b"a;b\n3,14;2\n",
        "v.csv must have commas between cells and points in decimals, as in 3.14, got semicolons between cells",
    ),
    "a comma decimal": ("v.csv", b'a\n"3,14"\n', "cell 1 in line 2 of v.csv must be a number with a point, as in 3.14"),
    "a bare comma decimal": (
        "v.csv",
        b"a\n3,14\n",
        "line 2 of v.csv must have 1 cells, got 2; decimals have a point, as in 3.14",
    ),
    "bad numpy": ("v.npy", b"\x93NUMPY nonsense", "v.npy is not a NumPy file of numbers"),
    "empty numpy": ("v.npy", b"", "v.npy is not a NumPy file of numbers"),
    "bad parquet": ("v.parquet", b"PAR1 nonsense", "v.parquet is not a Parquet file"),
}


@pytest.mark.parametrize("case", FILES)
def test_bad_files_are_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name, content, sentence = FILES[case]
    (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput) as refusal:
        read_values(Path(name))
    assert str(refusal.value).startswith(sentence)
    assert "anna" not in str(refusal.value)


def test_ids_are_read_on_request(tmp_path: Path) -> None:
    (tmp_path / "v.csv").write_text("id,minutes\n1,3\n2,4\n3,9\n")
    table = read_values(tmp_path / "v.csv", ["minutes", "id"])
    assert table.values.tolist() == [[3.0, 1.0], [4.0, 2.0], [9.0, 3.0]] and table.names == ("minutes", "id")
    (tmp_path / "v.csv").write_text("waiting time\n1\n2\n3\n")
    assert read_values(tmp_path / "v.csv", ["waiting time"]).values.tolist() == [1.0, 2.0, 3.0]
    pq.write_table(pa.table({"id": ["x", "y"], "b": [1.0, 2.0]}), tmp_path / "v.parquet")
    with pytest.raises(InvalidInput, match=r"got the type string; --column takes some columns only, of id, b$"):
        read_values(tmp_path / "v.parquet")


COUNTING = "numbers the rows, and ids are not averaged: remove it, or, if it is what you mean, give names in the first "
COUNTING += "line of a CSV file and say with --column which to take"


@pytest.mark.parametrize("first", [0, 1])
def test_a_file_that_only_counts_is_refused_with_a_way_out(first: int, tmp_path: Path) -> None:
    counts = np.arange(first, first + 5)
    text = "\n".join(map(str, counts))
    csv, npy = tmp_path / "v.csv", tmp_path / "v.npy"
    csv.write_text(text)
    assert refusal_of(csv) == f"column 1 of {csv} {COUNTING}"
    csv.write_text(f"waiting time\n{text}")
    looks = f"column 'waiting time' of {csv} looks like ids, which are not averaged"
    assert refusal_of(csv) == f"{looks}: if it is what you mean, say --column 'waiting time'"
    np.save(npy, counts)
    assert refusal_of(npy) == f"column 1 of {npy} {COUNTING}"
    np.save(npy, np.column_stack([counts * 2.5, counts]))
    assert refusal_of(npy) == f"column 2 of {npy} {COUNTING}"


def test_what_does_not_count_from_0_or_1_is_a_value(tmp_path: Path) -> None:
    for numbers in ([2, 3, 4], [1, 2], [1, 2, 4], [3, 2, 1]):
        (tmp_path / "v.csv").write_text("\n".join(map(str, numbers)))
        np.save(tmp_path / "v.npy", numbers)
        for name in ("v.csv", "v.npy"):
            assert read_values(tmp_path / name).values.tolist() == numbers


def refusal_of(path: Path) -> str:
    with pytest.raises(InvalidInput) as refusal:
        read_values(path)
    return str(refusal.value)


def test_folders_and_huge_files_are_refused_by_what_they_are(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=rf"^VALUES must be a file, got the folder {tmp_path}$"):
        read_values(tmp_path)
    with (tmp_path / "v.csv").open("wb") as file:
        file.truncate(MOST_BYTES * 3 // 2)
    with pytest.raises(InvalidInput, match=r"v.csv must have at most 1 GiB, got 1.5 GiB$"):
        read_values(tmp_path / "v.csv")


def test_what_is_not_numbers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.array(["a", "b"]))
    with pytest.raises(InvalidInput, match=r"v.npy is not a NumPy file of numbers: it holds an array of <U1"):
        read_values(Path("v.npy"))
    np.save("v.npy", np.empty(0))
    assert read_values(Path("v.npy")).values.size == 0  # which the domain refuses
    days = pa.array([1, 2], pa.date32())
    for column, kind in (
        (pa.array([True, False]), "bool"),
        (days, "date32"),
        (days.cast(pa.timestamp("s")), "timestamp"),
    ):
        pq.write_table(pa.table({"a": column}), "v.parquet")
        with pytest.raises(InvalidInput, match=rf"column 'a' of v.parquet must hold numbers, got the type {kind}"):
            read_values(Path("v.parquet"))
    pq.write_table(pa.table({"a": ["x", "y"], "b": [1.0, None]}), "v.parquet")
    with pytest.raises(InvalidInput, match=r"column 'a' of v.parquet must hold numbers, got the type string"):
        read_values(Path("v.parquet"), ["a"])
    with pytest.raises(InvalidInput, match=r"column 'b' of v.parquet must hold numbers, got 1 empty cells"):
        read_values(Path("v.parquet"), ["b"])
    with pytest.raises(InvalidInput, match=r"^VALUES must be an existing file, got 'none.csv'$"):
        read_values(Path("none.csv"))
