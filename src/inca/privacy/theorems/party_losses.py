"""The losses of one party of a settled execution against many coalitions: bounded by the inequality, exact in doubt.

Against each coalition the inequality (`inca.privacy.theorems.joined_bound`) bounds the loss by those whom delivered
messages join with the party without it. A bound is not a loss: where it is too high the loss is worked out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inca._base.types import Array
from inca.privacy.accountant import account
from inca.privacy.theorems.coalitions import Places, joined_without
from inca.privacy.theorems.joined_bound import loss_bound
from inca.privacy.theorems.message_graph import MessageGraph
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.rounding import Rounding


@dataclass(frozen=True)
class WorstLossOf:
    """The largest loss of a party over the coalitions considered.

    Attributes:
        mu: The loss, or a bound on it.
        coalition: The coalition with this loss; None if it is a bound against all of them.
        coalitions: How many were considered.
    """

    mu: float
    coalition: tuple[int, ...] | None
    coalitions: int


class PartyLosses:
    """Losses mu of a party of a settled execution in whole numbers, those outside its cohort counted as colluders.

    Args:
        execution: It has incremental injection, and one receiver in each round.
        noise_levels: sigma_*, sigma_Delta and sigma_top.
        party: A member of the cohort.
        sensitivity: s.
        rounding: What whole numbers do to losses.

    Example:
        >>> import inca
        >>> run = inca.Execution(inca.CircleSchedule(9, rounds=2), inca.incremental_injection(2)).settled()
        >>> levels = NoiseLevels(independent=1.0, cancelling=30.0)
        >>> losses = PartyLosses(run, levels, party=0, sensitivity=1.0, rounding=Rounding(0.0, 0.0))
        >>> round(losses.against_every(2), 3), losses.against_every(4)
        (0.453, None)
        >>> few = np.array([[2, 3, 4], [1, 2, 7], [1, 2, 8]])
        >>> worst = losses.worst(few, lambda mu: mu < 0.5)
        >>> round(worst.mu, 3), worst.coalition
        (0.469, None)
        >>> losses.worst(few, lambda mu: mu < 0.4).coalition
        (1, 2, 7)
    """

    def __init__(
        self, execution: Execution, noise_levels: NoiseLevels, *, party: int, sensitivity: float, rounding: Rounding
    ) -> None:
        self._execution, self._levels, self._party = execution, noise_levels, party
        self._sensitivity, self._rounding = sensitivity, rounding
        weights = execution.total_weights
        self._variances = (weights * noise_levels.independent) ** 2 + noise_levels.topup**2
        self._weight = float(weights[party])
        self._up = 1.0 + 1e-12 + execution.parties * 2.0**-52  # more than rounding takes, also in long sums

    @cached_property
    def graph(self) -> MessageGraph:
        """The delivered messages of the cohort."""
        return MessageGraph.of(View(self._execution).of_cohort())

    def against_every(self, colluders: int) -> float | None:
        """Return a bound against every coalition of c at once; None if one may cut members off.

        At worst those c collude that have the most variance, and are members.
        """
        if not self.graph.keeps_joined(colluders):
            return None
        members = np.sort(self._variances[list(self.graph.partners)])
        together = math.fsum(members[: members.size - colluders])
        return self._bound(min(members.size, self._variances.size - colluders), together)

    def exact(self, coalition: tuple[int, ...]) -> float:
        """Return the loss against a coalition."""
        view = View(self._execution, Adversary(coalition)).of_cohort()
        losses = account(view, self._levels, sensitivity=self._sensitivity).in_whole_numbers(self._rounding)
        return float(losses.mu[losses.honest.tolist().index(self._party)])

    def worst_first(self, coalitions: Places) -> Places:
        """Return coalitions, those of the largest bound first; of equal ones, those with most partners of the party."""
        return coalitions[self._order(coalitions, *self._joined(coalitions))]

    def _order(self, coalitions: Places, joined: Places, together: Array) -> Places:
        partner = np.isin(np.arange(self._execution.parties), list(self.graph.partners[self._party]))
        with np.errstate(divide="ignore"):
            squares = 1.0 / together + joined * (self._execution.rounds + 6) / self._levels.cancelling**2
        return np.lexsort((-partner[coalitions].sum(axis=1), -squares))

    def worst(self, coalitions: Places, within: Callable[[float], bool], accounts: int = 20) -> WorstLossOf:
        """Return the largest loss against coalitions: by the bounds if these are within what is allowed.

        Where they are not, the loss is worked out against those with the largest bounds one by one, until the other
        bounds are within what is allowed, a loss is not, or as many as `accounts` were worked out, which then decide.
        """
        joined, together = self._joined(coalitions)
        if within(bound := self._largest_bound(joined, together)):
            return WorstLossOf(bound, None, len(coalitions))
        order, losses = self._order(coalitions, joined, together), list[tuple[float, tuple[int, ...]]]()
        ordered, joined, together = coalitions[order], joined[order], together[order]
        while True:
            coalition = tuple(sorted(ordered[len(losses)].tolist()))
            losses.append((self.exact(coalition), coalition))
            worst, done = max(losses), len(losses)
            if within(rest := self._largest_bound(joined[done:], together[done:])):
                return WorstLossOf(max(worst[0], rest), worst[1] if worst[0] >= rest else None, len(ordered))
            if not within(worst[0]) or done == accounts:
                return WorstLossOf(*worst, done)

    def _joined(self, coalitions: Places) -> tuple[Places, Array]:
        return joined_without(self.graph, self._party, coalitions, self._variances)

    def _largest_bound(self, joined: Places, together: Array) -> float:
        """Return the largest bound: of coalitions without which as many are joined, least variance is worst."""
        least = np.full(self._variances.size + 1, math.inf)
        np.minimum.at(least, joined, together)
        sizes = np.unique(joined)
        return max(map(self._bound, sizes.tolist(), least[sizes].tolist()), default=0.0)

    def _bound(self, joined: int, variance: float) -> float:
        mu = loss_bound(
            weight=self._weight * self._up,
            variance=variance / self._up,
            joined=joined,
            rounds=self._execution.rounds,
            cancelling_variance=self._levels.cancelling**2 / self._up,
            sensitivity=self._sensitivity,
        )
        return float(self._rounding.loss(np.array([mu]))[0])
