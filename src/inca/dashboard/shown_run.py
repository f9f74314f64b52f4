"""The run that a page shows: simulated, or read from a file."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca._base.validation import refuse
from inca.dashboard.questions import AdversaryChoice
from inca.dashboard.simulated_run import SimulatedRun
from inca.protocol.adversary import Adversary
from inca.protocol.domain import Interval
from inca.protocol.execution import Execution
from inca.protocol.noise import Noise, draw_noise
from inca.protocol.transcript import Transcript

DOMAIN = Interval(0.0, 240.0)
"""Where the values of simulated runs lie: the mean waiting times of hospitals, in minutes; they are made up."""

UNIT = "minutes"
"""What these values are counted in."""

_USUAL = 40.0, 200.0  # between these they are drawn, as the mean of many patients is never extreme

_AGREED_SEED = 0  # so that a page shows the same adversary again


@dataclass(frozen=True, eq=False, repr=False)
class SimulatedData:
    """What only a simulated run has: made-up values, one per party, and all noise terms."""

    values: Array
    noise: Noise

    def __repr__(self) -> str:
        return f"SimulatedData(values of shape {self.values.shape}, {self.noise!r})"

    @classmethod
    def draw(cls, settings: SimulatedRun, execution: Execution) -> SimulatedData:
        """Draw both from the seed.

        Whoever is absent draws no noise, so the terms of others stay the same when presence changes.
        """
        values = np.random.default_rng((settings.seed, 1)).uniform(*_USUAL, execution.parties).round()
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

    def __repr__(self) -> str:
        return f"ShownRun({self.execution!r}, {'from a file' if self.data is None else repr(self.data)})"

    @classmethod
    def simulated(cls, settings: SimulatedRun) -> ShownRun:
        """Return the run that an address describes."""
        execution, levels = settings.execution(), settings.noise_levels
        transcript = Transcript(
            execution,
            sigma_independent=levels.independent,
            sigma_cancelling=levels.cancelling,
            adversary=Adversary(),
            sensitivity=DOMAIN.sensitivity() / settings.records,
        )
        return cls(transcript, SimulatedData.draw(settings, execution))

    @property
    def execution(self) -> Execution:
        """Who sent what to whom."""
        return self.transcript.execution

    def sensitivity(self, stated: float | None) -> float:
        """Return how far a value can move: as an address states it, but no less than the file says; else refuse."""
        known = self.transcript.sensitivity
        if stated is None:
            if known is None:
                refuse("sensitivity", None, "stated on this page, as the file does not say how far a value can move")
            return known
        if known is not None and stated < known:
            refuse("sensitivity", stated, f"at least {known:g}, as the file says")
        return stated

    def adversary(self, choice: AdversaryChoice) -> Adversary:
        """Return the adversary that an address names; what it does not name is as the file says."""
        own = self.transcript.adversary or Adversary()
        colluding = own.colluding if choice.colluding is None else choice.colluding
        if choice.eavesdropped is None:
            return Adversary(colluding, own.eavesdropped)
        everyone = range(self.execution.parties)
        messages = [(t, i) for t, party in choice.eavesdropped for i in (everyone if party is None else (party,))]
        return Adversary(colluding, messages)

    def observer(self, choice: AdversaryChoice) -> Adversary:
        """Return the adversary to account for: named by the address or the file, or drawn of the agreed size.

        Nobody is assumed to be the adversary, since that would make every loss look small.
        """
        execution, agreed = self.execution, self.transcript.agreed
        if self.transcript.adversary is not None or choice.colluding is not None or choice.eavesdropped is not None:
            return self.adversary(choice)
        if agreed is None:
            refuse("the adversary", None, "chosen on this page, as the file does not say who colludes")
        return agreed.adversary.draw(execution.parties, execution.rounds, np.random.default_rng(_AGREED_SEED))
