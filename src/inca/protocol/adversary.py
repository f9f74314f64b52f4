"""Who observes a run: parties that collude, and messages that are eavesdropped on.

Eavesdrop DP (the paper's E-DP) is privacy against an adversary that eavesdrops on messages, Collusion DP (C-DP) against
one that controls parties; an `Adversary` may do both. It always knows who sends to whom and who is present.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags
from inca._base.validation import finite_float, generator, instance, integer, listed, refuse, whole_parties
from inca.protocol.execution import Execution


@dataclass(frozen=True)
class Adversary:
    """Colluding parties and eavesdropped messages: what an honest party's value is protected against.

    Args:
        colluding: The ids of the colluding parties, each at most once.
        eavesdropped: The messages y_i^(t) that are eavesdropped on, as pairs (t, i) with t = 0..T.

    Raises:
        InvalidInput: If an id or a round is no integer of at least 0, or an id is named twice.

    Example:
        >>> Adversary(colluding=[3, 1])
        Adversary(colluding=(1, 3), eavesdropped=())
    """

    colluding: tuple[int, ...] = ()
    eavesdropped: tuple[tuple[int, int], ...] = ()

    def __init__(self, colluding: Iterable[int] = (), eavesdropped: Iterable[tuple[int, int]] = ()) -> None:
        ids = sorted(integer("an id in colluding", party) for party in listed("colluding", colluding, "ids"))
        if len(set(ids)) < len(ids):
            refuse("colluding", ids, "a list with every id at most once")
        messages = {_message(entry) for entry in listed("eavesdropped", eavesdropped, "pairs (t, i)")}
        object.__setattr__(self, "colluding", tuple(ids))
        object.__setattr__(self, "eavesdropped", tuple(sorted(messages)))

    @classmethod
    def random(
        cls,
        parties: int,
        rounds: int,
        rng: np.random.Generator,
        *,
        colluding: float = 0.0,
        eavesdropped: float = 0.0,
    ) -> Adversary:
        """Draw an adversary of a given size.

        Args:
            parties: n, at least 2.
            rounds: T, at least 1.
            rng: Decides who colludes, and which messages are eavesdropped on.
            colluding: The fraction of the parties that collude; rounded up, so that 10 % are at least 10 %.
            eavesdropped: The fraction of the messages of every round t = 0..T-1, rounded up as well.

        Returns:
            The adversary.

        Raises:
            InvalidInput: If a number is out of range.

        Example:
            >>> Adversary.random(10, 2, np.random.default_rng(1), colluding=0.25, eavesdropped=0.1)
            Adversary(colluding=(3, 4, 7), eavesdropped=((0, 1), (1, 8)))
        """
        n, total = integer("parties", parties, min=2), integer("rounds", rounds, min=1)
        generator(rng)
        ids = rng.choice(n, size=whole_parties("colluding", colluding, n), replace=False)
        count = whole_parties("eavesdropped", eavesdropped, n)
        messages = [(t, i) for t in range(total) for i in rng.choice(n, size=count, replace=False).tolist()]
        return cls(ids.tolist(), messages)

    def fractions(self, parties: int) -> RandomAdversary:
        """Return how large it is among n parties: the fraction that colludes, and the most it hears of any round.

        Args:
            parties: n.

        Returns:
            A random adversary of the same size.

        Example:
            >>> Adversary(colluding=[3, 1]).fractions(10).colluding
            0.2
        """
        integer("parties", parties, min=1)
        by_round = Counter(t for t, _ in self.eavesdropped)
        return RandomAdversary(
            colluding=len(self.colluding) / parties, eavesdropped=max(by_round.values(), default=0) / parties
        )

    def at_least(self, size: RandomAdversary, parties: int, rounds: int) -> bool:
        """Return whether it is as large as a random adversary: as many colluders, as many messages of every round.

        Args:
            size: The other adversary.
            parties: n.
            rounds: T.

        Returns:
            Whether a loss against it says something about an adversary of that size.

        Example:
            >>> Adversary(colluding=[3, 1]).at_least(RandomAdversary(colluding=0.2), parties=11, rounds=5)
            False
        """
        instance("size", size, RandomAdversary)
        integer("parties", parties, min=1)
        by_round = Counter(t for t, _ in self.eavesdropped)
        # Without rounds there is no message to eavesdrop on.
        least = min((by_round[t] for t in range(integer("rounds", rounds))), default=math.inf)
        enough = whole_parties("eavesdropped", size.eavesdropped, parties)
        return len(self.colluding) >= whole_parties("colluding", size.colluding, parties) and least >= enough

    @property
    def notion(self) -> str:
        """Which of the paper's privacy notions concerns this adversary."""
        if self.colluding and self.eavesdropped:
            return "Eavesdrop and Collusion DP"
        return "Collusion DP" if self.colluding else "Eavesdrop DP"

    def check(self, execution: Execution) -> None:
        """Refuse ids and messages that the execution does not have.

        Args:
            execution: The run that is observed.

        Raises:
            InvalidInput: If an id or a message is unknown there.
        """
        n, rounds = instance("execution", execution, Execution).parties, execution.rounds
        self._check_ids(n)
        for t, party in self.eavesdropped:
            if t > rounds or party >= n:
                must_be = f"a message (t, i) with t from 0 to {rounds} and i from 0 to {n - 1}"
                refuse("a message in eavesdropped", (t, party), must_be)

    def honest(self, parties: int) -> NDArray[np.intp]:
        """Return the ids of the honest parties among n, in order.

        Args:
            parties: n.

        Returns:
            The ids.

        Raises:
            InvalidInput: If a colluder is unknown, or no party is left to protect.

        Example:
            >>> Adversary(colluding=[1]).honest(3).tolist()
            [0, 2]
        """
        self._check_ids(integer("parties", parties, min=1))
        flags = np.ones(parties, dtype=bool)
        flags[list(self.colluding)] = False
        if not flags.any():
            must_be = f"below {parties}, so that an honest party is left to protect"
            refuse("the number of colluding parties", parties, must_be)
        return np.flatnonzero(flags)

    def observed(self, execution: Execution) -> Flags:
        """Return which messages it sees: the set V of the paper with errata E4 and E7.

        Message y_i^(t) is computed in round t and sent in round t+1. Seen are: all messages of colluders; those sent to
        a colluder while both ends are present; eavesdropped ones; final messages of all parties present at T, or, where
        there is a cohort, the settled ones of all of it, since nobody else publishes anything. So is
        what was offered to a colluder, though not credited. A message of which a share came back late or never counts
        as seen, whoever was offered it: then the weights W^O_t tell the loss (docs/accounting.md).

        Args:
            execution: The run that is observed.

        Returns:
            Flags of shape (T+1, n): entry (t, i) is for message y_i^(t).

        Raises:
            InvalidInput: If an id or a message is unknown, or no honest party is left.

        Example:
            >>> from inca import ExplicitSchedule, incremental_injection
            >>> swap = Execution(ExplicitSchedule([[[1], [0], [0]]]), incremental_injection(1))
            >>> Adversary(colluding=[1]).observed(swap).tolist()
            [[True, True, False], [True, True, True]]
        """
        self.check(execution)
        n, rounds = execution.parties, execution.rounds
        self.honest(n)
        colludes = np.zeros(n + 1, dtype=bool)  # the last place stands for receiver -1, nobody
        colludes[list(self.colluding)] = True
        seen = np.empty((rounds + 1, n), dtype=bool)
        for t in range(rounds):
            seen[t] = colludes[:n]
            if self.colluding:
                # A share that could not be delivered has gone back: its sender appears as the receiver.
                seen[t] |= colludes[execution.sends(t + 1).receivers].any(axis=1)
        final = execution.presence.row(rounds) if execution.cohort is None else execution.cohort
        seen[rounds] = final | colludes[:n]
        for entry in execution.undelivered:
            if entry.late or colludes[entry.receiver]:
                seen[entry.round - 1, entry.sender] = True
        for t, party in self.eavesdropped:
            seen[t, party] = True
        return seen

    def _check_ids(self, parties: int) -> None:
        if self.colluding and self.colluding[-1] >= parties:
            refuse("an id in colluding", self.colluding[-1], f"a party id from 0 to {parties - 1}")


