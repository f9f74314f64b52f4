"""From a wish to a plan: compare designs on a few sampled views, then calibrate the best one on many.

For every design the cancelling noise is what all but a tiny fraction of random schedules and adversaries need at full
attendance and at dropout rates up to the wished one (erratum E11), and the two kinds of noise are balanced: more
independent noise costs error always, but then less cancelling noise is needed, which costs error where parties leave.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from inca._base.types import Array, Progress
from inca._base.validation import refuse, whole
from inca.planning.designs import CannotMeet, Shape, check_hiding, shapes, with_quiet_rounds
from inca.planning.plan import Option, Plan, Sampling
from inca.planning.requirements import Wish
from inca.planning.sampling import (
    Needs,
    Remains,
    Tick,
    factors,
    paper_factor,
    population,
    sample_needs,
    sample_remains,
    view,
)
from inca.privacy.accountant import account

_FEW, _SOME, _RUNS = 20, 8, 1.5  # a 20th of the views compares kinds, an 8th quiet rounds; executions per view
_ROUND_UP = 1.0 + 1e-9
_SMALL = 100  # parties in the first comparison
_CHECK = ((1500, 3), (5000, 1))  # up to so many parties, so many whole views are checked in the end
_CALIBRATION, _FRESH = 10**6, 10**9  # first seeds: what a design was chosen on does not calibrate it, nor check it


def plan(
    wish: Wish,
    *,
    rounds: int | None = None,
    receivers: int | None = None,
    recipe: str = "best",
    views: int = 300,
    confidence: float = 0.95,
    progress: Progress | None = None,
) -> Plan:
    """Return the parameters of least expected error that meet the wish; refuse, and say what could be, if none do.

    `recipe` "paper" takes the paper's own design instead: equal shares in all rounds, random receivers, and 1.3 times
    the least independent noise for n (1 - dropout - colluding) honest parties. The result does not depend on chance:
    what is sampled is sampled from fixed seeds.

    >>> found = plan(Wish(parties=30, epsilon=1.0, delta=1e-5, dropout=0.1, messages=10), views=10)
    >>> found.shape.receivers, found.expected_mse < found.wish.local_mse / 3
    (1, True)
    """
    whole("views", views, least=2)
    if recipe not in ("best", "paper"):
        raise refuse("recipe", recipe, "best or paper")
    if recipe == "paper":
        shape = _papers_shape(wish, rounds, receivers)
        counter = _Counter(progress, _calibration_views(wish, views))
        return _calibrated(wish, shape, np.array([paper_factor(wish)]), views, confidence, counter, recipe)
    kinds = shapes(wish, rounds, receivers)
    few, some = max(4, views // _FEW), max(4, views // _SOME)
    compared = few * len(kinds) + some * (len(with_quiet_rounds(kinds[0])) + 2)
    counter = _Counter(progress, compared * (2 if wish.dropout > 0 else 1) + _calibration_views(wish, views))
    small = Judge(wish, few, _SMALL, counter)
    by_kind = sorted(((small.score(shape), shape) for shape in kinds), key=lambda pair: pair[0])
    judge = Judge(wish, some, None, counter)
    by_quiet = sorted(((judge.score(shape), shape) for shape in with_quiet_rounds(by_kind[0][1])), key=lambda p: p[0])
    score, best = by_quiet[0]
    considered = [
        *(Option(str(shape), shape.messages, score / by_kind[0][0]) for score, shape in by_kind[1:]),
        *(Option(str(shape), shape.messages, other / score) for other, shape in by_quiet[1:]),
    ]
    found = _calibrated(wish, best, factors(wish, population(wish, best)), views, confidence, counter, recipe)
    further = _further(wish, best, score, judge) if wish.dropout > 0 else []
    counter.finish()
    return replace(found, considered=tuple(considered), further=tuple(further))


@dataclass
class Judge:
    """Scores designs on the same few views: n times the expected error, in units of s^2 / mu^2."""

    wish: Wish
    views: int
    parties: int | None
    tick: Tick
    crowd: int | None = None
    """How many parties the executions have that are sampled for their error, if not all."""

    def score(self, shape: Shape) -> float:
        """Return the least expected error of a design over the balance of both kinds of noise."""
        return self.best(shape)[0]

    def best(self, shape: Shape) -> tuple[float, float, float, Remains]:
        """Return the same, the factor and the level of cancelling noise that give it, and what remains of both."""
        parties = population(self.wish, shape)
        if self.parties is not None:
            parties = min(parties, max(self.parties, 3 * shape.messages))
        tried = factors(self.wish, parties)
        # Early injection has no fast route, and is so far behind that a few views show it.
        seeds = range(self.views if shape.kind == "incremental" else max(4, self.views // 4))
        rates = sorted({0.0, self.wish.dropout})
        sampled = [sample_needs(self.wish, shape, parties, rate, seeds, tried, self.tick) for rate in rates]
        crowd = self.wish if self.crowd is None else replace(self.wish, parties=min(self.crowd, self.wish.parties))
        remains = sample_remains(crowd, shape, self.wish.dropout, 2 * self.views)
        # Few samples say little about a chance of 1e-6: to compare designs, a chance that they do show is better.
        chance = max(_chance(self.wish), 2.0 / sum(needs.size for needs in sampled))
        levels = np.max([needs.levels(chance) for needs in sampled], axis=0)
        errors = _errors(self.wish, tried, levels, remains)
        row = int(np.argmin(errors))
        return float(errors[row]), float(tried[row]), float(levels[row]), remains


def _errors(wish: Wish, tried: Array, levels: Array, remains: Remains) -> Array:
    """Return n times the expected error for every factor, in units of s^2 / mu^2."""
    independent, cancelling, data = remains.mean
    # Where nobody leaves, cancelling noise costs nothing: then the design that needs less of it wins.
    cost = max(cancelling, 1e-9)
    with np.errstate(invalid="ignore"):
        return np.asarray(
            independent * tried / wish.honest + cost * levels + data * wish.value_variance / wish.var_local
        )


def _chance(wish: Wish) -> float:
    """With which chance one party's need may exceed the level: all n_H have half of the wish's (union bound)."""
    return wish.failure / 2.0 / wish.honest


def _attendance(wish: Wish) -> tuple[float, ...]:
    """Dropout rates at which the guarantee is sampled: nobody leaves, and two rates up to the wished one."""
    return (0.0, wish.dropout / 2, wish.dropout) if wish.leavers > 0 else (0.0,)


def _calibration_views(wish: Wish, views: int) -> int:
    return views * len(_attendance(wish))


def _calibrated(wish: Wish, shape: Shape, tried: Array, views: int, confidence: float, tick: Tick, recipe: str) -> Plan:
    """Calibrate a design on many views and predict its error."""
    parties, chance = population(wish, shape), _chance(wish)
    sampled: Sequence[Needs] = [
        sample_needs(
            wish,
            shape,
            parties,
            rate,
            range(_CALIBRATION + number * views, _CALIBRATION + (number + 1) * views),
            tried,
            tick,
        )
        for number, rate in enumerate(_attendance(wish))
    ]
    remains = sample_remains(wish, shape, wish.dropout, int(_RUNS * views))
    levels = np.max([needs.levels(chance, np.random.default_rng(1), confidence) for needs in sampled], axis=0)
    row = int(np.argmin(_errors(wish, tried, levels, remains)))
    level = float(levels[row])
    if math.isinf(level):
        # Only with a given factor: among those tried is Local DP's, which needs no cancelling noise.
        raise CannotMeet(
            f"recipe is {recipe}, but with {shape} no cancelling noise protects every party of the sampled runs; "
            "more messages or another recipe was expected"
        )
    level, checked = _checked(wish, shape, float(tried[row]), level, parties)
    # Rounded up, so that a loss of exactly the wish, as in Local DP, is not exceeded by rounding.
    var_independent = wish.var_local * tried[row] / wish.honest * _ROUND_UP
    var_cancelling = wish.var_local * level * _ROUND_UP
    budget, standard_error = remains.error(wish, var_independent, var_cancelling)
    return Plan(
        wish,
        shape,
        recipe,
        float(tried[row]),
        math.sqrt(var_independent),
        math.sqrt(var_cancelling),
        budget,
        standard_error,
        math.exp(shape.log_failure(wish)),
        Sampling(views, parties, _attendance(wish), confidence, checked),
    )


def _checked(wish: Wish, shape: Shape, factor: float, level: float, sampled: int) -> tuple[float, int]:
    """Hold a level from sub-populations against whole views, and raise it should it not suffice."""
    if sampled == wish.parties or level == 0.0:
        return level, 0
    number = next((count for most, count in _CHECK if wish.parties <= most), 0)
    own = math.sqrt(factor / wish.honest)
    for seed in range(_FRESH, _FRESH + number):
        whole_view = view(wish, shape, wish.parties, 0.0, seed)
        while account(whole_view, own, math.sqrt(level)).worst[1] > 1.0:
            level *= 1.1
    return level, number


def _further(wish: Wish, shape: Shape, score: float, judge: Judge) -> list[Option]:
    """Return what one more round, or twice as many, would bring."""
    found = []
    for more in (1, shape.rounds):
        other = shape.longer(more)
        fits = other.rounds > other.quiet and (other.schedule != "distinct" or other.messages < wish.parties)
        if fits and other.hides(wish):
            found.append(Option(str(other), other.messages, judge.score(other) / score))
    return found


def _papers_shape(wish: Wish, rounds: int | None, receivers: int | None) -> Shape:
    k = 1 if receivers is None else whole("receivers", receivers, 1, wish.parties - 1)
    longest = wish.messages // k if rounds is None else whole("rounds", rounds, least=1)
    if longest < 1 or longest * k > wish.messages:
        raise refuse("messages", wish.messages, f"at least receivers times rounds ({max(longest, 1) * k})")
    shape = Shape("random", longest, k)
    check_hiding(wish, [shape])
    return shape


class _Counter:
    """Counts sampled views for a progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(min(self._done, self._total), self._total)

    def finish(self) -> None:
        """Tell that all is done, also where some steps were not needed."""
        if self._progress is not None:
            self._progress(self._total, self._total)
