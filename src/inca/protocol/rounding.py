"""What computing in whole numbers does to a loss that was worked out for real ones."""

from __future__ import annotations

from dataclasses import dataclass

from inca._base.types import Array
from inca._base.validation import finite_float


@dataclass(frozen=True)
class Rounding:
    """A loss mu of real numbers becomes at most mu / (1 + excess) + mu_added in whole ones (docs/rounding.md).

    Example:
        >>> import numpy as np
        >>> Rounding(excess=0.25, mu_added=0.01).loss(np.array([0.5, np.inf]))
        array([0.41,  inf])
    """

    excess: float
    mu_added: float

    def __post_init__(self) -> None:
        finite_float("rounding.excess", self.excess, 0.0, 1.0)
        finite_float("rounding.mu_added", self.mu_added, min=0.0)

    def loss(self, mu: Array) -> Array:
        """Return losses in whole numbers."""
        return mu / (1.0 + self.excess) + self.mu_added
