"""What a user requires: the guarantee, the adversary and the dropouts it must withstand, and the message budget."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from inca._base.options import Away, Guarantee, Sensitivity, Size
from inca._base.validation import between_0_and_1, finite_float, integer, positive, refuse, whole_parties
from inca.privacy.gaussian import mu_for
from inca.protocol.domain import Domain
from inca.protocol.transcript import AgreedGuarantee


@dataclass(frozen=True)
class Requirements(Guarantee, Sensitivity, Away, Size):
    """(epsilon, delta)-DP for every honest one of n parties, against a random adversary, in spite of dropouts.

    All mechanisms are calibrated to the same requirements, so that they can be compared. The guarantee allows a shift
    mu, the mu of mu-GDP (Dong, Roth, Su 2022): what the adversary sees tells two values of a party apart no better
    than one draw tells N(0, 1) from N(mu, 1).

    Raises:
        InvalidInput: If a number is out of its range, nobody is left honest or present, or no Gaussian noise gives
            the guarantee.

    Example:
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
        >>> requirements.colluders, requirements.honest, round(1 / requirements.mu**2, 1)
        (20, 180, 265.8)

        By default a tenth may collude, at least one, and a tenth may leave, if two honest ones are left:

        >>> [(few.colluders, few.leavers) for few in (Requirements(n, 1.0) for n in (3, 4, 10, 25))]
        [(1, 0), (1, 1), (1, 1), (3, 3)]
    """

    dropout: float = None  # type: ignore[assignment]  # None is replaced
    """The fraction of the parties that may leave for good; by default a tenth, or as many as leave two honest ones."""
    variance: float | None = None
    """The variance of the values, per coordinate; by default that of values uniform on an interval as long as the
    sensitivity."""

    def __post_init__(self) -> None:
        integer("parties", self.parties, min=2, max=2**31 - 1)
        positive("epsilon", self.epsilon)
        between_0_and_1("delta", self.delta, "Gaussian noise promises nothing at 0 or 1")
        for name in ("colluding", "eavesdropped", "away"):
            finite_float(name, getattr(self, name), 0.0, 1.0)
        if self.dropout is None:
            object.__setattr__(self, "dropout", self._usual_dropout)
        finite_float("dropout", self.dropout, 0.0, 1.0)
        if self.messages is not None:
            integer("messages", self.messages, min=2)
        positive("sensitivity", self.sensitivity)
        between_0_and_1("failure", self.failure)
        if self.variance is not None:
            finite_float("variance", self.variance, min=0.0)
        if self.honest < 1:
            refuse("colluding", self.colluding, f"a fraction that leaves one of {self.parties} parties honest")
        if self.survivors < 1:
            refuse("dropout", self.dropout, f"a fraction that leaves one of {self.parties} parties present")
        if not 0.0 < self.mu < float("inf"):
            refuse("(epsilon, delta)", (self.epsilon, self.delta), "a guarantee that some Gaussian noise gives")

    @property
    def _usual_dropout(self) -> float:
        """A tenth of the parties, or as many as leave two honest ones."""
        most = max(0, self.honest - 2)
        return 0.1 if whole_parties("dropout", 0.1, self.parties) <= most else most / self.parties

    @classmethod
    def of(cls, guarantee: Guarantee, domain: Domain, parties: int, dimensions: int = 1) -> Requirements:
        """Return what a guarantee requires for values in a domain.

        Example:
            >>> from inca.protocol.domain import Interval
            >>> Requirements.of(Guarantee(epsilon=1.0, colluding=0.1), Interval(0, 240), parties=30).sensitivity
            240.0
        """
        sensitivity = domain.sensitivity(dimensions)
        variance = sensitivity**2 / 12.0 / dimensions  # uniform in an interval, each coordinate
        return cls(**vars(guarantee), parties=parties, sensitivity=sensitivity, variance=variance)

    @cached_property
    def mu(self) -> float:
        """The largest Gaussian shift that the guarantee allows: mu-GDP."""
        return mu_for(self.epsilon, self.delta, self.rule)

    @property
    def agreed(self) -> AgreedGuarantee:
        """The guarantee as an execution's file has it."""
        return AgreedGuarantee(self.epsilon, self.delta, self.colluding, self.eavesdropped, self.failure)

    @property
    def var_local_dp(self) -> float:
        """The variance of Local DP's noise, one term that protects a value on its own: s^2 / mu^2."""
        return (self.sensitivity / self.mu) ** 2

    @property
    def colluders(self) -> int:
        """How many parties collude."""
        return whole_parties("colluding", self.colluding, self.parties)

    @property
    def honest(self) -> int:
        """How many parties do not: n_H."""
        return self.parties - self.colluders

    @property
    def leavers(self) -> int:
        """How many parties leave for good."""
        return whole_parties("dropout", self.dropout, self.parties)

    @property
    def survivors(self) -> int:
        """How many parties are there at the end."""
        return self.parties - self.leavers

    @property
    def usual_messages(self) -> int:
        """The messages of mechanisms that are better with more of them: as many as allowed, else the paper's 20."""
        return 20 if self.messages is None else self.messages

    @property
    def value_variance(self) -> float:
        """The values' variance per coordinate."""
        return self.sensitivity**2 / 12.0 if self.variance is None else self.variance

    @property
    def central_mse(self) -> float:
        """The error per coordinate of Central DP with everyone present: s^2 / (n^2 mu^2)."""
        return self.var_local_dp / self.parties**2

    @property
    def local_mse(self) -> float:
        """The error per coordinate of Local DP with everyone present: n times that of Central DP."""
        return self.var_local_dp / self.parties
