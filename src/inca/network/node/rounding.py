"""How much the rounding of shares and portions can add to a loss: the proof is in docs/rounding.md.

The accountant works with real numbers: a loss is the size of the smallest change of the noise that hides another value.
On the lattice such a change must consist of whole numbers, and shares and portions are rounded down. Hidden messages
can be changed by multiples of k + 1, which changes their shares exactly; chosen well, the changes of all noise differ
from the real ones by a few steps, whatever the session.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels


def added_mu(
    noise_in_steps: NoiseLevels, *, rounds: int, receivers: int, dimension: int, weights: ArrayLike, received: ArrayLike
) -> float:
    """Return what whole numbers add to every party's mu, at most.

    With R shares received, and e = 2 for one receiver or k/2 + R for several: each of the T masks of a party changes by
    at most k + 3 + 2 e steps more or less than in real numbers, and the noise of a party of weight w by (e + 1) / w.
    Where parties top up their noise, that changes by at most 1/2, and the other by (e + 3/2) / w.

    Example:
        >>> levels = NoiseLevels(independent=2.0**30, cancelling=2.0**32)
        >>> added = added_mu(levels, rounds=5, receivers=1, dimension=1, weights=np.ones(4), received=np.full(4, 5))
        >>> f"{added:.2g}"  # sqrt(4 (5 (8 / 2^32)^2 + (3 / 2^30)^2))
        '1e-08'
    """
    k, shares = receivers, np.asarray(received, dtype=np.float64)
    flows = np.full(shares.shape, 2.0) if k == 1 else k / 2.0 + shares
    masks = math.sqrt(rounds) * (k + 3.0 + 2.0 * flows) / noise_in_steps.cancelling
    topped_up = noise_in_steps.topup > 0.0
    own = (flows + (1.5 if topped_up else 1.0)) / np.asarray(weights, dtype=np.float64) / noise_in_steps.independent
    topup = np.full(shares.shape, 0.5 / noise_in_steps.topup if topped_up else 0.0)
    parts = (float(np.linalg.norm(changes)) for changes in (masks, own, topup))
    return math.sqrt(dimension) * math.hypot(*parts)


def shares_offered(execution: Execution) -> NDArray[np.int64]:
    """Return how many shares each party was sent, delivered or not: at least as many as it got.

    Example:
        >>> from inca import ExplicitSchedule, incremental_injection
        >>> shares_offered(Execution(ExplicitSchedule([[[1], [0], [1]]]), incremental_injection(1))).tolist()
        [1, 2, 0]
    """
    counts, schedule = np.zeros(execution.parties, dtype=np.int64), execution.offered()
    for t in range(1, execution.rounds + 1):
        receivers = schedule.round(t).receivers.ravel()
        counts += np.bincount(receivers[receivers >= 0], minlength=execution.parties)
    return counts
