"""Bound the loss of every honest party in a settled execution by the inequality of `joined_bound`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import compiled
from inca._base.types import Array
from inca._base.validation import finite_float, instance, one_of
from inca.errors import InvalidInput
from inca.privacy.accountant import Losses
from inca.privacy.theorems.hidden_messages import HiddenMessages
from inca.privacy.theorems.joined_bound import MORE, loss_of_cost, root_rounded_up
from inca.privacy.view import View
from inca.protocol.injection import Injection
from inca.protocol.noise_levels import NoiseLevels

Form = Literal["tree", "closed"]
Places = NDArray[np.intp]


def joined_bounds(view: View, noise_levels: NoiseLevels, *, sensitivity: float, form: Form = "closed") -> Losses:
    """Return a bound on the loss of every honest party of the cohort, from who sent what to whom alone.

    The masks' part is multiplied out with what really happened: J, its weights and the rounds that it was present in.
    Parties outside the cohort count as known. What leavers lose themselves, `inca.planning.settled` allows for.

    Args:
        view: What the adversary knows of a settled execution.
        noise_levels: sigma_*, sigma_Delta and sigma_top.
        sensitivity: s.
        form: `closed` takes n T steps; `tree` hangs a breadth-first tree from each party, is sharper, and takes n more.

    Returns:
        Bounds on mu, rounded up, with the ids of the parties; infinity where noise is lacking.

    Raises:
        InvalidInput: If final messages are not settled, no party of the cohort is honest, a hidden message goes to
            several parties or gives less than half of itself, a portion of the value is negative, or masks are not
            renewed in each round with one variance.

    Example:
        >>> import inca
        >>> circle = inca.ExplicitSchedule([[[(i + r) % 9] for i in range(9)] for r in (1, 2)])
        >>> run = inca.Execution(circle, inca.incremental_injection(2)).settled()
        >>> view, levels = View(run, inca.Adversary([0, 4])), NoiseLevels(independent=1.0, cancelling=30.0)
        >>> for form in ("closed", "tree"):
        ...     round(joined_bounds(view, levels, sensitivity=1.0, form=form).max_mu, 4)
        0.4529
        0.3969
        >>> round(inca.account(view, levels, sensitivity=1.0).max_mu, 4)
        0.3802
    """
    instance("view", view, View)
    instance("noise_levels", noise_levels, NoiseLevels)
    distance = Fraction(finite_float("sensitivity", sensitivity, min=0.0))
    one_of("form", form, get_args(Form))
    scale = _scale_of_masks(view.execution.injection)
    parties = _Joined.of(view, noise_levels)
    costs = parties.tree_costs if form == "tree" else parties.closed_costs
    cancelling = (Fraction(noise_levels.cancelling) * scale) ** 2
    mu = np.empty(parties.ids.size)
    seen: dict[tuple[int, int, Fraction], float] = {}
    for place, key in enumerate(zip(parties.group.tolist(), parties.kind.tolist(), costs, strict=True)):
        if key not in seen:
            group, kind, cost = key
            reach = (distance * parties.weights[kind]) ** 2
            seen[key] = root_rounded_up(loss_of_cost(reach, parties.group_variance[group], cost, cancelling))
        mu[place] = seen[key]
    return Losses(parties.ids, mu, form)


def _scale_of_masks(injection: Injection) -> Fraction:
    """Return what sigma_Delta is multiplied by in every round, or refuse injections that the proof does not cover."""
    if (injection.value < 0.0).any():
        raise InvalidInput("injection: a portion of the value is negative; use one with portions of at least 0")
    if (scales := injection.mask_scales) is None:
        raise InvalidInput("injection: masks are not renewed in every round; use incremental_injection")
    if np.ptp(np.abs(scales)) > 0.0:
        raise InvalidInput("injection: masks have unequal variances; use incremental_injection without variances")
    return Fraction(abs(float(scales[0])))


@dataclass(frozen=True, eq=False)
class _Joined:
    """The honest parties of a cohort, and how hidden messages join them.

    The rounds before T that a party was present in tell its weight and variance: parties are of as many kinds, in order
    of these numbers.

    Attributes:
        ids: Their ids, in order.
        messages: The hidden messages among them, with the place in `ids` for a party.
        group: Which component each is in, numbered from 0.
        kind: Of which kind each is.
        present: m_j, by kind.
        weights: w_j, by kind.
        variances: v_j, by kind; they never fall.
    """

    ids: Places
    messages: HiddenMessages
    group: Places
    kind: Places
    present: list[int]
    weights: list[Fraction]
    variances: list[Fraction]

    @classmethod
    def of(cls, view: View, noise_levels: NoiseLevels) -> _Joined:
        """Find them, or refuse executions that the proof does not cover."""
        execution = view.execution
        if execution.cohort is None:
            raise InvalidInput(
                "execution: final messages are not settled, so no party tops its noise up; use execution.settled()"
            )
        if not execution.cohort[view.honest].any():
            raise InvalidInput("view: no party of the cohort is honest; name fewer colluding parties")
        settled = view.of_cohort()
        messages = HiddenMessages.of(settled)
        if messages.sent.nnz > messages.sender.size:
            raise InvalidInput("schedule: a hidden message goes to two or more parties; use one receiver a round")
        if (messages.sent.data < 0.5).any():
            raise InvalidInput("schedule: a receiver gets less than half of a hidden message; use a share of 0.5")
        before, kind = np.unique(execution.presence.rounds_attended()[settled.honest], return_inverse=True)
        portions = [Fraction(portion) for portion in execution.injection.value.tolist()]
        # All of the cohort are there in round T, and inject one portion more than in the rounds before (erratum E2).
        weights = [sum(portions[: attended + 1], start=Fraction(0)) for attended in before.tolist()]
        independent, topup = Fraction(noise_levels.independent) ** 2, Fraction(noise_levels.topup) ** 2
        variances = [weight**2 * independent + topup for weight in weights]
        present = [attended + 1 for attended in before.tolist()]
        return cls(settled.honest, messages, messages.component, kind.reshape(-1), present, weights, variances)

    @cached_property
    def _counts(self) -> Places:
        """How many parties of each kind (column) are in each group."""
        counts = np.zeros((int(self.group.max()) + 1, len(self.present)), dtype=np.intp)
        np.add.at(counts, (self.group, self.kind), 1)
        return counts

    @cached_property
    def group_variance(self) -> list[Fraction]:
        """V of each group."""
        sums: dict[tuple[int, ...], Fraction] = {}
        for row in set(map(tuple, self._counts.tolist())):
            sums[row] = sum((v * count for v, count in zip(self.variances, row, strict=True) if count), Fraction(0))
        return [sums[tuple(row)] for row in self._counts.tolist()]

    @cached_property
    def closed_costs(self) -> list[Fraction]:
        """The sum of m_j + 5 over the group of each party."""
        costs = [Fraction(cost) for cost in (self._counts @ (np.array(self.present) + MORE)).tolist()]
        return [costs[group] for group in self.group.tolist()]

    @cached_property
    def tree_costs(self) -> list[Fraction]:
        """The sum of (m_j + 5) (phi_j / w_i)^2 over a tree that hangs from each party.

        Of N parties, each sum of variances is off by N rounding errors at most, its square over V^2 by 4 N + 8, and the
        sum of squares by N more. What is too small for a double matters less: the party itself adds 6 or more.
        """
        n = self.ids.size
        tails, heads = self.messages.sender, self.messages.sent.indices.astype(np.intp)
        ends, others = np.concatenate([tails, heads]), np.concatenate([heads, tails])
        neighbours = others[np.argsort(ends, kind="stable")]
        starts = np.concatenate(([0], np.cumsum(np.bincount(ends, minlength=n))))
        costs = np.empty(n)
        _tree_costs(starts, neighbours, self._relative_variances, np.array(self.present)[self.kind] + MORE, costs)
        slack = 1 + Fraction(5 * n + 64, 2**52)
        tree = [Fraction(cost) * slack for cost in costs.tolist()]
        return list(map(min, tree, self.closed_costs))

    @property
    def _relative_variances(self) -> Array:
        """Each party's variance over the largest of its group, which is that of the last kind in it; 1 if all are 0."""
        kinds = len(self.present)
        last = kinds - 1 - np.argmax(self._counts[:, ::-1] > 0, axis=1)
        ratios = np.ones((kinds, kinds))
        for of in range(kinds):
            for top in range(of + 1, kinds):
                if self.variances[top]:
                    ratios[of, top] = float(self.variances[of] / self.variances[top])
        return np.asarray(ratios[self.kind, last[self.group]])


@compiled
def _tree_costs(starts: Places, neighbours: Places, variances: Array, costs: Places, out: Array) -> None:
    """Hang a breadth-first tree from each party, and add up costs times squared parts of variance from there downwards.

    Neighbours of a party are those from `starts` of it to that of the next one.
    """
    n = variances.size
    parent, order, below = np.full(n, -1), np.empty(n, np.intp), np.empty(n)
    for root in range(n):
        order[0], parent[root], below[root], count, k = root, root, variances[root], 1, 0
        while k < count:
            j = order[k]
            k += 1
            for e in range(starts[j], starts[j + 1]):
                other = neighbours[e]
                if parent[other] < 0:
                    parent[other], below[other], order[count] = j, variances[other], other
                    count += 1
        for k in range(count - 1, 0, -1):
            below[parent[order[k]]] += below[order[k]]
        total = 0.0
        for k in range(count):
            part = below[order[k]] / below[root]
            total += costs[order[k]] * part * part
            parent[order[k]] = -1
        out[root] = total
