"""GOPA: pairwise noise on a random graph, with a rollback for those missed in time (Sabater, Bellet, Ramon 2022)."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, logsumexp

from inca._base.distributions import binom_cdf, binom_pmf, hypergeom_pmf
from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import finite_float, integer, refuse
from inca.mechanisms.pairwise import Pairwise, complete_ratio
from inca.planning.requirements import Requirements
from inca.privacy.tail_quantile import least_ratios, tail_level
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.schedules import RandomReceivers

_MAX_SAMPLED_PARTIES = 400  # of a sampled graph
_BLUR = 0.005
_STEP = 4  # factors are first tried in steps of that many
_MAX_SIZES = 12  # numbers of publishing parties that are told apart


class Gopa(Pairwise):
    """Each party picks k others; each pair so joined shares one Gaussian term; leavers missed in time are rolled back.

    Late leavers are gone in the round of rollback and publication: their terms stay in the result. The others are
    rolled back. Who leaves is drawn as for inca: at random among all parties, whether they collude or not.

    The noise is chosen as for inca, on random graphs: all but a fraction `requirements.failure` of graphs, adversaries
    and leavers keep the promise, at full attendance and with the early leavers gone. What a party needs is very nearly
    inversely proportional to its number of honest neighbours. The distribution of that
    number is known, so only the product of the two is sampled, and its tail extrapolated. Above 400 parties the sampled
    graphs have 400 (`sampled_parties`), with the same k and the same share of parties honest and present: the product
    depends on a party's surroundings, and those hardly depend on n.

    Args:
        requirements: The guarantee, the colluders, the dropout rate and the message budget; nobody may eavesdrop.
        exchanges: How many others each party picks: k; by default the message budget, or all others if they are fewer.
        late: The share of the leavers that leave late, rounded to whole parties (halves to the even number).
        factor: sigma_independent^2 over s^2 / (mu^2 n_H), above 1; by default the one with the least error at the
            required dropout rate.
        late_leavers: How many leavers leave late, instead of a share; all of them, if there are fewer.
        rounds: When leavers leave, instead of a share: each in a uniformly random one of so many rounds, as inca's do
            (`Presence.leaving`); those of the last round are late.
        noise_levels: Noise to be used as it is: nothing is chosen then, and nothing promised.
        views: How many random graphs are sampled, at least 100.

    Raises:
        InvalidInput: If messages are eavesdropped, or no cancelling noise makes up for the factor.

    Example:
        >>> requirements = Requirements(40, 0.5, 1e-5, colluding=0.1, dropout=0.1, messages=12)
        >>> gopa = Gopa(requirements, views=100)
        >>> gopa.messages, gopa.sampled_parties, 1.0 < gopa.factor < requirements.honest
        (12.0, 40, True)
        >>> gopa.expected_error(0.1).mse < gopa.expected_error(0.2).mse
        True
    """

    name = "GOPA"
    seed = 0
    """What random graphs are drawn from."""

    def __init__(
        self,
        requirements: Requirements,
        exchanges: int | None = None,
        late: float = 0.5,
        factor: float | None = None,
        *,
        late_leavers: int | None = None,
        rounds: int | None = None,
        noise_levels: NoiseLevels | None = None,
        views: int = 200,
    ) -> None:
        super().__init__(requirements)
        others = requirements.parties - 1
        chosen = min(requirements.usual_messages, others) if exchanges is None else exchanges
        self.exchanges = integer("exchanges", chosen, 1, others)
        self.late = finite_float("late", late, 0.0, 1.0)
        self.late_leavers = None if late_leavers is None else integer("late_leavers", late_leavers)
        self.rounds = None if rounds is None else integer("rounds", rounds, min=1)
        if late_leavers is not None and rounds is not None:
            refuse("rounds", rounds, "None if late_leavers is a number")
        self.views = integer("views", views, min=100)
        self.sampled_parties = min(requirements.parties, _MAX_SAMPLED_PARTIES)
        if noise_levels is not None:
            self._use(noise_levels)
            return
        honest = requirements.honest
        self._sizes, self._weights = self._publishing_numbers()
        factors = self._factors(factor)
        if self.exchanges == others or factors[0] >= honest:  # complete graphs or Local DP: nothing to sample
            fewest = self._fewest_publishing()
            self._choose_noise(factors, lambda at: complete_ratio(float(factors[at]), honest, fewest), step=1)
        else:
            self._choose_noise(factors, self._sampled_ratio(factors), step=_STEP)

    def _late(self, leavers: int) -> float:
        if self.rounds is not None:
            return leavers / self.rounds
        return round(self.late * leavers) if self.late_leavers is None else min(self.late_leavers, leavers)

    def _draw_late(self, leavers: int, rng: np.random.Generator) -> int:
        if self.rounds is None:
            return super()._draw_late(leavers, rng)
        return int(np.count_nonzero(rng.integers(1, self.rounds + 1, size=leavers) == self.rounds))

    def _publishing_numbers(self) -> tuple[NDArray[np.int64], Array]:
        """Return how many honest parties may publish when nobody leaves late, and with which probabilities.

        Early leavers are drawn among all parties, so a hypergeometric number of them is honest. At most `_MAX_SIZES`
        numbers are told apart, and neighbouring ones counted as the least of them, which asks for more noise.
        """
        requirements = self.requirements
        leavers, honest = requirements.leavers, requirements.honest
        if self.rounds is None:
            early, probabilities = np.array([leavers - self._draw_late(leavers, np.random.default_rng(0))]), np.ones(1)
        else:
            early = np.arange(leavers + 1)
            probabilities = binom_pmf(early, leavers, 1.0 - 1.0 / self.rounds)
        gone = np.arange(leavers + 1)
        weights = probabilities @ hypergeom_pmf(gone, requirements.parties, honest, early[:, np.newaxis])
        # Whoever is to be protected is honest and there, so one such party is always left.
        sizes = np.maximum(1, honest - gone)[::-1]
        likely = weights[::-1] > 1e-6 * requirements.failure / (leavers + 1)
        groups = np.array_split(np.flatnonzero(likely), min(_MAX_SIZES, int(likely.sum())))
        least = np.array([sizes[group[0]] for group in groups], dtype=np.int64)
        return least, np.array([weights[::-1][group].sum() for group in groups])

    def _fewest_publishing(self) -> int:
        """Return the number of honest parties that publish but for the probability that may fail."""
        enough = np.cumsum(self._weights) > self.requirements.failure
        return int(self._sizes[int(np.argmax(enough))])

    def _sampled_ratio(self, factors: Array) -> Callable[[int], float]:
        """Return a function from the place of a factor to the noise ratio that graphs sampled for all factors ask for.

        Neither epsilon nor the sensitivity has a part in it, so ratios are kept for the next who asks.
        """
        requirements = self.requirements
        known = _known_ratios(
            (requirements.parties, requirements.honest, requirements.failure),
            (self.sampled_parties, self.exchanges, self.views, self.seed),
            *(array.tobytes() for array in (self._sizes, self._weights, factors)),
        )
        needs: list[Array] = []

        def ratio(at: int) -> float:
            if at not in known:
                if not needs:
                    needs.extend(self._sample_needs(factors))
                known[at] = self._level(float(factors[at]), [view[at] for view in needs])
            return known[at]

        return ratio

    def _sample_needs(self, factors: Array) -> list[Array]:
        """Return, for each sampled view, factor and party, the noise ratio needed times the number of neighbours."""
        rng = np.random.default_rng(self.seed)
        honest, n = self.requirements.honest, self.sampled_parties
        needs = []
        for publishing in rng.choice(self._sizes, self.views, p=self._weights / self._weights.sum()).tolist():
            sampled = max(1, publishing * n // self.requirements.parties)
            # The loss has a part 1/m that no cancelling noise lowers. In a smaller sample it is larger, through no
            # fault of the graph's: what must fit into the target is the rest.
            targets = factors / honest - 1.0 / publishing + 1.0 / sampled if sampled != publishing else factors / honest
            graph = random_graph(n, min(self.exchanges, n - 1), rng, rows=sampled)
            degrees = graph.sum(axis=1)
            stiffness, vectors = np.linalg.eigh(np.diag(degrees) - graph)
            stiffness[stiffness < 1e-9 * n] = 0.0  # a graph's Laplacian has no such small eigenvalues but zeros
            # Upwards only, and by more than the ratios' own error: without it small steps between the samples, which
            # come from the whole numbers in a graph, can pass for a heavy tail.
            blur = 1.0 + _BLUR * rng.random(sampled)
            needs.append(least_ratios(vectors**2, stiffness, targets) * np.maximum(degrees, 1.0) * blur)
        return needs

    def _level(self, factor: float, needs: list[Array]) -> float:
        """Return the noise ratio that suffices for all graphs and adversaries but the fraction that may fail."""
        n, k, sizes = self.requirements.parties, self.exchanges, self._sizes
        if factor >= self.requirements.honest:
            return 0.0
        # A group cut off from the others has to hide among itself: too few views are sampled to see one. Nor can all
        # together hide anyone if they are no more than such a group.
        largest = math.floor(self.requirements.honest / factor)
        cut_off = [1.0 if m <= largest else cut_off_probability(n, k, m, largest) for m in sizes.tolist()]
        left = self.requirements.failure - float(self._weights @ cut_off)
        # The union is over the parties that publish; larger numbers of them are as much more likely to hold a party.
        mean = float(self._weights @ sizes)
        share = left / 2.0 / mean
        if left <= 0.0 or (fewest := fewest_neighbours(n, k, sizes, share, self._weights * sizes / mean)) == 0:
            return math.inf
        # The same generator for every factor, so that the error is a smooth function of the factor.
        return tail_level(needs, share, np.random.default_rng([self.seed, 1])) / fewest

    def _add_terms(self, messages: Array, kept: Flags, rng: np.random.Generator) -> None:
        first, second = joined_pairs(len(messages), self.exchanges, rng)
        there = kept[first] & kept[second]  # a term shared with a party missed in time is removed by both
        first, second = first[there], second[there]
        terms = self.noise_levels.cancelling * rng.standard_normal((first.size, messages.shape[1]))
        for at, term in enumerate(terms.T):
            messages[:, at] += np.bincount(first, term, len(messages)) - np.bincount(second, term, len(messages))


@lru_cache(maxsize=128)
def _known_ratios(required: tuple[float, ...], sampled: tuple[int, ...], *arrays: bytes) -> dict[int, float]:
    """Return the noise ratios that are known for a setting, by the place of their factor; more are added to them."""
    return {}


def joined_pairs(parties: int, exchanges: int, rng: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs i < j of which one picked the other, each once, if each party picks k others at random.

    Example:
        >>> first, second = joined_pairs(5, 4, np.random.default_rng(1))
        >>> first.size, bool((first < second).all())
        (10, True)
    """
    drawn = RandomReceivers(parties, 1, exchanges, seed=int(rng.integers(2**63))).round(1).receivers
    picked = np.asarray(drawn, dtype=np.int64).reshape(parties, exchanges)
    own = np.arange(parties)[:, np.newaxis]
    codes = np.unique(np.minimum(picked, own) * parties + np.maximum(picked, own))
    return codes // parties, codes % parties


