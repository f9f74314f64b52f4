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
from inca._base.validation import finite_array, flags, integer, refuse
from inca.errors import InvalidInput

_TOLERANCE = 1e-9  # relative; for sums that must be exact up to rounding and for invertibility


@dataclass(frozen=True, eq=False)
class Injection:
    """A Valid (c, Z)-Gaussian: in its r-th active round a party injects v_r = c_r u + sum_k Z_{r,k} eta_k.

    The three conditions of Definition "Valid (c, Z)-Gaussian" are checked: (i) c sums to 1 and every column
    of Z to 0, (ii) (c, Z) is invertible, (iii) Z without its last row is.

    Args:
        value: c, T+1 numbers.
        noise: Z, of shape (T+1, T).
        variances: T relative variances of the noise terms, above 0; by default all are 1.
        unsafe: Whether condition (i) alone suffices, to show what goes wrong without the other two.

    Raises:
        InvalidInput: If a shape is wrong or a condition fails.

    Example:
        >>> Injection(value=[0.5, 0.5], noise=[[1.0], [-1.0]]).rounds
        1
    """

    value: Array
    noise: Array

    def __init__(
        self, value: ArrayLike, noise: ArrayLike, *, variances: ArrayLike | None = None, unsafe: bool = False
    ) -> None:
        c = finite_array("value", value, (1,), "(T+1,)").copy()
        z = finite_array("noise", noise, (2,), "(T+1, T)").copy()
        rounds = c.size - 1
        if rounds < 1:
            refuse("the number of entries of value", c.size, "at least 2, as there are T+1 of them")
        if z.shape != (rounds + 1, rounds):
            refuse("the shape of noise", z.shape, f"({rounds + 1}, {rounds}), as value has {c.size} entries")
        z *= _scales(rounds, variances)
        _check_cancels(c, z)
        if not unsafe:
            _check_hides(z)
        c.flags.writeable = z.flags.writeable = False
        object.__setattr__(self, "value", c)
        object.__setattr__(self, "noise", z)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Injection):
            return NotImplemented
        return np.array_equal(self.value, other.value) and np.array_equal(self.noise, other.noise)

    def __hash__(self) -> int:
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

        With r the number of rounds before t in which the party was present: present at t < T gives (c_r, Z_r);
        present at T gives (c_r, -sum of its earlier rows); absent gives 0.

        Args:
            present: T+1 flags, round 0 first.

        Returns:
            c^(i), of shape (T+1,), and Z^(i), of shape (T+1, T).

        Raises:
            InvalidInput: If there are not T+1 flags.

        Example:
            >>> c, z = incremental_injection(3).adapted([1, 0, 1, 1])
            >>> c.tolist(), z[-1].tolist()
            ([0.25, 0.0, 0.25, 0.25], [-0.0, -1.0, -0.0])
        """
        here = flags("present", present, (self.rounds + 1,))
        before = np.concatenate(([0], np.cumsum(here)[:-1]))
        c = np.where(here, self.value[before], 0.0)
        z = np.where(here[:, np.newaxis], self.noise[before], 0.0)
        if here[-1]:
            z[-1] = self.closing[before[-1]]
        return c, z


def early_injection(rounds: int, *, variances: ArrayLike | None = None) -> Injection:
    """Return early injection: value and noise at once, then one noise term removed per round (Example 1, E6).

    c = (1, 0, ..., 0); Z_0 = (1, ..., 1) and Z_r = -e_r for r = 1..T.

    Args:
        rounds: T, at least 1.
        variances: T relative variances of the noise terms, above 0; by default all are 1.

    Returns:
        The injection.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> early_injection(2).noise.tolist()
        [[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]]
    """
    total = integer("rounds", rounds, min=1)
    value = np.zeros(total + 1)
    value[0] = 1.0
    return Injection(value, np.vstack([np.ones(total), 0.0 - np.eye(total)]), variances=variances)


def incremental_injection(rounds: int, *, quiet: int = 0, variances: ArrayLike | None = None) -> Injection:
    """Return incremental injection: equal shares, and one noise term renewed per round (Example 2, E6).

    c_r = 1/(T+1-quiet) but 0 in the last `quiet` rounds; Z_0 = e_1, Z_r = e_{r+1} - e_r, and Z_T = -e_T.

    Args:
        rounds: T, at least 1.
        quiet: How many of the last rounds renew noise as usual but carry no share of the value.
        variances: T relative variances of the noise terms, above 0; by default all are 1.

    Returns:
        The injection.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> incremental_injection(2).noise.tolist()
        [[1.0, 0.0], [-1.0, 1.0], [0.0, -1.0]]
        >>> incremental_injection(3, quiet=2).value.tolist()
        [0.5, 0.5, 0.0, 0.0]
    """
    total = integer("rounds", rounds, min=1)
    silent = integer("quiet", quiet, min=0, max=total)
    value = np.zeros(total + 1)
    value[: total + 1 - silent] = 1.0 / (total + 1 - silent)
    return Injection(value, _chain(np.ones(total)), variances=variances)


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
    relative = finite_array("variances", variances, (1,), f"({rounds},)")
    if relative.shape != (rounds,):
        refuse("the number of variances", relative.size, f"{rounds}, one per noise term")
    if (relative <= 0).any():
        term = int(np.flatnonzero(relative <= 0)[0])
        refuse(f"variances[{term}]", float(relative[term]), "above 0")
    return np.sqrt(relative)


def _check_cancels(c: Array, z: Array) -> None:
    total = float(c.sum())
    if abs(total - 1.0) > _TOLERANCE * max(1.0, float(np.abs(c).sum())):
        raise InvalidInput(f"validity condition (i) fails: value must sum to 1, got {total!r}")
    sums, sizes = z.sum(axis=0), np.abs(z).sum(axis=0)
    uncancelled = np.flatnonzero(np.abs(sums) > _TOLERANCE * sizes)
    if uncancelled.size:
        k = int(uncancelled[0])
        raise InvalidInput(f"validity condition (i) fails: column {k} of noise must sum to 0, got {sums[k]:g}")


def _check_hides(z: Array) -> None:
    # Given (i) the last row of Z is minus the sum of the others, so rank Z = rank Z_{-T}; and c, which sums to
    # 1, lies outside the span of Z, whose columns sum to 0. Hence (ii) and (iii) hold or fail together.
    if (dependent := _dependent_column(z[:-1])) is not None:
        raise InvalidInput(
            "validity conditions (ii) and (iii) fail: (value, noise), and noise without its last row, must be "
            f"invertible, but column {dependent} of noise depends on the others"
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
