"""What an execution gives away about a party: worked out by each party for itself before it hands anything over.

The adversary is a coalition of the agreed size among the others, and everyone who is not in the cohort. The loss must
keep within what was agreed on the agreed execution and had everyone been present throughout (erratum E11).

If there are not more coalitions than were agreed to be checked, the loss against each is worked out. Otherwise, if
delivered messages join the cohort whoever colludes, the inequality bounds the loss against *every* coalition at once
(`inca.privacy.theorems.joined_bound`), and that is enough if it keeps within what was agreed. Where it does not,
coalitions are drawn for each party from the session's id and public seed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from inca._base.validation import whole_parties
from inca.network.membership.roster import Roster
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.realized_execution import RealizedExecution
from inca.network.protocol.session import Topology
from inca.privacy.accountant import account
from inca.privacy.certificate import Certificate, certify
from inca.privacy.gaussian import epsilon_for
from inca.privacy.theorems.joined_bound import loss_bound
from inca.privacy.theorems.message_graph import MessageGraph
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.reporting.verdict import compare

_UP = 1.0 + 1e-12  # more than rounding takes


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
    """Works out the losses of one party on the terms of a roster, for a schedule that is known.

    Losses are those of real numbers, and what whole ones add (`SessionSetup.rounding`).
    """

    def __init__(self, setup: SessionSetup, topology: Topology, seed: bytes, party: int) -> None:
        self._setup, self._topology, self._party = setup, topology, party
        self.coalitions, self.complete = choose_coalitions(setup.roster, seed, party)
        self.seed = seed
        self._planned: LossCheck | None = None

    def planned(self) -> LossCheck:
        """Return the party's loss had everyone been present throughout; worked out once, whatever happens."""
        if self._planned is None:
            run = Execution(self._topology.schedule, self._setup.roster.terms.injection)
            self._planned = self._worst(run.settled())
        return self._planned

    def realized(self, realized: RealizedExecution) -> LossCheck:
        """Return the party's loss on the agreed execution, those outside its cohort counted as colluders."""
        return self._worst(realized.execution)

    def certify(self, realized: RealizedExecution, coalition: Sequence[int] | None = None) -> Certificate:
        """Return the certificate of the agreed execution against one coalition, by default the worst considered."""
        terms, execution = self._setup.roster.terms, realized.execution
        adversary = Adversary(tuple((self._exact(execution).coalition if coalition is None else coalition) or ()))
        transcript = replace(self._setup.transcript(execution), adversary=adversary)
        as_intended = not execution.undelivered and execution.presence.all_present
        return certify(
            transcript,
            rule=terms.rule,
            intended=None if as_intended else self._topology.schedule,
            basis="leavers counted as colluders",
        )

    def _worst(self, execution: Execution) -> LossCheck:
        bounded = None if self.complete else self._against_all(execution)
        return self._exact(execution) if bounded is None or bounded.refusal else bounded

    def _against_all(self, execution: Execution) -> LossCheck | None:
        """Return a bound on the loss against every coalition of the agreed size; None where none is known."""
        setup, terms, cohort = self._setup, self._setup.roster.terms, execution.cohort
        assert cohort is not None
        colluders, levels = setup.session.colluders, setup.noise_levels(execution)
        if terms.receivers != 1 or not MessageGraph.of(View(execution).of_cohort()).keeps_joined(colluders):
            return None
        weights = execution.total_weights
        variances = np.sort((weights[cohort] * levels.independent) ** 2 + levels.topup**2)
        together = math.fsum(variances[: variances.size - colluders])  # if those collude who have most
        bound = loss_bound(
            weight=float(weights[self._party]) * _UP,
            variance=together / _UP,
            joined=variances.size,
            rounds=terms.rounds,
            cancelling_variance=levels.cancelling**2 / _UP,
            sensitivity=terms.sensitivity,
        )
        mu = setup.rounding(execution).loss(np.array([bound]))
        epsilon = float(epsilon_for(mu, terms.delta, terms.rule)[0])
        return LossCheck(
            epsilon, None, terms.epsilon, math.comb(len(setup.roster.parties) - 1, colluders), complete=True
        )

    def _exact(self, execution: Execution) -> LossCheck:
        terms, rounding = self._setup.roster.terms, self._setup.rounding(execution)
        levels = self._setup.noise_levels(execution)
        losses_mu: list[tuple[float, tuple[int, ...]]] = []
        for coalition in self.coalitions:
            view = View(execution, Adversary(coalition)).of_cohort()
            losses = account(view, levels, sensitivity=terms.sensitivity).in_whole_numbers(rounding)
            losses_mu.append((float(losses.mu[losses.honest.tolist().index(self._party)]), coalition))
        mu, coalition = max(losses_mu)
        epsilon = float(epsilon_for(np.array([mu]), terms.delta, terms.rule)[0])
        names = tuple(self._setup.roster.names[member] for member in coalition)
        return LossCheck(epsilon, coalition, terms.epsilon, len(losses_mu), self.complete, names)


def choose_coalitions(roster: Roster, seed: bytes, party: int) -> tuple[list[tuple[int, ...]], bool]:
    """Return the coalitions to be considered against a party, at least one, and whether these are all there are."""
    n, terms = len(roster.parties), roster.terms
    others = [other for other in range(n) if other != party]
    size = min(whole_parties("colluding", terms.colluding, n), n - 1)
    if math.comb(n - 1, size) <= terms.coalitions:
        return list(combinations(others, size)), True
    digest = hashlib.sha256(b"inca-coalitions/2" + roster.session + seed + party.to_bytes(4, "little")).digest()
    rng = np.random.Generator(np.random.Philox(key=int.from_bytes(digest[:16], "little")))
    drawn = {tuple(sorted(rng.choice(others, size, replace=False).tolist())) for _ in range(terms.coalitions)}
    return sorted(drawn), False
