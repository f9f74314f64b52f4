"""Files that are on the disk when a function returns, and bytes that are no longer there."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from inca.network.lattice.discrete_gaussian import Keystream

_SHRED_BYTES = 2**20  # overwritten at a time


def write(path: Path, content: bytes) -> None:
    """Write a file for its owner alone; its content is durable, but its name is not."""
    descriptor = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)


def write_durably(path: Path, content: bytes) -> None:
    """Write a file for its owner alone; when this returns it is durable, and whole."""
    write(path, content)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make a new or removed name durable, too."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def shred_all(paths: Iterable[Path]) -> None:
    """Overwrite files with random bytes and remove them, durably."""
    for file in [path for path in paths if path.exists()]:
        overwrite(file)
        file.unlink()
        sync_folder(file.parent)


def overwrite(path: Path) -> None:
    """Replace the bytes of a file by random ones, durably."""
    stream = Keystream(os.urandom(32), b"overwriting")
    with path.open("r+b", buffering=0) as file:
        left = path.stat().st_size
        while left > 0:
            random = stream.words(_SHRED_BYTES // 8).tobytes()
            left -= file.write(random[: min(left, _SHRED_BYTES)])
        os.fsync(file.fileno())
