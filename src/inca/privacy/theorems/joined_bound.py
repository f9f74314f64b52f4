"""Bound the loss of every honest party whom hidden messages join with others: proven for any number of parties.

Let J be the honest parties of the cohort that hidden messages join with party i, whoever sent to whom. Party j injects
the part w_j of its value, tops up when it settles, and is present in m_j rounds; V is the sum over J of
v_j = w_j^2 sigma_*^2 + sigma_top^2. Hang a tree of hidden messages from i, and let phi_j be w_i / V times the sum of
v_k over j and all parties below it. Then (docs/settlement.md has the proof)

    mu_i^2 <= s^2 [ w_i^2 / V + sum_J (m_j + 5) phi_j^2 / sigma_Delta^2 ]            (tree)
           <= s^2 [ w_i^2 / V + w_i^2 sum_J (m_j + 5) / sigma_Delta^2 ]            (closed)
           <= s^2 [ w_i^2 / V + (T + 6) |J| w_i^2 / sigma_Delta^2 ],

if each hidden message goes to one party, which gets at least half of it, portions of the value are not negative, and
each round present has a fresh mask, all of one variance. Formulas are evaluated in rational arithmetic and rounded up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import compiled
from inca._base.types import Array
from inca._base.validation import finite_float, instance, integer, one_of, positive, refuse
from inca.errors import InvalidInput
from inca.privacy.accountant import Losses
from inca.privacy.theorems.hidden_messages import HiddenMessages
from inca.privacy.view import View
from inca.protocol.injection import Injection
from inca.protocol.noise_levels import NoiseLevels

Form = Literal["tree", "closed"]
Places = NDArray[np.intp]

_MORE = 5  # squares of phi_j for messages that carry something, less the final message, which has no mask
_MORE_MASKS = 1 + _MORE  # T + 6 with T + 1 rounds present


def squared_loss_bound(
    *, weight: float, variance: float, joined: int, rounds: int, cancelling_variance: float, sensitivity: float
) -> float:
    """Return mu_i^2 at most: s^2 [ w_i^2 / V + (T + 6) |J| w_i^2 / sigma_Delta^2 ], rounded up.

    Args:
        weight: w_i, the part of its value that the party injects: 1 if it missed no round.
        variance: V, the independent variance of J: the sum of w_j^2 sigma_*^2 + sigma_top^2.
        joined: |J|, how many honest parties of the cohort hidden messages join with this one, itself included.
        rounds: T.
        cancelling_variance: sigma_Delta^2.
        sensitivity: s.

    Returns:
        The bound; infinity if V or sigma_Delta^2 is 0, and 0 for a party that injects nothing.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> squared_loss_bound(
        ...     weight=1.0, variance=4.0, joined=9, rounds=2, cancelling_variance=7200.0, sensitivity=1.0
        ... )
        0.26
    """
    return _rounded_up(_closed(weight, variance, joined, rounds, cancelling_variance, sensitivity))


def loss_bound(
    *, weight: float, variance: float, joined: int, rounds: int, cancelling_variance: float, sensitivity: float
) -> float:
    """Return mu_i at most: the root of `squared_loss_bound`, rounded up once.

    So it is at most mu if and only if the inequality gives at most mu, to the last digit.

    Example:
        >>> numbers = {"weight": 1.0, "joined": 9, "rounds": 2, "sensitivity": 1.0}
        >>> enough = least_cancelling_variance(mu=0.3, variance=12.0, **numbers)
        >>> loss_bound(variance=12.0, cancelling_variance=enough, **numbers)
        0.3
    """
    return _root_rounded_up(_closed(weight, variance, joined, rounds, cancelling_variance, sensitivity))


def least_cancelling_variance(
    *, mu: float, weight: float, variance: float, joined: int, rounds: int, sensitivity: float
) -> float:
    """Return the least sigma_Delta^2 with which the inequality gives at most mu, rounded up.

    It is (T + 6) |J| w_i^2 s^2 / (mu^2 - s^2 w_i^2 / V).

    Args:
        mu: The loss that is allowed, above 0.
        weight: w_i.
        variance: V.
        joined: |J|.
        rounds: T.
        sensitivity: s.

    Returns:
        The variance; infinity if the independent noise alone allows a loss of mu or more.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> numbers = {"weight": 1.0, "joined": 9, "rounds": 2, "sensitivity": 1.0}
        >>> least_cancelling_variance(mu=0.5, variance=8.0, **numbers)
        576.0
        >>> least_cancelling_variance(mu=0.5, variance=4.0, **numbers)
        inf
    """
    allowed, reach, cost = _wanted(mu, weight, joined, rounds, sensitivity)
    if not reach:
        return 0.0
    if not (independent := Fraction(finite_float("variance", variance, min=0.0))):
        return math.inf
    left = allowed - reach / independent
    return _rounded_up(cost * reach / left) if left > 0 else math.inf


def cancelling_variance_for_factor(
    *, factor: float, mu: float, weight: float, joined: int, rounds: int, sensitivity: float
) -> float:
    """Return the least sigma_Delta^2 if V is `factor` times the w_i^2 s^2 / mu^2 that would do alone, rounded up.

    Such a V leaves (1 - 1 / factor) mu^2 for the masks, hence (T + 6) |J| w_i^2 s^2 / ((1 - 1 / factor) mu^2).

    Args:
        factor: Above 1.
        mu: The loss that is allowed, above 0.
        weight: w_i.
        joined: |J|.
        rounds: T.
        sensitivity: s.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> cancelling_variance_for_factor(factor=1.25, mu=0.5, weight=1.0, joined=9, rounds=2, sensitivity=1.0)
        1440.0
    """
    allowed, reach, cost = _wanted(mu, weight, joined, rounds, sensitivity)
    if not (exact := Fraction(finite_float("factor", factor))) > 1:
        refuse("factor", factor, "above 1")
    return _rounded_up(cost * reach * exact / (allowed * (exact - 1)))


def joined_bounds(view: View, noise_levels: NoiseLevels, *, sensitivity: float, form: Form = "closed") -> Losses:
    """Return a bound on the loss of every honest party of the cohort, from who sent what to whom alone.

    The masks' part is multiplied out with what really happened: J, its weights and the rounds that it was present in.
    Parties outside the cohort count as known. What they lose themselves is bounded in `inca.planning.leavers`.

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
            seen[key] = _root_rounded_up(_loss(reach, parties.group_variance[group], cost, cancelling))
        mu[place] = seen[key]
    return Losses(parties.ids, mu, form)


