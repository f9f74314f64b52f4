"""Who is present in which round.

Round 0 is the start, at which everyone is present; a party that is absent in the last round T has left for good
(section "Failures").
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.kernels import Flags
from inca._base.validation import file_path, finite_float, generator, integer, refuse, whole_parties
from inca.errors import InvalidInput

_COLUMNS = ("party", "leaves", "returns")


@dataclass(frozen=True, eq=False)
class Presence:
    """The presence of n parties in rounds 0..T; row t is the set O^(t) of the paper.

    Build it with one of the class methods: `everyone`, `explicit`, `leaving`, `markov` or `from_csv`.

    Attributes:
        parties: n.
        rounds: T.

    Example:
        >>> Presence.everyone(parties=3, rounds=2).row(2).tolist()
        [True, True, True]
    """

    parties: int
    rounds: int
    _bits: NDArray[np.uint8] | None  # (T+1, ceil(n/8)); None: everyone, always

    @classmethod
    def everyone(cls, parties: int, rounds: int) -> Presence:
        """Return the presence in which nobody is ever absent.

        Args:
            parties: n, at least 2.
            rounds: T, at least 1.

        Returns:
            The presence of everyone in all rounds.

        Raises:
            InvalidInput: If there are too few parties or rounds.
        """
        return cls(*_check_size(parties, rounds), None)

    @classmethod
    def explicit(cls, present: ArrayLike) -> Presence:
        """Take presence as an array of 0 and 1.

        Args:
            present: T+1 rows of n entries, round 0 first and all 1.

        Returns:
            The presence that the array describes.

        Raises:
            InvalidInput: If the shape is wrong, an entry is not 0 or 1, or somebody is absent in round 0.

        Example:
            >>> Presence.explicit([[1, 1], [1, 0], [1, 1]]).row(1).tolist()
            [True, False]
        """
        try:
            array = np.asarray(present)
        except ValueError:
            raise InvalidInput("the rows of present must be of one length, got rows of different lengths") from None
        if array.ndim != 2:
            refuse("the shape of present", array.shape, "(T+1, n)")
        rounds, parties = array.shape[0] - 1, array.shape[1]
        _check_size(parties, rounds)
        wrong = ~np.isin(array, (0, 1)) if array.dtype.kind in "biuf" else np.ones(array.shape, dtype=bool)
        if wrong.any():
            t, party = (int(index) for index in np.argwhere(wrong)[0])
            refuse(f"present[{t}][{party}]", array[t, party], "0 or 1")
        return cls._from_rows(array.astype(bool))

    @classmethod
    def leaving(
        cls, parties: int, rounds: int, fraction: float, rng: np.random.Generator, *, away: float = 0.0
    ) -> Presence:
        """Let a fraction of the parties leave for good, each in a uniformly random round of 1..T.

        Args:
            parties: n, at least 2.
            rounds: T, at least 1.
            fraction: How many leave; `fraction * parties` is rounded up.
            rng: Decides who leaves, and when, and who is away.
            away: The probability with which a party misses one of the rounds 1..T-1, on top of that.

        Returns:
            A presence with that many leavers.

        Raises:
            InvalidInput: If a number is out of range.

        Example:
            >>> presence = Presence.leaving(100, 20, fraction=0.1, rng=np.random.default_rng(0))
            >>> int(presence.row(20).sum())
            90
        """
        n, t = _check_size(parties, rounds)
        generator(rng)
        count = whole_parties("fraction", fraction, n)
        missed = finite_float("away", away, 0.0, 1.0)
        if count == 0 and missed == 0.0:
            return cls(n, t, None)
        departure = np.full(n, t + 1)
        departure[rng.choice(n, size=count, replace=False)] = rng.integers(1, t + 1, size=count)
        rows = [departure > now for now in range(t + 1)]
        if missed > 0.0:
            rows[1:t] = [row & (rng.random(n) >= missed) for row in rows[1:t]]
        return cls(n, t, np.stack([np.packbits(row) for row in rows]))

    @classmethod
    def markov(cls, parties: int, rounds: int, leave: float, rejoin: float, rng: np.random.Generator) -> Presence:
        """Let parties leave and return at random, each by its own Markov chain with two states.

        Args:
            parties: n, at least 2.
            rounds: T, at least 1.
            leave: The probability with which a present party is absent in the next round.
            rejoin: The probability with which an absent party is present in the next round.
            rng: Decides who leaves and returns, and when.

        Returns:
            A presence drawn from the chains.

        Raises:
            InvalidInput: If a number is out of range.

        Example:
            >>> Presence.markov(10, 5, leave=1.0, rejoin=1.0, rng=np.random.default_rng(0)).row(2).all()
            np.True_
        """
        n, t = _check_size(parties, rounds)
        generator(rng)
        finite_float("leave", leave, 0.0, 1.0)
        finite_float("rejoin", rejoin, 0.0, 1.0)
        present = np.ones(n, dtype=bool)
        packed = [np.packbits(present)]
        for _ in range(t):
            present = rng.random(n) < np.where(present, 1.0 - leave, rejoin)
            packed.append(np.packbits(present))
        return cls(n, t, np.stack(packed))

    @classmethod
    def from_csv(cls, path: str | Path, parties: int, rounds: int) -> Presence:
        """Read absences from a CSV file with the columns `party`, `leaves` and `returns`.

        A row says that `party` (0-based) is absent from round `leaves` on, and present again from round `returns`
        on; an empty `returns` means that it left for good. Parties without a row are always present.

        Args:
            path: The file.
            parties: n, at least 2.
            rounds: T, at least 1.

        Returns:
            The presence that the file describes.

        Raises:
            InvalidInput: If the file cannot be read, or names parties or rounds that do not exist.
        """
        n, t = _check_size(parties, rounds)
        flags = np.ones((t + 1, n), dtype=bool)
        for line, (party, leaves, returns) in _csv_rows(file_path("path", path)):
            where = f"line {line} of {path}"
            who = integer(f"party in {where}", party, 0, n - 1)
            start = integer(f"leaves in {where}", leaves, 1, t)
            end = t + 1 if returns is None else integer(f"returns in {where}", returns, start + 1, t + 1)
            flags[start:end, who] = False
        return cls._from_rows(flags)

    @classmethod
    def _from_rows(cls, flags: Flags) -> Presence:
        if not flags[0].all():
            absent = int(np.flatnonzero(~flags[0])[0])
            refuse(f"present[0][{absent}]", 0, "1, as everyone is present in round 0")
        rounds, parties = flags.shape[0] - 1, flags.shape[1]
        return cls(parties, rounds, None if flags.all() else np.packbits(flags, axis=1))

    @property
    def all_present(self) -> bool:
        """Whether it is certain that everyone is present in all rounds."""
        return self._bits is None

    def row(self, t: int) -> Flags:
        """Return who is present in a round.

        Args:
            t: The round, from 0 to T.

        Returns:
            n booleans.
        """
        integer("t", t, 0, self.rounds)
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

    def __repr__(self) -> str:
        absent = "nobody ever absent" if self.all_present else "some absent"
        return f"Presence(parties={self.parties}, rounds={self.rounds}, {absent})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Presence):
            return NotImplemented
        same_size = (self.parties, self.rounds) == (other.parties, other.rounds)
        return same_size and all(np.array_equal(self.row(t), other.row(t)) for t in range(self.rounds + 1))

    def __hash__(self) -> int:
        return hash((self.parties, self.rounds))  # presences of the same size are told apart by comparison


def _check_size(parties: int, rounds: int) -> tuple[int, int]:
    return integer("parties", parties, min=2), integer("rounds", rounds, min=1)


def _csv_rows(path: Path) -> list[tuple[int, tuple[int, int, int | None]]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            columns = list(reader.fieldnames or [])
            if set(columns) != set(_COLUMNS):
                refuse(f"the columns of {path}", ",".join(columns), ",".join(_COLUMNS))
            rows = [(reader.line_num, row) for row in reader]
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as a presence trace: {error}") from None
    parsed = []
    for line, row in rows:
        try:
            returns = int(row["returns"]) if row["returns"] else None
            parsed.append((line, (int(row["party"]), int(row["leaves"]), returns)))
        except (TypeError, ValueError):
            refuse(f"line {line} of {path}", list(row.values()), "three integers, the last one perhaps empty")
    return parsed
