"""What GOPA and CorDP-DME share: noise in pairs, one of whom adds what the other subtracts.

Party i publishes x_i + eta_i + the sum of its signed pairwise terms. Colluders know the terms that they share, so the
honest parties' noise has covariance sigma_independent^2 I + sigma_cancelling^2 L, L the Laplacian of the graph that
joins the honest, and party i's squared loss is s^2 times the i-th diagonal entry of the inverse (Sabater, Bellet,
Ramon 2022).

Two kinds of leavers. An *early* one is missed before publication, and its terms are rolled back. A *late* one never
publishes, but its terms stay in its neighbours' values: they add to L's diagonal if it is honest, and nothing if it
colludes. What this does to privacy decides for whom the noise must be chosen:

- Late leavers only help. The survivors' covariance is a part of that with the late leavers present, so the adversary
  sees less than if they had published.
- Early leavers only harm. In units of 1/sigma_independent^2 the squared loss is the resistance from node i to the
  ground in a network with a wire of conductance 1 from every node to the ground and one of conductance
  sigma_cancelling^2 / sigma_independent^2 for every pair; removing a node raises it (Rayleigh's monotonicity).

So noise that suffices when all early leavers are gone and nobody leaves late suffices for fewer leavers and for none at
all (erratum E11). Who leaves is drawn at random among all parties, as for inca: some leavers may collude.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import finite_array, finite_float, positive, refuse
from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism, match_shape
from inca.planning.requirements import Requirements
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels

_FACTORS = 40  # of the independent variance over the least there can be, that are tried


def losses(
    adjacency: ArrayLike,
    honest: ArrayLike,
    noise_levels: NoiseLevels,
    *,
    early: ArrayLike | None = None,
    late: ArrayLike | None = None,
    sensitivity: float = 1.0,
) -> Array:
    """Return the exact shift mu of every honest party that publishes, in the order of the parties.

    With L the Laplacian of the graph that joins the honest, party i's mu is s times the root of the i-th diagonal entry
    of (sigma_independent^2 I + sigma_cancelling^2 L)^-1 (Sabater, Bellet, Ramon 2022).

    Example:
        >>> triangle, noise_levels = 1 - np.eye(3), NoiseLevels(independent=1.0, cancelling=10.0)
        >>> losses(triangle, [True, True, True], noise_levels).round(3).tolist()  # the least possible is 1 / sqrt(3)
        [0.579, 0.579, 0.579]
        >>> losses(triangle, [True, True, False], noise_levels, late=[True, False, False]).round(3).tolist()
        [0.1]
    """
    graph = finite_array("adjacency", adjacency, (2,), "an (n, n) matrix")
    if graph.shape[0] != graph.shape[1] or not np.array_equal(graph, graph.T) or np.diagonal(graph).any():
        refuse("adjacency", graph.shape, "a symmetric (n, n) matrix with nothing on its diagonal")
    own, shared = positive("sigma_independent", noise_levels.independent) ** 2, noise_levels.cancelling**2
    is_honest = _flags("honest", honest, len(graph))
    left_early, left_late = _flags("early", early, len(graph)), _flags("late", late, len(graph))
    publishing = is_honest & ~left_early & ~left_late
    # Terms with honest late leavers are still unknown to the adversary; those rolled back are no longer there.
    terms = graph[np.ix_(publishing, is_honest & ~left_early)].sum(axis=1)
    covariance = shared * (np.diag(terms) - graph[np.ix_(publishing, publishing)]) + own * np.eye(int(publishing.sum()))
    squares = np.diagonal(np.linalg.inv(covariance)) if len(covariance) else np.empty(0)
    return np.asarray(positive("sensitivity", sensitivity) * np.sqrt(squares))


def complete_loss(honest: int, noise_levels: NoiseLevels, *, late: int = 0, sensitivity: float = 1.0) -> float:
    """Return the shift mu of an honest survivor if all pairs share a term and `late` of the `honest` leave late.

    The covariance is a I - b 11^T with a = sigma_independent^2 + honest b, b = sigma_cancelling^2: with m = honest -
    late survivors its eigenvalues are a, and a - m b once.

    Example:
        >>> noise_levels = NoiseLevels(independent=1.0, cancelling=10.0)
        >>> round(complete_loss(3, noise_levels), 3), round(complete_loss(2, noise_levels, late=1), 3)
        (0.579, 0.1)
    """
    survivors = honest - late
    shared = noise_levels.cancelling**2
    rest = noise_levels.independent**2 + honest * shared
    return sensitivity * math.sqrt((1.0 - 1.0 / survivors) / rest + 1.0 / survivors / (rest - survivors * shared))


def complete_ratio(factor: float, honest: int, publishing: int) -> float:
    """Return the least sigma_cancelling^2 / sigma_independent^2 if all pairs of the honest who publish share a term.

    With sigma_independent^2 = factor s^2 / (mu^2 honest) and m publishing, the condition 1/m + (1 - 1/m) / (1 + m r) <=
    factor / honest is linear in 1 / (1 + m r). Infinite if no cancelling noise will do.

    Example:
        >>> complete_ratio(2.0, honest=4, publishing=4), complete_ratio(4.0, 4, 4), complete_ratio(2.0, 4, 2)
        (0.5, 0.0, inf)
    """
    target = factor / honest
    if target >= 1.0:
        return 0.0
    spare = target - 1.0 / publishing
    return ((1.0 - 1.0 / publishing) / spare - 1.0) / publishing if spare > 0.0 else math.inf


class Pairwise(Mechanism):
    """A mechanism with noise in pairs: error, calibration and the last round; subclasses say who is joined to whom."""

    promise = "colluders who see the topology, their own pairwise terms and all that is published"

    factor: float
    """sigma_independent^2 over its least value s^2 / (mu^2 n_H)."""
    noise_levels: NoiseLevels
    exchanges: int
    """How many others a party picks to share a term with: k."""

    def __init__(self, requirements: Requirements) -> None:
        super().__init__(requirements)
        if requirements.eavesdropped > 0.0:
            refuse("eavesdropped", requirements.eavesdropped, "0, as pairwise noise needs private channels")

    @property
    def messages(self) -> float:
        """Messages by which a party shares terms with those that it picks; what it publishes comes on top."""
        return float(self.exchanges)

    @property
    def edge_probability(self) -> float:
        """How likely two given parties share a term: 1 - (1 - k/(n-1))^2, since either may pick the other."""
        return 1.0 - (1.0 - self.exchanges / (self.requirements.parties - 1)) ** 2

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the exact expected error over graphs, leavers and noise."""
        leavers = self._leavers(dropout)
        levels = self.noise_levels
        return ExpectedError(
            self._budget(leavers, var_independent=levels.independent**2, var_cancelling=levels.cancelling**2)
        )

    @abstractmethod
    def _late(self, leavers: int) -> float:
        """Return how many of the leavers leave late, on average."""

    def _draw_late(self, leavers: int, rng: np.random.Generator) -> int:
        """Return how many of the leavers leave late in a run; a subclass whose number is random draws it."""
        return int(self._late(leavers))

    def _budget(self, leavers: int, *, var_independent: float, var_cancelling: float) -> ErrorBudget:
        """Return the error: m survivors and l late leavers leave m l P(edge) terms in a sum that is divided by m."""
        survivors, late = self.requirements.parties - leavers, self._late(leavers)
        if survivors == 0:
            return ErrorBudget(math.inf, math.inf, math.inf)
        uncancelled = var_cancelling * late * self.edge_probability / survivors if late else 0.0
        return ErrorBudget(var_independent / survivors, uncancelled, self._missing_values(leavers))

    def _choose_noise(self, factors: Array, ratio: Callable[[int], float], step: int) -> None:
        """Take the best of `factors` at the required dropout rate; `ratio` returns the i-th one's noise ratio.

        The error falls and then rises with the factor, so with step > 1 only every step-th is tried, then those around
        the best.
        """
        unit = self.requirements.var_local_dp / self.requirements.honest
        tried: dict[int, tuple[float, float]] = {}

        def best_of(places: range) -> int:
            for place in places:
                if place not in tried:
                    own, r = float(factors[place]) * unit, ratio(place)
                    tried[place] = (self._noise_error(own, r), r)
            return min(tried, key=lambda place: tried[place][0])

        # Counted from the end, so that the last factor is tried: with it each party's own noise protects it alone.
        best = best_of(range((len(factors) - 1) % step, len(factors), step))
        if step > 1:
            best = best_of(range(max(0, best - step + 1), min(len(factors), best + step)))
        error, noise_ratio = tried[best]
        if error == math.inf:
            refuse("factor", float(factors[best]), "larger, as no cancelling noise makes up for so little")
        self.factor = float(factors[best])
        independent = math.sqrt(self.factor * unit)
        self.noise_levels = NoiseLevels(independent=independent, cancelling=math.sqrt(noise_ratio) * independent)

    def _noise_error(self, var_independent: float, ratio: float) -> float:
        """Return the error due to noise at the required dropout rate, for a ratio of both variances."""
        if ratio == math.inf:
            return math.inf
        var_cancelling = ratio * var_independent
        budget = self._budget(self.requirements.leavers, var_independent=var_independent, var_cancelling=var_cancelling)
        return budget.noise

    def _use(self, noise_levels: NoiseLevels) -> None:
        """Take noise as it is, and promise nothing."""
        self.noise_levels, self.promised = noise_levels, False
        var_independent = positive("sigma_independent", noise_levels.independent) ** 2
        self.factor = var_independent * self.requirements.honest / self.requirements.var_local_dp

    def _factors(self, factor: float | None) -> Array:
        """The factors to choose from: the given one, or from just above 1 to Local DP's."""
        if factor is not None:
            if not finite_float("factor", factor, min=0.0) > 1.0:
                refuse("factor", factor, "above 1")
            return np.array([float(factor)])
        honest = self.requirements.honest
        return 1.0 + np.geomspace(0.01, honest - 1.0, _FACTORS) if honest > 1 else np.ones(1)

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run once: exchange terms, lose parties, roll back, publish, average what is there; None if all leave."""
        table, leavers = self._validate(values, rng, dropout)
        order, late = rng.permutation(len(table)), self._draw_late(leavers, rng)
        early, present = order[late:leavers], np.sort(order[leavers:])
        if present.size == 0:
            return None
        kept = np.ones(len(table), dtype=np.bool_)
        kept[early] = False
        messages = table + self.noise_levels.independent * rng.standard_normal(table.shape)
        self._add_terms(messages, kept, rng)
        return match_shape(messages[present].mean(axis=0), values)

    @abstractmethod
    def _add_terms(self, messages: Array, kept: Flags, rng: np.random.Generator) -> None:
        """Add to each message its signed terms, but for those shared with parties that are not kept."""


def _flags(name: str, value: ArrayLike | None, parties: int) -> Flags:
    if value is None:
        return np.zeros(parties, dtype=np.bool_)
    flags = np.asarray(value)
    if flags.shape != (parties,) or flags.dtype != np.bool_:
        refuse(name, value, f"{parties} flags, one per party")
    return flags
