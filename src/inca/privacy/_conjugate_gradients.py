"""Losses of some parties, or of very many, by conjugate gradients: mu_i^2 = h_i^T Sigma^-1 h_i from products Sigma v.

A product takes time and memory in proportion to n T (`_covariance_operator`), so a party's loss among a million takes
seconds, where a filter, which carries n^2 numbers, would need terabytes.

How many products it takes depends on the eigenvalues of Sigma. With rows of variance about 1 all of them lie between
some hundredths and some tens, but for one: the sum of all final messages, from which all masks cancel, has a variance
of 1 / ratio^2. Its part is worked out exactly and taken off (deflation: Nicolaides 1987; Saad et al. 2000), with w the
weights of that sum:

    h^T Sigma^-1 h = (w^T h)^2 / w^T Sigma w + g^T Sigma^-1 g,   g = h - Sigma w (w^T h) / w^T Sigma w,

and the rest is well-conditioned: some 20 products, however many parties there are, and fewer with more cancelling
noise. From x, which conjugate gradients make of g, and what it leaves, r = g - Sigma x, follows

    g^T Sigma^-1 g = x^T (g + r) + r^T Sigma^-1 r,   where   r^T Sigma^-1 r <= r^T r / (smallest eigenvalue).

The last is what is not known of a loss. The smallest eigenvalue is estimated from random right-hand sides, which are
sure to have a part in every direction; taken from h_i themselves, one of which they hardly know could be missed.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigvalsh_tridiagonal

from inca._base.threads import available_cores, one_blas_thread
from inca._base.types import Array, Progress
from inca.errors import SingularView
from inca.privacy._covariance_operator import (
    WIDTH,
    Workspace,
    columns_of_b,
    covariance_operator,
    multiply,
    unmasked_sum,
    workspace,
)
from inca.privacy.view import View

_MOST_STEPS = 300
_LEFT = 3e-11  # of a loss: when to stop; what is left is added to the loss
_LEFT_OF_PROBE = 1e-4  # the same for random right-hand sides, of which eigenvalues alone are wanted
_MARGIN = 2.0  # by which the smallest eigenvalue may be less than the estimate
_SEED = 23  # of the random right-hand sides: the same view has the same losses
_EPS, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)


def information(
    view: View, ratio: float, parties: NDArray[np.intp], progress: Progress | None = None, *, topup: float = 0.0
) -> tuple[Array, float]:
    """Return mu_i^2 of some honest parties in units of sigma_independent, and an estimate of its relative error.

    `parties` are their places in `view.honest`. Needs an injection of the incremental family and a ratio above 0;
    `topup` is sigma_topup / sigma_independent. `progress` is told how many batches of parties are done.
    """
    system = _Deflated(view, ratio, topup)
    if not system.operator.height:
        return np.zeros(parties.size), _EPS
    batches = [parties[lo : lo + WIDTH] for lo in range(0, parties.size, WIDTH)]
    steps = len(batches) + 1
    with one_blas_thread():  # the threads are ours
        room = workspace(system.operator)
        system.smallest = system.smallest_eigenvalue(room)
        if progress is not None:
            progress(1, steps)
        rooms: SimpleQueue[Workspace] = SimpleQueue()
        rooms.put(room)
        threads = min(available_cores(), len(batches))
        for _ in range(threads - 1):
            rooms.put(workspace(system.operator))

        def of(batch: NDArray[np.intp]) -> tuple[Array, Array]:
            room = rooms.get()
            try:
                return system.losses(batch, room)
            finally:
                rooms.put(room)

        squares, left = [], []
        with ThreadPoolExecutor(threads) as pool:
            for done, (of_batch, its_left) in enumerate(pool.map(of, batches), start=2):
                squares.append(of_batch)
                left.append(its_left)
                if progress is not None:
                    progress(done, steps)
    result, unknown = np.concatenate(squares), np.concatenate(left)
    told = result > 0.0
    rounding = _EPS * np.sqrt(system.operator.height) / system.smallest
    return result, float((unknown[told] / result[told]).max(initial=0.0)) + rounding


class _Deflated:
    """Sigma without what it has in the direction w of the sum of all final messages: Sigma - Sigma w (Sigma w)^T / q.

    q = w^T Sigma w; 0 if there is no such sum.
    """

    def __init__(self, view: View, ratio: float, topup: float) -> None:
        self.operator = operator = covariance_operator(view, ratio, topup)
        self.weights = np.empty(operator.height)
        unmasked_sum(operator, self.weights)
        vectors = np.zeros((operator.height, WIDTH))
        vectors[:, 0] = self.weights
        multiply(operator, vectors, vectors, workspace(operator))
        self.image = vectors[:, 0].copy()
        self.quotient = float(self.weights @ self.image)
        self.smallest = 0.0

    def multiply(self, vectors: Array, out: Array, room: Workspace) -> None:
        """Write the product to `out`."""
        multiply(self.operator, vectors, out, room)
        if self.quotient > 0.0:
            out -= self.image[:, np.newaxis] * (self.image @ vectors / self.quotient)

    def take_off(self, right: Array) -> Array:
        """Take off what right-hand sides have in the direction w, in place; return its part of each loss."""
        if not self.quotient > 0.0:
            return np.zeros(right.shape[1])
        sums = self.weights @ right
        right -= self.image[:, np.newaxis] * (sums / self.quotient)
        return np.asarray(sums**2 / self.quotient)

    def smallest_eigenvalue(self, room: Workspace) -> float:
        """Return an estimate of the smallest eigenvalue of what is left of Sigma, from random right-hand sides."""
        right = np.random.default_rng(_SEED).standard_normal((self.operator.height, WIDTH))
        rounding = _EPS**2 * self.operator.height * _by_column(right, right)
        self.take_off(right)
        run, smallest = _ConjugateGradients(right, rounding), 1.0
        while (run.squared > _LEFT_OF_PROBE * smallest * run.gained).any() and run.steps < _MOST_STEPS:
            self.multiply(run.direction, run.product, room)
            run.step()
            smallest = run.smallest_eigenvalue()
        if not smallest > _EPS * self.operator.height:
            raise SingularView
        return smallest / _MARGIN

    def losses(self, parties: NDArray[np.intp], room: Workspace) -> tuple[Array, Array]:
        """Return mu_i^2 of up to WIDTH honest parties, and how much more they may be."""
        right = np.empty((self.operator.height, WIDTH))
        columns_of_b(self.operator, parties, right, room)
        rounding = _EPS**2 * self.operator.height * _by_column(right, right)
        apart = self.take_off(right)
        run = _ConjugateGradients(right, rounding)
        while (run.squared > _LEFT * self.smallest * (apart + run.gained)).any():
            if run.steps == _MOST_STEPS:
                raise SingularView
            self.multiply(run.direction, run.product, room)
            run.step()
        # What is left of the right-hand side is worked out anew, as rounding adds up from step to step.
        self.multiply(run.solution, run.product, room)
        left = right - run.product
        squares = apart + _by_column(run.solution, right + left)
        return squares[: parties.size], _by_column(left, left)[: parties.size] / self.smallest


class _ConjugateGradients:
    """Conjugate gradients (Hestenes and Stiefel 1952) for several right-hand sides, each by itself.

    Before each step the caller writes the product with `direction` to `product`.
    """

    def __init__(self, right: Array, rounding: Array) -> None:
        self.solution, self.left, self.direction = np.zeros_like(right), right.copy(), right.copy()
        self.product = np.empty_like(right)
        self.rounding, self.squared = rounding, _without(rounding, _by_column(right, right))
        """Of each right-hand side, the square of what is left of it; 0 from where on that is rounding alone."""
        self.gained = np.zeros(right.shape[1])
        """x^T (right-hand side) so far: the sum of step length times what was left, squared."""
        self.steps = 0
        self._lengths: list[Array] = []
        self._ratios: list[Array] = []

    def step(self) -> None:
        length = self.squared / np.maximum(_by_column(self.direction, self.product), _TINY)
        self.gained += length * self.squared
        self.solution += length * self.direction
        self.left -= length * self.product
        squared = _without(self.rounding, _by_column(self.left, self.left))
        ratio = squared / np.maximum(self.squared, _TINY)
        self.direction *= ratio
        self.direction += self.left
        self.squared = squared
        self.steps += 1
        self._lengths.append(length)
        self._ratios.append(ratio)

    def smallest_eigenvalue(self) -> float:
        """Return the smallest Ritz value: that of the tridiagonal matrices of Lanczos, which the steps define."""
        columns = zip(np.array(self._lengths).T, np.array(self._ratios).T, strict=True)
        return min(_smallest_ritz_value(lengths, ratios) for lengths, ratios in columns)


def _smallest_ritz_value(lengths: Array, ratios: Array) -> float:
    taken = int((lengths > 0.0).sum())  # none are after the last
    if not taken:
        return 1.0
    inverse, ratios = 1.0 / lengths[:taken], ratios[: taken - 1]
    diagonal = inverse.copy()
    diagonal[1:] += ratios * inverse[:-1]
    return float(eigvalsh_tridiagonal(diagonal, np.sqrt(ratios) * inverse[:-1])[0])


def _without(rounding: Array, squared: Array) -> Array:
    """Return these squares, 0 where they are no more than rounding."""
    return np.where(squared > rounding, squared, 0.0)


def _by_column(a: Array, b: Array) -> Array:
    """Return the scalar products of the columns of a with those of b."""
    return np.asarray(np.einsum("ij,ij->j", a, b))
