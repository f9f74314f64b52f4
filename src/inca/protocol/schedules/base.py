"""What a schedule is: for every round, each party's receivers and the fraction of its message that each gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags, Ids
from inca._base.types import Array
from inca._base.validation import refuse, whole

TOLERANCE = 1e-9  # on sums of given weights


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
        if self.weights is None and int(self.receivers.min()) >= 0:
            return np.broadcast_to(1.0 - k * self.share, n)
        return np.asarray(1.0 - self.fractions.sum(axis=1))

    @property
    def fractions(self) -> Array:
        """What each receiver gets of the message, (n, k) numbers; 0 for nobody."""
        return np.where(self.receivers >= 0, self.share, 0.0) if self.weights is None else self.weights


class Schedule(ABC):
    """Rounds 1..T of intended sends between n parties, k slots each."""

    parties: int
    rounds: int
    slots: int
    even_share: float | None = None
    """The fraction that each of k receivers gets from everyone in every round, if there is such a fraction."""
    valid: bool = False
    """Whether rounds are valid by construction; those of other schedules are checked whenever they are used."""

    @abstractmethod
    def round(self, t: int) -> Round:
        """Return round t = 1..T; the same one every time it is asked for."""

    def _check_round(self, t: int) -> int:
        return whole("t", t, 1, self.rounds)


def check_round(schedule: Schedule, step: Round, t: int) -> None:
    """Refuse a round of somebody's own schedule that is not one: wrong shapes, ids out of range, sends to oneself."""
    ids, parties, slots = step.receivers, schedule.parties, schedule.slots
    if ids.shape != (parties, slots) or ids.dtype != np.int32:
        wanted = f"int32 of shape ({parties}, {slots})"
        raise refuse(f"receivers of round {t}", f"{ids.dtype} of shape {ids.shape}", wanted)
    check_range(ids, parties, t)
    _refuse_first(ids == np.arange(parties)[:, np.newaxis], ids, t, "another party than the sender itself")
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        i = int(np.argwhere(twice)[0][0])
        wanted = "every receiver at most once a round"
        raise refuse(f"the receivers of party {i} in round {t}", ids[i].tolist(), wanted)
    if schedule.even_share is not None and (
        ids.min() < 0 or step.weights is not None or step.share != schedule.even_share
    ):
        raise refuse("even_share", schedule.even_share, f"None, as round {t} has other sends,")
    if step.weights is None:
        check_share(step.share, slots)
    elif step.weights.shape != ids.shape or step.weights.dtype != np.float64:
        wanted = f"float64 of shape {ids.shape}"
        raise refuse(f"weights of round {t}", f"{step.weights.dtype} of shape {step.weights.shape}", wanted)
    else:
        sums = step.weights.sum(axis=1)
        bad = ~((step.weights.min(axis=1) >= 0) & (sums <= 1.0 + TOLERANCE))  # NaN is bad, too
        bad |= ((ids < 0) & (step.weights != 0)).any(axis=1)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            wanted = "fractions of at least 0 that sum to at most 1, 0 for nobody"
            raise refuse(f"the weights of party {i} in round {t}", step.weights[i].tolist(), wanted)


def check_range(ids: NDArray[np.integer[Any]], parties: int, t: int) -> None:
    """Refuse receivers that do not exist; `ids` are those of round t, of any whole type."""
    _refuse_first((ids < -1) | (ids >= parties), ids, t, f"a party id from 0 to {parties - 1}, or -1 for nobody")


def _refuse_first(bad: Flags, ids: NDArray[np.integer[Any]], t: int, expected: str) -> None:
    if bad.any():
        i, s = (int(index) for index in np.argwhere(bad)[0])
        raise refuse(f"receiver {s} of party {i} in round {t}", int(ids[i, s]), expected)


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
