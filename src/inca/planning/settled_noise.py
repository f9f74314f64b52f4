"""How much noise a settled run has in all, by how many really left, and the error that it leaves.

All is in units of s^2 / mu^2, the variance of Local DP's noise. Every party starts with enough independent noise for
everybody present, and tops it up when it settles, so that those who stayed have enough together. Three things are
proven in docs/settlement.md, and used here:

- Noise that comes at the end hides earlier messages a little less than noise from the start. With a part phi of the
  variance V topped up, and a = phi sqrt(V / var_cancelling) sqrt(sum_t C_t^2), where C_t is the part of the value that
  has been injected in round t, all variances times 1 + 2 a sqrt(b (1 - b)) + a^2 make up for it; b is the largest part
  that cancelling noise can have in a squared loss.
- A leaver, whatever colluders saw of it, loses at most sqrt(sum_t C_t^2 / level) times the allowed mu, and usually
  much less (`inca.planning.leavers`).
- A party that tops up by var_topup loses at most 1 / sqrt(start + 1 / (1 / var_topup + sum_t C_t^2 / level)) times the
  allowed mu, whoever else is there and whatever is known of them. If more leave than planned, levels promise nothing,
  and this is what every party that stays relies on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

from inca._base.validation import refuse
from inca.planning.leavers import level_that_protects_leavers
from inca.planning.requirements import Requirements
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.injection import Injection

_MOST_FOR_TOPPING_UP = 1.1  # if all noise had to be larger than that times, it is there from the start instead
_ITERATIONS = 60

_MISSING_CHANCE = 0.001  # of a final message, to a search only: larger cancelling noise costs nothing otherwise


def price(error: ErrorBudget, one_missing: ErrorBudget) -> float:
    """Return what a search makes least: the error, and a little of the error without one final message.

    Without the second part there would be no end to cancelling noise, as an expected error does not grow with it.

    Example:
        >>> price(ErrorBudget(1.0, 0.0, 0.0), ErrorBudget(1.0, 9.0, 0.0))
        1.01
    """
    return error.total + _MISSING_CHANCE * one_missing.total


@dataclass(frozen=True)
class SettledNoise:
    """The noise of a settled run, in units of s^2 / mu^2."""

    requirements: Requirements
    injection: Injection
    factor: float
    level: float
    start: float

    @classmethod
    def enough(cls, requirements: Requirements, injection: Injection, factor: float, level: float) -> SettledNoise:
        """Return noise that suffices up to the required number of leavers."""
        noise = cls(requirements, injection, factor, level, min(1.0, factor / requirements.honest))
        planned = noise._sufficient(requirements.leavers)
        least = min(1.0, factor / noise.staying(requirements.leavers))
        if planned is None or planned > _MOST_FOR_TOPPING_UP * least:
            return cls(requirements, injection, factor, level, least)
        return cls(requirements, injection, factor, level * planned / least, noise.start)

    @classmethod
    def least_and_most(
        cls, requirements: Requirements, injection: Injection, factor: float, levels: tuple[float, float]
    ) -> tuple[SettledNoise, SettledNoise]:
        """Return noise between whose errors that of `enough` lies, whatever the level is between two levels.

        The larger the level, the less noise a top-up takes; where it would take too much there is none.
        """
        first, last = (cls.enough(requirements, injection, factor, level) for level in levels)
        leavers = requirements.leavers
        least = min(1.0, factor / first.staying(leavers))
        most = _MOST_FOR_TOPPING_UP * least
        smallest, largest = (last.total(leavers), first.total(leavers)) if first.start < least else (least, least)
        if last.start < least <= first.start:  # somewhere between them a top-up begins to pay
            largest = most
        return (
            cls(requirements, injection, factor, levels[0], smallest),
            cls(requirements, injection, factor, last.level, largest),
        )

    def staying(self, leavers: int) -> int:
        """Return how many honest parties stay at least: all leavers may be honest, but a party counts on itself."""
        return max(1, self.requirements.honest - leavers)

    @cached_property
    def _spread(self) -> float:
        return math.sqrt(level_that_protects_leavers(self.injection))

    def total(self, leavers: int) -> float:
        """Return the independent variance of each survivor, top-up included, if so many leave.

        If more leave than planned, it is what each party needs on its own.
        """
        sufficient, planned = self._known_to_suffice(leavers), self.requirements.leavers
        if sufficient is None:
            refuse("leavers", leavers, f"few enough for a top-up that is known to suffice (planned for: {planned})")
        return sufficient

    def covers(self, leavers: int) -> bool:
        """Return whether a top-up is known to suffice if so many leave."""
        return self._known_to_suffice(leavers) is not None

    def _known_to_suffice(self, leavers: int) -> float | None:
        planned = self._sufficient(leavers) if leavers <= self.requirements.leavers else None
        return self._alone if planned is None else planned

    @property
    def _alone(self) -> float | None:
        """The variance, top-up included, that protects a party whoever else is there; None if none does."""
        if self.start >= 1.0:
            return self.start
        if self.level * (1.0 / (1.0 - self.start)) <= self._spread**2:
            return None
        return self.start + 1.0 / (1.0 / (1.0 - self.start) - self._spread**2 / self.level)

    def _sufficient(self, leavers: int) -> float | None:
        least = self.factor / self.staying(leavers)
        if self.start >= 1.0 or self.start >= least:  # Local DP's noise, or enough from the start
            return self.start
        if self.level == 0.0:
            return None
        # Colluders may be among those who left: then more honest ones stay than were counted, each with as much noise.
        part = min(0.5, 1.0 - 1.0 / (self.factor * self.requirements.honest / self.staying(leavers)))
        cross = 2.0 * math.sqrt(part * (1.0 - part))
        total = least
        for _ in range(_ITERATIONS):
            a = (1.0 - self.start / total) * math.sqrt(total / self.level) * self._spread
            larger = least * (1.0 + cross * a + a * a)
            if larger <= total * (1.0 + 1e-12):
                break
            total = larger
        else:
            return None
        return total

    def topup(self, leavers: int) -> float:
        """Return the variance that each survivor adds when it settles, if so many left."""
        return self.total(leavers) - self.start

    def error(self, leavers: int) -> ErrorBudget:
        """Return the expected error of the estimate, in closed form."""
        return self._error(leavers, self.requirements.parties - leavers)

    def error_without_one(self, leavers: int, residue: float) -> ErrorBudget:
        """Return the error if one final message of the cohort were missing, which leaves that part of the level."""
        staying = self.requirements.parties - leavers - 1
        if staying < 1:
            return ErrorBudget(math.inf, math.inf, math.inf)
        left = self.requirements.var_local_dp * self.level * residue / staying**2  # the level may be unbounded
        return replace(self._error(leavers, staying), cancelling=left)

    def _error(self, leavers: int, staying: int) -> ErrorBudget:
        requirements = self.requirements
        if staying < 1:
            return ErrorBudget(math.inf, math.inf, math.inf)
        unit = requirements.var_local_dp
        return ErrorBudget(
            independent=unit * self.total(leavers) / staying,
            cancelling=0.0,
            data=requirements.value_variance * (1.0 / staying - 1.0 / requirements.parties),
        )
