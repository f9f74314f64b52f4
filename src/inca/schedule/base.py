"""What a schedule is: for every round, each party's receivers and the fraction of its message that each gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from inca.kernels import Ids
from inca.validation import Array, refuse, whole


@dataclass(frozen=True, eq=False)
class Round:
    """The sends that one round intends: column i of the weight matrix W_t is what party i does.

    `receivers` is (n, k), -1 for "nobody". Each receiver gets the fraction `share` of the message or, where
    `weights` (n, k) are given, its own fraction. The sender keeps the rest, so columns of W_t sum to 1.
    """

    receivers: Ids
    share: float
    weights: Array | None = None

    @property
    def kept(self) -> Array:
        """The diagonal of W_t, n numbers: what each party keeps of its message for itself."""
        n, k = self.receivers.shape
        if self.weights is not None:
            return np.asarray(1.0 - self.weights.sum(axis=1))
        if int(self.receivers.min()) >= 0:
            return np.broadcast_to(1.0 - k * self.share, n)
        return np.asarray(1.0 - self.share * (self.receivers >= 0).sum(axis=1))


class Schedule(ABC):
    """Rounds 1..T of intended sends between n parties, k slots each."""

    parties: int
    rounds: int
    slots: int
    even_share: float | None = None
    """The fraction that each of k receivers gets from everyone in every round, if there is such a fraction."""

    @abstractmethod
    def round(self, t: int) -> Round:
        """Return round t = 1..T; the same one every time it is asked for."""

    def _check_round(self, t: int) -> int:
        return whole("t", t, 1, self.rounds)


def check_size(parties: int, rounds: int, receivers: int) -> tuple[int, int, int]:
    """Return (n, T, k) or refuse them: at least 2 parties, 1 round and 1 <= k < n receivers."""
    n = whole("parties", parties, least=2, most=2**31 - 1)
    t = whole("rounds", rounds, least=1)
    k = whole("receivers", receivers, least=1)
    if k >= n:
        raise refuse("receivers", receivers, f"fewer than the number of parties ({n})")
    return n, t, k


def check_share(share: float | None, slots: int) -> float:
    """Return the fraction sent to each receiver, 1/(k+1) by default, or refuse it."""
    if share is None:
        return 1.0 / (slots + 1)
    if not isinstance(share, (int, float, np.floating)) or isinstance(share, bool) or not 0 < share * slots <= 1:
        raise refuse("share", share, f"a number above 0 and at most 1/{slots}")
    return float(share)