@dataclass(frozen=True, kw_only=True)
class RandomAdversary:
    """An adversary of which only the size is known: fractions of parties and messages, whichever they are.

    Args:
        colluding: The fraction of the parties that collude.
        eavesdropped: The fraction of each round's messages that are eavesdropped on.

    Raises:
        InvalidInput: If a fraction is not from 0 to 1.

    Example:
        >>> RandomAdversary(colluding=0.25).draw(10, 2, np.random.default_rng(1))
        Adversary(colluding=(3, 4, 7), eavesdropped=())
    """

    colluding: float = 0.0
    eavesdropped: float = 0.0

    def __post_init__(self) -> None:
        for name in ("colluding", "eavesdropped"):
            object.__setattr__(self, name, finite_float(name, getattr(self, name), 0.0, 1.0))

    def draw(self, parties: int, rounds: int, rng: np.random.Generator) -> Adversary:
        """Draw an adversary of this size; see `Adversary.random`.

        Args:
            parties: n, at least 2.
            rounds: T, at least 1.
            rng: Decides who colludes, and which messages are eavesdropped on.

        Returns:
            The adversary.
        """
        return Adversary.random(parties, rounds, rng, colluding=self.colluding, eavesdropped=self.eavesdropped)


def _message(entry: tuple[int, int]) -> tuple[int, int]:
    try:
        t, party = entry
    except (TypeError, ValueError):
        refuse("an entry of eavesdropped", entry, "a message (t, i)")
    return integer("a round in eavesdropped", t), integer("an id in eavesdropped", party)


def smallest_cohort(colluders: int) -> int:
    """Return how many parties a result must have at least: those that may collude, and two honest ones.

    The sum of one honest party and colluders is that party's value.

    Example:
        >>> smallest_cohort(1)
        3
    """
    return colluders + 2
