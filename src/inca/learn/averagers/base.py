"""What statistics and training need of whoever averages: a simulated mechanism, or sessions over a network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import whole
from inca.learn.averagers.simulated import Average


class Averaging(Protocol):
    """A private mean of one vector per party."""

    @property
    def parties(self) -> int:
        """How many parties there are."""
        ...

    @property
    def dropout(self) -> float:
        """The fraction that may leave during an average."""
        ...

    def noise(self, sensitivity: float, mu: float) -> float:
        """Return the expected variance of the noise in each coordinate of the mean."""
        ...

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        reach: float | None = None,
    ) -> Average:
        """Average vectors of which any two that must look alike differ by at most `sensitivity`, with loss mu.

        There is one row for each party whose data are here: all in a simulation, one's own on a network. `reach`
        bounds the length of a row, whoever's; a network needs it.
        """
        ...


@dataclass(frozen=True)
class Elsewhere:
    """The records of a party that are not here, of which only the number is known.

    >>> len(Elsewhere(40))
    40
    """

    count: int

    def __post_init__(self) -> None:
        """Refuse what is no number of records."""
        whole("count", self.count)

    def __len__(self) -> int:
        """How many there are."""
        return self.count
