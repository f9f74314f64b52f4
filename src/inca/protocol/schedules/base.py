"""What a schedule is: for every round, each party's receivers and the fraction of its message that each gets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags, Ids
from inca._base.types import Array
from inca._base.validation import integer, refuse

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
    """Rounds 1..T of intended sends between n parties, k slots each; subclass it and write `round`.

    Attributes:
        parties: n.
        rounds: T.
        slots: k, the most receivers that a party has in a round.

    Example:
        >>> class Ring(Schedule):
        ...     parties, rounds, slots = 3, 5, 1
        ...
        ...     def round(self, t):
        ...         return Round(np.array([[1], [2], [0]], dtype=np.int32), share=0.5)
        >>> Ring().round(1).kept.tolist()
        [0.5, 0.5, 0.5]
    """

    parties: int
    rounds: int
    slots: int
    even_share: float | None = None
    """The fraction that each of k receivers gets from everyone in every round, if there is such a fraction."""
    valid: bool = False
    """Whether rounds are valid by construction; those of other schedules are checked whenever they are used."""

    @abstractmethod
    def round(self, t: int) -> Round:
        """Return what a round intends to send; the same every time it is asked for.

        Args:
            t: The round, from 1 to T.

        Returns:
            Everyone's receivers and the fractions they get.
        """

    def _check_round(self, t: int) -> int:
        return integer("t", t, 1, self.rounds)


def check_round(schedule: Schedule, step: Round, t: int) -> None:
    """Refuse a round of somebody's own schedule that is not one: wrong shapes, ids out of range, sends to oneself."""
    ids, parties, slots = step.receivers, schedule.parties, schedule.slots
    if ids.shape != (parties, slots) or ids.dtype != np.int32:
        must_be = f"int32 of shape ({parties}, {slots})"
        refuse(f"the receivers of round {t}", f"{ids.dtype} of shape {ids.shape}", must_be)
    check_range(ids, parties, t)
    _refuse_first(ids == np.arange(parties)[:, np.newaxis], ids, t, "another party than the sender")
    ordered = np.sort(ids, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    if twice.any():
        i = int(np.argwhere(twice)[0][0])
        refuse(f"the receivers of party {i} in round {t}", ids[i].tolist(), "different from each other")
    if schedule.even_share is not None and (
        ids.min() < 0 or step.weights is not None or step.share != schedule.even_share
    ):
        refuse("even_share", schedule.even_share, f"None, as round {t} has other sends")
    if step.weights is None:
        check_share(step.share, slots)
    elif step.weights.shape != ids.shape or step.weights.dtype != np.float64:
        must_be = f"float64 of shape {ids.shape}"
        refuse(f"the weights of round {t}", f"{step.weights.dtype} of shape {step.weights.shape}", must_be)
    else:
        sums = step.weights.sum(axis=1)
        bad = ~((step.weights.min(axis=1) >= 0) & (sums <= 1.0 + TOLERANCE))  # NaN is bad, too
        bad |= ((ids < 0) & (step.weights != 0)).any(axis=1)
        if bad.any():
            i = int(np.flatnonzero(bad)[0])
            must_be = "at least 0, at most 1 together, and 0 for nobody"
            refuse(f"the weights of party {i} in round {t}", step.weights[i].tolist(), must_be)


def check_range(ids: NDArray[np.integer[Any]], parties: int, t: int) -> None:
    """Refuse receivers that do not exist; `ids` are those of round t, of any integer type."""
    _refuse_first((ids < -1) | (ids >= parties), ids, t, f"a party id from 0 to {parties - 1}, or -1 for nobody")


def _refuse_first(bad: Flags, ids: NDArray[np.integer[Any]], t: int, must_be: str) -> None:
    if bad.any():
        i, s = (int(index) for index in np.argwhere(bad)[0])
        refuse(f"receiver {s} of party {i} in round {t}", int(ids[i, s]), must_be)


def check_size(parties: int, rounds: int, receivers: int) -> tuple[int, int, int]:
    """Return (n, T, k) or refuse them: at least 2 parties, 1 round and 1 <= k < n receivers."""
    n = integer("parties", parties, min=2, max=2**31 - 1)
    t = integer("rounds", rounds, min=1)
    k = integer("receivers", receivers, min=1)
    if k >= n:
        refuse("receivers", receivers, f"below the number of parties ({n})")
    return n, t, k


def check_share(share: float | None, slots: int) -> float:
    """Return the fraction sent to each receiver, 1/(k+1) by default, or refuse it."""
    if share is None:
        return 1.0 / (slots + 1)
    if not isinstance(share, (int, float, np.floating)) or isinstance(share, bool) or not 0 < share * slots <= 1:
        refuse("share", share, f"above 0 and at most 1{f'/{slots}' if slots > 1 else ''}")
    return float(share)


def common_share(steps: Sequence[Round]) -> float | None:
    """Return the fraction that each receiver, nobody aside, gets from everyone in every round; None if there is none.

    >>> from inca import ExplicitSchedule
    >>> common_share([ExplicitSchedule([[[1], [-1]]]).round(1)])
    0.5
    """
    equal = all(step.weights is None and step.share == steps[0].share for step in steps)
    return steps[0].share if equal else None
