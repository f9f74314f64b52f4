"""From the roster to what the state machine needs: whole numbers on the lattice, and a value on it with its noise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from inca._base.types import Array
from inca._base.validation import refuse
from inca.network.membership.roster import Roster
from inca.network.protocol.fixed_point import Keystream, Lattice, discrete_gaussian, granularity_for
from inca.network.protocol.messages import Numbers
from inca.network.protocol.session import WEIGHT, Session

INFLATION = 2.0**-20
"""By this fraction the noise on the lattice exceeds what was agreed, for the rounding of shares (privacy promise)."""


@dataclass(frozen=True)
class Setting:
    """A complete roster, with the lattice that follows from its terms."""

    roster: Roster

    def __post_init__(self) -> None:
        """Refuse a roster with which no session could begin."""
        self.roster.check_complete()

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice: public, and the same for everyone."""
        terms = self.roster.terms
        reach = terms.radius or max(abs(terms.lower or 0.0), abs(terms.upper or 0.0))
        levels = (terms.sigma_independent, terms.sigma_cancelling)
        return Lattice(granularity_for(*levels, reach, len(self.roster.parties), terms.rounds))

    @cached_property
    def session(self) -> Session:
        """What the state machine needs of it."""
        terms, lattice = self.roster.terms, self.lattice
        return Session(
            id=self.roster.session,
            parties=len(self.roster.parties),
            rounds=terms.rounds,
            receivers=terms.receivers,
            schedule=terms.schedule,
            quiet=terms.quiet_rounds,
            dimension=terms.dimension,
            sigma_independent=lattice.level(terms.sigma_independent * (1.0 + INFLATION)),
            sigma_cancelling=lattice.level(terms.sigma_cancelling * (1.0 + INFLATION)),
            least_cohort=terms.least_cohort,
            start=terms.start,
            period=terms.period,
            pace=terms.pace,
            seed=None if terms.seed is None else bytes.fromhex(terms.seed),
        )

    def noisy(self, value: Array, *, clip: bool = False) -> Numbers:
        """Return a value on the lattice with its independent noise, drawn from the system's randomness.

        What lies outside the agreed domain is refused, or clipped if asked for. Nothing but the sum is kept.
        """
        numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
        if numbers.shape != (self.session.dimension,):
            raise refuse("the number of coordinates of the value", numbers.size, f"{self.session.dimension}, as agreed")
        admitted = self.roster.terms.domain.admit(numbers[np.newaxis, :], clip)[0]
        stream = Keystream(os.urandom(32), b"independent")
        noise = discrete_gaussian(self.session.sigma_independent, self.session.dimension, stream)
        return self.lattice.encode(admitted) + noise

    def estimate(self, total: Numbers, weight: int) -> Array:
        """Return the mean that the sums of final messages and weights give: the same doubles for everyone."""
        return self.lattice.decode(total) * (WEIGHT / weight)
