"""How large the numbers of honest parties can be: of each offer, and of the total that a cohort hands over.

An offer is a share of its sender's balance. What the largest balance can be follows from the terms and the schedule,
round by round, and is the same for everyone who asks. Whoever signs a larger offer is no honest party: it is not
credited, and convicts its sender. So no honest party is ever made to send one either.

*The recursion.* A party's balance is y = u + m: m is its live mask, |m| <= M, and u all the rest. Let |u| <= U at the
beginning of a round. Its share is (y - rho) / 2, 0 <= rho <= 1, hence at most S = (U + M) / 2. If it is not back at the
end of the round, what stays, without its mask, is (u - m + rho) / 2, and else u: at most max(U, (U + M) / 2) + 1. A
portion of its value enters (all P at most), and the one offer that it may credit, at most S as well, be its sender
honest or not. So

    U' = max(U, (U + M) / 2) + 1 + P + (U + M) / 2,

which is U + M + P + 1, a mask's bound more, as long as U <= M, or if no share ever comes back; shares that come back
let U grow by half in a round. Whoever is absent keeps its balance, and U' >= U. A weight follows the same rule with
M = 0. Everything here is a Python integer: nothing overflows.

The lattice is chosen so that no honest party's balance reaches 2^62 (`granularity_for`, by the same recursion), and the
total of a cohort stays below 2^63. So shares are taken of true balances, and a total that is read back from its
remainder modulo 2^64 is the true one. A settled message is a balance with shares put back and undone, up to T of each:
it may be beyond 2^63, and what travels is its remainder, of which no share is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from inca.network.lattice.discrete_gaussian import NOISE_BOUND
from inca.network.protocol.messages import MAX_NUMBER, Offer
from inca.network.protocol.session import WEIGHT, SessionConfig


@dataclass(frozen=True, eq=False)
class ShareBounds:
    """The largest absolute number, and the largest weight, of an offer, by round 1..T (place 0 is empty)."""

    values: list[int]  # in lattice steps
    weights: list[int]  # in units of 1 / `WEIGHT`

    def excess(self, offer: Offer) -> str:
        """Return why no honest party can have made an offer, or nothing. Its numbers stay private."""
        numbers = np.frombuffer(offer.payload, dtype="<i8")
        weight, largest = int(numbers[-1]), max(int(numbers[:-1].max()), -int(numbers[:-1].min()))
        heaviest, most = self.weights[offer.round], self.values[offer.round]
        if not 0 <= weight <= heaviest:
            return f"the weight of an offer in round {offer.round} is from 0 to {heaviest / WEIGHT:.3g}"
        if largest > most:
            return f"the numbers of an offer in round {offer.round} are at most {most:.3g} in absolute value"
        return ""


@lru_cache(maxsize=1)
def share_bounds(session: SessionConfig) -> ShareBounds:
    """Return the bounds of a session; all its parties in one process share them."""
    values = _by_round(session.rounds, _ceil(_noisy(session), session.pieces), NOISE_BOUND * session.sigma_cancelling)
    return ShareBounds(values, _by_round(session.rounds, _ceil(WEIGHT, session.pieces), 0))


def largest_total(session: SessionConfig, cohort_size: int) -> int:
    """Return the largest absolute number in the sum of the settled final messages of a cohort of honest parties.

    All of a cohort were there in the last round, so that no mask is left (erratum E2), and what they exchanged cancels:
    it is the sum of their values, each with its independent noise and its top-up, which depends on their weights.
    """
    return cohort_size * (_noisy(session) + NOISE_BOUND * math.ceil(session.topup.most(cohort_size)))


def _noisy(session: SessionConfig) -> int:
    return session.largest_value + NOISE_BOUND * session.sigma_independent


def _by_round(rounds: int, portion: int, mask: int) -> list[int]:
    """Return S by round. Beyond what an int64 holds no bound is needed: there is no such balance."""
    by_round, unmasked = [0], portion
    for _ in range(rounds):
        by_round.append(min(_ceil(unmasked + mask, 2), MAX_NUMBER - 1))
        kept = max(unmasked, _ceil(unmasked + mask, 2)) + 1 + portion
        unmasked = min(kept + by_round[-1], 2 * MAX_NUMBER + mask)
    return by_round


def _ceil(dividend: int, divisor: int) -> int:
    return -(-dividend // divisor)
