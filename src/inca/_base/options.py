"""What users choose: each option once, with its name, type, default and meaning, for Python and the command line.

Imports nothing heavy, since `inca --help` is made of these classes: the text under a field is the help of its option.
Parts that are never used on their own have neither `==` nor a representation: making these takes longer than the rest.
"""

from dataclasses import dataclass
from typing import Literal, get_args

Rule = Literal["analytic", "classic"]
Settlement = Literal["settled", "none"]
ScheduleKind = Literal["random", "distinct", "permutation", "circle"]
InjectionKind = Literal["incremental", "early"]

# --- the guarantee --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Size:
    """How many take part."""

    parties: int
    """Number of parties n."""


@dataclass(frozen=True, eq=False, repr=False)
class Delta:
    """The probability with which more than epsilon may be lost."""

    delta: float = 1e-5
    """Required delta, between 0 and 1; the probability that a plan fails adds to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Epsilon:
    """The most that may be lost."""

    epsilon: float
    """Required epsilon: the most that may be lost, by every honest party."""


@dataclass(frozen=True, eq=False, repr=False)
class Loss(Delta, Epsilon):
    """The most privacy that may be lost."""


@dataclass(frozen=True, eq=False, repr=False)
class Privacy(Loss):
    """The most privacy that may be lost, and how noise becomes epsilon."""

    rule: Rule = "analytic"
    """How noise becomes epsilon: analytic (exact), or classic, the paper's constant, for epsilon below 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Colluding:
    """Parties that pool what they see."""

    colluding: float = 0.1
    """Fraction of the parties that may collude, rounded up to whole parties: by default a tenth, at least one."""


@dataclass(frozen=True, eq=False, repr=False)
class Eavesdropped:
    """Messages that are overheard."""

    eavesdropped: float = 0.0
    """Fraction of each round's messages that are eavesdropped on, drawn at random; rounded up."""


@dataclass(frozen=True, eq=False, repr=False)
class Dropout:
    """Parties that leave."""

    dropout: float | None = None
    """Fraction of the parties that may leave for good, rounded up. Default: a tenth, or fewer if too few would stay."""


@dataclass(frozen=True)
class Conditions(Dropout, Eavesdropped, Colluding):
    """What a guarantee must withstand, and how many messages may be sent.

    Example:
        >>> Conditions(colluding=0.1).failure
        1e-06
    """

    messages: int | None = None
    """Messages that a party may send, the final one included. Default: as many as the plan needs, which are few."""
    failure: float = 1e-6
    """Probability that the plan fails for a party, over schedules, adversaries and leavers; adds to delta."""


@dataclass(frozen=True, kw_only=True)
class Guarantee(Conditions, Privacy):
    """(epsilon, delta)-DP for every honest party, against a random adversary and in spite of dropouts.

    How many parties there are and how far a value can move follow from the values: see `inca.average`.

    Example:
        >>> Guarantee(epsilon=0.5, colluding=0.1, dropout=0.05).delta
        1e-05
    """


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sensitivity:
    """How far a value can move."""

    sensitivity: float = 1.0
    """Largest Euclidean distance between two values that a party may hold."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Away:
    """Parties that come back."""

    away: float = 0.0
    """Probability with which a party misses a round and comes back; all who stay are back in the last round."""


# --- the protocol ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Rounds:
    """How many rounds."""

    rounds: int | None = None
    """Rounds of gossip. Default: the best for a plan; 20 by hand in a simulation."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Messages(Rounds):
    """How many rounds, and how many receivers in each."""

    receivers: int | None = None
    """Receivers per party and round. Default: the best for a plan; 1 by hand."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Views:
    """How much is sampled."""

    views: int = 300
    """Views of random adversaries sampled per dropout rate, with recipe paper; and graphs, for GOPA. More: more
    reliable, slower."""


@dataclass(frozen=True, kw_only=True)
class PlanOptions(Views, Messages):
    """What is fixed in a plan, and how it is found.

    Example:
        >>> PlanOptions(rounds=12).receivers is None
        True
    """

    recipe: Literal["best", "paper"] = "best"
    """best: who stays cancels its noise with leavers, and noise is proven to suffice; or paper: Algorithm 2 as it is,
    random receivers, and noise that sampled views are seen to need."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Sigmas:
    """The levels of both kinds of noise."""

    sigma_independent: float | None = None
    """Standard deviation of each party's independent noise, which stays in the result."""
    sigma_cancelling: float | None = None
    """Standard deviation of each party's cancelling noise, which it takes out again."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ScheduleChoice:
    """Who sends to whom."""

    schedule: ScheduleKind = "random"
    """Who sends to whom: permutation (one sender each), circle (in round r the r-th next party), and in simulations
    random or distinct (nobody twice)."""


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class HandNoise(Sigmas, ScheduleChoice):
    """Noise and the shape of a protocol, chosen by hand."""

    quiet_rounds: int = 0
    """Last rounds in which no share of the value enters."""
    injection: InjectionKind = "incremental"
    """How a value enters: incremental (a share per round) or early (at once)."""
    settlement: Settlement = "none"
    """settled: the remaining parties cancel their noise with leavers; none: Algorithm 2 as it is."""


@dataclass(frozen=True, kw_only=True)
class ByHand(HandNoise, Messages):
    """Noise and a protocol chosen by hand, which promise nothing: see `inca.average`.

    Raises:
        InvalidInput: If a level of noise is missing, or early injection is combined with quiet rounds.

    Example:
        >>> ByHand(sigma_independent=2.0, sigma_cancelling=20.0, rounds=10).schedule
        'random'
    """

    def __post_init__(self) -> None:
        from inca._base.validation import one_of, refuse
        from inca.errors import InvalidInput

        for name in ("sigma_independent", "sigma_cancelling"):
            if getattr(self, name) is None:
                refuse(name, None, "a standard deviation, at least 0")
        one_of("injection", self.injection, get_args(InjectionKind))
        one_of("settlement", self.settlement, get_args(Settlement))
        if self.injection == "early" and self.quiet_rounds != 0:
            raise InvalidInput("quiet_rounds cannot be combined with early injection")
