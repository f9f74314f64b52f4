"""Long vectors in NumPy archives that another file names by their SHA-256: written whole, read only if they fit."""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inca._base.files import write_whole
from inca.errors import InvalidInput

_MAX_HEADER = 1 << 12
"""Bytes that the headers of a member and of the archive take at most."""

_DAMAGED = (zipfile.BadZipFile, ValueError, KeyError, RuntimeError, EOFError, SyntaxError, struct.error)
"""What `zipfile` and NumPy raise at what is no archive of theirs; NotImplementedError is a RuntimeError."""


def write_vectors(path: Path, vectors: Mapping[str, NDArray[Any]]) -> str:
    """Write vectors as an archive that is not compressed, whole or not at all, and return its SHA-256.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> digest = write_vectors(folder / "x.npz", {"mean": np.array([0.5, 2.0])})
        >>> read_vector(folder / "x.npz", "mean", "<f8", 2, digest)
        array([0.5, 2. ])
    """
    write_whole(path, lambda file: np.savez(file, allow_pickle=False, **vectors))
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None


def read_vector(path: Path, name: str, kind: str, length: int, sha256: str, *, members: int = 1) -> NDArray[Any]:
    """Return one vector of an archive, or refuse an archive that is not the one expected.

    Args:
        path: The archive.
        name: Which of its vectors.
        kind: The type of its numbers, as NumPy writes it.
        length: How many numbers it has; nothing is set aside for more.
        sha256: The hash of the archive.
        members: How many vectors the archive has at most, 8 bytes a number.
    """
    try:
        if path.exists() and not path.is_file():
            raise InvalidInput(f"{path} cannot be read: it is not an ordinary file")
        with path.open("rb") as file:
            most = members * (8 * length + _MAX_HEADER)
            if (size := os.fstat(file.fileno()).st_size) > most:
                raise InvalidInput(f"{path} cannot be read: at most {most:,} bytes are expected, got {size:,}")
            if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                raise InvalidInput(f"{path} is not the file that was written: it has another SHA-256")
            with zipfile.ZipFile(file) as archive:
                info = archive.getinfo(f"{name}.npy")
                if info.compress_type != zipfile.ZIP_STORED or info.file_size > 8 * length + _MAX_HEADER:
                    raise ValueError(f"{name} is compressed or too long")
                vector = vector_of_bytes(archive.read(info), kind)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    except _DAMAGED as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if vector.size != length:
        raise InvalidInput(f"{path} cannot be read: {name} must have {length:,} numbers, got {vector.size:,}")
    if vector.dtype.kind == "f" and not np.isfinite(vector).all():
        raise InvalidInput(f"{path} cannot be read: {name} must have finite numbers")
    return vector


def vector_of_bytes(payload: bytes, kind: str) -> NDArray[Any]:
    """Return the vector in the bytes of a .npy file, without a copy; anything else is a ValueError.

    What its header says costs nothing: a length that is not there is not set aside.

    >>> file = io.BytesIO()
    >>> np.save(file, np.array([0.5, 2.0]))
    >>> vector_of_bytes(file.getvalue(), "<f8")
    array([0.5, 2. ])
    """
    file = io.BytesIO(payload[:_MAX_HEADER])
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("a vector must be a .npy file of version 1.0")
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype != np.dtype(kind) or len(shape) != 1 or 8 * shape[0] != len(payload) - file.tell():
        raise ValueError(f"one vector of {np.dtype(kind)} must fill {len(payload)} bytes, got {dtype} of {shape}")
    return np.frombuffer(payload, dtype=dtype, offset=file.tell())
