"""From the roster to what the state machine needs: whole numbers on the lattice, and a value on it with its noise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inca._base.types import Array
from inca._base.validation import refuse
from inca.network.membership.roster import Roster
from inca.network.protocol.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.protocol.fixed_point import Lattice, granularity_for
from inca.network.protocol.messages import Numbers
from inca.network.protocol.session import WEIGHT, SessionConfig

INFLATION = 2.0**-20
"""By this fraction the noise on the lattice exceeds what was agreed, for the rounding of shares (privacy promise)."""


@dataclass(frozen=True)
class SessionSetup:
    """A complete roster, with the lattice that follows from its terms.

    Args:
        roster: The parties and their terms.

    Raises:
        InvalidInput: The roster is not complete.
    """

    roster: Roster

    def __post_init__(self) -> None:
        """Refuse a roster with which no session could begin."""
        self.roster.check_complete()

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice: public, and the same for everyone."""
        terms = self.roster.terms
        parties = len(self.roster.parties)
        return Lattice(granularity_for(terms.noise_levels, terms.max_coordinate, parties, terms.rounds))

    @cached_property
    def session(self) -> SessionConfig:
        """What the state machine needs of it."""
        terms, lattice = self.roster.terms, self.lattice
        return SessionConfig(
            id=self.roster.session,
            parties=len(self.roster.parties),
            rounds=terms.rounds,
            receivers=terms.receivers,
            schedule=terms.schedule,
            quiet=terms.quiet_rounds,
            dimension=terms.dimension,
            sigma_independent=lattice.level(terms.sigma_independent * (1.0 + INFLATION)),
            sigma_cancelling=lattice.level(terms.sigma_cancelling * (1.0 + INFLATION)),
            min_participants=terms.min_participants,
            start=terms.start,
            period=terms.period,
            min_round_duration=terms.min_round_duration,
            seed=None if terms.seed is None else bytes.fromhex(terms.seed),
        )

    def add_noise(self, value: Array, *, clip: bool = False) -> Numbers:
        """Return a value on the lattice with its independent noise, drawn from the system's randomness.

        Args:
            value: This party's value; nothing but the sum is kept of it.
            clip: Move a value outside the agreed domain to its border.

        Returns:
            The noisy value, in lattice steps.

        Raises:
            InvalidInput: The value has another number of coordinates, or lies outside the domain and is not clipped.
        """
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
        if numbers.shape != (self.session.dimension,):
            refuse("the number of coordinates of the value", numbers.size, f"{self.session.dimension}, as agreed")
        valid = self.roster.terms.domain.validate(numbers[np.newaxis, :], clip=clip)[0]
        stream = Keystream(os.urandom(32), b"independent")
        noise = discrete_gaussian(self.session.sigma_independent, self.session.dimension, stream)
        return self.lattice.encode(valid) + noise

    def estimate(self, total: Numbers, weight: int) -> Array:
        """Return the mean that the sums of final messages and weights give: the same doubles for everyone.

        Args:
            total: The sum of the final messages, in lattice steps.
            weight: The sum of their weights, in the units that travel.

        Returns:
            The mean.
        """
        return self.lattice.decode(total) * (WEIGHT / weight)
