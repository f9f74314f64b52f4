"""The exact mean squared error of an estimate, without sampling.

The estimate is linear: with a^(T) the indicator of the published messages and a^(t-1) the adjoint mixing of
a^(t), a^(t)_i is how much of what party i injects in round t reaches the final sum. Value and independent noise
of party i therefore enter it with g_i = sum_t a^(t)_i c^(i)_t, and noise term k with sum_t a^(t)_i Z^(i)_{t,k}.
A share that was back with its sender only in round b enters the sum as that sender's message of round b does.

Settled messages y' take (W^S_t - I) y^(t-1) along in every round. With p the indicator of the published ones,
a^(t) = p + b^(t) with b^(T) = 0 and b^(t-1) = W^O_t^T b^(t) + (W^S_t - I)^T p. If all of the cohort publish, b is 0 and
a is p: nobody else's noise is in the sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import finite_float, instance, integer, party_values, refuse
from inca.errors import InvalidInput
from inca.protocol.domain import Ball, Domain, Interval
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels


@dataclass(frozen=True, eq=False)
class SumCoefficients:
    """How each party enters the published sum: `value` holds g_i, `noise_squared` the sum over its terms of squares."""

    value: Array
    noise_squared: Array


@dataclass(frozen=True)
class ErrorBudget:
    """Where E ||estimate - mean||^2 comes from; the mean is that of all n parties' values.

    All parts are infinite when there is no estimate.

    Attributes:
        independent: The variance of the independent noise in the estimate, top-up noise included.
        cancelling: The variance of the cancelling noise that remains in it.
        data: What absent parties' missing or partial values add.
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


def sum_coefficients(execution: Execution) -> SumCoefficients:
    """Return with which coefficients each party's value and noise enter the published sum.

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> everyone = sum_coefficients(Execution(RandomReceivers(50, rounds=5, seed=1), incremental_injection(5)))
    >>> bool(np.allclose(everyone.value, 1)), bool(np.allclose(everyone.noise_squared, 0))
    (True, True)
    """
    rounds, scales = execution.rounds, execution.injection.mask_scales
    if scales is None:
        value, terms = sum_coefficients_by_term(execution)
        return SumCoefficients(value, np.einsum("nk,nk->n", terms, terms))
    value, noise = np.zeros(execution.parties), np.zeros(execution.parties)
    later = np.zeros(execution.parties)  # a^(t) of the next round in which the party is present
    for t, here, a, counter in _backwards(execution):
        value += np.where(here, a * execution.injection.value[counter], 0.0)
        if t < rounds:  # the mask added now leaves again in the next round attended, if there is one
            noise += np.where(here, (scales[np.minimum(counter, rounds - 1)] * (a - later)) ** 2, 0.0)
        later = np.where(here, a, later)
    return SumCoefficients(value, noise)


def sum_coefficients_by_term(execution: Execution) -> tuple[Array, Array]:
    """Return g_i, (n,), and with which coefficient each noise term enters the published sum, (n, T).

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> execution = Execution(RandomReceivers(50, rounds=5, seed=1), incremental_injection(5))
    >>> value, terms = sum_coefficients_by_term(execution)
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
    """Yield, for t = T..0: t, who is present, which part of each message enters the sum, rounds attended before."""
    share = execution.schedule.round(1).share  # of all, if any is late
    after: dict[int, Array] = {0: np.zeros(execution.parties)}  # a^(b) for the rounds of return, and for never
    counter = execution.presence.rounds_attended().astype(np.int64)
    published = execution.published.astype(np.float64)
    settled = execution.settlement_matters
    a = np.zeros(execution.parties) if settled else published
    for t in range(execution.rounds, -1, -1):
        here = execution.presence.row(t)
        if t < execution.rounds:
            counter -= here
        yield t, here, a + published if settled else a, counter
        after[t] = a
        if t > 0:
            a = execution.mix_adjoint(t, a)
            if settled:
                a += execution.settlement_adjoint(t, published)
            for entry in execution.late:
                if entry.round == t:
                    a[entry.sender] += share * (after[entry.back] - after[t])[entry.sender]


def expected_error(
    execution: Execution,
    noise_levels: NoiseLevels,
    *,
    dimensions: int = 1,
    values: ArrayLike | None = None,
    variance: float | None = None,
    domain: Domain | None = None,
) -> ErrorBudget:
    """Return the exact E ||estimate - mean of all values||^2 over the noise, summed over coordinates.

    With g_i from above, G_i the squares of its noise coefficients, w the total weight and n the number of parties it is

        d (sigma_*^2 sum_i g_i^2 + sigma_Delta^2 sum_i G_i) / w^2 + ||sum_i (g_i / w - 1 / n) x_i||^2,

    and p sigma_top^2 d / w^2 more where p parties published settled messages. For the last part, the data, take one of
    `values`, `variance` and `domain`; without any it is 0.

    Args:
        execution: The run.
        noise_levels: Its noise.
        dimensions: The number of coordinates d, unless `values` tell it.
        values: The values of all parties, (n,) or (n, d).
        variance: The variance, summed over coordinates, of independent values of equal mean.
        domain: An `Interval` or a `Ball`, for the worst case over it.

    Returns:
        The error by its causes.

    Raises:
        InvalidInput: If more than one of `values`, `variance` and `domain` is given, or one is out of range.

    Example:
        >>> from inca import Execution, RandomReceivers, incremental_injection
        >>> execution = Execution(RandomReceivers(100, rounds=5, seed=1), incremental_injection(5))
        >>> error = expected_error(execution, NoiseLevels(independent=2.0, cancelling=30.0))
        >>> round(error.total, 9)  # sigma_independent^2 / n
        0.04
    """
    instance("execution", execution, Execution)
    instance("noise_levels", noise_levels, NoiseLevels)
    var_independent, var_cancelling = noise_levels.independent**2, noise_levels.cancelling**2
    x = None if values is None else party_values(values, execution.parties)
    d = integer("dimensions", dimensions, min=1) if x is None else x[:1].size
    alternatives = {"values": values, "variance": variance, "domain": domain}
    names = [name for name, alternative in alternatives.items() if alternative is not None]
    if len(names) > 1:
        raise InvalidInput(f"{names[0]} cannot be combined with {names[1]}")
    if execution.weight == 0.0:
        return ErrorBudget(math.inf, math.inf, math.inf)
    coefficients = sum_coefficients(execution)
    weight = execution.weight
    off = coefficients.value / weight - 1.0 / execution.parties  # sums to 0
    data = 0.0
    if x is not None:
        data = float(np.sum(np.square(off @ x)))
    elif variance is not None:
        data = finite_float("variance", variance, min=0.0) * float(off @ off)
    elif domain is not None:
        data = _worst(domain, off, d)
    var_published = var_independent * float(coefficients.value @ coefficients.value)
    if execution.cohort is not None:
        var_published += noise_levels.topup**2 * int(execution.published.sum())
    return ErrorBudget(
        d * var_published / weight**2,
        d * var_cancelling * float(coefficients.noise_squared.sum()) / weight**2,
        data,
    )


def _worst(domain: Domain, off: Array, dimensions: int) -> float:
    """Return max ||sum_i off_i x_i||^2 over the domain: put x_i at opposite ends according to off_i's sign."""
    if isinstance(domain, (Interval, Ball)):
        # sum off = 0, so the distance is the diameter times the sum of the positive part
        return (domain.sensitivity(dimensions) * float(np.abs(off).sum()) / 2.0) ** 2
    refuse("domain", domain, "an Interval or a Ball")
