"""The circle: in round r everyone sends to the r-th next party. Nothing is drawn, so no seed is needed."""

from __future__ import annotations

import numpy as np

from inca._base.validation import refuse
from inca.protocol.schedules.base import Round, Schedule, check_share, check_size


class CircleSchedule(Schedule):
    """In round r = 1..T party i sends to party (i + r) mod n: one receiver, one sender, and no seed.

    After T rounds with 2T < n the messages join every party with the T next ones on either side: Harary's graph
    H(2T, n), which stays connected whatever 2T - 1 parties or messages are taken away.
    `inca.privacy.theorems.circle.circle_rounds` says how many rounds that takes.

    Args:
        parties: n, at least 2.
        rounds: T, from 1 to n-1: in round n a party would send to itself.
        share: The fraction of its message that a party sends; by default 1/2.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> circle = CircleSchedule(5, rounds=2)
        >>> circle.round(1).receivers[:, 0].tolist(), circle.round(2).receivers[:, 0].tolist()
        ([1, 2, 3, 4, 0], [2, 3, 4, 0, 1])
    """

    valid = True

    def __init__(self, parties: int, rounds: int, *, share: float | None = None) -> None:
        self.parties, self.rounds, self.slots = check_size(parties, rounds, 1)
        if self.rounds >= self.parties:
            must_be = f"below the number of parties ({self.parties}) on a circle"
            refuse("rounds", rounds, f"{must_be}, where in round {self.parties} everyone would send to itself")
        self.share = self.even_share = check_share(share, self.slots)

    def round(self, t: int) -> Round:
        """Return round t = 1..T."""
        shift = self._check_round(t)
        receivers = np.roll(np.arange(self.parties, dtype=np.int32), -shift)
        return Round(receivers[:, np.newaxis], self.share)
