"""What an adversary can really do with its view: estimate the honest values, or tell two neighbouring inputs apart.

All it knows is y = B (x + eta*) + A eta (Eq. "linear.adv"). With Sigma = sigma_*^2 B B^T + sigma_Delta^2 A A^T, the
covariance of the noise in it, and h_i, the column of B that belongs to party i:

- who knows all other values sees y - B x_others = h_i x_i + noise of covariance Sigma. The best unbiased estimate
  is h_i^T Sigma^-1 (y - B x_others) / mu_i^2, and its standard error is 1/mu_i, mu_i^2 = h_i^T Sigma^-1 h_i (fact F4);
- who knows only how values are spread (mean and variance) makes the linear estimate of least mean squared error;
- that first estimate is also the best test of a low against a high value: its errors, counted over many simulated
  runs, bound epsilon from below.

Where h_i has a part outside the range of Sigma, noise does not touch that part and the value is recovered exactly.
Every coordinate of a vector is attacked by itself: noise is independent across coordinates, so nothing is lost.
Executions with shares that came back late or never are refused: their messages are not those of the view's rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpocon, dpotrf
from scipy.special import betainccinv, betaincinv, ndtr

from inca._base.types import Array, Progress
from inca._base.validation import finite_array, finite_float, generator, integer, party_values, positive, refuse
from inca.errors import InvalidInput
from inca.privacy.gaussian import epsilon_for
from inca.privacy.view import View, noise_root
from inca.protocol.injection import Injection
from inca.protocol.noise import Noise, draw_noise
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.simulation import Outcome, simulate

_MAX_NOISE_RATIO = 1e7  # of the levels, up to which a covariance written down tells an estimator
_SAFE = 1e-7  # reciprocal condition number above which a covariance is inverted without a closer look
_RANK = 1e-12  # singular values below this part of the largest one count as zero
_OUTSIDE = 1e-8  # a column with more than this part of its length outside the range of Sigma is free of noise
_BATCH_TERMS = 1 << 22  # of noise simulated at a time


FALSE_ALARM = 1e-6
"""How likely a bound from guesses is wrong, at most."""


@dataclass(frozen=True, eq=False)
class Reconstruction:
    """What the adversary makes of the honest values, in the order of `View.honest`.

    Attributes:
        estimate: (honest,) or (honest, d); nan where there is nothing to go by.
        standard_error: (honest,), the root mean squared error of every coordinate before the noise is drawn: exact, not
            measured.
    """

    estimate: Array
    standard_error: Array

    def __repr__(self) -> str:
        return f"Reconstruction(estimate of shape {self.estimate.shape})"


@dataclass(frozen=True)
class Distinguished:
    """How well the best test tells a low from a high value of a party.

    Attributes:
        party: The party.
        mu: Its exact loss.
        mu_measured: The shift that was seen.
        epsilon: The exact epsilon at delta.
        epsilon_lower: A lower bound on the epsilon of every guarantee, but for a probability of `false_alarm`.
        delta: The delta.
        trials: How many runs of each kind were counted.
        false_alarm: The probability with which the bound is wrong.
    """

    party: int
    mu: float
    mu_measured: float
    epsilon: float
    epsilon_lower: float
    delta: float
    trials: int
    false_alarm: float


def observe(view: View, outcome: Outcome, values: ArrayLike | None = None, noise: Noise | None = None) -> Array:
    """Return y of Eq. "linear.adv": the observed honest messages less what colluders put in; (rows,) or (rows, d).

    `outcome` is a run of the view's execution with `record=True`. Colluders know their own values and noise: if there
    are any, give `values` and `noise` of the run. Only the colluders' part is used; it is simulated alone, with nothing
    from honest parties, and subtracted, since messages are linear in what parties put in.

    >>> import inca
    >>> execution = inca.Execution(inca.ExplicitSchedule([[[1], [0]]]), inca.incremental_injection(1))
    >>> levels, rng = inca.NoiseLevels(independent=0.0, cancelling=0.0), np.random.default_rng(1)
    >>> outcome = inca.simulate(execution, [2.0, 4.0], levels, rng, record=True)
    >>> observe(View(execution), outcome)
    array([2.5, 3.5])
    """
    view.execution.refuse_late()
    seen, colluding = _seen(view, outcome), list(view.adversary.colluding)
    if not colluding:
        return seen
    if values is None or noise is None:
        missing = "values" if values is None else "noise"
        raise InvalidInput(f"{missing} must be given, as colluders know what they put in, got none")
    run = party_values(values, view.execution.parties), noise.independent, noise.cancelling
    x, independent, cancelling = (np.zeros_like(array) for array in run)
    for theirs, array in zip((x, independent, cancelling), run, strict=True):
        theirs[colluding] = array[colluding]
    # Their own top-up noise is in their own messages alone, which are no rows.
    alone = simulate(view.execution, x, noise=Noise(independent, cancelling), record=True)
    return np.asarray(seen - _seen(view, alone))


def reconstruct(
    view: View,
    y: ArrayLike,
    noise_levels: NoiseLevels,
    *,
    others: ArrayLike | None = None,
    prior: tuple[float, float] | None = None,
) -> Reconstruction:
    """Return the best linear estimate of every honest value from `y`, (rows,) or (rows, d), and its standard error.

    Either the adversary is informed: `others` holds the values of all n parties, (n,) or (n, d), and in the estimate of
    a party every row but its own is used; this is whom differential privacy is about, and the standard error is 1/mu_i.
    Or it is not, and `prior` is the (mean, variance) that it expects of every value.

    >>> import inca
    >>> execution = inca.Execution(inca.ExplicitSchedule([[[1], [0]]]), inca.incremental_injection(1))
    >>> levels, rng = inca.NoiseLevels(independent=0.0, cancelling=9.0), np.random.default_rng(1)
    >>> y = observe(View(execution), inca.simulate(execution, [2.0, 4.0], levels, rng, record=True))
    >>> informed = reconstruct(View(execution), y, levels, others=[2.0, 4.0])  # the exact mean less the others
    >>> informed.estimate.round(9).tolist(), informed.standard_error.tolist()
    ([2.0, 4.0], [0.0, 0.0])
    >>> reconstruct(View(execution), y, levels, prior=(0.0, 1.0)).standard_error.round(3).tolist()
    [0.706, 0.706]
    """
    view.execution.refuse_late()  # y would not be what the view's rows say
    _check_ratio(noise_levels)
    rows = view.shape[0]
    observed = finite_array("y", y, (1, 2), f"({rows},) or ({rows}, d)")
    if observed.shape[0] != rows:
        refuse("the number of rows of y", observed.shape[0], f"{rows}, one per row of the view")
    if others is not None and prior is not None:
        raise InvalidInput("others cannot be combined with prior")
    if others is not None:
        x = party_values(others, view.execution.parties)[view.honest]
        if x.shape[1:] != observed.shape[1:]:
            refuse("the shape of a row of others", x.shape[1:], f"that of a row of y, {observed.shape[1:]}")
        estimator, errors = _informed(view, noise_levels)
        of_others = estimator @ view.value
        np.fill_diagonal(of_others, 0.0)
        estimate = estimator @ observed - of_others @ x
        estimate[np.isinf(errors)] = np.nan
        return Reconstruction(estimate, errors)
    if prior is not None:
        mean = finite_float("the mean of prior", prior[0])
        variance = finite_float("the variance of prior", prior[1], min=0.0)
        estimator, errors = _uninformed(view, noise_levels, variance)
        return Reconstruction(mean + estimator @ (observed.T - mean * view.value.sum(axis=1)).T, errors)
    raise InvalidInput("others or prior must be given, to say what the adversary knows, got neither")


def distinguish(
    view: View,
    party: int,
    noise_levels: NoiseLevels,
    delta: float,
    rng: np.random.Generator,
    *,
    sensitivity: float,
    trials: int = 100_000,
    progress: Progress | None = None,
) -> Distinguished:
    """Bound epsilon from below: guess from simulated runs whether `party` holds 0 or `sensitivity`, and count errors.

    The guess compares the informed estimate with a threshold (the likelihood ratio test), once so that few low
    values are taken for high ones and once the other way round. A guarantee demands, for any test,

        1 - false negatives <= e^epsilon false positives + delta,

    and Clopper-Pearson limits on the four rates hold together but for `FALSE_ALARM`. The thresholds are fixed before
    the first trial, where the limits are expected to say most. Trials are columns of one long vector per party.

    >>> import inca
    >>> execution = inca.Execution(inca.PermutationReceivers(5, rounds=3, seed=1), inca.incremental_injection(3))
    >>> view, levels = View(execution), inca.NoiseLevels(independent=0.4, cancelling=3.0)
    >>> test = distinguish(view, 0, levels, 0.05, np.random.default_rng(1), trials=10_000, sensitivity=1.0)
    >>> round(test.mu, 3), round(test.epsilon, 2), 0.5 * test.epsilon < test.epsilon_lower < test.epsilon
    (1.124, 1.88, True)
    """
    view.execution.refuse_late()
    _check_ratio(noise_levels)
    chosen = integer("party", party, 0, view.execution.parties - 1)
    if chosen not in view.honest:
        refuse("party", party, "an honest party")
    delta, alarm = finite_float("delta", delta, 0.0, 1.0), FALSE_ALARM
    high, count = positive("sensitivity", sensitivity), integer("trials", trials, min=1)
    generator(rng)
    estimators, errors = _informed(view, noise_levels)
    place = int(np.searchsorted(view.honest, chosen))
    error = float(errors[place])
    mu = high / error if error > 0.0 else math.inf
    if mu == 0.0:  # nothing that was seen depends on the party
        return Distinguished(chosen, 0.0, 0.0, 0.0, 0.0, delta, count, alarm)
    guesses = _guesses(
        view, chosen, high, estimators[place], noise_levels, rng, count, progress or (lambda done, total: None)
    )
    threshold = high / 2 if mu == math.inf else _threshold(mu, delta, count, alarm / 4) * error
    lower = 0.0
    for low_guess, high_guess in (guesses, high - guesses[::-1]):  # the second: taking high values for low ones
        caught, mistaken = (np.count_nonzero(guess > threshold) for guess in (high_guess, low_guess))
        lower = max(lower, float(_epsilon_lower(caught, mistaken, count, delta, alarm / 4)))
    spread = float(np.sqrt(guesses.var(axis=1).mean()))
    measured = float(np.diff(guesses.mean(axis=1))[0]) / spread if spread > 0.0 else math.inf
    return Distinguished(chosen, mu, measured, float(epsilon_for(mu, delta)), lower, delta, count, alarm)


def watch(view: View, values: ArrayLike, noise_levels: NoiseLevels, rng: np.random.Generator) -> Array:
    """Simulate a run on values of shape (n,) or (n, d) with fresh noise, and return what the adversary observes of it.

    The same as `observe` on such a run: what colluders put in would be taken off again, so they put in nothing.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(5, rounds=3, seed=1), inca.incremental_injection(3))
    >>> levels, rng = inca.NoiseLevels(independent=1.0, cancelling=2.0), np.random.default_rng(1)
    >>> watch(View(execution), np.zeros((5, 1000)), levels, rng).shape
    (5, 1000)
    """
    view.execution.refuse_late()
    x = party_values(values, view.execution.parties).copy()
    noise = draw_noise(view.execution, noise_levels, generator(rng), dimensions=x[0].size)
    for array in (x, noise.independent, noise.cancelling):
        array[list(view.adversary.colluding)] = 0.0
    return _seen(view, simulate(view.execution, x, noise=noise, record=True))


def single_noise_term(rounds: int) -> Injection:
    """Return the broken injection that the paper warns of: value and one noise term at once, removed bit by bit.

    However many messages are seen, each party adds two unknowns only; conditions (ii) and (iii) of a Valid
    (c, Z)-Gaussian fail for T > 1. The term is removed in T equal portions.

    >>> single_noise_term(2).noise.tolist()
    [[1.0, 0.0], [-0.5, 0.0], [-0.5, 0.0]]
    """
    total = integer("rounds", rounds, min=1)
    noise = np.zeros((total + 1, total))
    noise[0, 0], noise[1:, 0] = 1.0, -1.0 / total
    return Injection(np.eye(total + 1)[0], noise, unsafe=True)


def plain_gossip(rounds: int) -> Injection:
    """Return the injection of gossip without cancelling noise: the value at once, and independent noise at most.

    >>> plain_gossip(2).value.tolist(), plain_gossip(2).noise.any()
    ([1.0, 0.0, 0.0], np.False_)
    """
    total = integer("rounds", rounds, min=1)
    return Injection(np.eye(total + 1)[0], np.zeros((total + 1, total)), unsafe=True)


def _seen(view: View, outcome: Outcome) -> Array:
    """Return the honest messages of a run that the view sees, (rows,) or (rows, d)."""
    if outcome.execution is not view.execution:
        raise InvalidInput("outcome must be a run of the view's execution, got one of another execution")
    if outcome.history is None:
        raise InvalidInput("outcome must be a run simulated with record=True, got one without a history")
    t, party = view.rows.T
    seen = np.array(outcome.history[t, party])
    seen[view.settled] = outcome.messages[party[view.settled]]
    return seen


def _check_ratio(noise_levels: NoiseLevels) -> None:
    if noise_levels.cancelling > _MAX_NOISE_RATIO * noise_levels.independent > 0.0:
        must_be = f"at most {_MAX_NOISE_RATIO:g}, where double precision suffices"
        refuse("sigma_cancelling / sigma_independent", noise_levels.ratio, must_be)


def _informed(view: View, noise_levels: NoiseLevels) -> tuple[Array, Array]:
    """Return the unbiased estimators as rows, (honest, rows), and their standard errors 1/mu_i."""
    b = view.value
    whiten, free = _whitener(noise_root(view, noise_levels))
    whitened = whiten @ b  # Sigma^-1/2 h_i
    weights = whiten.T @ whitened  # Sigma^-1 h_i
    outside = free @ (free.T @ b)
    # With independent noise every h_i is a column of the root of Sigma, hence in its range.
    bare: NDArray[np.bool_] = np.linalg.norm(outside, axis=0) > _OUTSIDE * np.linalg.norm(b, axis=0)
    bare &= noise_levels.independent == 0.0
    weights[:, bare] = outside[:, bare]
    gains = np.where(bare, (outside**2).sum(axis=0), (whitened**2).sum(axis=0))  # h_i^T weights
    seen = gains > 0.0
    errors = np.full(gains.shape, np.inf)
    errors[seen] = np.where(bare[seen], 0.0, 1.0 / np.sqrt(gains[seen]))
    return (weights / np.where(seen, gains, 1.0)).T, errors


def _uninformed(view: View, noise_levels: NoiseLevels, variance: float) -> tuple[Array, Array]:
    """Return the estimators of least mean squared error as rows, and their root mean squared errors.

    Cov(x, y) Cov(y)^+ with Cov(y) = variance B B^T + Sigma. Errors are sums of squares, so that small ones are not
    differences of large numbers.
    """
    b, noise = view.value, noise_root(view, noise_levels)
    whiten, _ = _whitener(np.hstack([math.sqrt(variance) * b, noise]))
    estimator = variance * (whiten @ b).T @ whiten
    parts = (math.sqrt(variance) * (estimator @ b - np.eye(view.honest.size)), estimator @ noise)
    return estimator, np.sqrt(sum((part**2).sum(axis=1) for part in parts))


def _guesses(
    view: View,
    party: int,
    high: float,
    estimator: Array,
    noise_levels: NoiseLevels,
    rng: np.random.Generator,
    trials: int,
    report: Progress,
) -> Array:
    """Return estimates of the party's value from runs in which it is 0 (row 0) and `high` (row 1); others hold 0."""
    guesses = np.empty((2, trials))
    n, rounds = view.execution.parties, view.execution.rounds
    batch = max(1, _BATCH_TERMS // (2 * n * (rounds + 1)))
    for done in range(0, trials, batch):
        size = min(batch, trials - done)
        x = np.zeros((n, 2, size))
        x[party, 1] = high
        seen = watch(view, x.reshape(n, -1), noise_levels, rng)
        guesses[:, done : done + size] = (estimator @ seen).reshape(2, size)
        report(done + size, trials)
    return guesses


def _whitener(m: Array) -> tuple[Array, Array]:
    """Return P with P^T P = (M M^T)^+, and an orthonormal basis of what is orthogonal to the range of M.

    A well-conditioned M M^T = R^T R gives P = R^-T. Else forming M M^T would lose half of the digits, and the singular
    values of M itself tell what its range is.
    """
    rows = m.shape[0]
    if rows > 0:
        sigma = m @ m.T
        factor, failed = dpotrf(sigma)
        if not failed and dpocon(factor, np.abs(sigma).sum(axis=0).max())[0] > _SAFE:
            return np.asarray(solve_triangular(factor, np.eye(rows), trans="T")), np.empty((rows, 0))
    basis, scales, _ = np.linalg.svd(np.asarray(np.linalg.qr(m.T, mode="r")).T)
    rank = int(np.count_nonzero(scales > _RANK * scales.max(initial=0.0)))
    return (basis[:, :rank] / scales[:rank]).T, basis[:, rank:]


def _threshold(mu: float, delta: float, trials: int, alpha: float) -> float:
    """Return from which z on to believe in N(mu, 1) instead of N(0, 1): where most is expected of the lower bound."""
    z = mu / 2 + np.linspace(0.0, 6.0, 241)
    expected = _epsilon_lower(trials * ndtr(mu - z), trials * ndtr(-z), trials, delta, alpha)
    return float(z[np.argmax(expected)])


def _epsilon_lower(caught: ArrayLike, mistaken: ArrayLike, trials: int, delta: float, alpha: float) -> Array:
    """Return ln((lower limit of caught - delta) / upper limit of mistaken); each limit fails with probability alpha."""
    hits, slips = np.asarray(caught, dtype=np.float64), np.asarray(mistaken, dtype=np.float64)
    least = np.where(hits > 0, betaincinv(np.maximum(hits, 1e-9), trials - hits + 1, alpha), 0.0)
    most = np.where(slips < trials, betainccinv(slips + 1, np.maximum(trials - slips, 1e-9), alpha), 1.0)
    return np.asarray(np.log(np.maximum(least - delta, np.finfo(float).tiny) / most))
