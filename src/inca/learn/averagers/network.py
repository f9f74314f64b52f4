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
from inca.network.sequence.session_sequence import SessionSequence
from inca.privacy.gaussian import mu_for

T = TypeVar("T")


class NetworkAverager:
    """One party's side of averages that are sessions of a roster, one after the other.

    The roster's terms say how much noise one average of some sensitivity and loss needs; each average scales it to
    its own. The sequence keeps all outcomes, so a program that was stopped can be started again from the beginning.
    Used as a context, it stays at the end until those who missed the last result could get it.

    Args:
        sequence: This party's sequence of sessions, see `inca.network.sequence.session_sequence`.
    """

    def __init__(self, sequence: SessionSequence) -> None:
        self.sequence = sequence
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
        """Return the variance of the noise in each coordinate if everyone stays; if parties leave there is more.

        Args:
            sensitivity: The largest Euclidean distance between two vectors that must be indistinguishable.
            mu: The loss of the release.

        Returns:
            The variance in the mean of all parties.
        """
        scale = self._mu_per_distance * positive("sensitivity", sensitivity) / positive("mu", mu)
        return (scale * self.sequence.roster.terms.sigma_independent) ** 2 / self.parties

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
            The mean; its noise is that of the realized execution, or an expectation if this party was not there.

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
        outcome = self.sequence.average(table[0], max_norm=max_norm, distance=sensitivity, mu=mu)
        if outcome.estimate is None:
            return VectorMean(None, math.inf, mu)
        error = outcome.standard_error
        return VectorMean(outcome.estimate, self.var_noise(sensitivity, mu) if error is None else error**2, mu)

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
