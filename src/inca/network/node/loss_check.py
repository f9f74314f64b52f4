"""What an execution gives away about a party: worked out by each party for itself before it publishes anything.

The adversary is a coalition of the agreed size. If there are not more coalitions than were agreed to be checked, all
of them are; otherwise they are drawn from the session's id and public seed, the same for everyone. The loss must keep
within what was agreed on the realized execution and had everyone been present throughout (erratum E11).
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from inca.network.membership.roster import Roster
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.session import Topology
from inca.privacy.accountant import account
from inca.privacy.certificate import Certificate, certify
from inca.privacy.gaussian import epsilon_for
from inca.privacy.view import View
from inca.protocol.adversary import Adversary, rounded_up
from inca.protocol.execution import Execution


@dataclass(frozen=True)
class LossCheck:
    """The largest loss of one party over the coalitions considered.

    Args:
        epsilon: The loss, at the agreed delta.
        coalition: The coalition that causes it.
        allowed: The agreed epsilon.
        coalitions: How many coalitions were considered.
        complete: Whether these were all of the agreed size.
    """

    epsilon: float
    coalition: tuple[int, ...]
    allowed: float
    coalitions: int
    complete: bool

    @property
    def refusal(self) -> str:
        """Why the party must not publish; empty if it may."""
        if self.epsilon <= self.allowed:
            return ""
        return (
            f"its loss must be at most epsilon {self.allowed:g}, as agreed, got {self.epsilon:.4g} "
            f"(against parties {list(self.coalition)})"
        )


class LossChecker:
    """Works out losses on the terms of a roster, for a schedule that is known.

    Losses are those of real numbers, and what whole ones add (`SessionSetup.rounding`).

    Args:
        setup: The parties, their terms, and the lattice.
        topology: Who sends to whom.
        seed: The public seed, from which the coalitions are drawn.
    """

    def __init__(self, setup: SessionSetup, topology: Topology, seed: bytes) -> None:
        self._setup, self._topology = setup, topology
        self.coalitions, self.complete = choose_coalitions(setup.roster, seed)

    def planned(self, party: int) -> LossCheck:
        """Return the party's loss had everyone been present throughout; it does not depend on what happens."""
        return self._worst(Execution(self._topology.schedule, self._setup.roster.terms.injection), party)

    def realized(self, realized: RealizedExecution, party: int) -> LossCheck:
        """Return the party's loss on the realized execution."""
        return self._worst(realized.execution, party)

    def certify(self, realized: RealizedExecution, coalition: Sequence[int]) -> Certificate:
        """Return the certificate of the realized execution against one coalition."""
        terms, execution = self._setup.roster.terms, realized.execution
        transcript = replace(self._setup.transcript(execution), adversary=Adversary(tuple(coalition)))
        as_intended = not execution.undelivered and execution.presence.all_present
        return certify(
            transcript,
            rule=terms.rule,
            intended=None if as_intended else self._topology.schedule,
        )

    def _worst(self, execution: Execution, party: int) -> LossCheck:
        terms, rounding = self._setup.roster.terms, self._setup.rounding(execution)
        losses_mu: list[tuple[float, tuple[int, ...]]] = []
        for coalition in self.coalitions:
            if party not in coalition:
                view = View(execution, Adversary(coalition))
                losses = account(view, terms.noise_levels, sensitivity=terms.sensitivity).in_whole_numbers(rounding)
                losses_mu.append((float(losses.mu[losses.honest.tolist().index(party)]), coalition))
        mu, coalition = max(losses_mu, default=(0.0, ()))
        epsilon = float(epsilon_for(np.array([mu]), terms.delta, terms.rule)[0])
        return LossCheck(epsilon, coalition, terms.epsilon, len(losses_mu), self.complete)


def choose_coalitions(roster: Roster, seed: bytes) -> tuple[list[tuple[int, ...]], bool]:
    """Return the coalitions to be considered, and whether these are all of the agreed size."""
    n, terms = len(roster.parties), roster.terms
    size = rounded_up("colluding", terms.colluding, n)
    if math.comb(n, size) <= terms.coalitions:
        return list(combinations(range(n), size)), True
    digest = hashlib.sha256(b"inca-coalitions/1" + roster.session + seed).digest()
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
    drawn = {tuple(sorted(rng.choice(n, size, replace=False).tolist())) for _ in range(terms.coalitions)}
    return sorted(drawn), False