def _loss(reach: Fraction, variance: Fraction, cost: Fraction | int, cancelling_variance: Fraction) -> Fraction | None:
    """Return s^2 w_i^2 [ 1 / V + cost / sigma_Delta^2 ], of reach = s^2 w_i^2; None for infinity."""
    if not reach:
        return Fraction(0)
    if not variance or not cancelling_variance:
        return None
    return reach / variance + reach * cost / cancelling_variance


def _closed(
    weight: float, variance: float, joined: int, rounds: int, cancelling_variance: float, sensitivity: float
) -> Fraction | None:
    cost, reach = _cost(joined, rounds), _reach(weight, sensitivity)
    independent = Fraction(finite_float("variance", variance, min=0.0))
    return _loss(reach, independent, cost, Fraction(finite_float("cancelling_variance", cancelling_variance, min=0.0)))


def _wanted(
    mu: float, weight: float, joined: int, rounds: int, sensitivity: float
) -> tuple[Fraction, Fraction, Fraction]:
    return Fraction(positive("mu", mu)) ** 2, _reach(weight, sensitivity), _cost(joined, rounds)


def _reach(weight: float, sensitivity: float) -> Fraction:
    distance = Fraction(finite_float("sensitivity", sensitivity, min=0.0))
    return (distance * Fraction(finite_float("weight", weight, min=0.0))) ** 2


def _cost(joined: int, rounds: int) -> Fraction:
    return Fraction((integer("rounds", rounds, min=1) + _MORE_MASKS) * integer("joined", joined, min=1))


def _rounded_up(number: Fraction | None) -> float:
    """Return the least double that is not below; None is infinity."""
    try:
        near = math.inf if number is None else float(number)
    except OverflowError:
        return math.inf
    return near if number is None or near >= number else math.nextafter(near, math.inf)


def _root_rounded_up(square: Fraction | None) -> float:
    """Return the least double whose square is not below; None is infinity.

    With a root of more than 64 bits before the point, no double lies between the true root and that of the integer.
    """
    if not square:
        return math.inf if square is None else 0.0
    top, bottom = square.as_integer_ratio()
    shift = max(0, 64 - (top.bit_length() - bottom.bit_length()) // 2)
    scaled = -(-(top << 2 * shift) // bottom)
    return _rounded_up(Fraction(math.isqrt(scaled - 1) + 1, 1 << shift))


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
        costs = [Fraction(cost) for cost in (self._counts @ (np.array(self.present) + _MORE)).tolist()]
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
        _tree_costs(starts, neighbours, self._relative_variances, np.array(self.present)[self.kind] + _MORE, costs)
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
