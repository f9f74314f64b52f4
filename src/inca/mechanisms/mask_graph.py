"""Sparse secure aggregation: with how many others a party shares masks and keys (Bell et al. 2020, "SecAgg+").

Parties sit on a ring in random order, and each one is joined to the k/2 next on either side. Joined parties share a
mask, which one adds and the other subtracts, and each party gives a share of its secrets to each one of its k
neighbours; q of them, the quorum, can restore a secret. Three things can go wrong, and as seats are random the
probability of each has a bound:

- *recovery fails*: fewer than q neighbours of some party are there in the end, so a mask stays in the sum;
- *exposure*: q neighbours of an honest party collude, and can take off its masks by themselves;
- *a split*: colluders and those who do not publish cut the ring, so that more than the sum of all is seen. That needs
  k/2 of them in a row, at two places of the ring.

A party's k neighbours are a random set of the others, so the numbers of leavers and colluders among them are
hypergeometric; the bounds add up over parties.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from inca._base.distributions import hypergeom_cdf, hypergeom_isf, hypergeom_sf
from inca._base.kernels import Flags
from inca._base.validation import refuse
from inca.planning.requirements import Requirements


@dataclass(frozen=True)
class MaskGraph:
    """A ring of n parties in random order, each one joined to its k nearest, with secrets that q of them restore.

    Attributes:
        parties: n.
        neighbours: k, even; n - 1 joins all.
        quorum: q, from 1 to k.

    Example:
        >>> graph = MaskGraph(parties=200, neighbours=40, quorum=20)
        >>> graph.recovery_failure(leavers=0), f"{graph.recovery_failure(leavers=40):.1g}"
        (0.0, '3e-05')
    """

    parties: int
    neighbours: int
    quorum: int

    def recovery_failure(self, leavers: int) -> float:
        """Return a bound on how likely some party's secrets cannot be restored if so many leave, at random.

        Args:
            leavers: How many parties are gone in the recovery round.

        Returns:
            The sum over parties of the probability that fewer than q of its neighbours are there, at most 1.
        """
        n, k, q = self.parties, self.neighbours, self.quorum
        stay = n - leavers
        # Of a stayer's n - 1 others one stayer fewer is there than of a leaver's.
        missing = stay * hypergeom_cdf(q - 1, n - 1, stay - 1, k) if stay else 0.0
        missing += leavers * hypergeom_cdf(q - 1, n - 1, stay, k) if leavers else 0.0
        return min(1.0, float(missing))

    def exposure(self, colluders: int) -> float:
        """Return a bound on how likely q of an honest party's neighbours collude, for a random set of colluders.

        Args:
            colluders: How many parties collude.

        Returns:
            The sum over honest parties of that probability, at most 1.
        """
        honest = self.parties - colluders
        return min(1.0, honest * hypergeom_sf(self.quorum - 1, self.parties - 1, colluders, self.neighbours))

    def split(self, removed: int) -> float:
        """Return a bound on how likely the others are no longer joined if a random set of so many is taken out.

        Args:
            removed: How many parties collude or do not publish.

        Returns:
            n times the probability that k/2 given seats in a row are all theirs, at most 1.
        """
        row = self.neighbours // 2
        if self.neighbours == self.parties - 1 or removed < 2 * row:  # a part is cut off at both of its ends
            return 0.0
        log_row = gammaln(removed + 1) - gammaln(removed - row + 1)
        log_row -= gammaln(self.parties + 1) - gammaln(self.parties - row + 1)
        return min(1.0, self.parties * math.exp(float(log_row)))

    def neighbours_of(self, seats: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return who is joined to whom: the (n, k) parties joined to the one in each seat, for parties by seat."""
        n, k = self.parties, self.neighbours
        steps = np.arange(1, n) if k == n - 1 else np.r_[1 : k // 2 + 1, n - k // 2 : n]
        return np.asarray(seats[(np.arange(n)[:, np.newaxis] + steps) % n])

    def recovers(self, present: Flags, rng: np.random.Generator) -> bool:
        """Draw the seats and return whether everyone's secrets can be restored by those present."""
        there = present[self.neighbours_of(rng.permutation(self.parties))].sum(axis=1)
        return bool((there >= self.quorum).all())


def privacy_failure(requirements: Requirements, neighbours: int, leavers: int) -> float:
    """Return a bound on how likely colluders see more than the sum, with keys among so many neighbours.

    The quorum is the largest with which recovery fails rarely enough; the more are needed, the fewer colluders can do.

    Example:
        >>> requirements = Requirements(200, 0.2, 1e-5, colluding=0.1, dropout=0.1)
        >>> [f"{privacy_failure(requirements, neighbours, leavers=20):.1g}" for neighbours in (40, 28, 20, 1)]
        ['2e-14', '9e-09', '0.002', '1']
    """
    n, colluders = requirements.parties, requirements.colluders
    k = neighbours if neighbours == n - 1 else neighbours - neighbours % 2
    # The more are needed, the more often some are missing.
    quorum = bisect_right(
        range(1, k + 1), requirements.failure, key=lambda q: MaskGraph(n, k, q).recovery_failure(leavers)
    )
    if quorum == 0:
        return 1.0
    graph = MaskGraph(n, k, quorum)
    return min(1.0, graph.exposure(colluders) + graph.split(min(n, colluders + leavers)))


def least_mask_graph(requirements: Requirements) -> MaskGraph:
    """Return the graph with the fewest neighbours with which privacy and recovery each fail rarely enough.

    Exposure and a split together, and recovery with the required dropouts, each have a bound of at most the failure
    probability that is required. Those who leave count as not published for the one and as gone for the other.

    Args:
        requirements: The colluders, the dropout rate and the failure probability.

    Returns:
        The graph; its quorum is the least that keeps colluders out.

    Raises:
        InvalidInput: If not even keys among all suffice.

    Example:
        >>> requirements = Requirements(200, 0.2, 1e-5, colluding=0.1, dropout=0.1)
        >>> graph = least_mask_graph(requirements)
        >>> graph.neighbours, graph.quorum
        (28, 14)
    """
    n, colluders, leavers = requirements.parties, requirements.colluders, requirements.leavers
    for k in chain(range(2, n - 1, 2), [n - 1]):
        allowed = requirements.failure - MaskGraph(n, k, 1).split(min(n, colluders + leavers))
        if allowed <= 0.0:
            continue
        quorum = 1 + hypergeom_isf(allowed / requirements.honest, n - 1, colluders, k)
        graph = MaskGraph(n, k, quorum)
        if quorum <= k and graph.recovery_failure(leavers) <= requirements.failure:
            return graph
    refuse(
        "colluding + dropout",
        requirements.colluding + requirements.dropout,
        "fractions that leave more parties present than collude, as a quorum must",
    )
