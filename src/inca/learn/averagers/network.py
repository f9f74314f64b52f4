"""Averages over a network, for statistics and training: each party runs the same program on its own records.

    sequence = SessionSequence(read_roster("roster.json"), Identity.read("anna"), "course")
    with NetworkAverager(sequence) as averager:
        datasets = averager.with_others((features, targets), sizes)
        result = train(model, datasets, averager, Budget(2.0, 1e-5), steps=20, rng=rng, clipping=Clipping(1.0))

Noise is not drawn from `rng` but from the operating system's randomness. It needs cryptography:
pip install 'inca[network]'.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import finite_array, positive, refuse
from inca.learn.averagers.base import RemoteRecords, VectorMean
from inca.learn.budget import Budget
from inca.network.sequence.session_sequence import AverageRequest, SessionSequence, terms_for
from inca.privacy.gaussian import mu_for

T = TypeVar("T")

# Measured, not proven. Noise in units of sigma_independent^2 / m and sigma_cancelling^2 (n - m) / m^2, if n - m of n
# parties leave for good: in 25,560 random executions of all three schedules (5 to 40 parties, 4 to 20 rounds, up to
# half leaving) the largest factors were 1.02 and 3.41, and 1.04 and 3.31 in 10,000 others. Parties that come back, or
# shares that are lost, were not in it.
_INDEPENDENT_AT_WORST, _CANCELLING_AT_WORST = 1.25, 4.0


class NetworkAverager:
    """One party's side of averages that are sessions of a roster, one after the other.

    The roster's terms say how much noise one average of some sensitivity and loss needs; each average scales it to
    its own. The sequence keeps all outcomes, so a program that was stopped can be started again from the beginning.
    Used as a context, it stays at the end until those who missed the last result could get it.

    What was agreed is the limit: should sessions give away more than the budgets that they are taken from, since too
    many left, this party stays away from further ones (`SessionSequence.allow`).

    Args:
        sequence: This party's sequence of sessions, see `inca.network.sequence.session_sequence`.
    """

    def __init__(self, sequence: SessionSequence) -> None:
        self.sequence = sequence
        self._budgets: list[Budget] = []
        self._expected, self._squares_without_budget = 0, 0.0
        terms = sequence.roster.terms
        self._mu_per_distance = mu_for(terms.epsilon, terms.delta, terms.rule) / terms.sensitivity

    @property
    def parties(self) -> int:
        """The number of parties."""
        return len(self.sequence.roster.parties)

    @property
    def me(self) -> int:
        """This party's place in the roster."""
        return self.sequence.me

    @property
    def dropout(self) -> float:
        """The largest fraction that may leave for there to be a result."""
        return 1.0 - self.sequence.roster.terms.min_participants / self.parties

    @property
    def failure_probability(self) -> float | None:
        """How likely the roster's plan fails in one session, at most; None: the roster does not say."""
        return self.sequence.roster.terms.failure

    @property
    def releases(self) -> int | None:
        """None: what the plan is for is not in the roster."""
        return None

    def expect(self, budget: Budget | None, releases: int) -> None:
        """Be told from which budget the next sessions are taken: what it allows is the limit of this party's loss.

        Args:
            budget: The budget; None: each session has a mu of its own, which is what is agreed on for it.
            releases: How many sessions follow.

        Raises:
            InvalidInput: If the budget has another delta or rule than the roster, so that losses could not be compared.
        """
        if budget is None:
            return
        terms = self.sequence.roster.terms
        if (budget.delta, budget.rule) != (terms.delta, terms.rule):
            must_be = f"{terms.delta:g} by the {terms.rule} rule, as in the roster"
            refuse("the delta of the budget", f"{budget.delta:g} by the {budget.rule} rule", must_be)
        if all(budget is not known for known in self._budgets):
            self._budgets.append(budget)
        self._expected += releases

    def with_others(self, own: T, sizes: Sequence[int]) -> list[T | RemoteRecords]:
        """Return one entry per party: what this one holds, and how many records each of the others does.

        Args:
            own: This party's records, in whatever form.
            sizes: How many records each party of the roster holds, which is public.

        Returns:
            `own` in this party's place, `RemoteRecords` everywhere else.
        """
        if len(sizes) != self.parties:
            refuse("the number of sizes", len(sizes), f"{self.parties}, one for each party")
        return [own if party == self.me else RemoteRecords(size) for party, size in enumerate(sizes)]

    def var_noise(self, sensitivity: float, mu: float) -> float:
        """Return the variance of the noise in each coordinate if everyone stays; if parties leave they top it up.

        Args:
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.

        Returns:
            The variance in the mean of all parties.
        """
        scale = self._mu_per_distance * positive("sensitivity", sensitivity) / positive("mu", mu)
        terms = self.sequence.roster.terms
        return (scale * terms.sigma_at_full_attendance(self.parties)) ** 2 / self.parties

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        max_norm: float | None = None,
    ) -> VectorMean:
        """Hold the next session with this party's row, or return its outcome if it is known.

        Args:
            vectors: One row, this party's own, (1, d).
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.
            rng: Not used: whoever knew its state would know the noise.
            max_norm: A bound on the Euclidean norm of any party's row.

        Returns:
            The mean; its noise is that of the realized execution or, if this party cannot tell, more than was measured
            with as many leavers as the roster allows.

        Raises:
            InvalidInput: If the program asks for something else than it did when it was started before.
            SequencePaused: If the sequence cannot go on now.
        """
        del rng
        table = finite_array("vectors", vectors, (2,), "one row of numbers, this party's")
        if len(table) != 1:
            refuse("the number of vectors", len(table), "1, this party's own")
        if max_norm is None:
            refuse("max_norm", max_norm, "a bound on the norm of every party's vector")
        self._limit_loss(mu)
        outcome = self.sequence.average(table[0], max_norm=max_norm, distance=sensitivity, mu=mu)
        if outcome.estimate is None:
            return VectorMean(None, math.inf, mu)
        request = AverageRequest(table.shape[1], max_norm, sensitivity, mu)
        error = outcome.standard_error
        return VectorMean(outcome.estimate, self._var_at_worst(request) if error is None else error**2, mu)

    def _limit_loss(self, mu: float) -> None:
        """Let the sequence stay away from sessions once what was agreed on up to the next one is lost."""
        if self._expected:
            self._expected -= 1
        else:
            self._squares_without_budget += positive("mu", mu) ** 2
        squares = math.fsum(budget.mu**2 for budget in self._budgets if budget.spent)
        self.sequence.allow(math.sqrt(squares + self._squares_without_budget))

    def _var_at_worst(self, request: AverageRequest) -> float:
        """Return more noise than was measured in a coordinate of any result with as many leavers as may be."""
        terms = terms_for(self.sequence.roster.terms, request, self.parties)
        present, leavers = terms.min_participants, self.parties - terms.min_participants
        independent = terms.sigma_independent**2 * (_INDEPENDENT_AT_WORST if leavers else 1.0)
        independent += terms.topup(self.parties).most(present) ** 2
        return (independent + _CANCELLING_AT_WORST * terms.sigma_cancelling**2 * leavers / present) / present

    def report(self) -> dict[str, Any]:
        """Return this party's loss in all sessions together: as agreed, and on the realized executions."""
        return self.sequence.report()

    def __enter__(self) -> NetworkAverager:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stay until those who missed the last result could get it, unless something went wrong here."""
        if kind is None:
            self.sequence.finish()
