"""Muffliato: noise once, then gossip on a fixed graph (Cyffers, Even, Bellet, Massoulie 2022).

Each party adds N(0, sigma^2) to its value; T rounds of gossip then average the noisy values. A party v sees what its
neighbours w send in rounds t = 0..T-1, the numbers (P_t x)_w. Counted message by message, party u loses towards v, in
Renyi DP of order alpha (Theorem 1 there, with P_t for W^t where gossip is accelerated),

    f(u, v) = alpha s^2 / (2 sigma^2) * F(u, v),
    F(u, v) = sum over t < T and neighbours w of v of (P_t)_uw^2 / ||(P_t)_w||^2.

What is reported is a *mean* of these over parties, and it is all that the promise is about:

- As sum_u (P_t)_uw^2 = ||(P_t)_w||^2, the sum of F(u, v) over u is T d_v, whatever the polynomials: the mean over u is
  T d_v / n in closed form. Where all parties are alike (hypercube, complete graph) so is the mean over v.
- On other graphs the mean over v differs from party to party, and can be above T d_u / n.
- A single pair may lose far more. A neighbour hears the noisy value itself, F(u, v) >= 1: Local DP.
- The sum over messages treats their noise as independent, which it is not. What a v who knows W sees is the projection
  of the noisy values on a space of at most T d_v dimensions (`GossipLoss.informed`): the mean over u still stays
  within T d_v / n, but a single pair may lose more than F says, by orders of magnitude.

All that is seen is Gaussian, so a loss is a Gaussian shift: mu^2 = s^2/sigma^2 times the informed loss, exactly, and
the rule that turns mu into (epsilon, delta) for every other mechanism here applies to this one. Renyi DP, in which the
paper composes and converts, asks for about twice the noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import integer, refuse
from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism, match_shape
from inca.mechanisms.gossip_matrix import GossipGraph, gossip, gossip_graph
from inca.planning.requirements import Requirements
from inca.privacy.gaussian import epsilon_for
from inca.protocol.expected_error import ErrorBudget

Accounting = Literal["closed", "powers"]
Stopping = Literal["corrected", "printed"]
Conversion = Literal["gaussian", "renyi"]

_DRAWS, _PROBES, _SEED = 40, 4, 0  # sets of leavers and random vectors behind an expected error with dropouts


@dataclass(frozen=True, eq=False)
class GossipLoss:
    """What parties lose to each other in T rounds, in units of s^2/sigma^2: squared Gaussian shifts F(u, v).

    Example:
        >>> from inca.mechanisms.gossip_matrix import hypercube_gossip
        >>> loss = GossipLoss(hypercube_gossip(16), rounds=3)
        >>> round(loss.closed, 9), bool(np.allclose(loss.pairwise().mean(axis=1), loss.closed))
        (0.75, True)
    """

    graph: GossipGraph
    rounds: int
    accelerated: bool = True

    @property
    def closed(self) -> float:
        """The mean loss T d / n with d the largest degree (Cyffers et al. 2022, equation 7)."""
        return self.rounds * float(self.graph.degrees.max()) / self.graph.parties

    def pairwise(self) -> Array:
        """Return F(u, v), message by message, as an (n, n) array; a party's loss to itself is counted as published."""
        total = np.zeros((self.graph.parties, self.graph.parties))
        for matrix in islice(self.graph.polynomials(self.accelerated), self.rounds):
            total += np.asarray(_shares(matrix) @ self.graph.adjacency)
        return total

    def informed(self, observer: int) -> Array:
        """Return what each party loses towards an observer who knows W, and its own noise: (n,), itself 0.

        Noise is the same in all coordinates of the noisy values, so a change of u is as visible as the part of the
        unit vector e_u that lies in the span of the rows seen: at most 1, Local DP.

        Example:
            >>> from inca.mechanisms.gossip_matrix import complete_gossip
            >>> GossipLoss(complete_gossip(4), rounds=1).informed(0).round(9).tolist()
            [0.0, 1.0, 1.0, 1.0]
        """
        v = integer("observer", observer, 0, self.graph.parties - 1)
        near = self.graph.adjacency[[v]].indices
        seen = np.concatenate([p[near] for p in islice(self.graph.polynomials(self.accelerated), self.rounds)])
        seen[:, v] = 0.0
        _, sizes, directions = np.linalg.svd(seen, full_matrices=False)
        return np.asarray(np.sum(directions[sizes > 1e-9 * sizes[0]] ** 2, axis=0))

    @property
    def bound(self) -> float:
        """A bound on the mean over parties of the informed loss, whoever observes: the lesser of T d / n and Local DP.

        An informed loss is the part of e_u in a space of at most T d dimensions. These parts add up to the dimension,
        and each one is at most 1.

        Example:
            >>> from inca.mechanisms.gossip_matrix import complete_gossip, hypercube_gossip
            >>> GossipLoss(hypercube_gossip(16), rounds=3).bound, GossipLoss(complete_gossip(16), rounds=3).bound
            (0.75, 1.0)
        """
        return min(1.0, self.closed)


