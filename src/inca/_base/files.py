"""Files that are written whole or not at all, JSON without numbers that JSON does not know, and digests of files."""

from __future__ import annotations

import errno
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from inca.errors import InvalidInput


def check_writable(*paths: str | Path | None) -> None:
    """Refuse files that could not be written, before the work whose results are to be in them; None is no file.

    >>> check_writable(None, "/no/such/folder/plan.json")
    Traceback (most recent call last):
        ...
    inca.errors.InvalidInput: /no/such/folder/plan.json cannot be written: No such file or directory
    """
    for path in (Path(path) for path in paths if path is not None):
        try:
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            temporary = _temporary(path)
            temporary.open("xb").close()
            temporary.unlink()
        except OSError as error:
            raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None


def write_whole(path: Path, produce: Callable[[IO[bytes]], Any]) -> None:
    """Write a file so that it is there whole or not at all."""
    temporary = _temporary(path)
    try:
        with temporary.open("xb") as file:
            try:
                produce(file)
                file.flush()
                os.fsync(file.fileno())
                temporary.replace(path)
            except BaseException:
                temporary.unlink()
                raise
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None


def _temporary(path: Path) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.part")


def write_json(path: str | Path, fields: Any, *, indent: int | None = None) -> None:
    """Write something as JSON, whole or not at all; infinite and undefined numbers are refused."""
    text = json.dumps(fields, indent=indent, allow_nan=False) + "\n"
    write_whole(Path(path), lambda file: file.write(text.encode()))


def null_for_infinity(value: Any) -> Any:
    """Return a JSON document with null for every number that JSON does not know.

    >>> null_for_infinity({"mu": [0.5, math.inf]})
    {'mu': [0.5, None]}
    """
    if isinstance(value, dict):
        return {name: null_for_infinity(entry) for name, entry in value.items()}
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))  # long lists of numbers are common, and looked through fast
        if kinds == {int} or (kinds == {float} and all(map(math.isfinite, value))):
            return value
        return [null_for_infinity(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def files_digest(folder: Path, names: Iterable[str]) -> str:
    """Return a digest of the names and contents of files in a folder."""
    digest = hashlib.sha256()
    for name in names:
        digest.update(name.encode() + b"\0" + (folder / name).read_bytes() + b"\0")
    return digest.hexdigest()
