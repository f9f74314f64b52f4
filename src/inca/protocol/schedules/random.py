"""Schedules drawn at random from a seed. Rounds are drawn when asked for; only those of small schedules are kept."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from inca._base.kernels import Ids, choose_one, choose_receivers, choose_unrepeated, try_permutation
from inca._base.randomness import PublicSeed, Seed, word_source
from inca._base.validation import one_of, refuse
from inca.protocol.schedules.base import Round, Schedule, check_share, check_size

_MAX_PERMUTATIONS = 8  # of a round: redrawing needs about e^k tries for the k-th
_MAX_KEPT = 10_000  # receivers of a schedule whose rounds are kept: accounts and errors ask for them several times


class _RandomSchedule(Schedule):
    """What the random kinds share: size, seed, and draws addressed by (kind, n, k, round, ...)."""

    _kind: ClassVar[int]
    valid = True

    def __init__(
        self,
        parties: int,
        rounds: int,
        receivers: int = 1,
        *,
        seed: int | PublicSeed,
        share: float | None = None,
    ) -> None:
        self.parties, self.rounds, self.slots = check_size(parties, rounds, receivers)
        self._check_fit()
        self.share = self.even_share = check_share(share, self.slots)
        self._source = word_source(seed)
        self._kept: dict[int, Ids] = {}

    def _check_fit(self) -> None:
        """Refuse sizes that this kind cannot serve."""

    def round(self, t: int) -> Round:
        """Return round t = 1..T."""
        t = self._check_round(t)
        if self.parties * self.slots * self.rounds > _MAX_KEPT:
            return Round(self._draw(t), self.share)
        if t not in self._kept:
            self._kept[t] = self._draw(t)
        return Round(self._kept[t].copy(), self.share)

    @abstractmethod
    def _draw(self, t: int) -> Ids:
        """Return the receivers of round t."""

    def _words(self, draws: int, *label: int) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
        """Return the words for `draws` draws, two draws a word."""
        return self._source.words(self._label(*label), (draws + 1) // 2)

    def _label(self, *label: int) -> tuple[int, ...]:
        return (self._kind, self.parties, self.slots, *label)


class RandomReceivers(_RandomSchedule):
    """Every party sends to k others, a new uniformly random set in each round (section "Empirical Evaluation").

    Rounds are generated when they are asked for, and those of large schedules never stored.

    Args:
        parties: n, at least 2.
        rounds: T, at least 1.
        receivers: k, from 1 to n-1.
        seed: An integer, or a `PublicSeed` for parties that must agree on the schedule.
        share: The fraction of its message that a party sends to each receiver; by default 1/(k+1).

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> RandomReceivers(5, rounds=3, receivers=2, seed=1).round(1).receivers.shape
        (5, 2)
    """

    _kind = 1

    def _draw(self, t: int) -> Ids:
        out = np.empty((self.parties, self.slots), np.int32)
        if self.slots == 1 and isinstance(self._source, Seed):
            choose_one(self._source.state(self._label(t)), out.reshape(-1))
        else:
            choose_receivers(self._words(out.size, t), out)
        return out


class UnrepeatedReceivers(_RandomSchedule):
    """As `RandomReceivers`, but nobody sends to the same party twice in the whole run (the paper's Figure 3).

    A round costs in proportion to the number of receivers chosen before it.

    Args:
        parties: n, at least 2.
        rounds: T, at least 1, with k T < n.
        receivers: k, from 1 to n-1.
        seed: An integer, or a `PublicSeed` for parties that must agree on the schedule.
        share: The fraction of its message that a party sends to each receiver; by default 1/(k+1).

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> chosen = [UnrepeatedReceivers(4, rounds=3, seed=1).round(t).receivers[0, 0] for t in (1, 2, 3)]
        >>> sorted(int(j) for j in chosen)
        [1, 2, 3]
    """

    _kind = 2

    def _check_fit(self) -> None:
        if self.slots * self.rounds >= self.parties:
            must_be = f"below the number of parties ({self.parties}), so that no receiver is repeated"
            refuse("receivers times rounds", self.slots * self.rounds, must_be)

    def _draw(self, t: int) -> Ids:
        out = np.empty((self.parties, self.slots), np.int32)
        steps = t * self.slots
        words = np.stack([self._words(self.parties, step) for step in range(steps)])
        choose_unrepeated(words, steps - self.slots, out)
        return out


class PermutationReceivers(_RandomSchedule):
    """Every party sends to one and hears from one: a uniformly random permutation without fixed points a round.

    With k > 1, k such permutations that nowhere agree, each uniform given the earlier ones.

    Args:
        parties: n, at least 2.
        rounds: T, at least 1.
        receivers: k, from 1 to 8 and at most (n+1)/2.
        seed: An integer, or a `PublicSeed` for parties that must agree on the schedule.
        share: The fraction of its message that a party sends to each receiver; by default 1/(k+1).

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> receivers = PermutationReceivers(6, rounds=2, seed=3).round(1).receivers[:, 0]
        >>> sorted(receivers.tolist()), any(receivers == np.arange(6))
        ([0, 1, 2, 3, 4, 5], False)
    """

    _kind = 3

    def _check_fit(self) -> None:
        limit = min(_MAX_PERMUTATIONS, (self.parties + 1) // 2)
        if self.slots > limit:
            refuse("receivers", self.slots, f"at most {limit} for permutations of {self.parties} parties")

    def _draw(self, t: int) -> Ids:
        out = np.empty((self.parties, self.slots), np.int32)
        for slot in range(self.slots):
            attempt = 0
            while not try_permutation(self._words(self.parties, t, slot, attempt), slot, out):
                attempt += 1
        return out


DRAWN_KINDS: dict[str, Callable[..., Schedule]] = {
    "random": RandomReceivers,
    "distinct": UnrepeatedReceivers,
    "permutation": PermutationReceivers,
}
"""The kinds that a seed is needed for, by name."""


def random_schedule(
    kind: str,
    parties: int,
    rounds: int,
    receivers: int = 1,
    *,
    seed: int | PublicSeed,
    share: float | None = None,
) -> Schedule:
    """Return the random schedule of a given kind.

    Args:
        kind: `random` (`RandomReceivers`), `distinct` (`UnrepeatedReceivers`) or `permutation`
            (`PermutationReceivers`).
        parties: n, at least 2.
        rounds: T, at least 1.
        receivers: k, the receivers of a party in a round.
        seed: An integer, or a `PublicSeed` for parties that must agree on the schedule.
        share: The fraction of its message that a party sends to each receiver; by default 1/(k+1).

    Returns:
        The schedule.

    Raises:
        InvalidInput: If the kind is unknown, or a number is out of range.

    Example:
        >>> type(random_schedule("distinct", 9, 4, seed=2)).__name__
        'UnrepeatedReceivers'
    """
    one_of("schedule", kind, DRAWN_KINDS)
    return DRAWN_KINDS[kind](parties, rounds, receivers, seed=seed, share=share)
