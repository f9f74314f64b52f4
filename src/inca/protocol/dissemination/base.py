"""What every way of dissemination returns, and what they share."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inca._base.kernels import Ids
from inca._base.types import Array
from inca._base.validation import finite_array
from inca.protocol.simulation import Outcome

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dissemination:
    """What the parties know in the end, and what it cost.

    Attributes:
        method: The way of dissemination.
        outcome: As before, but its execution's `published` marks the final messages that reached all survivors.
        estimates: A row for each survivor, (m,) or (m, d); NaN where what it holds has no weight.
        survivors: Their ids.
        rounds: How many rounds it took.
        messages: How many messages were sent.
        agreed: Whether all are within the accuracy asked for (averaging), or hold the same messages (epidemic).
    """

    method: str
    outcome: Outcome
    estimates: Array
    survivors: Indices
    rounds: int
    messages: int
    agreed: bool

    @property
    def deviation(self) -> float | None:
        """The largest distance of an estimate from `outcome.estimate`; None without it, infinite for NaN."""
        aim = self.outcome.estimate
        return None if aim is None else farthest(self.estimates, aim)


def exact(outcome: Outcome) -> Dissemination:
    """Tell everyone: each of the m parties sends its final message to the m-1 others, in no time and without loss.

    Args:
        outcome: What the rounds left behind.

    Returns:
        What the parties know.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> exact(Outcome(execution, np.array([1.0, 2.0, 3.0, 6.0]))).estimates.tolist()
        [3.0, 3.0, 3.0, 3.0]
    """
    ids, _ = published_messages(outcome)
    if (aim := outcome.estimate) is None:  # nobody learns anything, at no cost
        ids = ids[:0]
    estimates = np.full((ids.size, *outcome.messages.shape[1:]), 0.0 if aim is None else aim)
    return Dissemination("exact", outcome, estimates, ids, 0, ids.size * (ids.size - 1), True)


def published_messages(outcome: Outcome) -> tuple[Indices, Array]:
    """Return the ids of the m published messages, and these beside their weights as (m, d+1)."""
    ids = np.flatnonzero(outcome.execution.published)
    messages = finite_array("outcome.messages", outcome.messages, (1, 2), "(n,) or (n, d)")
    return ids, np.column_stack([messages[ids], outcome.weights[ids]])


def estimates_from(state: Array, outcome: Outcome) -> Array:
    """Return sum / weight for each row of `state`, NaN where there is no weight."""
    estimates = np.full((state.shape[0], state.shape[1] - 1), np.nan)
    with np.errstate(over="ignore"):  # a first trace of weight may be tiny
        np.divide(state[:, :-1], state[:, -1:], out=estimates, where=state[:, -1:] != 0.0)
    return estimates.reshape(state.shape[0], *outcome.messages.shape[1:])


def farthest(estimates: Array, aim: float | Array) -> float:
    """Return the largest Euclidean distance of an estimate from `aim`; NaN counts as infinitely far."""
    with np.errstate(over="ignore"):
        gaps = np.abs(estimates - aim) if estimates.ndim == 1 else np.linalg.norm(estimates - aim, axis=1)
    return float(np.where(np.isnan(gaps), np.inf, gaps).max(initial=0.0))


def random_others(callers: Indices, rng: Generator, near: Ids | None = None) -> Indices:
    """Draw for each of m callers a uniformly random other one of the m parties, or one of those near it."""
    if near is not None:
        return np.asarray(near[callers, rng.integers((near >= 0).sum(axis=1)[callers])], np.int64)
    pick = rng.integers(callers.size - 1, size=callers.size)
    return np.asarray(pick + (pick >= callers), np.int64)