def random_graph(parties: int, exchanges: int, rng: np.random.Generator, rows: int) -> Array:
    """Return the adjacency matrix among the first `rows` of n parties, if each picks k others at random.

    Example:
        >>> random_graph(4, 3, np.random.default_rng(1), rows=2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    order = rng.random((rows, parties))
    order[np.arange(rows), np.arange(rows)] = 2.0  # nobody picks itself
    picks = np.argpartition(order, exchanges - 1, axis=1)[:, :exchanges]
    chosen = np.zeros((rows, parties), dtype=np.bool_)
    np.put_along_axis(chosen, picks, True, axis=1)
    return np.asarray(chosen[:, :rows] | chosen[:, :rows].T, dtype=np.float64)


def cut_off_probability(parties: int, exchanges: int, publishing: int, largest: int) -> float:
    """Return a bound on how likely a group of at most `largest` of the m honest who publish is cut off from the others.

    A given group of s is cut off if each of its members picks only from the group and the n - m others, and no one else
    of the m picks from the group; the bound sums over groups (as fact F3 does for inca).

    Example:
        >>> round(cut_off_probability(3, 1, 2, 1), 6)  # neither of two picks the other: 1/4, counted for both
        0.5
    """
    size = np.arange(1, min(publishing - 1, largest) + 1, dtype=np.float64)
    if size.size == 0:
        return 0.0
    inside = _log_share(parties - publishing + size - 1, parties - 1, exchanges)
    elsewhere = _log_share(parties - 1 - size, parties - 1, exchanges)
    groups = gammaln(publishing + 1) - gammaln(size + 1) - gammaln(publishing - size + 1)
    return min(1.0, math.exp(min(0.0, float(logsumexp(groups + size * inside + (publishing - size) * elsewhere)))))


def fewest_neighbours(
    parties: int,
    exchanges: int,
    publishing: int | NDArray[np.int64],
    probability: float,
    weights: Array | None = None,
) -> int:
    """Return the largest d such that a party has fewer than d neighbours with at most the given probability.

    Counted are those among the m honest parties that publish, of which it is one. It picks a hypergeometric number of
    the m; each one of those not picked picks it with probability k/(n-1).

    Example:
        >>> [fewest_neighbours(200, 20, 180, probability) for probability in (0.5, 1e-3, 1e-9)]
        [34, 23, 14]
        >>> fewest_neighbours(200, 20, np.array([100, 180]), 1e-3, np.array([0.5, 0.5]))
        10
    """
    sizes = np.atleast_1d(np.asarray(publishing, dtype=np.int64))[:, np.newaxis]
    shares = np.ones(1) if weights is None else weights
    picked = np.arange(exchanges + 1)
    picks = hypergeom_pmf(picked, parties - 1, sizes - 1, exchanges)
    rest, picks_it = np.maximum(sizes - 1 - picked, 0), exchanges / (parties - 1)
    low, high = 0, int(sizes.max()) - 1  # fewer than low: at most that probability; fewer than high + 1: more
    while low < high:
        middle = (low + high + 1) // 2
        fewer = np.sum(picks * binom_cdf(middle - 1 - picked, rest, picks_it), axis=1)
        if float(shares @ fewer) <= probability:
            low = middle
        else:
            high = middle - 1
    return low


def _log_share(allowed: Array, others: int, picks: int) -> Array:
    """Return how likely, in logs, all picks fall on `allowed` of the others: C(allowed, k) / C(others, k)."""
    enough = np.where(allowed >= picks, allowed, picks)
    share = gammaln(enough + 1) - gammaln(enough - picks + 1) - gammaln(others + 1) + gammaln(others - picks + 1)
    return np.asarray(np.where(allowed >= picks, share, -np.inf))
