from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from inca.cli.input_files import read_numpy, read_values
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
    np.testing.assert_array_equal(read_values(folder / name), TABLE)


@pytest.mark.parametrize("name", ["names.csv", "bom.csv", "v.parquet"])
def test_columns_are_picked_by_name(name: str, folder: Path) -> None:
    np.testing.assert_array_equal(read_values(folder / name, ["b"]), TABLE[:, 1])
    np.testing.assert_array_equal(read_values(folder / name, ["b", "a"]), TABLE[:, ::-1])
    with pytest.raises(InvalidInput, match=r"^--column must be one of a, b, got 'hours'$"):
        read_values(folder / name, ["hours"])


def test_a_file_without_names_does_not_show_its_first_line(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^--column must be a name in the first line of .*bare.csv") as refusal:
        read_values(folder / "bare.csv", ["hours"])
    assert not any(f"{number:.6f}" in str(refusal.value) for number in TABLE[0])


def test_columns_can_be_called_by_numbers(tmp_path: Path) -> None:
    (tmp_path / "years.csv").write_text("2019,2020\n1,2\n3,4\n")
    assert read_values(tmp_path / "years.csv", ["2020"]).tolist() == [2.0, 4.0]


def test_a_numpy_file_has_no_columns(folder: Path) -> None:
    with pytest.raises(InvalidInput, match=r"--column cannot be combined with .*v.npy: a NumPy file has no column"):
        read_values(folder / "v.npy", ["a"])


def test_integers_are_numbers(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.arange(3))
    assert read_numpy(tmp_path / "v.npy").tolist() == [0.0, 1.0, 2.0]


FILES: dict[str, tuple[str, bytes, str]] = {
    "empty": ("v.csv", b"", "v.csv must have one row per party, got an empty file"),
    "text": (
        "v.csv",
        b"minutes\n3\nfour\n",
        "cell 1 in line 3 of v.csv must be a number, got something that is not one",
    ),
    "ragged": ("v.csv", b"1,2\n3\n", "line 2 of v.csv must have 2 cells, got 1"),
    "not text": ("v.csv", b"\xff\xfe\x00", "v.csv cannot be read: it is not text"),
    "a huge cell": ("v.csv", b"1," + b"9" * 200_000, "v.csv cannot be read: field larger than field limit"),
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


def test_what_is_not_numbers_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("v.npy", np.array(["a", "b"]))
    with pytest.raises(InvalidInput, match=r"v.npy is not a NumPy file of numbers: it holds an array of <U1"):
        read_values(Path("v.npy"))
    pq.write_table(pa.table({"a": ["x", "y"], "b": [1.0, None]}), "v.parquet")
    with pytest.raises(InvalidInput, match=r"column 'a' of v.parquet must hold numbers, got the type string"):
        read_values(Path("v.parquet"), ["a"])
    with pytest.raises(InvalidInput, match=r"column 'b' of v.parquet must hold numbers, got 1 empty cells"):
        read_values(Path("v.parquet"), ["b"])
    with pytest.raises(InvalidInput, match=r"^VALUES must be an existing file, got 'none.csv'$"):
        read_values(Path("none.csv"))
