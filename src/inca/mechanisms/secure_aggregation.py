"""Ideal secure aggregation with distributed noise: what cryptography and a server buy.

Masks that the server can remove from the sum, and only from the sum, hide everything but the sum over the survivors
(Bonawitz et al. 2017). Each party adds its part of the noise, of variance s^2 / (mu^2 n_H*), so that n_H* honest
survivors suffice to protect each of them. n_H* is assumed before anyone leaves: assume too much and the sum must not
be opened.
"""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import integer
from inca.mechanisms.base import ExpectedError, MeanEstimate, Mechanism, match_shape
from inca.mechanisms.mask_graph import privacy_failure
from inca.planning.requirements import Requirements
from inca.protocol.expected_error import ErrorBudget


class SecureAggregation(Mechanism):
    """The sum over the survivors and nothing else is seen; below a threshold of survivors there is no result.

    The threshold is what remains if the assumed fraction of the parties leaves. The least number of honest survivors
    is then n_H* = threshold - colluders, and never less than 1: a party can count on itself. The error n^2 / (m n_H*)
    times that of Central DP, with m survivors, is the least that noise shared among distrusting parties can have
    (fact F10), since colluders' noise protects nobody.

    Args:
        requirements: The guarantee, the colluders and the dropout rate.
        assumed_dropout: The fraction of the parties that may leave; by default the required dropout rate.
        neighbours: How many others a party shares keys with; by default all, as in Bonawitz et al. 2017. Bell et al.
            (2020) get by with far fewer: with 10^4 parties, up to 5 % of them corrupt and 5 % dropping out, 3 % of
            the parties are enough for a value to be summed with those of at least 5,000 others (their semi-malicious
            setting). Against colluders who follow the protocol, as here, fewer will do: see
            `inca.mechanisms.mask_graph.least_mask_graph`.

    Example:
        >>> requirements = Requirements(parties=10_000, epsilon=0.2, delta=1e-5, colluding=0.05, dropout=0.05)
        >>> aggregation = SecureAggregation(requirements, neighbours=300)
        >>> aggregation.threshold, aggregation.honest_survivors, aggregation.messages
        (9500, 9000, 602.0)
        >>> round(aggregation.expected_error(0.05).budget.noise / requirements.central_mse, 3)
        1.17
        >>> aggregation.expected_error(0.06).mse
        inf
    """

    name = "secure aggregation"
    promise = "colluders and the server together, as long as the cryptography holds; needs a server that all can reach"
    any_dropout = True  # below the number of survivors that is assumed there is no result

    def __init__(
        self, requirements: Requirements, assumed_dropout: float | None = None, neighbours: int | None = None
    ) -> None:
        super().__init__(requirements)
        assumed = requirements.leavers if assumed_dropout is None else self._leavers(assumed_dropout, "assumed_dropout")
        self.threshold = max(1, requirements.parties - assumed)
        self.honest_survivors = max(1, self.threshold - requirements.colluders)
        others = requirements.parties - 1
        self.neighbours = others if neighbours is None else integer("neighbours", neighbours, min=1, max=others)

    @property
    def sigma_independent(self) -> float:
        """The noise that each party adds: s / (mu sqrt(n_H*))."""
        return math.sqrt(self.requirements.var_local_dp / self.honest_survivors)

    @cached_property
    def failure_probability(self) -> float:
        """A bound on how likely keys among a few let colluders see more than the sum; 0 with keys among all."""
        if self.neighbours == self.requirements.parties - 1:
            return 0.0
        return privacy_failure(self.requirements, self.neighbours, self.requirements.parties - self.threshold)

    @property
    def messages(self) -> float:
        """Two for every neighbour and two for the server, all of them through the server.

        To each neighbour a share of the keys; for each neighbour a share handed back so that masks can be removed; to
        the server the public keys and the masked value. They are short but for the masked value. Bundling what goes to
        the server at one time gives four messages, of which two grow with the number of neighbours.
        """
        return 2.0 * self.neighbours + 2.0

    def expected_error(self, dropout: float) -> ExpectedError:
        """Return the exact expected error; infinite if fewer survive than the threshold asks for."""
        leavers = self._leavers(dropout)
        survivors = self.requirements.parties - leavers
        if survivors < self.threshold:
            return ExpectedError(ErrorBudget(math.inf, 0.0, math.inf))
        noise = self.requirements.var_local_dp / (self.honest_survivors * survivors)
        return ExpectedError(ErrorBudget(noise, 0.0, self._missing_values(leavers)))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run once; None if fewer survive than the threshold asks for. The cryptography is taken to be ideal."""
        table, leavers = self._validate(values, rng, dropout)
        present = np.ones(len(table), dtype=np.bool_)
        present[rng.permutation(len(table))[:leavers]] = False
        return self._sum_over(values, table, present, rng)

    def _sum_over(self, values: ArrayLike, table: Array, present: Flags, rng: np.random.Generator) -> MeanEstimate:
        """Return the noisy sum over those present, divided by their number; None below the threshold."""
        survivors = int(present.sum())
        if survivors < self.threshold:
            return None
        noisy = table + self.sigma_independent * rng.standard_normal(table.shape)
        return match_shape(noisy[present].sum(axis=0) / survivors, values)
