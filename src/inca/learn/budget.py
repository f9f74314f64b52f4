"""A privacy budget that several releases share.

Each release is a Gaussian shift of some mu (it is mu-GDP); releases compose by adding squares, also when a later one
depends on the results of earlier ones (docs/accounting.md). So a budget is a number of squares to spend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

from inca._base.validation import finite_float, positive, refuse
from inca.errors import BudgetExceeded
from inca.privacy.gaussian import Rule, epsilon_for, mu_for

ProtectionLevel = Literal["record", "party"]
"""What the guarantee protects: each record, or each party with all its records."""

_ROUNDING_SLACK = 1e-9  # relative; parts that add up to the whole may miss it by rounding


class Budget:
    """(epsilon, delta) for all releases together.

    Args:
        epsilon: The epsilon of all releases together.
        delta: The delta of all releases together.
        rule: How a shift mu becomes (epsilon, delta), see `inca.epsilon_for`.

    Raises:
        InvalidInput: If no Gaussian noise gives this (epsilon, delta).

    Example:
        >>> budget = Budget(epsilon=1.0, delta=1e-5)
        >>> budget.spend(budget.part(0.25))
        >>> round(budget.epsilon_spent, 3), round(budget.left / budget.mu, 3)
        (0.469, 0.866)
    """

    def __init__(self, epsilon: float, delta: float, rule: Rule = "analytic") -> None:
        self.epsilon, self.delta, self.rule = positive("epsilon", epsilon), finite_float("delta", delta, 0.0, 1.0), rule
        self.mu = mu_for(self.epsilon, self.delta, rule)
        """The mu of all releases together."""
        if not 0.0 < self.mu < math.inf:
            refuse("(epsilon, delta)", (epsilon, delta), "a guarantee that Gaussian noise can give")
        self._squares = 0.0

    @property
    def left(self) -> float:
        """The largest mu that one more release may have."""
        return math.sqrt(max(0.0, self.mu**2 - self._squares))

    @property
    def spent(self) -> float:
        """The mu of all releases so far together."""
        return math.sqrt(self._squares)

    @property
    def epsilon_spent(self) -> float:
        """The epsilon of all releases so far together."""
        return float(epsilon_for(self.spent, self.delta, self.rule)) if self._squares else 0.0

    def part(self, fraction: float) -> float:
        """Return the mu of a release that takes this fraction of the whole budget."""
        return self.mu * math.sqrt(finite_float("fraction", fraction, 0.0, 1.0))

    def split(self, weights: Sequence[float]) -> list[float]:
        """Return mus that use up what is left, with squares in proportion to the weights.

        Args:
            weights: One positive number per release.

        Returns:
            The mu of each release.

        Example:
            >>> [round(mu, 3) for mu in Budget(1.0, 1e-5).split([1, 1, 2])]
            [0.134, 0.134, 0.19]
        """
        if not weights or not all(math.isfinite(weight) and weight > 0.0 for weight in weights):
            refuse("weights", list(weights), "at least one number, all above 0")
        return [self.left * math.sqrt(weight / sum(weights)) for weight in weights]

    def spend(self, mu: float) -> None:
        """Take a release off the budget, or take nothing if it is more than what is left.

        Args:
            mu: The loss of the release.

        Raises:
            BudgetExceeded: If more than what is left is asked for.
        """
        square = positive("mu", mu) ** 2
        if self._squares + square > self.mu**2 * (1.0 + _ROUNDING_SLACK):
            raise BudgetExceeded(
                f"the mu of a release must be at most {self.left:.4g}, which is left of the budget epsilon "
                f"{self.epsilon:g} at delta {self.delta:g} (mu {self.mu:.4g}), got {mu:.4g}"
            )
        self._squares += square
