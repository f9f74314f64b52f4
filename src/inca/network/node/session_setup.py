"""From the roster to what the state machine needs: whole numbers on the lattice, and a value on it with its noise."""

from __future__ import annotations

import hashlib
import math
import os
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from inca._base.types import Array
from inca._base.validation import real_array, refuse, whole_parties
from inca.network.lattice import Numbers
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.lattice.fixed_point import Lattice, granularity_for
from inca.network.membership.roster import Roster
from inca.network.protocol.opening.trustees import Tolerance, tolerance_of
from inca.network.protocol.session import WEIGHT, SessionConfig
from inca.privacy.gaussian import mu_for
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.rounding import Rounding
from inca.protocol.topup import TopUp
from inca.protocol.transcript import Transcript

MIN_EXCESS = 2.0**-20
"""The noise on the lattice is larger than agreed by at least this fraction: mostly far more than rounding takes."""
_MAX_ADDED_SHARE = 0.5  # of the agreed loss, that whole numbers may add to it


@dataclass(frozen=True)
class SessionSetup:
    """A roster, refused unless it is complete, with the lattice that follows from its terms."""

    roster: Roster

    def __post_init__(self) -> None:
        """Refuse a roster with which no session could begin."""
        self.roster.check_complete()

    @cached_property
    def lattice(self) -> Lattice:
        """The lattice: public, and the same for everyone."""
        terms = self.roster.terms
        noise = replace(terms.noise_levels, topup=self._topup.most(terms.min_participants))
        parties = len(self.roster.parties)
        return Lattice(granularity_for(noise, terms.max_coordinate, parties, terms.rounds))

    @cached_property
    def noise_excess(self) -> float:
        """By which fraction the noise is larger than agreed, to make up for rounding (docs/rounding.md).

        If real numbers would give away all that is agreed, whole ones give away no more.
        """
        terms = self.roster.terms
        mu = mu_for(terms.epsilon, terms.delta, terms.rule)
        added = self._added_mu(np.ones(len(self.roster.parties)), self._topup.least) / mu
        if not added <= _MAX_ADDED_SHARE:
            most = f"so small that whole numbers add at most {_MAX_ADDED_SHARE:g} of the agreed loss"
            refuse("dimension", terms.dimension, f"{most} (they would add {added:.3g} of it)")
        return max(MIN_EXCESS, (1.0 + self._encoding) / (1.0 - added) - 1.0)

    def rounding(self, execution: Execution) -> Rounding:
        """Return what whole numbers do to the losses of an execution of this session, settled or not.

        That is the term that is added, and by how much the noise is larger than agreed, beyond what encoding values
        takes.
        """
        added = self._added_mu(execution.total_weights, self.noise_levels(execution).topup)
        return Rounding((1.0 + self.noise_excess) / (1.0 + self._encoding) - 1.0, added)

    @property
    def _encoding(self) -> float:
        """By which fraction two values may be further apart on the lattice: step sqrt(d) / sensitivity."""
        terms = self.roster.terms
        return self.lattice.granularity * math.sqrt(terms.dimension) / terms.sensitivity

    def noise_levels(self, execution: Execution) -> NoiseLevels:
        """Return the agreed noise, topped up by the weights of the cohort of an execution, if it has one."""
        levels = self.roster.terms.noise_levels
        if execution.cohort is None:
            return levels
        # By the numbers that the parties use: there is top-up if and only if they add some.
        steps = self.session.topup.sigma(execution.cohort_weights)
        return replace(levels, topup=steps / self._in_steps)

    def transcript(self, execution: Execution) -> Transcript:
        """Return an execution with what was agreed, without an adversary: the same for all parties."""
        terms = self.roster.terms
        return Transcript(
            execution,
            sigma_independent=terms.sigma_independent,
            sigma_cancelling=terms.sigma_cancelling,
            sigma_topup=self.noise_levels(execution).topup,
            sensitivity=terms.sensitivity,
            agreed=terms.agreed,
            rounding=self.rounding(execution),
        )

    @cached_property
    def _topup(self) -> TopUp:
        return self.roster.terms.topup(len(self.roster.parties))

    @property
    def _in_steps(self) -> float:
        """What standard deviations are multiplied by when noise is drawn."""
        return (1.0 + self.noise_excess) / self.lattice.granularity

    def _added_mu(self, weights: Array, topup: float) -> float:
        terms, step = self.roster.terms, self.lattice.granularity
        levels = NoiseLevels(
            independent=terms.sigma_independent / step, cancelling=terms.sigma_cancelling / step, topup=topup / step
        )
        return added_mu(levels, rounds=terms.rounds, dimension=terms.dimension, weights=weights)

    @cached_property
    def session(self) -> SessionConfig:
        """What the state machine needs of it."""
        terms, lattice = self.roster.terms, self.lattice
        lattice.level(self._topup.most(terms.min_participants) * (1.0 + self.noise_excess))  # refused if too wide
        return SessionConfig(
            id=self.roster.session,
            parties=len(self.roster.parties),
            rounds=terms.rounds,
            schedule=terms.schedule,
            dimension=terms.dimension,
            # Rounded up, as clipping to a ball may end just outside of it.
            largest_value=math.ceil(terms.max_coordinate / lattice.granularity * (1.0 + 2.0**-40)) + 1,
            sigma_independent=lattice.level(terms.sigma_independent * (1.0 + self.noise_excess)),
            sigma_cancelling=lattice.level(terms.sigma_cancelling * (1.0 + self.noise_excess)),
            min_participants=terms.min_participants,
            start=terms.start,
            period=terms.period,
            min_round_duration=terms.min_round_duration,
            seed=self._seed,
            topup=self._topup.scaled(self._in_steps),
            names=tuple(self.roster.names),
            colluders=whole_parties("colluding", terms.colluding, len(self.roster.parties)),
            leavers=len(self.roster.parties) - terms.min_participants,
        )

    @property
    def _seed(self) -> bytes | None:
        """The public seed, if it is agreed on; where nothing is drawn by it, anything that all know."""
        terms = self.roster.terms
        if not terms.needs_seed:
            return hashlib.sha256(b"inca-no-seed/1" + self.roster.session).digest()
        return None if terms.seed is None else bytes.fromhex(terms.seed)

    @property
    def tolerance(self) -> Tolerance:
        """How many parties may be missing, before commit and after it."""
        return tolerance_of(self.session.parties, self.session.colluders, self.session.leavers)

    def add_noise(self, value: Array, *, clip: bool = False) -> Numbers:
        """Return a value on the lattice with its independent noise, drawn from the system's randomness.

        A value outside the agreed domain is refused, or moved to its border by `clip`.
        """
        numbers = np.atleast_1d(real_array("value", value, "(d,)"))
        if numbers.shape != (self.session.dimension,):
            refuse("the number of coordinates of the value", numbers.size, f"{self.session.dimension}, as agreed")
        valid = self.roster.terms.domain.validate(numbers[np.newaxis, :], clip=clip)[0]
        stream = Keystream(os.urandom(32), b"independent")
        noise = discrete_gaussian(self.session.sigma_independent, self.session.dimension, stream)
        return self.lattice.encode(valid) + noise

    def estimate(self, total: Numbers, weight: int) -> Array:
        """Return the mean that the sums of final messages and weights give: the same doubles for everyone."""
        mean = self.lattice.decode(total)
        mean *= WEIGHT / weight
        return mean


def added_mu(noise_in_steps: NoiseLevels, *, rounds: int, dimension: int, weights: ArrayLike) -> float:
    """Return what whole numbers add to every party's mu, at most, by the weights of all parties (docs/rounding.md).

    A loss is the size of the smallest change of the noise that hides another value. On the lattice it must consist of
    whole numbers, and shares and portions are rounded down; chosen well, it differs from the real one by a few steps:
    each of the T masks of a party changes by at most 8 steps more or less than in real numbers, and the noise of a
    party of weight w by 3 / w. Where parties top up their noise, that changes by at most 1/2, and the other by 3.5 / w.
    """
    parts, topped_up = np.asarray(weights, dtype=np.float64), noise_in_steps.topup > 0.0
    masks = 8.0 * math.sqrt(rounds * parts.size) / noise_in_steps.cancelling
    own = float(np.linalg.norm((3.5 if topped_up else 3.0) / parts)) / noise_in_steps.independent
    topup = 0.5 * math.sqrt(parts.size) / noise_in_steps.topup if topped_up else 0.0
    return math.sqrt(dimension) * math.hypot(masks, own, topup)
