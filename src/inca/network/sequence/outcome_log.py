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
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np

from inca._base.array_files import vector_of_bytes
from inca._base.files import write_json, write_whole
from inca._base.types import Array
from inca._base.validation import finite_array, integer, refuse
from inca.network.node.event_log import fields_of

NO_RESULT = b""
"""Stands for the digest of a session without result."""
DIGEST_BYTES = 32
_AVERAGE, _NOISE, _NOTE = "average.npy", "noise.json", "no-result.json"


@dataclass(frozen=True)
class SessionResult:
    """The result of a session."""

    average: Array
    standard_error: float | None
    beacon: bytes

    def __post_init__(self) -> None:
        """Refuse another length: the digest could then not tell where the average ends and the beacon begins."""
        if len(self.beacon) != DIGEST_BYTES:
            refuse("the number of bytes of a beacon", len(self.beacon), str(DIGEST_BYTES))

    @property
    def digest(self) -> bytes:
        """The hash of the average's numbers and of the beacon."""
        digest = hashlib.sha256(np.ascontiguousarray(self.average, dtype="<f8").data)
        digest.update(self.beacon)
        return digest.digest()


class OutcomeLog:
    """The outcomes of sessions 1, 2, ... in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._digests: list[bytes] = []
        while (place := self.session_folder(len(self) + 1)).exists():
            if (place / _AVERAGE).exists():
                self._digests.append(_read(place).digest)
            elif (place / _NOTE).exists():
                self._digests.append(NO_RESULT)
            else:
                break

    def __len__(self) -> int:
        """Return how many sessions have an outcome: a result, or none."""
        return len(self._digests)

    @property
    def outcomes(self) -> list[bytes]:
        """The digest of each session's result, `NO_RESULT` where there is none."""
        return list(self._digests)

    def session_folder(self, number: int) -> Path:
        """Return the folder of a session."""
        return self.folder / f"{integer('number', number, min=1):04}"

    def digest(self) -> bytes:
        """Return a hash of all outcomes."""
        digests = b"".join(digest or bytes(DIGEST_BYTES) for digest in self._digests)
        return hashlib.sha256(b"inca-chain/1" + digests).digest()

    def result(self, number: int) -> SessionResult | None:
        """Return the result of a session with an outcome; None if it had none."""
        integer("number", number, 1, len(self))
        return _read(self.session_folder(number)) if self._digests[number - 1] else None

    def append(self, number: int, result: SessionResult | None) -> None:
        """Keep the outcome of the next session, durably."""
        if number != len(self) + 1:
            refuse("number", number, f"{len(self) + 1}, the first session without an outcome")
        self._write(number, result)
        self._digests.append(NO_RESULT if result is None else result.digest)

    def adopt(self, outcomes: Sequence[bytes], results: Mapping[int, SessionResult]) -> bool:
        """Take over what another party knows."""
        changed = False
        for number, theirs in enumerate(outcomes, 1):
            known = number <= len(self)
            if known and self._digests[number - 1] == theirs:
                continue
            result = results[number] if theirs else None
            if result is not None and result.digest != theirs:
                refuse("the digest of a result", result.digest.hex(), theirs.hex())
            self._write(number, result)
            changed |= known
            self._digests[number - 1 : number] = [theirs]
        return changed

    def _write(self, number: int, result: SessionResult | None) -> None:
        place = self.session_folder(number)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        if result is None:
            write_json(place / _NOTE, {"result": None})
            (place / _AVERAGE).unlink(missing_ok=True)
            (place / _NOISE).unlink(missing_ok=True)
        else:
            (place / _AVERAGE).unlink(missing_ok=True)  # it is there only with the right noise
            write_json(place / _NOISE, {"standard_error": result.standard_error, "beacon": result.beacon.hex()})
            write_whole(place / _AVERAGE, lambda file: _save(file, result.average))
            (place / _NOTE).unlink(missing_ok=True)


def _read(place: Path) -> SessionResult:
    noise = fields_of(place / _NOISE)
    average = np.asarray(np.load(place / _AVERAGE))
    return SessionResult(average, noise.get("standard_error"), bytes.fromhex(noise.get("beacon", "")))


def last_result(outcomes: Sequence[bytes]) -> int:
    """Return the number of the last session with a result; 0 if there is none."""
    return max((number for number, digest in enumerate(outcomes, 1) if digest), default=0)


def to_bytes(average: Array) -> bytes:
    """Return an average as the bytes of a .npy file."""
    _save(buffer := io.BytesIO(), average)
    return buffer.getvalue()


def _save(file: IO[bytes], average: Array) -> None:
    np.save(file, average.astype("<f8", copy=False), allow_pickle=False)


def from_bytes(payload: bytes) -> Array:
    """Return the average in the bytes of a .npy file; anything else is a ValueError.

    >>> from_bytes(to_bytes(np.array([0.5, 2.0])))
    array([0.5, 2. ])
    """
    return finite_array("average", vector_of_bytes(payload, "<f8"), (1,), "one vector")
