"""A privacy budget that several releases share.

Each release is a Gaussian shift of some mu (it is mu-GDP); releases compose by adding squares, also when a later one
depends on the results of earlier ones (docs/accounting.md). So a budget is a number of squares to spend.

A plan may fail with some probability: its guarantee holds for all but a small fraction of random schedules and
adversaries. These probabilities add up over releases, and what is promised is epsilon at delta plus their sum.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NoReturn, get_args

import numpy as np

from inca._base.options import Rule
from inca._base.validation import finite_array, finite_float, integer, one_of, positive, refuse
from inca.errors import BudgetExceeded, InvalidInput
from inca.privacy.dp_event import gaussian_dp_event
from inca.privacy.gaussian import epsilon_for, mu_for

ProtectionLevel = Literal["record", "party"]
"""What the guarantee protects: each record, or each party with all its records."""

_ROUNDING_SLACK = 1e-9  # relative; parts that add up to the whole may miss it by rounding
_ROUNDING_LEFT = 1e-6  # of a budget: what rounding leaves of one that was divided among releases


class Budget:
    """(epsilon, delta) for all releases together, and how likely the plans behind them may fail.

    What is promised is epsilon at delta + `failure_probability`. A budget is one object that all releases share: it
    can be neither copied nor pickled nor changed, since then the same loss could be spent twice. It is for records or
    for parties, whichever its first release protects, and not for both: the loss of a party is not bounded by what its
    records lose one by one.

    Args:
        epsilon: The epsilon of all releases together.
        delta: The delta of all releases together.
        rule: How a shift mu becomes (epsilon, delta), see `inca.epsilon_for`.
        failure: The largest probability that the plan of any release fails; by default delta, so that a promise at
            delta is never worse than one at 2 delta. Larger ones have to be asked for.

    Raises:
        InvalidInput: If no Gaussian noise gives this (epsilon, delta).

    Example:
        >>> budget = Budget(epsilon=1.0, delta=1e-5)
        >>> budget.spend(budget.part(0.25))
        >>> round(budget.epsilon_spent, 3), round(budget.left / budget.mu, 3)
        (0.469, 0.866)
        >>> budget
        Budget(epsilon=1, delta=1e-05, spent 0.25)
    """

    __slots__ = ("_delta", "_epsilon", "_failure", "_failures", "_level", "_mu", "_planned", "_rule", "_squares")

    _epsilon: float
    _delta: float
    _rule: Rule
    _mu: float
    _failure: float
    _squares: float
    _failures: float | None
    _planned: int
    _level: ProtectionLevel | None

    def __init__(self, epsilon: float, delta: float, rule: Rule = "analytic", *, failure: float | None = None) -> None:
        self._keep("_epsilon", positive("epsilon", epsilon))
        self._keep("_delta", finite_float("delta", delta, 0.0, 1.0))
        self._keep("_rule", rule)
        self._keep("_mu", mu_for(self._epsilon, self._delta, rule))
        if not 0.0 < self._mu < math.inf:
            refuse("(epsilon, delta)", (epsilon, delta), "a guarantee that Gaussian noise can give")
        self._keep("_failure", self._delta if failure is None else finite_float("failure", failure, 0.0, 1.0))
        self._keep("_squares", 0.0)
        self._keep("_failures", 0.0)
        self._keep("_planned", 0)
        self._keep("_level", None)

    @property
    def epsilon(self) -> float:
        """The epsilon of all releases together."""
        return self._epsilon

    @property
    def delta(self) -> float:
        """The delta of all releases together."""
        return self._delta

    @property
    def rule(self) -> Rule:
        """How a shift mu becomes (epsilon, delta)."""
        return self._rule

    @property
    def mu(self) -> float:
        """The mu of all releases together."""
        return self._mu

    @property
    def failure(self) -> float:
        """The largest probability that the plan of any release fails."""
        return self._failure

    @property
    def level(self) -> ProtectionLevel | None:
        """What the releases so far protect; None before the first that says so."""
        return self._level

    @property
    def left(self) -> float:
        """The largest mu that one more release may have."""
        return math.sqrt(max(0.0, self._mu**2 - self._squares))

    @property
    def spent(self) -> float:
        """The mu of all releases so far together."""
        return math.sqrt(self._squares)

    @property
    def epsilon_spent(self) -> float:
        """The epsilon of all releases so far together."""
        return float(epsilon_for(self.spent, self._delta, self._rule)) if self._squares else 0.0

    @property
    def failure_probability(self) -> float | None:
        """How likely the plan of any release so far fails, at most; it adds to delta. None: not known of all plans."""
        return self._failures

    def dp_event(self) -> Any:
        """Return all releases so far as one event of the dp_accounting library, for an accountant of the user's own.

        The `failure_probability` of their plans is no part of it; it adds to delta there, too.

        Returns:
            A `GaussianDpEvent` with noise multiplier 1 / `spent`; a `NoOpDpEvent` if nothing is spent.

        Raises:
            InvalidInput: If dp_accounting is not installed.

        Example:
            >>> budget = Budget(1.0, 1e-5)
            >>> budget.spend(0.125)
            >>> budget.dp_event()
            GaussianDpEvent(noise_multiplier=8.0)
        """
        return gaussian_dp_event(self.spent)

    def part(self, fraction: float) -> float:
        """Return the mu of a release that takes this fraction of the whole budget."""
        return self._mu * math.sqrt(finite_float("fraction", fraction, 0.0, 1.0))

    def rest(self) -> float:
        """Return the mu of a release that takes all that is left.

        Raises:
            BudgetExceeded: If nothing is left, or no more than rounding leaves.
        """
        if self.left <= self._mu * _ROUNDING_LEFT:
            raise BudgetExceeded(
                f"something must be left of the budget epsilon {self._epsilon:g} at delta {self._delta:g}, "
                "got nothing: all of it is spent"
            )
        return self.left

    def split(self, weights: Sequence[float]) -> list[float]:
        """Return mus that use up what is left, with squares in proportion to the weights.

        Args:
            weights: One positive number per release.

        Returns:
            The mu of each release.

        Raises:
            BudgetExceeded: If nothing is left.

        Example:
            >>> [round(mu, 3) for mu in Budget(1.0, 1e-5).split([1, 1, 2])]
            [0.134, 0.134, 0.19]
        """
        shares = finite_array("weights", weights, (1,), "at least one number, all above 0")
        if not (shares.size and (shares > 0.0).all()):
            refuse("weights", shares.tolist(), "at least one number, all above 0")
        shares = shares / shares.max()  # so that their sum is finite
        parts: list[float] = (self.rest() * np.sqrt(shares / math.fsum(shares))).tolist()
        return parts

    def spend(
        self,
        mu: float,
        *,
        level: ProtectionLevel | None = None,
        releases: int = 1,
        failure_probability: float | None = 0.0,
        planned_releases: int | None = None,
    ) -> None:
        """Take releases off the budget, or take nothing if they are more than what is left.

        Args:
            mu: The loss of the releases together.
            level: What they protect, if it is known.
            releases: How many there are.
            failure_probability: How likely the plan of *one* of them fails; None if it is not known.
            planned_releases: How many releases of one budget the plan is for; None: any number.

        Raises:
            BudgetExceeded: If more than what is left is asked for.
            InvalidInput: If earlier releases protect something else, there are more releases than the plan is for, or
                the plans fail with more than the accepted probability.
        """
        squares, failures, planned = self._after(mu, level, releases, failure_probability, planned_releases)
        self._keep("_squares", squares)
        self._keep("_failures", failures)
        self._keep("_planned", planned)
        self._keep("_level", level or self._level)

    def check(
        self,
        mu: float,
        *,
        level: ProtectionLevel | None = None,
        releases: int = 1,
        failure_probability: float | None = 0.0,
        planned_releases: int | None = None,
    ) -> None:
        """Refuse what `spend` would refuse with the same arguments, and take nothing.

        Args:
            mu: The loss of the releases together.
            level: What they protect, if it is known.
            releases: How many there are.
            failure_probability: How likely the plan of *one* of them fails; None if it is not known.
            planned_releases: How many releases of one budget the plan is for; None: any number.

        Raises:
            BudgetExceeded: If more than what is left is asked for.
            InvalidInput: As for `spend`.

        Example:
            >>> budget = Budget(1.0, 1e-5)
            >>> budget.check(budget.part(0.5))
            >>> budget.spent
            0.0
        """
        self._after(mu, level, releases, failure_probability, planned_releases)

    def _after(
        self,
        mu: float,
        level: ProtectionLevel | None,
        releases: int,
        failure_probability: float | None,
        planned_releases: int | None,
    ) -> tuple[float, float | None, int]:
        """Return squares, failure probability and planned releases after some more releases, or refuse these."""
        square, count = positive("mu", mu) ** 2, integer("releases", releases, min=1)
        self._check_level(level)
        failures, planned = self._failures, self._planned
        failure = None
        if failure_probability is not None:
            failure = finite_float("failure_probability", failure_probability, 0.0, 1.0)
        if failure != 0.0:
            planned += count
            self._check_planned(planned, planned_releases)
            if failure is None or failures is None:
                failures = None
            else:
                failures += count * failure
                self._check_failures(failures)
        if self._squares + square > self._mu**2 * (1.0 + _ROUNDING_SLACK):
            raise BudgetExceeded(
                f"the mu of a release must be at most {self.left:.4g}, which is left of the budget epsilon "
                f"{self._epsilon:g} at delta {self._delta:g} (mu {self._mu:.4g}), got {mu:.4g}"
            )
        return self._squares + square, failures, planned

    def _check_level(self, level: ProtectionLevel | None) -> None:
        if level is not None:
            one_of("level", level, get_args(ProtectionLevel))
        if None not in (level, self._level) and level != self._level:
            refuse(
                "the level of a release",
                level,
                f"{self._level!r}, as of those before it (records and parties need a budget each)",
            )

    @staticmethod
    def _check_planned(planned: int, most: int | None) -> None:
        if most is not None and planned > integer("planned_releases", most):
            refuse("the number of releases of a budget", planned, f"at most {most}, which the averager was made for")

    def _check_failures(self, failures: float) -> None:
        if failures > self._failure * (1.0 + _ROUNDING_SLACK):
            refuse(
                "the probability that a plan fails in any release",
                float(f"{failures:.4g}"),
                f"at most {self._failure:g} (delta, unless Budget(failure=...) says otherwise)",
            )

    def _keep(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise InvalidInput(f"a budget must stay as it was agreed on, got an assignment to {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise InvalidInput(f"a budget must stay as it was agreed on, got a deletion of {name}")

    def __copy__(self) -> NoReturn:
        raise InvalidInput("a budget must be one object for all releases, got a copy, which could be spent again")

    def __deepcopy__(self, memo: object) -> NoReturn:
        self.__copy__()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__copy__()

    def __repr__(self) -> str:
        share = self._squares / self._mu**2
        return f"Budget(epsilon={self._epsilon:g}, delta={self._delta:g}, spent {share:.4g})"
