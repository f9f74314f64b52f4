"""A transcript: an execution with all that is known of what its losses depend on."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from inca._base.validation import finite_float, instance, refuse
from inca.protocol.adversary import Adversary, RandomAdversary
from inca.protocol.execution import Execution
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.rounding import Rounding


@dataclass(frozen=True)
class AgreedGuarantee:
    """What the parties of an execution agreed on before it: what it must keep, and against whom.

    Args:
        epsilon: The largest epsilon of an honest party.
        delta: Its delta.
        colluding: The fraction of the parties that may collude.
        eavesdropped: The fraction of each round's messages that may be eavesdropped on.
        failure: How likely, over random schedules, adversaries and leavers, the loss of a given honest party is larger
            in an execution; it adds to delta. None: not known.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> agreed = AgreedGuarantee(epsilon=1.0, delta=1e-5, colluding=0.1, failure=5e-7)
        >>> agreed.adversary, str(agreed)
        (RandomAdversary(colluding=0.1, eavesdropped=0.0), '(1, 1e-05 + 5e-07)-DP')
    """

    epsilon: float
    delta: float
    colluding: float = 0.0
    eavesdropped: float = 0.0
    failure: float | None = None

    def __post_init__(self) -> None:
        finite_float("agreed.epsilon", self.epsilon, min=0.0)
        finite_float("agreed.delta", self.delta, 0.0, 1.0)
        finite_float("agreed.colluding", self.colluding, 0.0, 1.0)
        finite_float("agreed.eavesdropped", self.eavesdropped, 0.0, 1.0)
        if self.failure is not None:
            finite_float("agreed.failure", self.failure, 0.0, 1.0)

    def __str__(self) -> str:
        if self.failure is None:
            return f"({self.epsilon:g}, {self.delta:g} + an unknown probability of failure)-DP"
        more = f" + {self.failure:.2g}" if self.failure else ""  # 0 is certain
        return f"({self.epsilon:g}, {self.delta:g}{more})-DP"

    @property
    def adversary(self) -> RandomAdversary:
        """An adversary of the agreed size."""
        return RandomAdversary(colluding=self.colluding, eavesdropped=self.eavesdropped)


@dataclass(frozen=True, eq=False)
class Transcript:
    """An execution with all that is known of what its losses depend on: what a file holds.

    What is None is not known. Nothing is assumed in its place: whoever accounts for the execution must say it.

    Args:
        execution: What is public about the run.
        sigma_independent: The level of the independent noise, sigma_*, if it is known.
        sigma_cancelling: The level of the cancelling noise, sigma_Delta, if it is known.
        sigma_topup: The level of the noise that each party of the cohort adds when it settles.
        adversary: Who colludes and which messages are eavesdropped on; `Adversary()` for nobody and none.
        sensitivity: How far one party's value can move, in Euclidean distance.
        agreed: What the parties agreed on.
        rounding: What whole numbers did to its losses; None for an execution in real numbers.

    Raises:
        InvalidInput: If a number is out of range, or the adversary does not fit the execution.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental_injection(2))
        >>> Transcript(execution, sigma_independent=2.0, sigma_cancelling=3.0).noise_levels
        NoiseLevels(independent=2.0, cancelling=3.0, topup=0.0)
    """

    execution: Execution
    _: KW_ONLY
    sigma_independent: float | None = None
    sigma_cancelling: float | None = None
    sigma_topup: float = 0.0
    adversary: Adversary | None = None
    sensitivity: float | None = None
    agreed: AgreedGuarantee | None = None
    rounding: Rounding | None = None

    def __post_init__(self) -> None:
        instance("execution", self.execution, Execution)
        if self.adversary is not None:
            instance("adversary", self.adversary, Adversary).check(self.execution)
        if self.agreed is not None:
            instance("agreed", self.agreed, AgreedGuarantee)
        for name in ("sigma_independent", "sigma_cancelling", "sigma_topup", "sensitivity"):
            if getattr(self, name) is not None:
                finite_float(name, getattr(self, name), min=0.0)
        if self.sigma_topup > 0.0 and self.execution.cohort is None:
            refuse("sigma_topup", self.sigma_topup, "0, as nobody settles")

    @property
    def noise_levels(self) -> NoiseLevels:
        """All levels; refused if one of them is not known."""
        if self.sigma_independent is None or self.sigma_cancelling is None:
            missing = "sigma_independent" if self.sigma_independent is None else "sigma_cancelling"
            refuse(missing, None, "known to account for an execution")
        levels = {"independent": self.sigma_independent, "cancelling": self.sigma_cancelling}
        return NoiseLevels(**levels, topup=self.sigma_topup)

    @property
    def delta(self) -> float:
        """The delta at which epsilon is told, if nobody asks for another: the agreed one, else 1e-5."""
        return 1e-5 if self.agreed is None else self.agreed.delta

    @property
    def known_adversary(self) -> Adversary:
        """The adversary; refused if it is not known."""
        if self.adversary is None:
            refuse("adversary", None, "known to account for an execution: Adversary() if nobody colludes or eavesdrops")
        return self.adversary
