"""How much noise a party adds when it settles: what those who stayed lack together, by the weights that were agreed.

Theorem 2 and the inequality of `inca.privacy.theorems.joined_bound` ask for V, the independent variance of all honest
parties of the cohort S together: a party of weight w is protected if V is `together`^2 w^2 or more. Party j brings
w_j^2 sigma_*^2 + sigma_top^2. Of S all but c are honest, whoever colludes, so that they bring at least what the
J = |S| - c lightest do:

    sigma_top^2 = max(0, (together^2 max_S w^2 - sigma_*^2 (sum of the J smallest w_j^2)) / J).

It holds for any number of leavers and for parties that missed rounds. Lies about weights do not lower it: parties that
collude are those left out of the sum, or lighter ones are.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_LEAST = 1.0 / 32.0  # of sigma_*: less is badly rounded to whole numbers, and this adds a thousandth to the variance
_UP = 1.0 + 2.0**-48  # more than rounding takes


@dataclass(frozen=True)
class TopUp:
    """What the honest parties of a cohort need together, what each brings, and how many may collude.

    Args:
        together: The standard deviation that their independent noise needs together; 0: no top-up is ever needed.
        independent: sigma_*, of the independent noise of each.
        colluders: c, how many of a cohort may be dishonest.

    Example:
        >>> topup = TopUp(together=2.999999, independent=1.0, colluders=1)
        >>> topup.sigma([1.0] * 10), round(topup.sigma([1.0] * 9) ** 2, 3)  # nobody left, or one: 8 (1 + 1 / 8) = 9
        (0.0, 0.125)
        >>> round(topup.sigma([1.0] * 9 + [0.5]) ** 2, 3)  # one was there half of the time: 8 + 1 / 4 + 9 / 12 = 9
        0.083
    """

    together: float
    independent: float
    colluders: int

    def sigma(self, weights: Iterable[float]) -> float:
        """Return sigma_top for a cohort of these weights."""
        squares = sorted(weight * weight for weight in weights)
        if not squares or self.together == 0.0:
            return 0.0
        honest = max(1, len(squares) - self.colluders)
        return self._sigma(squares[-1], math.fsum(squares[:honest]), honest)

    def full(self, cohort: int) -> float:
        """Return sigma_top for a cohort of so many parties none of which missed a round, in no time."""
        honest = max(1, cohort - self.colluders)
        return self._sigma(1.0, honest, honest)

    def _sigma(self, heaviest: float, brought: float, honest: int) -> float:
        lacking = self.together**2 * heaviest * _UP - self.independent**2 * brought / _UP
        return max(math.sqrt(lacking / honest), self.least) if lacking > 0.0 else 0.0

    @property
    def least(self) -> float:
        """The least top-up other than none; 0 if there is never any."""
        return self.independent * _LEAST if self.together else 0.0

    def most(self, cohort: int) -> float:
        """Return what sigma_top is at most for a cohort of so many parties, whatever their weights."""
        return max(self.least, self.together * _UP / math.sqrt(max(1, cohort - self.colluders)))

    def scaled(self, factor: float) -> TopUp:
        """Return the same in other units."""
        return TopUp(self.together * factor, self.independent * factor, self.colluders)
