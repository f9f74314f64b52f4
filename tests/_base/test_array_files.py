"""Archives of vectors: what was written is read, to the last bit, and nothing else is."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from inca._base.array_files import read_vector, write_vectors
from inca.errors import InvalidInput

MEAN, TOTAL = np.array([0.5, -2.0, 1e-300]), np.array([1, -(2**62), 3])
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def written(path: Path) -> str:
    return write_vectors(path, {"mean": MEAN, "total": TOTAL})


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@settings(max_examples=25)
@given(arrays("<f8", st.integers(1, 40), elements=FINITE))
def test_what_was_written_is_read_to_the_last_bit(mean: NDArray[Any]) -> None:
    total = np.arange(mean.size) - 2**62
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        sha256 = write_vectors(path, {"mean": mean, "total": total})
        assert sha256 == digest(path) == write_vectors(path, {"mean": mean, "total": total})
        assert read_vector(path, "mean", "<f8", mean.size, sha256, members=2).tobytes() == mean.tobytes()
        assert read_vector(path, "total", "<i8", mean.size, sha256, members=2).tolist() == total.tolist()
        with np.load(path, allow_pickle=False) as archive:
            assert sorted(archive.files) == ["mean", "total"] and archive["mean"].tobytes() == mean.tobytes()


@settings(max_examples=50)
@given(st.data())
def test_every_change_of_a_byte_is_refused(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npz"
        sha256, content = written(path), bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"x\.npz is not the file that was written: it has another SHA-256"):
            read_vector(path, "mean", "<f8", 3, sha256, members=2)
        # Whoever names a hash of his own gets no further than to a refusal, or to numbers of that type and length.
        try:
            assert read_vector(path, "mean", "<f8", 3, digest(path), members=2).shape == (3,)
        except InvalidInput as error:
            assert str(error).startswith(f"{path} cannot be read: ")


def npy(write: Callable[[io.BytesIO], None]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def of_a_header(shape: tuple[int, ...]) -> bytes:
    """Return a .npy file of three numbers whose header says that there are others."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    return npy(lambda file: np.lib.format.write_array_header_1_0(file, header)) + bytes(24)


FOREIGN: dict[str, Callable[[Path], Any]] = {
    "no archive": lambda path: path.write_bytes(b"PK but no archive"),
    "a .npy file": lambda path: path.write_bytes(npy(lambda file: np.save(file, MEAN))),
    "other names": lambda path: write_vectors(path, {"median": MEAN}),
    "other numbers": lambda path: write_vectors(path, {"mean": TOTAL}),
    "another order of bytes": lambda path: write_vectors(path, {"mean": MEAN.astype(">f8")}),
    "a matrix": lambda path: write_vectors(path, {"mean": MEAN[np.newaxis]}),
    "too few": lambda path: write_vectors(path, {"mean": MEAN[:2]}),
    "undefined": lambda path: write_vectors(path, {"mean": np.array([0.5, np.nan, 1.0])}),
    "compressed": lambda path: np.savez_compressed(path, mean=MEAN),
    "an object": lambda path: archive_of(
        path, npy(lambda file: np.save(file, np.array([None] * 3), allow_pickle=True))
    ),
    "a huge header": lambda path: archive_of(path, of_a_header((10**15,))),
    "many axes": lambda path: archive_of(path, of_a_header((3, 10**15, 10**15))),
    "cut off": lambda path: archive_of(path, of_a_header((3,))[:-1]),
    "empty": lambda path: archive_of(path, b""),
}


def archive_of(path: Path, payload: bytes) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("mean.npy", payload)


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_refused_even_if_its_hash_is_right(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    FOREIGN[name](path)
    with pytest.raises(InvalidInput, match=r"x\.npz cannot be read: ") as refusal:
        read_vector(path, "mean", "<f8", 3, digest(path))
    assert "\n" not in str(refusal.value)


def test_what_is_missing_huge_or_no_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    with pytest.raises(InvalidInput, match=r"x\.npz cannot be read: No such file or directory"):
        read_vector(path, "mean", "<f8", 3, "")
    with path.open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(InvalidInput, match=r"at most 4,120 bytes are expected, got 1,099,511,627,776"):
        read_vector(path, "mean", "<f8", 3, "")
    path.unlink()
    os.mkfifo(path)  # nobody writes into it: to open it would wait for ever
    with pytest.raises(InvalidInput, match="it is not an ordinary file"):
        read_vector(path, "mean", "<f8", 3, "")
