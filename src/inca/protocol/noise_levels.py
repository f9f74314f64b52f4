"""How much noise of each kind: one thing, so that the two numbers are never mistaken for each other."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inca._base.validation import finite_float, refuse

_LARGEST_RATIO = 1e12  # of the levels at which rounding adds less than a millionth to the variance of what remains


@dataclass(frozen=True, kw_only=True)
class NoiseLevels:
    """The standard deviations of all noise, per party and coordinate.

    Args:
        independent: sigma_* of the noise that stays in the result.
        cancelling: sigma_Delta of each noise term that its owner takes out again.
        topup: sigma_top of the independent noise that a party adds when it settles, so that there is enough for the
            number that really left.

    Example:
        >>> NoiseLevels(independent=1, cancelling=10).ratio
        10.0
    """

    independent: float
    cancelling: float
    topup: float = 0.0

    def __post_init__(self) -> None:
        for name in ("independent", "cancelling", "topup"):
            object.__setattr__(self, name, finite_float(f"sigma_{name}", getattr(self, name), min=0.0))

    @property
    def ratio(self) -> float:
        """The cancelling level over the independent one; infinite if there is no independent noise."""
        return self.cancelling / self.independent if self.independent > 0.0 else math.inf

    def refuse_uncancelled(self) -> None:
        """Refuse levels at which doubles leave cancelling noise behind; whole numbers, on a network, do not."""
        if self.independent > 0.0 and self.ratio > _LARGEST_RATIO:
            must_be = (
                f"at most {_LARGEST_RATIO:g} times sigma_independent, since doubles cannot cancel more (plans that may "
                "fail with a larger probability need less)"
            )
            refuse("sigma_cancelling", f"{self.ratio:.3g} times", must_be)
