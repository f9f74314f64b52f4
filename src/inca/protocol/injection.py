"""How a party's value and its cancelling noise enter the computation: (c, Z)-Gaussian distributions.

A party injects, in its r-th active round, the share `c_r` of its noisy value u and the combination `Z_r` of
its T cancelling noise terms (Definition "Multivariate Gaussian"):

    v_r = c_r u + sum_k Z_{r,k} eta_k,    eta_k ~ N(0, sigma_cancelling^2).

Per-round variances are folded into the columns of Z: a term of variance s^2 sigma_cancelling^2 with column
Z_k is a term of variance sigma_cancelling^2 with column s Z_k.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.types import Array
from inca._base.validation import InputError, finite_array, refuse, whole

_TOLERANCE = 1e-9  # relative; for sums that must be exact up to rounding and for invertibility


@dataclass(frozen=True, eq=False)
class Injection:
    """A Valid (c, Z)-Gaussian: `value` is c, with T+1 entries, and `noise` is Z, of shape (T+1, T).

    The three conditions of Definition "Valid (c, Z)-Gaussian" are checked: (i) c sums to 1 and every column
    of Z to 0, (ii) (c, Z) is invertible, (iii) Z without its last row is.

    >>> Injection(value=[0.5, 0.5], noise=[[1.0], [-1.0]]).rounds
    1
    """

    value: Array
    noise: Array

    def __init__(
        self, value: ArrayLike, noise: ArrayLike, variances: ArrayLike | None = None, *, unsafe: bool = False
    ) -> None:
        """Check validity and keep read-only copies; `variances` are T relative ones of the noise terms, default 1.

        `unsafe` demands condition (i) alone: for showing what goes wrong without the other two.
        """
        c = finite_array("value", value, (1,), "T+1 numbers").copy()
        z = finite_array("noise", noise, (2,), "T+1 rows of T numbers").copy()
        rounds = c.size - 1
        if rounds < 1:
            raise refuse("the number of rounds (entries of value less one)", rounds, "at least 1")
        if z.shape != (rounds + 1, rounds):
            raise refuse("the shape of noise", z.shape, f"({rounds + 1}, {rounds}), as value has {c.size} entries")
        z *= _scales(rounds, variances)
        _check_cancels(c, z)
        if not unsafe:
            _check_hides(z)
        c.flags.writeable = z.flags.writeable = False
        object.__setattr__(self, "value", c)
        object.__setattr__(self, "noise", z)

    def __eq__(self, other: object) -> bool:
        """Compare the coefficients."""
        if not isinstance(other, Injection):
            return NotImplemented
        return np.array_equal(self.value, other.value) and np.array_equal(self.noise, other.noise)

    def __hash__(self) -> int:
        """Hash the coefficients."""
        return hash((self.value.tobytes(), self.noise.tobytes()))

    @property
    def rounds(self) -> int:
        """T."""
        return self.value.size - 1

    @cached_property
    def closing(self) -> Array:
        """Row R cancels all noise that R active rounds injected: -sum_{s<R} Z_s, for R = 0..T (erratum E2)."""
        before = np.zeros_like(self.noise)
        np.cumsum(self.noise[:-1], axis=0, out=before[1:])
        return np.asarray(-before)

    @cached_property
    def mask_scales(self) -> Array | None:
        """The T scales of the incremental family, or None for any other Z.

        In that family every active round removes the previous noise term and adds the next one, so that a
        party has exactly one live mask: Z_r = -s_r e_r + s_{r+1} e_{r+1}.
        """
        scales = np.diagonal(self.noise[:-1]).copy()
        return scales if np.array_equal(self.noise, _chain(scales)) else None

    def adapted(self, present: ArrayLike) -> tuple[Array, Array]:
        """Return (c^(i), Z^(i)) for a party that is present in the rounds where `present` is true (erratum E2).

        `present` has T+1 entries. With r the number of rounds before t in which the party was present:
        present at t < T gives (c_r, Z_r); present at T gives (c_r, -sum of its earlier rows); absent gives 0.

        >>> c, z = incremental(3).adapted([1, 0, 1, 1])
        >>> c.tolist(), z[-1].tolist()
        ([0.25, 0.0, 0.25, 0.25], [-0.0, -1.0, -0.0])
        """
        there = np.asarray(present, dtype=bool)
        if there.shape != (self.rounds + 1,):
            raise refuse("the shape of present", there.shape, f"({self.rounds + 1},)")
        before = np.concatenate(([0], np.cumsum(there)[:-1]))
        c = np.where(there, self.value[before], 0.0)
        z = np.where(there[:, np.newaxis], self.noise[before], 0.0)
        if there[-1]:
            z[-1] = self.closing[before[-1]]
        return c, z


def early(rounds: int, variances: ArrayLike | None = None) -> Injection:
    """Early injection: value and noise at once, then one noise term is removed per round (Example 1, E6).

    >>> early(2).noise.tolist()
    [[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    total = whole("rounds", rounds, least=1)
    value = np.zeros(total + 1)
    value[0] = 1.0
    return Injection(value, np.vstack([np.ones(total), 0.0 - np.eye(total)]), variances)


def incremental(rounds: int, quiet: int = 0, variances: ArrayLike | None = None) -> Injection:
    """Incremental injection: equal shares, and one noise term renewed per round (Example 2, E6).

    The last `quiet` rounds renew noise as usual but carry no share of the value; the other T+1-quiet rounds
    carry 1/(T+1-quiet) each. `variances` are T relative variances of the noise terms, default all 1.

    >>> incremental(2).noise.tolist()
    [[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]]
    >>> incremental(3, quiet=2).value.tolist()
    [0.5, 0.5, 0.0, 0.0]
    """
    total = whole("rounds", rounds, least=1)
    silent = whole("quiet", quiet, least=0, most=total)
    value = np.zeros(total + 1)
    value[: total + 1 - silent] = 1.0 / (total + 1 - silent)
    return Injection(value, _chain(np.ones(total)), variances)


def _chain(scales: Array) -> Array:
    rounds = scales.size
    noise = np.zeros((rounds + 1, rounds))
    terms = np.arange(rounds)
    noise[terms, terms] = scales
    noise[terms + 1, terms] = -scales
    return noise


def _scales(rounds: int, variances: ArrayLike | None) -> Array:
    if variances is None:
        return np.ones(rounds)
    given = finite_array("variances", variances, (1,), f"{rounds} numbers above 0")
    if given.shape != (rounds,):
        raise refuse("the number of variances", given.size, f"one per noise term ({rounds})")
    if (given <= 0).any():
        term = int(np.flatnonzero(given <= 0)[0])
        raise refuse(f"variances[{term}]", float(given[term]), "a number above 0")
    return np.sqrt(given)


def _check_cancels(c: Array, z: Array) -> None:
    total = float(c.sum())
    if abs(total - 1.0) > _TOLERANCE * max(1.0, float(np.abs(c).sum())):
        raise InputError(f"validity condition (i) fails: value sums to {total!r}, but 1 was expected")
    sums, sizes = z.sum(axis=0), np.abs(z).sum(axis=0)
    uncancelled = np.flatnonzero(np.abs(sums) > _TOLERANCE * sizes)
    if uncancelled.size:
        k = int(uncancelled[0])
        raise InputError(f"validity condition (i) fails: column {k} of noise sums to {sums[k]:g}, not to 0")


def _check_hides(z: Array) -> None:
    # Given (i) the last row of Z is minus the sum of the others, so rank Z = rank Z_{-T}; and c, which sums to
    # 1, lies outside the span of Z, whose columns sum to 0. Hence (ii) and (iii) hold or fail together.
    if (dependent := _dependent_column(z[:-1])) is not None:
        raise InputError(
            "validity conditions (ii) and (iii) fail: neither (value, noise) nor noise without its last row is "
            f"invertible, as column {dependent} of noise depends on the others"
        )


def _dependent_column(matrix: NDArray[np.float64]) -> int | None:
    """Return a column that is (numerically) a combination of the others, or None if there is none."""
    lengths = np.linalg.norm(matrix, axis=0)
    if (lengths == 0).any():
        return int(np.flatnonzero(lengths == 0)[0])
    singular = np.linalg.svd(matrix / lengths, compute_uv=False)
    if singular[-1] > _TOLERANCE * singular[0]:
        return None
    directions = np.linalg.svd(matrix / lengths)[2]
    return int(np.argmax(np.abs(directions[-1])))
