"""The run that a page shows: simulated, or read from a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca.dashboard.questions import AdversaryChoice
from inca.dashboard.simulated_run import SimulatedRun
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.simulation import Noise, draw_noise
from inca.protocol.transcript import Transcript


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedData:
    """What only a simulated run has: made-up values between 0 and 1, one per party, and all noise terms."""

    values: Array
    noise: Noise

    @classmethod
    def draw(cls, settings: SimulatedRun, execution: Execution) -> SimulatedData:
        """Draw both from the seed.

        Whoever is absent draws no noise, so the terms of others stay the same when presence changes.
        """
        values = np.random.default_rng((settings.seed, 1)).random(execution.parties)
        noise = draw_noise(execution, settings.noise_levels, np.random.default_rng((settings.seed, 2)))
        return cls(values, Noise(noise.independent[:, 0], noise.cancelling[:, :, 0]))


@dataclass(frozen=True, eq=False, repr=False)
class ShownRun:
    """What is public about a run, and its data if it is simulated.

    Example:
        >>> run = ShownRun.simulated(SimulatedRun(parties=4, rounds=3))
        >>> run.adversary(AdversaryChoice(colluding=(1,), eavesdropped=((0, None),))).eavesdropped
        ((0, 0), (0, 1), (0, 2), (0, 3))
    """

    transcript: Transcript
    data: SimulatedData | None = None

    @classmethod
    def simulated(cls, settings: SimulatedRun) -> ShownRun:
        """Return the run that an address describes."""
        execution, levels = settings.execution(), settings.noise_levels
        transcript = Transcript(
            execution, sigma_independent=levels.independent, sigma_cancelling=levels.cancelling, adversary=Adversary()
        )
        return cls(transcript, SimulatedData.draw(settings, execution))

    @property
    def execution(self) -> Execution:
        """Who sent what to whom."""
        return self.transcript.execution

    def adversary(self, choice: AdversaryChoice) -> Adversary:
        """Return the adversary that an address names; what it does not name is as the file says."""
        own = self.transcript.adversary
        colluding = own.colluding if choice.colluding is None else choice.colluding
        if choice.eavesdropped is None:
            return Adversary(colluding, own.eavesdropped)
        everyone = range(self.execution.parties)
        messages = [(t, i) for t, party in choice.eavesdropped for i in (everyone if party is None else (party,))]
        return Adversary(colluding, messages)
