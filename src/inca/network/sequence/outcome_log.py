"""What a party knows of a sequence of sessions in which each depends on the results of those before it.

It lies on the party's disk: a folder for each session, with its average or a note that nobody had one. So a process
that was stopped can go through the sequence again from the beginning and finds all that has been.

A session's roster names the *mark* of the outcomes before it, hence parties that know different outcomes are in
different sessions. More than half of all parties agree on a result (docs/network.md), and nobody takes part in two
sessions of the same number. So there is at most one result of each number, and **of two chains the one with the later
last result is right**: more than half of all parties were there and knew all that it knows. With the same last result
two chains are equal up to it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from inca._base.files import write_json, write_whole
from inca._base.types import Array
from inca._base.validation import finite_array, refuse, whole
from inca.network.node.event_log import fields_of

NOTHING = b""
"""The digest of a session without result."""
_AVERAGE, _NOISE, _NOTE = "average.npy", "noise.json", "no-result.json"


class Chain:
    """The outcomes of sessions 1, 2, ... in a folder.

    >>> import tempfile
    >>> chain = Chain(Path(tempfile.mkdtemp()))
    >>> chain.settle(1, np.array([0.5]))
    >>> chain.settle(2, None)
    >>> chain.settled, last_result(chain.outcomes), chain.average(1), chain.average(2)
    (2, 1, array([0.5]), None)
    """

    def __init__(self, folder: Path) -> None:
        """Read what is there."""
        self.folder = folder
        self._digests: list[bytes] = []
        while (place := self.place(self.settled + 1)).exists():
            if (path := place / _AVERAGE).exists():
                self._digests.append(digest(np.load(path)))
            elif (place / _NOTE).exists():
                self._digests.append(NOTHING)
            else:
                break

    @property
    def settled(self) -> int:
        """How many sessions have an outcome, a result or none."""
        return len(self._digests)

    @property
    def outcomes(self) -> list[bytes]:
        """The digest of each average."""
        return list(self._digests)

    def place(self, number: int) -> Path:
        """Return the folder of a session."""
        return self.folder / f"{whole('number', number, least=1):04}"

    def mark(self) -> bytes:
        """Return a hash of all outcomes."""
        return hashlib.sha256(b"inca-chain/1" + b"".join(each or bytes(32) for each in self._digests)).digest()

    def average(self, number: int) -> Array | None:
        """Return the average of a session that is settled; None if it had no result."""
        whole("number", number, 1, self.settled)
        return np.asarray(np.load(self.place(number) / _AVERAGE)) if self._digests[number - 1] else None

    def noise(self, number: int) -> float | None:
        """Return the standard deviation of the noise in each coordinate of an average; None if it is not known."""
        found: float | None = fields_of(self.place(number) / _NOISE).get("standard_error")
        return found

    def settle(self, number: int, average: Array | None, noise: float | None = None) -> None:
        """Keep the outcome of the next session, durably."""
        if number != self.settled + 1:
            raise refuse("number", number, f"{self.settled + 1}, the first without outcome")
        self._write(number, average, noise)
        self._digests.append(NOTHING if average is None else digest(average))

    def adopt(self, outcomes: Sequence[bytes], averages: Mapping[int, tuple[Array, float | None]]) -> bool:
        """Take over another's chain, whose averages that differ are given; return whether a settled outcome changed."""
        changed = False
        for number, found in enumerate(outcomes, 1):
            known = number <= self.settled
            if known and self._digests[number - 1] == found:
                continue
            average, noise = averages[number] if found else (None, None)
            if average is not None and digest(average) != found:
                raise refuse("the digest of an average", digest(average).hex(), found.hex())
            self._write(number, average, noise)
            changed |= known
            self._digests[number - 1 : number] = [found]
        return changed

    def _write(self, number: int, average: Array | None, noise: float | None) -> None:
        place = self.place(number)
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        (place / _NOISE).unlink(missing_ok=True)
        if noise is not None:
            write_json(place / _NOISE, {"standard_error": noise})
        if average is None:
            write_json(place / _NOTE, {"result": None})
            (place / _AVERAGE).unlink(missing_ok=True)
        else:
            write_whole(place / _AVERAGE, lambda file: file.write(to_bytes(average)))
            (place / _NOTE).unlink(missing_ok=True)


def last_result(outcomes: Sequence[bytes]) -> int:
    """Return the number of the last session with a result; 0 if there is none."""
    return max((number for number, each in enumerate(outcomes, 1) if each), default=0)


def digest(average: Array) -> bytes:
    """Return the hash of an average's numbers."""
    return hashlib.sha256(average.astype("<f8").tobytes()).digest()


def to_bytes(average: Array) -> bytes:
    """Return an average as the bytes of a .npy file."""
    buffer = io.BytesIO()
    np.save(buffer, average.astype("<f8"), allow_pickle=False)
    return buffer.getvalue()


def from_bytes(payload: bytes) -> Array:
    """Return the average in the bytes of a .npy file; anything else is a ValueError."""
    return finite_array("average", np.load(io.BytesIO(payload), allow_pickle=False), (1,), "one vector")
