"""What the execution that came about gives away: worked out by each party for itself before it publishes anything.

The adversary is a coalition of the agreed size. If there are not more coalitions than were agreed to be checked, all
of them are; otherwise they are drawn from the session's id and public seed, the same for everyone. The loss must keep
within what was agreed on the realised execution and had everyone been present throughout (erratum E11).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from inca.network.membership.roster import Roster
from inca.network.protocol.realized_execution import Realised
from inca.network.protocol.session import Topology
from inca.privacy.accountant import account
from inca.privacy.certificate import Certificate, certify
from inca.privacy.gaussian import epsilon_for
from inca.privacy.view import View
from inca.protocol.adversary import Adversary, rounded_up
from inca.protocol.execution import Execution
from inca.protocol.transcript import Transcript


@dataclass(frozen=True)
class Verdict:
    """The largest loss of one party over the coalitions considered, and the coalition that causes it."""

    epsilon: float
    coalition: tuple[int, ...]
    allowed: float
    coalitions: int
    complete: bool
    """Whether these were all coalitions of the agreed size."""

    @property
    def refusal(self) -> str:
        """Why the party must not publish; empty if it may."""
        if self.epsilon <= self.allowed:
            return ""
        return (
            f"its loss would be epsilon {self.epsilon:.4g}, but at most {self.allowed:g} was agreed "
            f"(against parties {list(self.coalition)})"
        )


class Judge:
    """Works out losses on the terms of a roster, for a schedule that is known."""

    def __init__(self, roster: Roster, topology: Topology, seed: bytes) -> None:
        """Choose the coalitions."""
        self._roster, self._topology = roster, topology
        self.coalitions, self.complete = choose(roster, seed)

    def planned(self, party: int) -> Verdict:
        """Return the party's loss had everyone been present throughout; it does not depend on what happens."""
        return self._worst(Execution(self._topology.schedule, self._roster.terms.injection), party)

    def realised(self, realised: Realised, party: int) -> Verdict:
        """Return the party's loss on the execution that came about."""
        return self._worst(realised.execution, party)

    def certify(self, realised: Realised, coalition: Sequence[int]) -> Certificate:
        """Return the certificate of the execution against one coalition."""
        terms = self._roster.terms
        levels = (terms.sigma_independent, terms.sigma_cancelling)
        execution = realised.execution
        transcript = Transcript(execution, *levels, colluding=tuple(coalition))
        whole = bool(execution.undelivered) or not execution.presence.nobody_absent  # full attendance differs
        return certify(
            transcript,
            sensitivity=terms.sensitivity,
            delta=terms.delta,
            rule=terms.rule,
            intended=self._topology.schedule if whole else None,
        )

    def _worst(self, execution: Execution, party: int) -> Verdict:
        terms = self._roster.terms
        levels = (terms.sigma_independent, terms.sigma_cancelling)
        found: list[tuple[float, tuple[int, ...]]] = []
        for coalition in self.coalitions:
            if party not in coalition:
                losses = account(View(execution, Adversary(coalition)), *levels, terms.sensitivity)
                found.append((float(losses.mu[losses.honest.tolist().index(party)]), coalition))
        mu, coalition = max(found, default=(0.0, ()))
        epsilon = float(epsilon_for(np.array([mu]), terms.delta, terms.rule)[0])
        return Verdict(epsilon, coalition, terms.epsilon, len(found), self.complete)


def choose(roster: Roster, seed: bytes) -> tuple[list[tuple[int, ...]], bool]:
    """Return the coalitions to be considered, and whether these are all of the agreed size."""
    n, terms = len(roster.parties), roster.terms
    size = rounded_up("colluding", terms.colluding, n)
    if math.comb(n, size) <= terms.coalitions:
        return [tuple(each) for each in combinations(range(n), size)], True
    mark = hashlib.sha256(b"inca-coalitions/1" + roster.session + seed).digest()
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(mark[:16], "little")))
    drawn = {tuple(sorted(rng.choice(n, size, replace=False).tolist())) for _ in range(terms.coalitions)}
    return sorted(drawn), False
