"""The terms of a session: what the parties agree on before it begins.

The attributes have the words of the API, the file has those of the format `inca-roster/3`: `pace` is
`min_round_duration`, `clock_bound` is `max_clock_skew`, `least_cohort` is `min_participants`.
"""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import force_setattr

from inca._base.options import Rule
from inca._base.validation import between_0_and_1, finite_float, integer, one_of, positive, refuse, whole_parties
from inca.privacy.gaussian import mu_for, rule_from_file, rule_to_file
from inca.protocol.adversary import smallest_cohort
from inca.protocol.domain import Ball, Domain, Interval
from inca.protocol.injection import Injection, incremental_injection
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.topup import TopUp
from inca.protocol.transcript import AgreedGuarantee

if TYPE_CHECKING:
    from inca.planning.plan import Plan

_INTEGERS = {"rounds": (1, 10_000), "dimension": (1, 10_000_000), "min_participants": (2, 2**31 - 1)}
_POSITIVE = ("sigma_independent", "sigma_cancelling", "epsilon", "period", "max_clock_skew")
SCHEDULES = ("circle", "permutation")
"""Schedules by which, in a round, each party sends to one and hears from one."""
_SEED = re.compile("(?:[0-9a-f]{2}){16,64}")
_YEAR_2100_S = 4_102_444_800.0  # until then a float holds microseconds exactly enough to write and read them again


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the parties agree on: the protocol, its noise, where values lie, what is promised, and when it happens.

    Round t = 1..T ends at the latest at `start` + t `period`; sooner if all is said, but not before it has lasted
    `min_round_duration`, which gives those who crash time to come back.

    Attributes:
        rounds: The number of rounds T.
        schedule: Who sends to whom, and hears from whom, in a round: "circle" or "permutation".
        sigma_independent: Standard deviation of the independent noise, which stays in the result.
        sigma_cancelling: Standard deviation of the cancelling noise, which is taken back.
        dimension: The number of coordinates of a value.
        lower: The smallest value of a coordinate; with `upper`, and instead of `radius`.
        upper: The largest value of a coordinate.
        radius: The largest Euclidean norm of a value.
        distance: The guarantee is for values at most so far apart: a value made of many records moves little if one of
            them changes. None: for any two values.
        epsilon: The promised epsilon, for every honest party.
        delta: The promised delta.
        sigma_together: Standard deviation that the independent noise of the honest parties of a cohort needs together,
            where the heaviest has weight 1; when they settle, they add what is missing. 0: they add nothing.
        failure: How likely the plan of the noise fails in a session, for a given party; adds to delta. None: unknown.
        rule: How the loss mu becomes (epsilon, delta): "analytic", which files call "exact", or "classic".
        colluding: The fraction of the parties that may collude.
        min_participants: With fewer final messages than this there is no result.
        start: When round 1 begins, in seconds since the epoch; kept to the microsecond. Files have UTC, such as
            "2030-01-15T08:00:00Z".
        period: How long a round lasts at most, in seconds.
        max_clock_skew: How wrong a party's clock may be, in seconds.
        min_round_duration: How long a round lasts at least, in seconds.
        seed: The public seed of who sends to whom (hexadecimal); None: the parties draw it by commit and reveal.

    Raises:
        InvalidInput: Terms that contradict each other or promise nothing.

    Example:
        >>> terms = Terms(
        ...     rounds=6, schedule="permutation", sigma_independent=3.0,
        ...     sigma_cancelling=30.0, dimension=4, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-5, rule="analytic",
        ...     colluding=0.1, min_participants=3, period=10.0, max_clock_skew=1.0,
        ...     start=from_utc("2030-01-15T08:00:00Z"),
        ... )
        >>> terms.domain, terms.sensitivity
        (Interval(low=0.0, high=1.0), 2.0)
    """

    rounds: int
    schedule: str
    sigma_independent: float
    sigma_cancelling: float
    dimension: int
    lower: float | None = None
    upper: float | None = None
    radius: float | None = None
    distance: float | None = None
    epsilon: float
    delta: float
    rule: Rule
    colluding: float
    min_participants: int = msgspec.field(name="least_cohort")
    start: float
    period: float
    max_clock_skew: float = msgspec.field(name="clock_bound")
    min_round_duration: float = msgspec.field(default=0.0, name="pace")
    seed: str | None = None
    failure: float | None = None
    sigma_together: float = 0.0

    def __post_init__(self) -> None:
        """Refuse what makes no sense; numbers are kept as the file will have them, so that they hash alike."""
        for name, (smallest, largest) in _INTEGERS.items():
            force_setattr(self, name, integer(name, getattr(self, name), smallest, largest))
        for name in _POSITIVE:
            force_setattr(self, name, positive(name, getattr(self, name)))
        force_setattr(self, "colluding", finite_float("colluding", self.colluding, 0.0, 1.0))
        force_setattr(self, "sigma_together", finite_float("sigma_together", self.sigma_together, min=0.0))
        one_of("schedule", self.schedule, SCHEDULES)
        self._check_domain()
        self._check_promise()
        force_setattr(self, "start", from_utc(to_utc(self.start)))
        if not self.max_clock_skew < self.period / 2.0:
            refuse("max_clock_skew", self.max_clock_skew, f"less than half of period ({self.period:g} s)")
        shortest = finite_float("min_round_duration", self.min_round_duration, 0.0, self.period / 2.0)
        force_setattr(self, "min_round_duration", shortest)
        if self.seed is not None and not (isinstance(self.seed, str) and _SEED.fullmatch(self.seed)):
            refuse("seed", self.seed, "None, or 32 to 128 hexadecimal digits in lower case")
        if self.seed is not None and not self.needs_seed:
            refuse("seed", self.seed, "None, as nothing is drawn on a circle")

    @property
    def needs_seed(self) -> bool:
        """Whether who sends to whom is drawn by a public seed; on a circle nothing is."""
        return self.schedule != "circle"

    @property
    def domain(self) -> Domain:
        """The set that every value lies in."""
        if self.lower is None or self.upper is None:
            return Ball(self.radius or 0.0)
        return Interval(self.lower, self.upper)

    @property
    def max_coordinate(self) -> float:
        """The largest absolute value of a coordinate."""
        return self.radius or max(abs(self.lower or 0.0), abs(self.upper or 0.0))

    @property
    def sensitivity(self) -> float:
        """The largest distance between two values of a party that must look alike: by default, of any two."""
        return self.domain.sensitivity(self.dimension) if self.distance is None else self.distance

    @property
    def agreed(self) -> AgreedGuarantee:
        """What every party's loss must keep to, as an execution's file has it."""
        return AgreedGuarantee(epsilon=self.epsilon, delta=self.delta, colluding=self.colluding, failure=self.failure)

    @property
    def noise_levels(self) -> NoiseLevels:
        """Both standard deviations."""
        return NoiseLevels(independent=self.sigma_independent, cancelling=self.sigma_cancelling)

    def topup(self, parties: int) -> TopUp:
        """Return how much noise each of so many parties adds when it settles, by the weights of its cohort."""
        colluders = whole_parties("colluding", self.colluding, parties)
        return TopUp(self.sigma_together, self.sigma_independent, colluders)

    def sigma_at_full_attendance(self, parties: int) -> float:
        """Return the standard deviation of the noise of each of so many in the sum, top-up included, if all stay."""
        return math.hypot(self.sigma_independent, self.topup(parties).full(parties))

    def with_fewer(self, parties: int, rest: int) -> Terms:
        """Return the terms for the `rest` of so many parties, with the noise that they would have had the others left.

        There are as many colluders as before, and nobody has worked out the plan's probability of failure.
        """
        colluders = whole_parties("colluding", self.colluding, parties)
        return msgspec.structs.replace(
            self,
            colluding=min(1.0, colluders / max(rest, 1)),
            min_participants=min(self.min_participants, max(rest, smallest_cohort(colluders))),
            failure=None,
        )

    @property
    def injection(self) -> Injection:
        """How values and noise enter: in equal shares, with one noise term renewed per round."""
        return incremental_injection(self.rounds)

    @classmethod
    def from_plan(cls, plan: Plan, *, dimension: int, **agreed: Any) -> Terms:
        """Return the terms of a planned run.

        Args:
            plan: Decides rounds, schedule, noise, epsilon, delta, rule, the colluding fraction and the
                probability of failure. It must be for incremental injection and runs that settle, and not guard against
                eavesdroppers.
            dimension: The number of coordinates of a value.
            **agreed: All other terms, as of `Terms`.
        """
        requirements, design, levels = plan.requirements, plan.design, plan.noise_levels
        if design.kind != "incremental":
            refuse("the injection of the plan", design.kind, "incremental")
        if plan.settlement != "settled":
            refuse("the settlement of the plan", plan.settlement, "settled, as sessions settle")
        if requirements.eavesdropped > 0.0:  # nobody would check the promise against them
            must_be = (
                "0: messages of a session are encrypted, and its parties check their losses against colluders alone"
            )
            refuse("the eavesdropped fraction of the plan", requirements.eavesdropped, must_be)
        terms = cls(
            rounds=design.rounds,
            schedule=design.schedule,
            sigma_independent=levels.independent,
            sigma_cancelling=levels.cancelling,
            epsilon=requirements.epsilon,
            delta=requirements.delta,
            rule=requirements.rule,
            colluding=requirements.colluding,
            failure=plan.failure_probability,
            sigma_together=plan.topup.together,
            dimension=dimension,
            **agreed,
        )
        if not math.isclose(requirements.sensitivity, terms.sensitivity, rel_tol=1e-12):
            whose = "the domain's" if terms.distance is None else "the distance"
            refuse("the plan's sensitivity", requirements.sensitivity, f"{whose} ({terms.sensitivity:.12g})")
        return terms

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, with the names of the file."""
        fields: dict[str, Any] = msgspec.to_builtins(self)
        for name, absent in (("distance", None), ("failure", None), ("sigma_together", 0.0)):
            if fields[name] == absent:  # a failure of 0 is known, and is written
                del fields[name]  # a term that was not agreed on
        return fields | {"start": to_utc(self.start), "rule": rule_to_file(self.rule)}

    def _check_domain(self) -> None:
        bounds = (self.lower is not None) + (self.upper is not None)
        if bounds + 2 * (self.radius is not None) != 2:
            fields = {name: getattr(self, name) for name in ("lower", "upper", "radius")}
            refuse("the domain", fields, "either lower and upper, or radius")
        if self.lower is not None and self.upper is not None:
            for name in ("lower", "upper"):
                force_setattr(self, name, finite_float(name, getattr(self, name)))
            if not self.lower < self.upper:
                refuse("upper", self.upper, f"above lower ({self.lower:g})")
        if self.radius is not None:
            force_setattr(self, "radius", positive("radius", self.radius))
        diameter = positive("the sensitivity", self.domain.sensitivity(self.dimension))
        if self.distance is not None:
            force_setattr(self, "distance", positive("distance", self.distance))
            if self.distance > diameter:
                refuse("distance", self.distance, f"at most the domain's diameter ({diameter:.12g})")

    def _check_promise(self) -> None:
        delta = between_0_and_1("delta", self.delta, "Gaussian noise promises nothing at 0 or 1")
        force_setattr(self, "delta", delta)
        if self.failure is not None:
            force_setattr(self, "failure", finite_float("failure", self.failure, 0.0, 1.0))
        one_of("rule", self.rule, ("analytic", "classic"))
        if not 0.0 < mu_for(self.epsilon, self.delta, self.rule) < math.inf:
            refuse("(epsilon, delta)", (self.epsilon, self.delta), "one that Gaussian noise can promise")


def fields_from_file(fields: object) -> object:
    """Return the terms of a roster file with the time and the rule as `Terms` has them; `msgspec` does the rest."""
    if not isinstance(fields, dict):
        return fields
    converted = dict(fields)
    if "start" in fields:
        converted["start"] = from_utc(fields["start"])
    if "rule" in fields:
        converted["rule"] = rule_from_file(fields["rule"])
    return converted


def to_utc(seconds: float) -> str:
    """Return a Unix time as the roster writes it.

    >>> to_utc(1_894_694_400)
    '2030-01-15T08:00:00Z'
    """
    moment = datetime.fromtimestamp(finite_float("start", seconds, 0.0, _YEAR_2100_S), UTC)
    return moment.isoformat().replace("+00:00", "Z")


def from_utc(text: str) -> float:
    """Return the Unix time of a UTC time in ISO 8601 with a Z.

    >>> from_utc("2030-01-15T08:00:00.5Z")
    1894694400.5
    """
    try:
        if not isinstance(text, str) or not text.endswith("Z"):
            raise ValueError
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        refuse("start", text, "a UTC time such as 2030-01-15T08:00:00Z")
