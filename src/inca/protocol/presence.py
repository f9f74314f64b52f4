"""Who is there in which round. Round 0 is the start, at which everyone is present; a party that is not there
in the last round T has left for good (section "Failures").
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.kernels import Flags
from inca._base.validation import InputError, generator, real, refuse, whole


@dataclass(frozen=True, eq=False)
class Presence:
    """The presence of n parties in rounds 0..T, one bit each; build it with one of the class methods.

    >>> Presence.everyone(parties=3, rounds=2).row(2).tolist()
    [True, True, True]
    """

    parties: int
    rounds: int
    _bits: NDArray[np.uint8] | None  # (T+1, ceil(n/8)); None: everyone, always

    @classmethod
    def everyone(cls, parties: int, rounds: int) -> Presence:
        """Nobody is ever absent."""
        return cls(*_size(parties, rounds), None)

    @classmethod
    def explicit(cls, present: ArrayLike) -> Presence:
        """Presence as a (T+1) x n array of 0 and 1, round 0 first and all 1.

        >>> Presence.explicit([[1, 1], [1, 0], [1, 1]]).row(1).tolist()
        [True, False]
        """
        try:
            given = np.asarray(present)
        except ValueError:
            raise InputError("present has rows of different lengths, but T+1 rows of n entries were expected") from None
        if given.ndim != 2:
            raise refuse("the shape of present", given.shape, "T+1 rows of n entries")
        rounds, parties = given.shape[0] - 1, given.shape[1]
        _size(parties, rounds)
        flags = given.astype(bool) if given.dtype.kind in "biuf" else None
        if flags is None or not np.array_equal(flags, given):
            raise InputError("present has an entry that is not 0 or 1, but only 0 and 1 were expected")
        return cls._from_rows(flags)

    @classmethod
    def leaving(cls, parties: int, rounds: int, fraction: float, rng: np.random.Generator) -> Presence:
        """A fraction of the parties leaves for good, each in a uniformly random round of 1..T.

        The number of leavers is `fraction * parties` rounded to the nearest whole number.

        >>> there = Presence.leaving(100, 20, fraction=0.1, rng=np.random.default_rng(0))
        >>> int(there.row(20).sum())
        90
        """
        n, t = _size(parties, rounds)
        generator(rng)
        count = round(real("fraction", fraction, 0.0, 1.0) * n)
        if count == 0:
            return cls(n, t, None)
        departure = np.full(n, t + 1)
        departure[rng.choice(n, size=count, replace=False)] = rng.integers(1, t + 1, size=count)
        return cls(n, t, np.stack([np.packbits(departure > now) for now in range(t + 1)]))

    @classmethod
    def markov(cls, parties: int, rounds: int, leave: float, rejoin: float, rng: np.random.Generator) -> Presence:
        """In every round a present party leaves with chance `leave`, an absent one returns with chance `rejoin`.

        >>> Presence.markov(10, 5, leave=1.0, rejoin=1.0, rng=np.random.default_rng(0)).row(2).all()
        np.True_
        """
        n, t = _size(parties, rounds)
        generator(rng)
        real("leave", leave, 0.0, 1.0)
        real("rejoin", rejoin, 0.0, 1.0)
        there = np.ones(n, dtype=bool)
        packed = [np.packbits(there)]
        for _ in range(t):
            there = rng.random(n) < np.where(there, 1.0 - leave, rejoin)
            packed.append(np.packbits(there))
        return cls(n, t, np.stack(packed))

    @classmethod
    def trace(cls, path: str | Path, parties: int, rounds: int) -> Presence:
        """Read absences from a CSV file with the columns `party`, `leaves`, `returns`.

        A row says that `party` (0-based) is absent from round `leaves` on, and there again from round `returns`
        on; an empty `returns` means that it left for good. Parties without a row are always present.
        """
        n, t = _size(parties, rounds)
        flags = np.ones((t + 1, n), dtype=bool)
        for line, (party, leaves, returns) in _trace_rows(Path(path)):
            where = f"line {line} of {path}"
            who = whole(f"party in {where}", party, 0, n - 1)
            start = whole(f"leaves in {where}", leaves, 1, t)
            end = t + 1 if returns is None else whole(f"returns in {where}", returns, start + 1, t + 1)
            flags[start:end, who] = False
        return cls._from_rows(flags)

    @classmethod
    def _from_rows(cls, flags: Flags) -> Presence:
        if not flags[0].all():
            absent = int(np.flatnonzero(~flags[0])[0])
            raise refuse(f"present[0][{absent}]", 0, "1, as everyone is present in round 0,")
        rounds, parties = flags.shape[0] - 1, flags.shape[1]
        return cls(parties, rounds, None if flags.all() else np.packbits(flags, axis=1))

    @property
    def nobody_absent(self) -> bool:
        """Whether everyone is present in all rounds for certain."""
        return self._bits is None

    def row(self, t: int) -> Flags:
        """Return who is present in round t = 0..T, as n booleans."""
        whole("t", t, 0, self.rounds)
        if self._bits is None:
            return np.ones(self.parties, dtype=bool)
        return np.unpackbits(self._bits[t], count=self.parties).astype(bool)

    def rounds_attended(self) -> NDArray[np.int32]:
        """Return in how many of the rounds 0..T-1 each party is present: R of erratum E2."""
        if self._bits is None:
            return np.full(self.parties, self.rounds, dtype=np.int32)
        counts = np.zeros(self.parties, dtype=np.int32)
        for t in range(self.rounds):
            counts += self.row(t)
        return counts

    def __eq__(self, other: object) -> bool:
        """Compare who is there when."""
        if not isinstance(other, Presence):
            return NotImplemented
        same_size = (self.parties, self.rounds) == (other.parties, other.rounds)
        return same_size and all(np.array_equal(self.row(t), other.row(t)) for t in range(self.rounds + 1))

    def __hash__(self) -> int:
        """Hash the size; presences of the same size are told apart by comparison."""
        return hash((self.parties, self.rounds))


def _size(parties: int, rounds: int) -> tuple[int, int]:
    return whole("parties", parties, least=2), whole("rounds", rounds, least=1)


def _trace_rows(path: Path) -> list[tuple[int, tuple[int, int, int | None]]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            if reader.fieldnames is None or set(reader.fieldnames) != {"party", "leaves", "returns"}:
                raise InputError(f"{path} has the columns {reader.fieldnames}, but party,leaves,returns was expected")
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a presence trace: {error}") from None
    parsed = []
    for line, row in rows:
        try:
            returns = int(row["returns"]) if row["returns"] else None
            parsed.append((line, (int(row["party"]), int(row["leaves"]), returns)))
        except (TypeError, ValueError):
            raise InputError(
                f"line {line} of {path} is {list(row.values())}, but whole numbers were expected"
            ) from None
    return parsed
