"""After how many rounds hidden messages connect the honest parties, over many thousands of runs: Figure 3.

With one receiver per party the precondition of Theorem 2 holds as soon as the graph of hidden messages is connected
(fact F1). Receivers are drawn inside the loop, so a run costs one draw and one union per honest party and round, and
it ends when all are connected. Who colludes does not matter, as all parties are alike: the first ones do.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Ids, U, Words, compiled, mix64, uniform, xoshiro
from inca._base.validation import integer, refuse
from inca.privacy.theorems.hidden_messages import root

MAX_ROUNDS = 64
"""Rounds after which a run counts as never connected."""


def rounds_needed(parties: int, colluding: int, runs: int, seed: int, first: int = 0) -> NDArray[np.int64]:
    """Return how many of so many random runs need 0, 1, 2, .. rounds, and in the last place how many need too many.

    In every round each party sends to one party that it has not sent to before (Figure 3). Runs are numbered, from
    `first`, and each depends on its number, the seed, n and the number colluding only. There are n - 1 rounds, or 64
    if that is less.

    Example:
        >>> rounds_needed(4, colluding=0, runs=1000, seed=1).tolist()
        [0, 960, 40, 0, 0]
    """
    n = integer("parties", parties, min=2, max=2**31 - 1)
    c = integer("colluding", colluding)
    if c >= n:
        refuse("colluding", colluding, f"fewer than all {n} parties")
    limit = min(n - 1, MAX_ROUNDS)
    counts = np.zeros(limit + 2, dtype=np.int64)
    word = U(integer("seed", seed, max=2**63 - 1))
    connect(n, c, integer("first", first), integer("runs", runs, min=1), word, counts)
    return counts


@compiled
def connect(parties: int, colluding: int, first: int, runs: int, seed: np.uint64, counts: NDArray[np.int64]) -> None:
    """Count in counts[r] the runs that need r rounds; the last place is for all others."""
    limit = counts.size - 2
    parent = np.empty(parties, np.int32)
    chosen = np.empty((parties, limit), np.int32)
    state = np.empty(4, np.uint64)
    for run in range(first, first + runs):
        start(seed, U(parties), U(colluding), U(run), state)
        for i in range(parties):
            parent[i] = i
        left, t = parties - colluding - 1, 0
        while left > 0 and t < limit:
            for i in range(colluding, parties):
                j = unrepeated(state, chosen[i], t, i, parties)
                if j >= colluding:
                    a, b = root(parent, i), root(parent, j)
                    if a != b:
                        parent[max(a, b)] = min(a, b)
                        left -= 1
            t += 1
        counts[t if left <= 0 else limit + 1] += 1


@compiled
def start(seed: np.uint64, parties: np.uint64, colluding: np.uint64, run: np.uint64, state: Words) -> None:
    """Set the state of xoshiro256++ for a run."""
    base = mix64(mix64(mix64(mix64(seed + U(1)) + parties) + colluding) + run)
    for place in range(4):
        state[place] = mix64(base + U(place))


@compiled
def unrepeated(state: Words, chosen: Ids, t: int, i: int, parties: int) -> int:
    """Draw whom party i sends to in round t + 1, uniformly among those not in chosen[:t], and note it there."""
    while True:
        word, state[0], state[1], state[2], state[3] = xoshiro(state[0], state[1], state[2], state[3])
        j = int(uniform(word, 1, parties - 1))
        j += j >= i
        fresh = True
        for earlier in range(t):
            fresh &= chosen[earlier] != j
        if fresh:
            chosen[t] = j
            return j
