"""Between which errors a plan will lie whose views are still being sampled: what the first few of them tell.

A plan that is not looked up takes the level of cancelling noise from hundreds of sampled views, for each of some forty
factors of independent noise, and then the factor of least error (`inca.planning.settled_plan`). The first few of the
same views already bound all of these levels:

- from below, for certain: a plan's level is at least what any party of any view that it has sampled needs;
- from above, with high probability: by the same extrapolation from these views alone, at a higher confidence, since
  the tail of a few views is known far less well than that of hundreds.

Every factor whose least error exceeds the largest error of another one is out. The errors of those that are left make
the range. Before any view is sampled it reaches from the least error that any factor has to Local DP's, which a plan
never exceeds. docs/planner.md says on which requirements it was held against plans.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca._base.validation import integer, refuse
from inca.planning.designs import ProtocolDesign
from inca.planning.extrapolation import FIRST_SEED, attendances
from inca.planning.requirements import Requirements
from inca.planning.sampling import (
    CancellingNoiseSample,
    OnViewSampled,
    candidate_factors,
    sample_cancelling_noise,
    sampled_parties,
)
from inca.planning.scoring import exceedance_probability
from inca.planning.settled_noise import SettledNoise, price
from inca.planning.settled_plan import leavers_protected, residue_of, sampled_design
from inca.privacy.tail_quantile import tail_level, tail_size

_CONFIDENCE = 0.95  # of the plan's level
_RANGE_CONFIDENCE = 0.995  # of the level that bounds it from above
_BLOCKS = 32  # that are resampled: a few views as they are, as a plan does, would be too few
_EVERY_FACTOR = 2
_SHAPE_ERROR = 1.0  # standard errors of the tail's shape, about 1 / sqrt(its samples), that are added to resampling's
_FIRST_SAMPLES = 160  # parties in the views of the first range
_MOST_SAMPLES = 6400  # and of the last one
_VIEWS_AT_ONCE = 4
_ROUNDING = 1e-9


@dataclass(frozen=True)
class ErrorRange:
    """Between which expected squared errors a plan will lie, and what that is known from."""

    low: float
    high: float
    data: float
    views: int
    rates: int
    planned_views: int
    design: ProtocolDesign
    noise: SettledNoise


def error_ranges(
    requirements: Requirements,
    *,
    receivers: int | None = None,
    views: int = 300,
    on_views_sampled: OnViewSampled | None = None,
) -> Iterator[ErrorRange]:
    """Yield ranges of the expected error of the settled plan, the next one never wider, as views are sampled.

    Example:
        >>> first, *_, last = error_ranges(Requirements(10, 1.0, eavesdropped=0.1), views=20)
        >>> first.views, first.low <= last.low <= last.high < first.high
        (0, True)
        >>> from inca._base.options import PlanOptions
        >>> from inca.planning.search import plan
        >>> error = plan(Requirements(10, 1.0, eavesdropped=0.1), PlanOptions(views=20)).expected_mse
        >>> bool(last.low <= error <= last.high)
        True
    """
    if requirements.away > 0.0:
        refuse("away", requirements.away, "0 for a range of errors")
    bounds = LevelBounds(requirements, sampled_design(requirements, None, receivers), integer("views", views, min=2))
    yield bounds.range()
    honest = max(1, bounds.parties - math.ceil(requirements.colluding * bounds.parties))
    last = min(views, max(2, _MOST_SAMPLES // honest))
    count = min(last, max(2, math.ceil(_FIRST_SAMPLES / honest)))
    while True:
        bounds.sample(count, on_views_sampled)
        yield bounds.range()
        if count == last:
            return
        count = min(last, 2 * count)


class LevelBounds:
    """Bounds on the level that a plan will take, for every factor, by the first of its views."""

    def __init__(self, requirements: Requirements, design: ProtocolDesign, planned_views: int) -> None:
        self.requirements, self.design, self.planned_views = requirements, design, planned_views
        self.parties = sampled_parties(requirements, design)
        self.factors = candidate_factors(requirements, self.parties)
        self.samples: list[list[Array]] = [[] for _ in attendances(requirements)]
        self.low = np.zeros(self.factors.size)
        self.high = np.where(self.factors >= requirements.honest, 0.0, math.inf)
        self._residue = residue_of(design, requirements.parties, requirements.leavers)

    @property
    def views(self) -> int:
        """How many views were sampled at each dropout rate."""
        return len(self.samples[0])

    def sample(self, views: int, on_views_sampled: OnViewSampled | None = None) -> None:
        """Go on until there are so many views at each dropout rate, and take them into account."""
        for number, (dropout, _) in enumerate(attendances(self.requirements)):
            first = FIRST_SEED + number * self.planned_views
            for start in range(first + len(self.samples[number]), first + views, _VIEWS_AT_ONCE):
                seeds = range(start, min(start + _VIEWS_AT_ONCE, first + views))
                more = sample_cancelling_noise(
                    self.requirements, self.design, self.parties, (dropout, 0.0), seeds, self.factors, settled=True
                )
                self.take(number, more.views)
                if on_views_sampled is not None:
                    on_views_sampled()
        self.update()

    def take(self, attendance: int, views: tuple[Array, ...]) -> None:
        """Add views, one row of needs per factor each, at one of the dropout rates."""
        self.samples[attendance].extend(views)

    def update(self) -> None:
        """Bound the levels by all views that there are."""
        probability = exceedance_probability(self.requirements)
        if self.views >= self.planned_views:
            exact = [
                CancellingNoiseSample(self.factors, tuple(views)).levels(
                    probability, np.random.default_rng(1), _CONFIDENCE
                )
                for views in self.samples
            ]
            self.low = self.high = np.max(exact, axis=0)
            return
        seen = np.max([np.max(view, axis=1) for views in self.samples for view in views], axis=0)
        if probability * self.planned_views * self.samples[0][0].shape[1] <= 1.0:  # else a level is read off
            self.low = np.maximum(self.low, seen)
        upper = np.max([self._upper_levels(views, probability) for views in self.samples], axis=0)
        self.high = np.maximum(np.minimum(self.high, upper), self.low)

    def _upper_levels(self, views: list[Array], probability: float) -> Array:
        """Return upper levels; for every other factor there is none, as the rest bounds the error nearly as well."""
        levels = np.full(self.factors.size, math.inf)
        parts = max(1, _BLOCKS // len(views))
        for row in range(self.factors.size - 1, -1, -_EVERY_FACTOR):  # the last one is Local DP's
            blocks = [block for view in views for block in np.array_split(view[row], min(parts, view.shape[1]))]
            levels[row] = tail_level(blocks, probability, np.random.default_rng(1), confidence=_RANGE_CONFIDENCE)
        # Resampling knows nothing of what no view has shown: a tail of shape xi + e grows by exp(e) more in every
        # power of e by which its probability falls.
        tail, samples = tail_size(sum(view.shape[1] for view in views), probability)
        return levels * math.exp(_SHAPE_ERROR * math.log(tail / probability) / math.sqrt(samples))

    def range(self) -> ErrorRange:
        """Return the errors of all factors that can still turn out best."""
        requirements, injection = self.requirements, self.design.injection()
        lows = leavers_protected(requirements, self.design, self.factors, self.low)
        highs = leavers_protected(requirements, self.design, self.factors, self.high)
        ends = [
            SettledNoise.least_and_most(requirements, injection, factor, (low_level, high_level))
            for factor, low_level, high_level in zip(self.factors.tolist(), lows, highs, strict=True)
        ]
        least = [self._objective(noise) for noise, _ in ends]
        most = [self._objective(noise) for _, noise in ends]
        best = min(most)
        open_ends = [pair for pair, objective in zip(ends, least, strict=True) if objective <= best * (1.0 + _ROUNDING)]
        leavers = requirements.leavers
        low = min(noise.error(leavers).total for noise, _ in open_ends)
        high = max(noise.error(leavers).total for _, noise in open_ends)
        return ErrorRange(
            low=low * (1.0 - _ROUNDING),
            high=min(high, best) * (1.0 + _ROUNDING),  # what is minimised is at least the error
            data=ends[0][0].error(leavers).data,
            views=self.views,
            rates=len(self.samples),
            planned_views=self.planned_views,
            design=self.design,
            noise=ends[most.index(best)][1],
        )

    def _objective(self, noise: SettledNoise) -> float:
        """What a plan makes least."""
        if not math.isfinite(noise.level):
            return math.inf
        leavers = self.requirements.leavers
        return price(noise.error(leavers), noise.error_without_one(leavers, self._residue))
