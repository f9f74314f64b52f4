"""What an execution gives away about a party: worked out by each party for itself before it hands anything over.

The adversary is a coalition of the agreed size among the others, and everyone who is not in the cohort. The loss must
keep within what was agreed on the agreed execution and had everyone been present throughout (erratum E11).

1. If delivered messages join the cohort whoever colludes, the inequality bounds the loss against *every* coalition at
   once (`inca.privacy.theorems.joined_bound`).
2. Otherwise coalitions are considered: all there are or, if these are too many, some that each party draws from the
   session's id and public seed; on a circle one of them cuts the party off, if any does. The inequality bounds the loss
   against each, with those whom delivered messages join with the party without it.
3. A bound is not a loss. Where it is more than was agreed the loss is worked out, against `MOST_ACCOUNTS` of them at
   most, those first whose bound is worst. If these are not all, the losses against them decide.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.realized_execution import RealizedExecution
from inca.privacy.certificate import Certificate, certify
from inca.privacy.gaussian import epsilon_for
from inca.privacy.theorems.coalitions import Places, coalitions_against
from inca.privacy.theorems.party_losses import PartyLosses, WorstLossOf
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.reporting.verdict import compare

MOST_COALITIONS, MOST_ACCOUNTS = 10_000, 20
_MOST_REFUSALS = 0.01
"""How likely anybody of a session refuses, at most, though all is as planned: plans may fail, and whoever looks at more
coalitions sees it more often than it matters."""


@dataclass(frozen=True)
class LossCheck:
    """The largest loss of one party over the coalitions considered."""

    epsilon: float
    coalition: tuple[int, ...] | None  # the worst; None if the loss is a bound against all of them
    allowed: float
    coalitions: int
    complete: bool
    names: tuple[str, ...] = ()

    @property
    def refusal(self) -> str:
        """Why the party must not make its deposit; empty if it may."""
        if compare(self.epsilon, self.allowed) == "within":
            return ""
        return (
            f"its loss must be at most epsilon {self.allowed:g}, as agreed, got {self.epsilon:.4g} "
            f"(against {', '.join(self.names) or 'whoever sees the final messages'})"
        )


class LossChecker:
    """Works out the losses of one party on the terms of a roster, for the schedule of a public seed.

    Losses are those of real numbers, and what whole ones add (`SessionSetup.rounding`).
    """

    def __init__(self, setup: SessionSetup, seed: bytes, party: int) -> None:
        self._setup, self.seed, self._party = setup, seed, party
        self._size = min(setup.session.colluders, setup.session.parties - 1)
        self._count = math.comb(setup.session.parties - 1, self._size)
        self.checks: dict[frozenset[int], LossCheck] = {}
        """What was worked out last, by cohort."""

    @cached_property
    def planned(self) -> LossCheck:
        """The party's loss had everyone been present throughout."""
        schedule = self._setup.session.topology(self.seed).schedule
        run = Execution(schedule, self._setup.roster.terms.injection)
        return self._worst(run.settled())

    def realized(self, realized: RealizedExecution) -> LossCheck:
        """Return the party's loss on the agreed execution, those outside its cohort counted as colluders."""
        check = self.checks[realized.cohort] = self._worst(realized.execution)
        return check

    def certify(self, realized: RealizedExecution, coalition: Sequence[int] | None = None) -> Certificate:
        """Return the certificate of the agreed execution against one coalition, by default the one that looks worst."""
        terms, execution = self._setup.roster.terms, realized.execution
        if coalition is None:
            losses = self._losses(execution)
            coalition = losses.worst_first(self._considered(losses))[0].tolist()
        transcript = replace(self._setup.transcript(execution), adversary=Adversary(coalition))
        return certify(transcript, rule=terms.rule, basis="leavers counted as colluders")

    @cached_property
    def coalitions(self) -> Places:
        """Coalitions to be considered, one in each row: all there are, or drawn in a way that anybody can repeat."""
        session, party, failure = self._setup.session, self._party, self._setup.roster.terms.failure
        enough = _MOST_REFUSALS / (session.parties * failure) if failure else math.inf
        most = int(min(MOST_COALITIONS, max(MOST_ACCOUNTS, enough)))
        key = hashlib.sha256(b"inca-coalitions/3" + session.id + self.seed + party.to_bytes(4, "little")).digest()[:16]
        rng = np.random.Generator(np.random.Philox(key=int.from_bytes(key, "little")))
        return coalitions_against(party, parties=session.parties, size=self._size, most=most, rng=rng)

    def _losses(self, execution: Execution) -> PartyLosses:
        return PartyLosses(
            execution,
            self._setup.noise_levels(execution),
            party=self._party,
            sensitivity=self._setup.roster.terms.sensitivity,
            rounding=self._setup.rounding(execution),
        )

    def _considered(self, losses: PartyLosses) -> Places:
        """Return the coalitions; on a circle, if these are not all, one of them cuts the party off if any does."""
        session, drawn, graph = self._setup.session, self.coalitions, losses.graph
        if session.schedule != "circle" or len(drawn) == self._count:
            return drawn
        cut = graph.cut_around(self._party, self._size) or ()
        others = set(range(session.parties)) - {self._party}
        first = sorted(others, key=lambda other: (other not in cut, other not in graph.partners))[: self._size]
        return np.vstack([first, drawn[1:]])

    def _worst(self, execution: Execution) -> LossCheck:
        losses = self._losses(execution)
        bound = losses.against_every(self._size)
        if bound is not None and self._within(bound):
            return self._check(WorstLossOf(bound, None, self._count))
        return self._check(losses.worst(self._considered(losses), self._within, MOST_ACCOUNTS))

    def _within(self, mu: float) -> bool:
        return not self._check(WorstLossOf(mu, None, 1)).refusal

    def _check(self, worst: WorstLossOf) -> LossCheck:
        terms, names = self._setup.roster.terms, self._setup.roster.names
        epsilon = float(epsilon_for(np.array([worst.mu]), terms.delta, terms.rule)[0])
        who = tuple(names[member] for member in worst.coalition or ())
        complete = worst.coalitions == self._count
        return LossCheck(epsilon, worst.coalition, terms.epsilon, worst.coalitions, complete, who)
