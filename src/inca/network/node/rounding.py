"""How much the rounding of shares and portions can add to a loss: the proof is in docs/rounding.md.

The accountant works with real numbers: a loss is the size of the smallest change of the noise that hides another value.
On the lattice such a change must consist of whole numbers, and shares and portions are rounded down. Hidden messages
can be changed by even numbers, which changes their shares exactly; chosen well, the changes of all noise differ from
the real ones by a few steps, whatever the session.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from inca.protocol.noise_levels import NoiseLevels


def added_mu(noise_in_steps: NoiseLevels, *, rounds: int, dimension: int, weights: ArrayLike) -> float:
    """Return what whole numbers add to every party's mu, at most, by the weights of all parties.

    Each of the T masks of a party changes by at most 8 steps more or less than in real numbers, and the noise of a
    party of weight w by 3 / w. Where parties top up their noise, that changes by at most 1/2, and the other by 3.5 / w.
    """
    parts, topped_up = np.asarray(weights, dtype=np.float64), noise_in_steps.topup > 0.0
    masks = 8.0 * math.sqrt(rounds * parts.size) / noise_in_steps.cancelling
    own = float(np.linalg.norm((3.5 if topped_up else 3.0) / parts)) / noise_in_steps.independent
    topup = 0.5 * math.sqrt(parts.size) / noise_in_steps.topup if topped_up else 0.0
    return math.sqrt(dimension) * math.hypot(masks, own, topup)
