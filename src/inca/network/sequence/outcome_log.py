"""What a party knows of a sequence of sessions in which each depends on the results of those before it.

It lies on the party's disk: a folder for each session, with its average or a note that nobody had one. So a process
that was stopped can go through the sequence again from the beginning and finds all earlier outcomes.

A session's roster names the *digest* of the outcomes before it, hence parties that know different outcomes are in
different sessions. More than half of all parties agree on a result (docs/network.md), and nobody takes part in two
sessions of the same number. So there is at most one result of each number, and **of two logs the one with the later
last result is right**: more than half of all parties were there and knew all that it knows. With the same last result
two logs are equal up to it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from inca._base.files import write_json, write_whole
from inca._base.types import Array
from inca._base.validation import finite_array, integer, refuse
from inca.network.node.event_log import fields_of

NO_RESULT = b""
"""Stands for the digest of a session without result."""
DIGEST_BYTES = 32
_AVERAGE, _NOISE, _NOTE = "average.npy", "noise.json", "no-result.json"


class OutcomeLog:
    """The outcomes of sessions 1, 2, ... in a folder.

    Args:
        folder: Where they are; what is there already is read.

    Example:
        >>> import tempfile
        >>> log = OutcomeLog(Path(tempfile.mkdtemp()))
        >>> log.append(1, np.array([0.5]))
        >>> log.append(2, None)
        >>> len(log), last_result(log.outcomes), log.average(1), log.average(2)
        (2, 1, array([0.5]), None)
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests: list[bytes] = []
        while (place := self.session_folder(len(self) + 1)).exists():
            if (path := place / _AVERAGE).exists():
                self._digests.append(digest_of(np.load(path)))
            elif (place / _NOTE).exists():
                self._digests.append(NO_RESULT)
            else:
                break

    def __len__(self) -> int:
        """Return how many sessions have an outcome: a result, or none."""
        return len(self._digests)

    @property
    def outcomes(self) -> list[bytes]:
        """The digest of each session's average, `NO_RESULT` where there is none."""
        return list(self._digests)

    def session_folder(self, number: int) -> Path:
        """Return the folder of a session."""
        return self.folder / f"{integer('number', number, min=1):04}"

    def digest(self) -> bytes:
        """Return a hash of all outcomes."""
        digests = b"".join(digest or bytes(DIGEST_BYTES) for digest in self._digests)
        return hashlib.sha256(b"inca-chain/1" + digests).digest()

    def average(self, number: int) -> Array | None:
        """Return the average of a session with an outcome; None if it had no result."""
        integer("number", number, 1, len(self))
        return np.asarray(np.load(self.session_folder(number) / _AVERAGE)) if self._digests[number - 1] else None

    def standard_error(self, number: int) -> float | None:
        """Return the standard deviation of the noise in each coordinate of an average; None if it is not known."""
        error: float | None = fields_of(self.session_folder(number) / _NOISE).get("standard_error")
        return error

    def append(self, number: int, average: Array | None, standard_error: float | None = None) -> None:
        """Keep the outcome of the next session, durably.

        Args:
            number: The number of the session, which must be the first without an outcome.
            average: Its average; None if it had no result.
            standard_error: The standard deviation of the noise in each coordinate, if it is known.
        """
        if number != len(self) + 1:
            refuse("number", number, f"{len(self) + 1}, the first session without an outcome")
        self._write(number, average, standard_error)
        self._digests.append(NO_RESULT if average is None else digest_of(average))

    def adopt(self, outcomes: Sequence[bytes], averages: Mapping[int, tuple[Array, float | None]]) -> bool:
        """Take over what another party knows.

        Args:
            outcomes: The outcomes of its log, up to its last result.
            averages: Those of its averages that differ from ours, by number, with their standard errors.

        Returns:
            Whether an outcome changed that was known here.
        """
        changed = False
        for number, theirs in enumerate(outcomes, 1):
            known = number <= len(self)
            if known and self._digests[number - 1] == theirs:
                continue
            average, standard_error = averages[number] if theirs else (None, None)
            if average is not None and digest_of(average) != theirs:
                refuse("the digest of an average", digest_of(average).hex(), theirs.hex())
            self._write(number, average, standard_error)
            changed |= known
            self._digests[number - 1 : number] = [theirs]
        return changed

    def _write(self, number: int, average: Array | None, standard_error: float | None) -> None:
        place = self.session_folder(number)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / _NOISE).unlink(missing_ok=True)
        if standard_error is not None:
            write_json(place / _NOISE, {"standard_error": standard_error})
        if average is None:
            write_json(place / _NOTE, {"result": None})
            (place / _AVERAGE).unlink(missing_ok=True)
        else:
            write_whole(place / _AVERAGE, lambda file: file.write(to_bytes(average)))
            (place / _NOTE).unlink(missing_ok=True)


def last_result(outcomes: Sequence[bytes]) -> int:
    """Return the number of the last session with a result; 0 if there is none."""
    return max((number for number, digest in enumerate(outcomes, 1) if digest), default=0)


def digest_of(average: Array) -> bytes:
    """Return the hash of an average's numbers."""
    return hashlib.sha256(average.astype("<f8").tobytes()).digest()


def to_bytes(average: Array) -> bytes:
    """Return an average as the bytes of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, average.astype("<f8"), allow_pickle=False)
    return buffer.getvalue()


def from_bytes(payload: bytes) -> Array:
    """Return the average in the bytes of a .npy file; anything else is a ValueError.

    What its header says costs nothing: a length that is not there is not set aside.

    >>> from_bytes(to_bytes(np.array([0.5, 2.0])))
    array([0.5, 2. ])
    """
    file = io.BytesIO(payload)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an average must be a .npy file of version 1.0")
    shape, _, kind = np.lib.format.read_array_header_1_0(file)
    if kind != np.dtype("<f8") or len(shape) != 1 or 8 * shape[0] != len(payload) - file.tell():
        raise ValueError(f"an average must be one vector of doubles in {len(payload)} bytes, got {kind} of {shape}")
    numbers = np.frombuffer(payload, dtype="<f8", offset=file.tell()).astype(np.float64)
    return finite_array("average", numbers, (1,), "one vector")
