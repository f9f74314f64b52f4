"""Averages over a network, for statistics and training: each party runs the same program on its own records.

    with Sessions(Course(read_roster("roster.json"), Identity.read("anna"), "course")) as sessions:
        parts = sessions.with_others((features, targets), sizes)
        found = train(model, parts, sessions, Budget(2.0, 1e-5), steps=20, rng=rng, clipping=Clipping(1.0))

Noise is not drawn from `rng` but from the operating system's randomness. It needs cryptography:
pip install 'inca[network]'.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import InputError, finite_array, positive, refuse
from inca.learn.averagers.base import Elsewhere
from inca.learn.averagers.simulated import Average
from inca.network.sequence.session_sequence import Course
from inca.privacy.gaussian import mu_for

T = TypeVar("T")


class Sessions:
    """One party's side of averages that are sessions of a roster, one after the other; see `SessionSequence`.

    The roster's terms say how much noise one average of some distance and loss needs; each average scales it to its
    own. The course keeps all outcomes, so a program that was stopped can be started again from the beginning.
    """

    def __init__(self, course: Course) -> None:
        """Go through a course."""
        self.course = course
        terms = course.roster.terms
        self._unit = mu_for(terms.epsilon, terms.delta, terms.rule) / terms.sensitivity

    @property
    def parties(self) -> int:
        """How many parties there are."""
        return len(self.course.roster.parties)

    @property
    def me(self) -> int:
        """This party's place among them."""
        return self.course.me

    @property
    def dropout(self) -> float:
        """The largest fraction that may leave for there to be a result."""
        return 1.0 - self.course.roster.terms.least_cohort / self.parties

    def with_others(self, own: T, sizes: Sequence[int]) -> list[T | Elsewhere]:
        """Return one entry per party: what this one holds, and how many records the others do.

        `sizes` are public: the number of records of every party.
        """
        if len(sizes) != self.parties:
            raise refuse("the number of sizes", len(sizes), f"one for each of {self.parties} parties")
        return [own if party == self.me else Elsewhere(size) for party, size in enumerate(sizes)]

    def noise(self, sensitivity: float, mu: float) -> float:
        """Return the variance of the noise in each coordinate if everyone stays; if parties leave there is more."""
        scale = self._unit * positive("sensitivity", sensitivity) / positive("mu", mu)
        return (scale * self.course.roster.terms.sigma_independent) ** 2 / self.parties

    def average(
        self,
        vectors: ArrayLike,
        sensitivity: float,
        mu: float,
        rng: np.random.Generator,
        *,
        reach: float | None = None,
    ) -> Average:
        """Hold the next session with the one row of `vectors`, or return its outcome if it is known.

        The noise is that of the execution which came about, or an expectation if this party was not there.
        """
        del rng  # whoever knew its state would know the noise
        table = finite_array("vectors", vectors, (2,), "one row of numbers, this party's")
        if len(table) != 1:
            raise refuse("the number of vectors", len(table), "1, this party's own")
        if reach is None:
            raise InputError("reach is not given, but over a network a bound on the length of all vectors was expected")
        found = self.course.average(table[0], reach=reach, distance=sensitivity, mu=mu)
        if found.average is None:
            return Average(None, np.inf, mu)
        noise = self.noise(sensitivity, mu) if found.standard_error is None else found.standard_error**2
        return Average(found.average, noise, mu)

    def report(self) -> dict[str, Any]:
        """Return what all sessions together gave away of this party: agreed, and on the executions that came about."""
        return self.course.report()

    def __enter__(self) -> Sessions:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stay until those who missed the last result could get it, unless something went wrong here."""
        if kind is None:
            self.course.end()