class Muffliato(Mechanism):
    """Noise once, then gossip; private on average, towards single parties who see only what their neighbours send.

    Where the mean loss T d / n is above 1, on dense or slow graphs, the published conversion asks for more noise than
    Local DP would, and is left as published. By the default one, the noise is never more than Local DP's.

    Colluders, eavesdroppers and the message budget of the requirements are ignored; `local_epsilon` says what is left
    of the promise against them. The published analysis has no dropouts either: here, leavers go before the first
    message, the others gossip on what remains of the graph with Metropolis weights, and noise and T stay as they were.

    Args:
        requirements: The guarantee.
        graph: "hypercube", "complete", "regular", "geometric" (the latter two drawn with `rng`), or a `GossipGraph`.
        accelerated: Whether gossip is accelerated.
        accounting: "closed" takes T d / n with the largest degree d for the mean loss; "powers" computes the mean over
            observers from the polynomials P_t, for the party who loses most. Both agree where all parties are alike.
        stopping: "corrected" takes T = ln(n max(1, v/sigma^2)) / sqrt(l) rounded up, with v the values' variance and l
            the spectral gap (Cyffers et al. 2022, Theorem 2; without acceleration l instead of its root). "printed"
            puts the second largest eigenvalue of W in place of l, as the appendix does: too few rounds (erratum E10).
        conversion: "gaussian" takes the root of the mean squared shift for a Gaussian shift under the required rule, as
            for all other mechanisms. Claimed is that, towards every observer, even one who knows the topology, the mean
            over parties of the squared shift is at most the required mu^2 (by the closed accounting; see
            `GossipLoss.bound`). "renyi", as published, asks that the mean loss, taken for one in Renyi DP, give
            epsilon = loss + ln(1/delta) / (alpha - 1) at the best alpha; it reproduces the paper's figure. Both
            epsilons lie below their tangent at the required one (the analytic rule's for epsilon from 0.01 and delta to
            1e-3), so the mean of the epsilons is at most the required one, too (Jensen). Neither bounds the loss
            towards any one observer.
        rounds: The number of rounds T, whatever `stopping` says.
        rng: Draws a random graph.

    Raises:
        InvalidInput: If the graph does not suit the number of parties, or no number of rounds suffices.

    Example:
        >>> requirements = Requirements(parties=1024, epsilon=0.1, delta=1e-5)
        >>> printed = Muffliato(requirements, stopping="printed", conversion="renyi")  # as in the paper
        >>> printed.rounds, round(printed.var_noise, 1), round(printed.ideal_mse, 4)
        (8, 180.7, 0.1764)
        >>> own = Muffliato(requirements)
        >>> own.rounds, round(own.ideal_mse, 4), round(own.local_epsilon, 2)
        (17, 0.1533, 0.27)
    """

    name = "Muffliato"
    promised = False  # a mean over observers: towards some of them a party may lose far more
    promise = (
        "pairwise network DP: a mean over single observers, who see what their neighbours send and do not know the "
        "topology; against colluders with the transcript it is Local DP"
    )
    weaker = True

    def __init__(
        self,
        requirements: Requirements,
        graph: str | GossipGraph = "hypercube",
        *,
        accelerated: bool = True,
        accounting: Accounting = "closed",
        stopping: Stopping = "corrected",
        conversion: Conversion = "gaussian",
        rounds: int | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        super().__init__(requirements)
        self.graph = gossip_graph(graph, requirements.parties, rng)
        self.accelerated = accelerated
        if accounting not in ("closed", "powers"):
            refuse("accounting", accounting, "closed or powers")
        if conversion not in ("gaussian", "renyi"):
            refuse("conversion", conversion, "gaussian or renyi")
        self.mu = requirements.mu if conversion == "gaussian" else _renyi_mu(requirements.epsilon, requirements.delta)
        fixed = None if rounds is None else integer("rounds", rounds, min=1)
        rate = self._rate(stopping)
        # The least T that suffices for the noise that T rounds need.
        # Nobody loses more than in Local DP, where the noisy values themselves are seen: published is no such limit.
        most = 1.0 if conversion == "gaussian" else math.inf
        for done, loss in enumerate(self._mean_losses(accounting), start=1):
            self.rounds, self.var_noise = done, min(most, loss) * (requirements.sensitivity / self.mu) ** 2
            if done >= (self._needed(rate) if fixed is None else fixed):
                break

    def _rate(self, stopping: str) -> float:
        if stopping not in ("corrected", "printed"):
            refuse("stopping", stopping, "corrected or printed")
        rate = self.graph.gap if stopping == "corrected" else self.graph.second_eigenvalue
        if not rate > 0:
            refuse("stopping", stopping, f"corrected, as eigenvalue 2 of the {self.graph.name} graph is {rate:g}")
        return math.sqrt(rate) if self.accelerated else rate

    def _needed(self, rate: float) -> int:
        """The rounds after which the gossip's error is no more than the noise's, if this is the noise."""
        if self.graph.averages_at_once:
            return 1  # the published bound would spend ln n rounds on what the first one has done
        spread = max(1.0, self.requirements.value_variance / self.var_noise)
        return math.ceil(math.log(self.requirements.parties * spread) / rate)

    def _mean_losses(self, accounting: Accounting) -> Iterator[float]:
        """Yield the mean loss of T = 1, 2, ... rounds in units of s^2/sigma^2."""
        if accounting == "closed":
            yield from (GossipLoss(self.graph, done).closed for done in count(1))
            return
        total = np.zeros(self.requirements.parties)
        for matrix in self.graph.polynomials(self.accelerated):
            total += _shares(matrix) @ self.graph.degrees  # party w is heard by d_w observers
            yield float(total.max()) / self.requirements.parties

    @property
    def messages(self) -> float:
        """Messages that a party sends, on average: one per neighbour and round."""
        return self.rounds * float(self.graph.degrees.mean())

    @property
    def ideal_mse(self) -> float:
        """The error per coordinate as the paper counts it, with gossip that has found the mean: sigma^2/n."""
        return self.var_noise / self.requirements.parties

    @property
    def loss(self) -> GossipLoss:
        """What parties lose to each other, pair by pair."""
        return GossipLoss(self.graph, self.rounds, self.accelerated)

    @property
    def local_epsilon(self) -> float:
        """The epsilon that its noise gives, at the required delta and rule, against our adversary or one neighbour."""
        shift = self.requirements.sensitivity / math.sqrt(self.var_noise)
        return float(epsilon_for(shift, self.requirements.delta, self.requirements.rule))

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the error of a random party's estimate: what is left of the noise, and of the differences in values.

        With q the mean over parties i of sum_j (P_T)_ij^2, noise adds sigma^2 q and values v (q - 1/n). Without
        dropouts q is exact. With them its part above 1/m, m the number that stay, is the mean over fixed random draws.
        """
        leavers, n = self._leavers(dropout), self.requirements.parties
        if leavers == n:
            return ExpectedError(ErrorBudget(math.inf, math.inf, math.inf))
        if leavers == 0:
            return self._prediction(self.graph.self_weight(self.rounds, self.accelerated), 0.0)
        rng, m = np.random.default_rng(_SEED), n - leavers
        rest = np.array([self._unmixed(leavers, rng) for _ in range(_DRAWS)])
        return self._prediction(1.0 / m + float(rest.mean()), float(rest.std(ddof=1)) / math.sqrt(_DRAWS))

    def _prediction(self, weight: float, standard_error: float) -> ExpectedError:
        variance = self.requirements.value_variance
        data = max(0.0, variance * (weight - 1.0 / self.requirements.parties))
        return ExpectedError(
            ErrorBudget(self.var_noise * weight, 0.0, data), (self.var_noise + variance) * standard_error
        )

    def _unmixed(self, leavers: int, rng: np.random.Generator) -> float:
        """Estimate trace((P_T - 11^T/m)^2) / m for random leavers, as ||(P_T - 11^T/m) z||^2 / m for random signs z."""
        gone = rng.choice(self.requirements.parties, leavers, replace=False)
        signs = rng.choice([-1.0, 1.0], (self.requirements.parties - leavers, _PROBES))
        mixed = gossip(self.graph.without(gone), signs, self.rounds, self.graph.momentum(self.accelerated))
        return float(np.mean((mixed - signs.mean(axis=0)) ** 2))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Return the estimate of one of the parties that stay, drawn at random; None if nobody stays."""
        table, leavers = self._validate(values, rng, dropout)
        if leavers == len(table):
            return None
        matrix = self.graph.matrix
        if leavers:
            gone = rng.choice(len(table), leavers, replace=False)
            table, matrix = np.delete(table, gone, axis=0), self.graph.without(gone)
        noisy = table + math.sqrt(self.var_noise) * rng.standard_normal(table.shape)
        mixed = gossip(matrix, noisy, self.rounds, self.graph.momentum(self.accelerated))
        return match_shape(mixed[rng.integers(len(table))], values)


def _shares(matrix: Array) -> Array:
    """Return P_uw^2 / ||P_w||^2, whose columns sum to 1."""
    squares = matrix**2  # no column is 0, as P leaves the mean alone
    return np.asarray(squares / squares.sum(axis=0))


def _renyi_mu(epsilon: float, delta: float) -> float:
    """Return the largest shift mu whose Renyi loss alpha mu^2/2 gives (epsilon, delta) at the best alpha.

    With L = ln(1/delta) and loss e, alpha = 1 + L/(epsilon - e), and 1/mu^2 = (1 + L/(epsilon - e)) / (2 e). Its
    derivative is 0 at e = sqrt(epsilon + L) (sqrt(epsilon + L) - sqrt(L)), which leaves
    mu = sqrt(2) (sqrt(epsilon + L) - sqrt(L)).
    """
    bits = -math.log(delta)
    # the difference of roots, without cancellation
    return math.sqrt(2.0) * epsilon / (math.sqrt(epsilon + bits) + math.sqrt(bits))
