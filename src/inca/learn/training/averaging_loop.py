"""Private averages inside somebody's own training loop: one object with the budget in it.

    loop = AveragingLoop(averager, Budget(2.0, 1e-5), steps=20, clipping=1.0)
    for step in loop:
        mean = loop.average(update(model))
        if mean.estimate is not None:
            model = model - rate * mean.estimate

`train` owns the loop and needs a model; here the loop, the model and the optimizer are the caller's. The same program
runs in a simulation, with one update per party, and over a network, with this party's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import generator, integer, listed, method_of, positive, real_array, refuse
from inca.errors import BudgetExceeded, InvalidInput
from inca.learn.averagers.base import Averager, VectorMean
from inca.learn.budget import Budget
from inca.learn.spending import take_releases
from inca.learn.training.clipping import Clipping

_ROUNDING_SLACK = 1e-9  # relative, where the steps use up the budget exactly


class AveragingLoop:
    """A loop of private averages that ends when its steps, or the budget, are used up.

    Each average is taken off the budget before anything is computed or sent, and stays taken if something goes wrong
    later. A step without an average costs nothing. A loop that was left with `break` goes on with the next step when it
    is iterated again. On a network every party runs the same loop, and a program that was stopped is started again from
    the beginning: the averager knows the outcomes, so that nothing is released twice.

    What is promised is the budget's epsilon at its delta plus `budget.failure_probability`.

    Args:
        averager: Who averages: `SimulatedAverager`, `NetworkAverager`, or whatever has the same methods. One with a
            place of its own among the parties (`me`) takes this party's update alone, any other those of all parties.
        budget: What the steps are taken from, or (epsilon, delta) for a budget of the loop's own.
        steps: The largest number of steps; by default as many of loss `mu` as the budget allows.
        clipping: What is protected and how long an update may be; a number C is `Clipping(C)`: each party with all its
            records, and updates of length C at most.
        sizes: How many records each party holds, which is public. Needed where records are protected, or parties are
            weighted by them.
        mu: The loss of a step; by default `steps` equal ones use up what is left of the budget.
        rng: The source of a simulation's noise; by default seeded by the operating system. A network does not use it.

    Raises:
        BudgetExceeded: If the budget does not allow a single step.
        InvalidInput: If an argument cannot be used, there are more steps than the averager was made for, or its plan
            fails with a larger probability than the budget accepts.

    Example:
        >>> from inca.learn import SimulatedAverager
        >>> points, model = np.full((100, 2), 0.5), np.zeros(2)
        >>> averager, rng = SimulatedAverager.of("central", parties=100), np.random.default_rng(1)
        >>> loop = AveragingLoop(averager, (4.0, 1e-5), steps=10, clipping=1.0, rng=rng)
        >>> for step in loop:
        ...     mean = loop.average(points - model)
        ...     model = model + 0.5 * mean.estimate
        >>> step, round(loop.budget.epsilon_spent, 6), mean.standard_error < 0.1
        (10, 4.0, True)
    """

    def __init__(
        self,
        averager: Averager,
        budget: Budget | tuple[float, float],
        steps: int | None = None,
        *,
        clipping: Clipping | float,
        sizes: Sequence[int] | None = None,
        mu: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        method_of("averager", averager, "average", "an averager, such as inca.learn.SimulatedAverager")
        self._averager, self._budget = averager, budget if isinstance(budget, Budget) else _own_budget(budget)
        self._clipping = clipping if isinstance(clipping, Clipping) else Clipping(clipping)
        self._rng = np.random.default_rng() if rng is None else generator(rng)
        me = getattr(averager, "me", None)
        self._alone = me is not None
        self._held = range(averager.parties) if me is None else range(me, me + 1)
        self._sizes = self._checked_sizes(sizes)
        weights = self._clipping.party_weights(self._sizes)
        self._weights = weights[self._held.start : self._held.stop]
        self._sensitivity = self._clipping.sensitivity(self._sizes)
        self._max_norm = self._clipping.max_norm * float(weights.max())
        self._steps, self._mu = self._planned_steps(steps, mu)
        self._dimensions: int | None = None
        self._step, self._in_step, self._averaged = 0, False, False

    @property
    def budget(self) -> Budget:
        """What the steps are taken from; `budget.epsilon_spent` is what they have cost so far."""
        return self._budget

    @property
    def steps(self) -> int:
        """The number of steps: what was asked for, or what the budget allows if that is less."""
        return self._steps

    @property
    def step(self) -> int:
        """The number of the current step, or of the last one, from 1; 0 before the first."""
        return self._step

    @property
    def mu(self) -> float:
        """The loss of each step."""
        return self._mu

    @property
    def sensitivity(self) -> float:
        """How far one protected change can move a party's contribution."""
        return self._sensitivity

    def __repr__(self) -> str:
        return f"AveragingLoop(step {self._step} of {self._steps}, {self._budget!r})"

    def __iter__(self) -> Iterator[int]:
        """Yield the numbers of the steps, from 1, while there are steps left and the budget allows another.

        Raises:
            InvalidInput: If the loop is iterated inside itself, or its budget was meanwhile used for something that
                does not go together with it.
        """
        if self._in_step:
            raise InvalidInput("the steps of a loop must come one after the other, got a loop inside the same loop")
        while self._step < self._steps and self._affordable():
            self._step += 1
            self._in_step, self._averaged = True, False
            try:
                yield self._step
            finally:
                self._in_step = False

    def average(self, update: ArrayLike | Sequence[ArrayLike]) -> VectorMean:
        """Clip, take the step off the budget, and average.

        An update (of a party, or of a record if records are protected) with a number that is NaN or infinite counts as
        zero; neither is it told nor counted whose or how many these were.

        Args:
            update: Where parties are protected, one vector per party (n, d) in a simulation, and this party's own (d,)
                on a network. Where records are, one table per party with a row for each of its records (m, d), or this
                party's own table.

        Returns:
            The mean and its standard error. Its estimate is None if nobody was left to publish a result: the model
            stays as it is, and the loss counts all the same.

        Raises:
            BudgetExceeded: If the budget was meanwhile used for something else; nothing was sent.
            InvalidInput: If it is called outside the loop or twice in a step, or the update has another shape than
                it must have; nothing was sent or taken off the budget.
        """
        if not self._in_step:
            raise InvalidInput(
                "average must be called in a step of the loop (for step in loop: ...), got a call outside"
            )
        if self._averaged:
            raise InvalidInput(f"average must be called once in a step, got a second call in step {self._step}")
        rows = self._contributions(update)
        take_releases(self._budget, self._averager, self._clipping.level, 1, self._mu)
        self._averaged = True  # from here on something may have been sent
        mean = self._averager.average(rows, self._sensitivity, self._mu, self._rng, max_norm=self._max_norm)
        self._charge_excess(mean.mu)
        return mean

    # --- before the first step ---------------------------------------------------------------------------------------

    def _checked_sizes(self, sizes: Sequence[int] | None) -> list[int]:
        """Return how many records each party holds; ones where that makes no difference."""
        parties = self._averager.parties
        if sizes is None:
            if self._clipping.level == "record" or self._clipping.weights == "records":
                refuse("sizes", None, "how many records each party holds, since the clipping depends on it")
            return [1] * parties
        counts = listed("sizes", sizes, "numbers of records")
        if len(counts) != parties:
            refuse("the number of sizes", len(counts), f"{parties}, one for each party")
        return [integer(f"sizes[{party}]", size, min=1) for party, size in enumerate(counts)]

    def _planned_steps(self, steps: int | None, mu: float | None) -> tuple[int, float]:
        """Return how many steps there are at most, and the loss of each; refuse what could not be held to the end."""
        count = None if steps is None else integer("steps", steps, min=1)
        if mu is None:
            if count is None:
                refuse("steps", None, "the number of steps, unless mu, the loss of each, is stated")
            mu_step = self._budget.split([1.0] * count)[0]
        else:
            mu_step = positive("mu", mu)
            most = max(1, math.floor((self._budget.left / mu_step) ** 2 * (1.0 + _ROUNDING_SLACK)))
            count = most if count is None else min(count, most)
        self._budget.check(
            mu_step * math.sqrt(count),
            level=self._clipping.level,
            releases=count,
            failure_probability=self._averager.failure_probability,
            planned_releases=self._averager.releases,
        )
        return count, mu_step

    # --- in a step ---------------------------------------------------------------------------------------------------

    def _affordable(self) -> bool:
        """Whether the budget, which others may use too, allows another step."""
        try:
            self._budget.check(self._mu, level=self._clipping.level)
        except BudgetExceeded:
            return False
        return True

    def _contributions(self, update: ArrayLike | Sequence[ArrayLike]) -> Array:
        """Return one clipped and weighted row for each party whose data are here."""
        if self._clipping.level == "party":
            table = self._table("update", update, len(self._held), "for each party")
            return self._clipping.clipped(table) * self._weights[:, np.newaxis]
        tables: Any = [update] if self._alone else update
        try:
            many = len(tables)
        except TypeError:
            many = 0
        if many != len(self._held):
            refuse("the number of tables in update", many, f"{len(self._held)}, one for each party")
        rows = []
        for party, weight, own in zip(self._held, self._weights, tables, strict=True):
            table = self._table(f"update of party {party}", own, self._sizes[party], "for each record")
            rows.append(weight * (1.0 / len(table) * self._clipping.clipped(table).sum(axis=0)))
        return np.array(rows)

    def _table(self, name: str, numbers: Any, rows: int, whose: str) -> Array:
        """Return a table of numbers, which need not be finite; one of another shape is refused, never its numbers."""
        width = "d" if self._dimensions is None else str(self._dimensions)
        shape = f"({rows}, {width}), one row {whose}"
        table = real_array(name, numbers, shape)
        if table.ndim == 1:  # of one party, or of one record
            table = table[np.newaxis]
        right = table.ndim == 2 and len(table) == rows and table.shape[1] > 0
        if not right or self._dimensions not in (None, table.shape[1]):
            refuse(f"the shape of {name}", np.shape(numbers), shape)
        self._dimensions = table.shape[1]
        return table

    def _charge_excess(self, mu: float) -> None:
        """Charge what an averager of somebody else's says that it gave away beyond what it was asked for."""
        excess = mu**2 - self._mu**2 * (1.0 + _ROUNDING_SLACK)
        if excess <= 0.0:
            return
        more = math.sqrt(excess)
        if more <= self._budget.left:
            self._budget.spend(more)
            return
        if self._budget.left > 0.0:
            self._budget.spend(self._budget.left)  # nothing is left that anything else could be taken from
        raise BudgetExceeded(
            f"the loss of step {self._step} must be at most {self._mu:.4g}, which the averager was asked for, got "
            f"{mu:.4g}, more than was left of the budget"
        )


def _own_budget(guarantee: tuple[float, float]) -> Budget:
    """Return a budget of this (epsilon, delta)."""
    try:
        epsilon, delta = guarantee
    except (TypeError, ValueError):
        refuse("budget", guarantee, "a Budget, or (epsilon, delta)")
    return Budget(epsilon, delta)
