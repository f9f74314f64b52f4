"""What a user wants: the guarantee, the adversary and dropouts to reckon with, and what may be spent."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from inca._base.validation import InputError, positive, real, refuse, whole
from inca.privacy.gaussian import Rule, mu_for
from inca.protocol.adversary import rounded_up


@dataclass(frozen=True)
class Wish:
    """(epsilon, delta)-DP for every honest one of n parties, against a random adversary, in spite of dropouts.

    `colluding` of the parties collude and `eavesdropped` of each round's messages are tapped (fractions, rounded up to
    whole ones); up to `dropout` of the parties leave for good; each party sends at most `messages`. The promise may
    fail for at most a fraction `failure` of all random schedules and adversaries. `sensitivity` is the largest distance
    between two values of a party, `variance` the values' variance per coordinate (default: uniform on an interval of
    that length).

    >>> wish = Wish(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
    >>> wish.colluders, wish.honest, round(1 / wish.mu**2, 1)
    (20, 180, 265.8)
    """

    parties: int
    epsilon: float
    delta: float
    colluding: float = 0.0
    eavesdropped: float = 0.0
    dropout: float = 0.0
    messages: int = 20
    rule: Rule = "exact"
    sensitivity: float = 1.0
    failure: float = 1e-6
    variance: float | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        whole("parties", self.parties, least=2, most=2**31 - 1)
        positive("epsilon", self.epsilon)
        if not 0.0 < real("delta", self.delta, 0.0, 1.0) < 1.0:
            raise refuse("delta", self.delta, "a number between 0 and 1 (Gaussian noise promises nothing at 0 or 1)")
        for name in ("colluding", "eavesdropped", "dropout"):
            real(name, getattr(self, name), 0.0, 1.0)
        whole("messages", self.messages, least=1)
        positive("sensitivity", self.sensitivity)
        if not 0.0 < real("failure", self.failure, 0.0, 1.0) < 1.0:
            raise refuse("failure", self.failure, "a number between 0 and 1")
        if self.variance is not None:
            real("variance", self.variance, least=0.0)
        if self.honest < 1:
            raise refuse("colluding", self.colluding, f"a fraction that leaves one of {self.parties} parties honest")
        if self.survivors < 1:
            raise refuse("dropout", self.dropout, f"a fraction that leaves one of {self.parties} parties present")
        if not 0.0 < self.mu < float("inf"):
            raise InputError(
                f"(epsilon, delta) is ({self.epsilon:g}, {self.delta:g}), which no Gaussian noise can promise"
            )

    @cached_property
    def mu(self) -> float:
        """The Gaussian shift that the guarantee allows."""
        return mu_for(self.epsilon, self.delta, self.rule)

    @property
    def var_local(self) -> float:
        """The variance with which a single noise term protects a value on its own: s^2 / mu^2."""
        return (self.sensitivity / self.mu) ** 2

    @property
    def colluders(self) -> int:
        """How many parties collude."""
        return rounded_up("colluding", self.colluding, self.parties)

    @property
    def honest(self) -> int:
        """How many parties do not: n_H."""
        return self.parties - self.colluders

    @property
    def leavers(self) -> int:
        """How many parties leave for good."""
        return round(self.dropout * self.parties)

    @property
    def survivors(self) -> int:
        """How many parties are there at the end."""
        return self.parties - self.leavers

    @property
    def value_variance(self) -> float:
        """The values' variance per coordinate."""
        return self.sensitivity**2 / 12.0 if self.variance is None else self.variance

    @property
    def central_mse(self) -> float:
        """The error per coordinate of Central DP with everyone present: s^2 / (n^2 mu^2)."""
        return self.var_local / self.parties**2

    @property
    def local_mse(self) -> float:
        """The error per coordinate of Local DP with everyone present: n times that of Central DP."""
        return self.var_local / self.parties
