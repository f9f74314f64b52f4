"""Many coalitions against one party: all there are or drawn ones, and whom messages join with it without each of them.

With one receiver a message, the loss of a party is bounded by how many honest members of its cohort hidden messages
join with it, and by the variance that these have together (`inca.privacy.theorems.joined_bound`). For thousands of
coalitions that is a search in the graph of delivered messages for each, compiled: less work than one exact loss.
"""

from __future__ import annotations

import math
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import U, compiled
from inca._base.types import Array
from inca._base.validation import integer
from inca.privacy.theorems.message_graph import MessageGraph

Places = NDArray[np.intp]


def coalitions_against(party: int, *, parties: int, size: int, most: int, rng: np.random.Generator) -> Places:
    """Return coalitions of one size that a party is not part of, one in each row.

    If there are more than `most`, as many are drawn, each as likely as any other, and those drawn twice left out.

    Example:
        >>> rng = np.random.default_rng(1)
        >>> coalitions_against(1, parties=4, size=2, most=3, rng=rng).tolist()
        [[0, 2], [0, 3], [2, 3]]
        >>> coalitions_against(1, parties=40, size=4, most=9, rng=rng).shape
        (9, 4)
    """
    others = np.delete(np.arange(parties), integer("party", party, 0, parties - 1))
    members = integer("size", size, 0, others.size)
    if (count := math.comb(others.size, members)) <= most:
        flat = np.fromiter(chain.from_iterable(combinations(others.tolist(), members)), np.intp, count * members)
        return flat.reshape(count, members)
    chosen = np.empty((most, members), dtype=np.intp)
    _choose(rng.integers(np.arange(members), others.size, size=chosen.shape), others, chosen)
    # The same members have the same sum of random words, and others have another, but for one in 10^11 pairs of 10^4.
    words = rng.integers(2**64, size=parties, dtype=np.uint64)
    return chosen[np.sort(np.unique(words[chosen].sum(axis=1), return_index=True)[1])]


def joined_without(graph: MessageGraph, party: int, coalitions: Places, variances: Array) -> tuple[Places, Array]:
    """Return, for each coalition, how many messages join with a party without it, and their variances added up.

    The party counts itself. Each sum of N variances is off by N rounding errors at most.

    Args:
        graph: Who exchanged a message with whom.
        party: Who is in none of the coalitions.
        coalitions: One in each row; members that are not in the graph take nobody away.
        variances: Of every party, by its id.

    Example:
        >>> path = MessageGraph.among(range(5), [(0, 1), (1, 2), (2, 3), (3, 4)])
        >>> joined_without(path, 1, np.array([[3], [0], [2]]), np.array([1.0, 2.0, 4.0, 8.0, 16.0]))
        (array([3, 4, 2]), array([ 7., 30.,  3.]))
    """
    parties = variances.size
    beside = [sorted(graph.partners.get(member, ())) for member in range(parties)]
    starts = np.concatenate(([0], np.cumsum([len(others) for others in beside])))
    neighbours = np.fromiter(chain.from_iterable(beside), np.intp, int(starts[-1]))
    inside = np.isin(np.arange(parties), list(graph.partners))
    joined, together = np.empty(len(coalitions), dtype=np.intp), np.empty(len(coalitions))
    _join_without(starts, neighbours, inside, variances, party, coalitions, joined, together)
    return joined, together


@compiled
def _choose(picks: Places, pool: Places, out: Places) -> None:
    """Shuffle the first places of a pool for each row (Fisher, Yates): place k changes with `picks[., k]` >= k.

    It goes on with the pool as the row before left it, which makes no choice likelier.
    """
    for row in range(picks.shape[0]):
        for k in range(picks.shape[1]):
            pick = picks[row, k]
            pool[k], pool[pick] = pool[pick], pool[k]
            out[row, k] = pool[k]


@compiled
def _join_without(
    starts: Places,
    neighbours: Places,
    inside: NDArray[np.bool_],
    variances: Array,
    party: int,
    coalitions: Places,
    joined: Places,
    together: Array,
) -> None:
    """Search from the party against 64 coalitions at once: bit b of a word is about the b-th of these."""
    alive, reached = np.empty(inside.size, np.uint64), np.empty(inside.size, np.uint64)
    counts, totals = np.empty(64, np.intp), np.empty(64)
    for first in range(0, coalitions.shape[0], 64):
        count = min(64, coalitions.shape[0] - first)
        for i in range(inside.size):
            alive[i], reached[i] = U(2**64 - 1) if inside[i] else U(0), U(0)
        for b in range(count):
            for colluder in coalitions[first + b]:
                alive[colluder] &= ~(U(1) << U(b))
        alive[party], reached[party] = U(2**64 - 1), U(2**64 - 1)
        news = True
        while news:
            news = False
            for i in range(inside.size):
                if reached[i] != alive[i]:
                    word = reached[i]
                    for e in range(U(starts[i]), U(starts[i + 1])):
                        word |= reached[U(neighbours[e])]
                    word &= alive[i]
                    if word != reached[i]:
                        reached[i], news = word, True
        counts[:], totals[:] = 0, 0.0
        for i in range(inside.size):
            word, variance = reached[i], variances[i]
            for b in range(64):
                bit = np.int32(word >> U(b) & U(1))
                counts[b] += bit
                totals[b] += variance * bit
        joined[first : first + count], together[first : first + count] = counts[:count], totals[:count]
