"""Who looks on: parties that collude, and messages that are tapped.

Eavesdrop DP (the paper's E-DP) is privacy against an adversary that taps messages, Collusion DP (C-DP) against one
that controls parties; an `Adversary` may do both. It always knows who sends to whom and who is present.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags
from inca._base.validation import generator, real, refuse, whole
from inca.protocol.execution import Execution


@dataclass(frozen=True)
class Adversary:
    """Colluding parties and tapped messages y_i^(t), the latter as pairs (t, i) with t = 0..T.

    >>> Adversary(colluding=[3, 1]).notion
    'Collusion DP'
    """

    colluding: tuple[int, ...] = ()
    eavesdropped: tuple[tuple[int, int], ...] = ()

    def __init__(self, colluding: Iterable[int] = (), eavesdropped: Iterable[tuple[int, int]] = ()) -> None:
        """Keep ids and messages sorted; refuse ids that are no whole numbers or named twice."""
        ids = sorted(whole("an id in colluding", party) for party in colluding)
        if len(set(ids)) < len(ids):
            raise refuse("colluding", ids, "every id at most once")
        tapped = {
            (whole("a round in eavesdropped", t), whole("an id in eavesdropped", party)) for t, party in eavesdropped
        }
        object.__setattr__(self, "colluding", tuple(ids))
        object.__setattr__(self, "eavesdropped", tuple(sorted(tapped)))

    @classmethod
    def random(
        cls,
        parties: int,
        rounds: int,
        rng: np.random.Generator,
        colluding: float = 0.0,
        eavesdropped: float = 0.0,
    ) -> Adversary:
        """Draw a fraction of the parties, and a fraction of the messages of every round t = 0..T-1.

        Fractions of whole things are rounded up: an adversary of 10 % has at least 10 %.

        >>> Adversary.random(10, 2, np.random.default_rng(1), colluding=0.25, eavesdropped=0.1)
        Adversary(colluding=(3, 4, 7), eavesdropped=((0, 1), (1, 8)))
        """
        n, total = whole("parties", parties, least=2), whole("rounds", rounds, least=1)
        generator(rng)
        ids = rng.choice(n, size=rounded_up("colluding", colluding, n), replace=False)
        tapped = rounded_up("eavesdropped", eavesdropped, n)
        messages = [(t, i) for t in range(total) for i in rng.choice(n, size=tapped, replace=False).tolist()]
        return cls(ids.tolist(), messages)

    @property
    def notion(self) -> str:
        """Which of the paper's privacy notions concerns this adversary."""
        if self.colluding and self.eavesdropped:
            return "Eavesdrop and Collusion DP"
        return "Collusion DP" if self.colluding else "Eavesdrop DP"

    def honest(self, parties: int) -> NDArray[np.intp]:
        """Return the ids of the honest parties among n, in order; refuse if none is left to protect.

        >>> Adversary(colluding=[1]).honest(3).tolist()
        [0, 2]
        """
        if self.colluding and self.colluding[-1] >= parties:
            raise refuse("an id in colluding", self.colluding[-1], f"a party id from 0 to {parties - 1}")
        flags = np.ones(parties, dtype=bool)
        flags[list(self.colluding)] = False
        if not flags.any():
            raise refuse("the number of colluding parties", parties, "at least one honest party to protect")
        return np.flatnonzero(flags)

    def observed(self, execution: Execution) -> Flags:
        """Return which messages it sees: (T+1) x n flags, the set V of the paper with errata E4 and E7.

        Message y_i^(t) is computed in round t and sent in round t+1. Seen are: all messages of colluders; those
        sent to a colluder while both ends are present; tapped ones; final messages of all parties present at T.
        So is what was offered to a colluder, though not credited. A message of which a share came back late or never
        counts as seen, whoever was offered it: then the weights W^O_t tell the loss (docs/accounting.md).

        >>> from inca import ExplicitSchedule, incremental
        >>> swap = Execution(ExplicitSchedule([[[1], [0], [0]]]), incremental(1))
        >>> Adversary(colluding=[1]).observed(swap).tolist()
        [[True, True, False], [True, True, True]]
        """
        n, rounds = execution.parties, execution.rounds
        self.honest(n)
        theirs = np.zeros(n + 1, dtype=bool)  # the last place stands for receiver -1, nobody
        theirs[list(self.colluding)] = True
        seen = np.empty((rounds + 1, n), dtype=bool)
        for t in range(rounds):
            seen[t] = theirs[:n]
            if self.colluding:
                # A share that could not be delivered has gone back: its sender appears as the receiver.
                seen[t] |= theirs[execution.sends(t + 1).receivers].any(axis=1)
        seen[rounds] = execution.presence.row(rounds) | theirs[:n]
        for entry in execution.undelivered:
            if entry.late or theirs[entry.receiver]:
                seen[entry.round - 1, entry.sender] = True
        for t, party in self.eavesdropped:
            if t > rounds or party >= n:
                wanted = f"a message (t, i) with t from 0 to {rounds} and i from 0 to {n - 1}"
                raise refuse("a message in eavesdropped", (t, party), wanted)
            seen[t, party] = True
        return seen


def rounded_up(name: str, fraction: float, parties: int) -> int:
    """Return how many of n the fraction is, rounded up, but for rounding errors: 7 % of 100 are 7, not 8."""
    return math.ceil(real(name, fraction, 0.0, 1.0) * parties - 1e-9)
