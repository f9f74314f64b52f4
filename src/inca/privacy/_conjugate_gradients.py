"""Losses of some parties, or of very many, by conjugate gradients: mu_i^2 = h_i^T Sigma^-1 h_i from products Sigma v.

A product takes time and memory in proportion to n T (`_covariance_operator`), so a party's loss among a million takes
seconds, where a filter, which carries n^2 numbers, would need terabytes.

How many products it takes depends on the eigenvalues of Sigma. With rows of variance about 1 all of them lie between
some hundredths and some tens, but for one of each group of parties that exchange hidden messages: all masks cancel from
the sum of its final messages, whose variance is 1 / ratio^2 of that of others. What these sums tell is worked out
exactly, and the rest given them (`_covariance_operator`), which is deflation (Nicolaides 1987; Saad et al. 2000):

    h^T Sigma^-1 h = w_i^2 / q + g^T S^+ g,

with S and g what is left of Sigma and h. That is well-conditioned: some 20 products, however many parties there are,
and fewer with more cancelling noise.

From x, which conjugate gradients make of g, and what it leaves, r = g - S x, follow a lower bound on g^T S^+ g,
x^T (g + r), and noise that imitates a change of the value, whose cost is an upper bound (`imitate`). They go on until
both agree. The upper bound is stated: it holds whatever x is, and whatever rounding did to it.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from inca._base.threads import available_cores, one_blas_thread
from inca._base.types import Array, Progress
from inca.errors import SingularView
from inca.privacy._covariance_operator import (
    WIDTH,
    Operator,
    Workspace,
    columns_of_b,
    covariance_operator,
    imitate,
    multiply,
    of_sums,
    workspace,
)
from inca.privacy.view import View

_MOST_STEPS = 300
_LEFT = 1e-15  # of the square of a right-hand side: when to look at the bounds first
_LESS = 1e-4  # of that at the next look
_CLOSE = 3e-11  # how much of a loss may lie between the bounds for no more looks
_NO_BETTER = 0.3  # of what was between them: there will be no less
_MAX_GAP = 4e-7  # and if there can be none
_EPS = float(np.finfo(np.float64).eps)


def information(
    view: View, ratio: float, parties: NDArray[np.intp], progress: Progress | None = None, *, topup: float = 0.0
) -> tuple[Array, Array]:
    """Return mu_i^2 of some honest parties in units of sigma_independent, and bounds on their relative errors.

    `parties` are their places in `view.honest`. Needs an injection of the incremental family and a ratio above 0;
    `topup` is sigma_topup / sigma_independent. `progress` is told how many batches of parties are done.
    """
    operator = covariance_operator(view, ratio, topup, given_sums=True)
    if not operator.height:
        return np.zeros(parties.size), np.zeros(parties.size)
    final = slice(operator.rows[-2], operator.rows[-1])
    settling = operator.settling[operator.owner[operator.places[final]]]
    if not ((operator.topup[final] > 0.0) | np.isfinite(settling)).all() or not (operator.total > 0.0).all():
        raise SingularView  # a final message that holds nothing of its owner's value may depend on other messages
    batches = [parties[lo : lo + WIDTH] for lo in range(0, parties.size, WIDTH)]
    with one_blas_thread():  # the threads are ours
        rooms: SimpleQueue[Workspace] = SimpleQueue()
        threads = min(available_cores(), len(batches))
        for _ in range(threads):
            rooms.put(workspace(operator))

        def of(batch: NDArray[np.intp]) -> tuple[Array, Array]:
            room = rooms.get()
            try:
                return _losses(operator, batch, room)
            finally:
                rooms.put(room)

        squares, errors = [], []
        with ThreadPoolExecutor(threads) as pool:
            for done, (of_batch, its_errors) in enumerate(pool.map(of, batches), start=1):
                squares.append(of_batch)
                errors.append(its_errors)
                if progress is not None:
                    progress(done, len(batches))
    return np.concatenate(squares), np.concatenate(errors)


def _losses(operator: Operator, parties: NDArray[np.intp], room: Workspace) -> tuple[Array, Array]:
    """Return mu_i^2 of up to WIDTH honest parties, and by which part of it they may be more."""
    right = np.empty((operator.height, WIDTH))
    columns_of_b(operator, parties, right, room)
    size = _by_column(right, right)
    columns_of_b(operator, parties, right, room, given_sums=True)
    apart = np.zeros(WIDTH)
    apart[: parties.size] = [of_sums(operator, int(party)) for party in parties]
    solution, left, product, goal, steps = np.zeros_like(right), right, np.empty_like(right), _LEFT, 0
    result, gap = np.zeros(WIDTH), np.where(size > 0.0, np.inf, 0.0)  # nothing is seen of the others
    while True:
        run = _ConjugateGradients(left, np.maximum(goal, _EPS**2 * operator.height) * size)
        while run.squared.any() and steps < _MOST_STEPS:
            multiply(operator, run.direction, run.product, room)
            run.step()
            steps += 1
        solution += run.solution
        # What is left of the right-hand side is worked out anew, as rounding adds up from step to step.
        multiply(operator, solution, product, room)
        left = right - product
        upper = imitate(operator, parties, solution, room)
        its_gap = np.abs(upper - apart - _by_column(solution, right + left))
        better, before = its_gap < gap * upper, gap.copy()
        result[better], gap[better] = upper[better], its_gap[better] / upper[better]
        if not ((gap > _CLOSE) & (gap < _NO_BETTER * before)).any() or steps == _MOST_STEPS:
            break
        left[:, gap <= _CLOSE] = 0.0
        goal *= _LESS
    if not (gap <= _MAX_GAP).all():
        raise SingularView
    return result[: parties.size], gap[: parties.size]


class _ConjugateGradients:
    """Conjugate gradients (Hestenes and Stiefel 1952) for several right-hand sides, each by itself.

    Before each step the caller writes the product with `direction` to `product`.
    """

    def __init__(self, right: Array, rounding: Array) -> None:
        self.solution, self.left, self.direction = np.zeros_like(right), right.copy(), right.copy()
        self.product = np.empty_like(right)
        self.rounding, self.squared = rounding, _without(rounding, _by_column(right, right))
        """Of each right-hand side, the square of what is left of it; 0 from where on that is rounding alone."""
        self.steps = 0

    def step(self) -> None:
        curvature = _by_column(self.direction, self.product)
        goes_on = (self.squared > 0.0) & (curvature > _EPS**2 * self.squared)
        length = np.divide(self.squared, curvature, out=np.zeros_like(curvature), where=goes_on)
        self.solution += length * self.direction
        self.left -= length * self.product
        squared = np.where(goes_on, _without(self.rounding, _by_column(self.left, self.left)), 0.0)
        self.direction *= np.divide(squared, self.squared, out=np.zeros_like(squared), where=goes_on)
        self.direction += self.left
        self.squared = squared
        self.steps += 1


def _without(rounding: Array, squared: Array) -> Array:
    """Return these squares, 0 where they are no more than rounding."""
    return np.where(squared > rounding, squared, 0.0)


def _by_column(a: Array, b: Array) -> Array:
    """Return the scalar products of the columns of a with those of b."""
    return np.asarray(np.einsum("ij,ij->j", a, b))
