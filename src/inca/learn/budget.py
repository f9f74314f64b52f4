"""A privacy budget that several releases share.

Each release is a Gaussian shift of some mu; releases compose by adding squares, also when a later one depends on the
results of earlier ones (docs/accounting.md). So a budget is a number of squares to spend.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from inca._base.validation import InputError, positive, real, refuse
from inca.privacy.gaussian import Rule, epsilon_for, mu_for

_SLACK = 1e-9  # relative; parts that add up to the whole may miss it by rounding


class UsedUp(InputError):
    """A release that the budget does not allow any more."""

    status = 1


class Budget:
    """(epsilon, delta) for all releases together.

    >>> budget = Budget(epsilon=1.0, delta=1e-5)
    >>> budget.spend(budget.part(0.25))
    >>> round(budget.epsilon_spent, 3), round(budget.left / budget.mu, 3)
    (0.469, 0.866)
    """

    def __init__(self, epsilon: float, delta: float, rule: Rule = "exact") -> None:
        """Begin with all of it."""
        self.epsilon, self.delta, self.rule = positive("epsilon", epsilon), real("delta", delta, 0.0, 1.0), rule
        self.mu = mu_for(self.epsilon, self.delta, rule)
        """What all releases together may have."""
        if not 0.0 < self.mu < math.inf:
            raise InputError(f"(epsilon, delta) is ({epsilon:g}, {delta:g}), which no Gaussian noise can promise")
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
        """Return the mu of a release that takes this fraction of the whole."""
        return self.mu * math.sqrt(real("fraction", fraction, 0.0, 1.0))

    def split(self, weights: Sequence[float]) -> list[float]:
        """Return mus that use up what is left, with squares in proportion to the weights.

        >>> [round(mu, 3) for mu in Budget(1.0, 1e-5).split([1, 1, 2])]
        [0.134, 0.134, 0.19]
        """
        if not weights or not all(math.isfinite(weight) and weight > 0.0 for weight in weights):
            raise refuse("weights", list(weights), "at least one, all above 0")
        return [self.left * math.sqrt(weight / sum(weights)) for weight in weights]

    def spend(self, mu: float) -> None:
        """Take a release off the budget; refuse one that is more than what is left, and take nothing then."""
        square = positive("mu", mu) ** 2
        if self._squares + square > self.mu**2 * (1.0 + _SLACK):
            raise UsedUp(
                f"a release of mu {mu:.4g} was asked for, but of the budget epsilon {self.epsilon:g} at delta "
                f"{self.delta:g} (mu {self.mu:.4g}) only mu {self.left:.4g} is left"
            )
        self._squares += square
