"""CorDP-DME: pairwise noise among all, and no second chance (Vithana, Cadambe, Calmon, Jeong 2025)."""

from __future__ import annotations

import numpy as np

from inca._base.kernels import Flags
from inca._base.types import Array
from inca._base.validation import refuse
from inca.mechanisms.pairwise import Pairwise, complete_ratio
from inca.planning.requirements import Requirements
from inca.protocol.noise_levels import NoiseLevels

_MAX_TERMS = 2e8  # n^2 d from which a run takes too long
_BLOCK = 2**21  # terms drawn at a time


class CorDP(Pairwise):
    """All pairs share a Gaussian term, and nothing is rolled back: each leaver leaves a term with every survivor.

    The honest parties' graph is complete, so the least noise is known in closed form and nothing is sampled; it is
    that of full attendance, since leavers' terms only help the survivors' privacy.

    Args:
        requirements: The guarantee, the colluders and the dropout rate; nobody may eavesdrop.
        factor: sigma_independent^2 over s^2 / (mu^2 n_H), above 1; by default the one with the least error at the
            required dropout rate.
        noise_levels: Noise to be used as it is: nothing is chosen then, and nothing promised.

    Raises:
        InvalidInput: If messages are eavesdropped, or no cancelling noise makes up for the factor.

    Example:
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
        >>> cordp = CorDP(requirements)
        >>> cordp.messages, round(cordp.factor, 2)
        (199.0, 6.32)
        >>> round(cordp.expected_error(0.1).budget.noise / requirements.central_mse, 1)
        36.1
    """

    name = "CorDP-DME"
    any_dropout = True

    def __init__(
        self, requirements: Requirements, factor: float | None = None, *, noise_levels: NoiseLevels | None = None
    ) -> None:
        super().__init__(requirements)
        self.exchanges = requirements.parties - 1
        if noise_levels is not None:
            self._use(noise_levels)
            return
        factors, honest = self._factors(factor), requirements.honest
        self._choose_noise(factors, lambda place: complete_ratio(float(factors[place]), honest, honest), step=1)

    @property
    def failure_probability(self) -> float:
        """0: the guarantee holds always."""
        return 0.0

    def lower_bound(self, dropout: float) -> float:
        """Return the error due to noise alone, which the paper compares with: the values missing come on top."""
        return self.expected_error(dropout).budget.noise

    def _late(self, leavers: int) -> int:
        return leavers

    def _add_terms(self, messages: Array, kept: Flags, rng: np.random.Generator) -> None:
        n, d = messages.shape
        if float(n) ** 2 * d > _MAX_TERMS:
            refuse("n^2 d", n * n * d, f"at most {_MAX_TERMS:g} (all pairs share d numbers)")
        rows = max(1, _BLOCK // (n * d))
        for first in range(0, n, rows):
            # Party i draws a term for each j > i, adds it, and j subtracts it.
            block = self.noise_levels.cancelling * rng.standard_normal((min(rows, n - first), n - first, d))
            block *= np.triu(np.ones(block.shape[:2]), 1)[:, :, np.newaxis]
            messages[first : first + len(block)] += block.sum(axis=1)
            messages[first:] -= block.sum(axis=0)
