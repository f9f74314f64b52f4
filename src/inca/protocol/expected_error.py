"""The exact mean squared error of an estimate, without sampling.

The estimate is linear: with a^(T) the indicator of the published messages and a^(t-1) the adjoint mixing of
a^(t), a^(t)_i is how much of what party i injects in round t reaches the final sum. Value and independent noise
of party i therefore reach it with g_i = sum_t a^(t)_i c^(i)_t, and noise term k with sum_t a^(t)_i Z^(i)_{t,k}.
A share that was back with its sender only in round b reaches the sum as that sender's message of round b does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import InputError, party_values, real, whole
from inca.protocol.domain import Ball, Domain, Interval
from inca.protocol.execution import Execution


@dataclass(frozen=True, eq=False)
class Reach:
    """What of each party ends up in the published sum: `value` holds g_i, `noise` the sum over k of squares."""

    value: Array
    noise: Array


@dataclass(frozen=True)
class ErrorBudget:
    """Where E ||estimate - mean||^2 comes from; the mean is that of all n parties' values.

    `independent` and `cancelling` are the variances of the noise that remains, `data` is what absent parties'
    missing or partial values add. All are infinite when there is no estimate.
    """

    independent: float
    cancelling: float
    data: float

    @property
    def noise(self) -> float:
        """The part due to noise."""
        return self.independent + self.cancelling

    @property
    def total(self) -> float:
        """The mean squared error."""
        return self.noise + self.data


def reach(execution: Execution) -> Reach:
    """Return what of each party's value and noise reaches the published sum.

    >>> from inca import Execution, RandomReceivers, incremental
    >>> all_there = reach(Execution(RandomReceivers(50, rounds=5, seed=1), incremental(5)))
    >>> bool(np.allclose(all_there.value, 1)), bool(np.allclose(all_there.noise, 0))
    (True, True)
    """
    rounds, scales = execution.rounds, execution.injection.mask_scales
    if scales is None:
        value, terms = reach_by_term(execution)
        return Reach(value, np.einsum("nk,nk->n", terms, terms))
    value, noise = np.zeros(execution.parties), np.zeros(execution.parties)
    later = np.zeros(execution.parties)  # a^(t) of the next round in which the party is present
    for t, here, a, counter in _backwards(execution):
        value += np.where(here, a * execution.injection.value[counter], 0.0)
        if t < rounds:  # the mask added now leaves again in the next round attended, if there is one
            noise += np.where(here, (scales[np.minimum(counter, rounds - 1)] * (a - later)) ** 2, 0.0)
        later = np.where(here, a, later)
    return Reach(value, noise)


def reach_by_term(execution: Execution) -> tuple[Array, Array]:
    """Return g_i and, term by term, what of each party's T noise terms reaches the published sum: (n,) and (n, T).

    >>> from inca import Execution, RandomReceivers, incremental
    >>> value, terms = reach_by_term(Execution(RandomReceivers(50, rounds=5, seed=1), incremental(5)))
    >>> bool(np.allclose(value, 1)), terms.shape, bool(np.allclose(terms, 0))
    (True, (50, 5), True)
    """
    injection, rounds = execution.injection, execution.rounds
    value, terms = np.zeros(execution.parties), np.zeros((execution.parties, rounds))
    for t, here, a, counter in _backwards(execution):
        value += np.where(here, a * injection.value[counter], 0.0)
        rows = (injection.noise if t < rounds else injection.closing)[counter]
        terms += np.where(here, a, 0.0)[:, np.newaxis] * rows
    return value, terms


def _backwards(execution: Execution) -> Iterator[tuple[int, Flags, Array, NDArray[np.int64]]]:
    """Yield, for t = T..0: t, who is present, what of each message reaches the sum, rounds attended before."""
    share = execution.schedule.round(1).share  # of all, if any is late
    after: dict[int, Array] = {0: np.zeros(execution.parties)}  # a^(b) for the rounds of return, and for never
    counter = execution.presence.rounds_attended().astype(np.int64)
    a = execution.published.astype(np.float64)
    for t in range(execution.rounds, -1, -1):
        here = execution.presence.row(t)
        if t < execution.rounds:
            counter -= here
        yield t, here, a, counter
        after[t] = a
        if t > 0:
            a = execution.mix_adjoint(t, a)
            for entry in execution.late:
                if entry.round == t:
                    a[entry.sender] += share * (after[entry.back] - after[t])[entry.sender]


def expected_error(
    execution: Execution,
    sigma_independent: float,
    sigma_cancelling: float,
    *,
    dimensions: int = 1,
    values: ArrayLike | None = None,
    variance: float | None = None,
    domain: Domain | None = None,
) -> ErrorBudget:
    """Return the exact E ||estimate - mean of all values||^2 over the noise, summed over coordinates.

    The data part takes one of: given `values`; independent values of equal mean and `variance` (summed over
    coordinates); the worst case in a `domain`. Without any it is 0: the noise alone.

    >>> from inca import Execution, RandomReceivers, incremental
    >>> execution = Execution(RandomReceivers(100, rounds=5, seed=1), incremental(5))
    >>> round(expected_error(execution, 2.0, 30.0).total, 9)  # sigma_independent^2 / n
    0.04
    """
    var_independent = real("sigma_independent", sigma_independent, least=0.0) ** 2
    var_cancelling = real("sigma_cancelling", sigma_cancelling, least=0.0) ** 2
    given = None if values is None else party_values(values, execution.parties)
    d = whole("dimensions", dimensions, least=1) if given is None else given[:1].size
    if sum(prior is not None for prior in (values, variance, domain)) > 1:
        raise InputError("values, variance and domain are alternatives, but more than one was given")
    if execution.weight == 0.0:
        return ErrorBudget(math.inf, math.inf, math.inf)
    reached = reach(execution)
    weight = execution.weight
    off = reached.value / weight - 1.0 / execution.parties  # sums to 0
    data = 0.0
    if given is not None:
        data = float(np.sum(np.square(off @ given)))
    elif variance is not None:
        data = real("variance", variance, least=0.0) * float(off @ off)
    elif domain is not None:
        data = _worst(domain, off, d)
    return ErrorBudget(
        d * var_independent * float(reached.value @ reached.value) / weight**2,
        d * var_cancelling * float(reached.noise.sum()) / weight**2,
        data,
    )


def _worst(domain: Domain, off: Array, dimensions: int) -> float:
    """Return max ||sum_i off_i x_i||^2 over the domain: put x_i at opposite ends according to off_i's sign."""
    if isinstance(domain, (Interval, Ball)):
        # sum off = 0, so the distance reached is the diameter times the positive part's sum
        return (domain.sensitivity(dimensions) * float(np.abs(off).sum()) / 2.0) ** 2
    raise InputError(f"domain is {domain!r}, but an Interval or a Ball was expected")
