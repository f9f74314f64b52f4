"""The designs that a plan chooses among: everything about a run but its noise levels."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from functools import lru_cache

from inca._base.validation import integer
from inca.errors import RequirementsNotMet
from inca.planning.requirements import Requirements
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.failure_bounds import (
    SCHEDULES,
    log_failure_bound,
    log_isolation_random,
    log_settled_bound,
)
from inca.protocol.injection import Injection, early_injection, incremental_injection
from inca.protocol.schedules import Schedule, schedule_of_kind

QUIET_ROUNDS = (1, 2, 3, 4)
"""The numbers of quiet rounds (last rounds without a share of the value) that are tried."""
MAX_RECEIVERS = 3
"""Receivers per round that are tried: under collusion fewer are better (the paper's Figures 2c and 4a)."""
_MAX_ROUNDS = 1000  # rounds up to which a refusal looks for a sufficient number of messages


@dataclass(frozen=True)
class ProtocolDesign:
    """The kind of schedule, rounds T, receivers k per round, the injection, and quiet rounds at its end.

    Example:
        >>> ProtocolDesign("permutation", rounds=20, quiet=3).messages
        20
    """

    schedule: str
    rounds: int
    receivers: int = 1
    quiet: int = 0
    kind: str = "incremental"

    @property
    def messages(self) -> int:
        """How many messages each party sends."""
        return self.rounds * self.receivers

    def injection(self) -> Injection:
        """Return (c, Z): how values and noise enter."""
        return _injection(self.kind, self.rounds, self.quiet)

    def draw_schedule(self, parties: int, seed: int) -> Schedule:
        """Return who sends to whom, drawn from a seed unless the design is a circle."""
        return schedule_of_kind(self.schedule, parties, self.rounds, self.receivers, seed=seed)

    def with_more_rounds(self, rounds: int) -> ProtocolDesign:
        """Return the same design with so many more rounds."""
        return replace(self, rounds=self.rounds + rounds)

    def log_failure(self, requirements: Requirements, *, settled: bool = False) -> float:
        """Return the log of the proven bound on the probability that messages hide too little (Theorem 2's rank).

        It holds at full attendance, and for those who stay if as many leave or are away as is required. In settled runs
        a message to or from a leaver hides no party.
        """
        if settled:
            return log_settled_bound(
                requirements.parties,
                requirements.colluders,
                self.rounds,
                receivers=self.receivers,
                schedule=self.schedule,
                eavesdropped=requirements.eavesdropped,
                absent=(requirements.leavers, requirements.away),
            )
        return max(
            log_failure_bound(
                requirements.parties,
                requirements.colluders,
                self.rounds,
                receivers=self.receivers,
                schedule=self.schedule,
                eavesdropped=requirements.eavesdropped,
                leavers=leavers,
                away=away,
            )
            for leavers, away in {(0, 0.0), (requirements.leavers, requirements.away)}
        )

    def log_cut_off(self, requirements: Requirements, factor: float) -> float:
        """Return the log of how likely a given party of a settled run is cut off from so many that its loss is larger.

        No level of cancelling noise helps a party if those whom hidden messages join with it have too little
        independent noise together: less than a factor of 1 (Theorem 2). With one receiver this is a proven upper bound,
        else the probability that a party, or any where that matters, has no hidden message at all. No party is taken to
        be away.
        """
        n, colluders, leavers = requirements.parties, requirements.colluders, requirements.leavers
        if self.schedule == "circle":  # certain, or not at all
            enough = circle_rounds(n, colluders + leavers)
            return 0.0 if enough is None or self.rounds < enough or requirements.eavesdropped else -math.inf
        lacking, eavesdropped = 1.0 - 1.0 / factor, requirements.eavesdropped
        if self.receivers == 1:
            return log_settled_bound(
                n,
                colluders,
                self.rounds,
                schedule=self.schedule,
                eavesdropped=eavesdropped,
                absent=(leavers, 0.0),
                lacking=lacking,
            )
        known = colluders + leavers
        isolated = log_isolation_random(n, known, self.rounds, receivers=self.receivers, eavesdropped=eavesdropped)
        anyone = lacking * (n - known) < 1.0  # if one is missing, all others have too little noise
        return min(0.0, isolated + (math.log(requirements.honest) if anyone else 0.0))

    def hides_enough(self, requirements: Requirements, *, settled: bool = False) -> bool:
        """Return whether that bound is at most half of the failure probability that is allowed."""
        return self.log_failure(requirements, settled=settled) <= math.log(requirements.failure / 2.0)

    def __str__(self) -> str:
        rounds = "1 round" if self.rounds == 1 else f"{self.rounds} rounds"
        receivers = "1 receiver" if self.receivers == 1 else f"{self.receivers} receivers"
        tail = f", last {self.quiet} quiet" if self.quiet else ""
        value = "value at once" if self.kind == "early" else f"value in shares{tail}"
        return f"{self.schedule}, {rounds}, {receivers}, {value}"


@lru_cache(maxsize=64)  # its matrix is checked when it is made, and every candidate of a plan asks for it
def _injection(kind: str, rounds: int, quiet: int) -> Injection:
    return early_injection(rounds) if kind == "early" else incremental_injection(rounds, quiet=quiet)


def candidate_designs(
    requirements: Requirements, rounds: int | None = None, receivers: int | None = None
) -> list[ProtocolDesign]:
    """Return the kinds of design within the message budget whose messages hide enough; see `with_quiet_rounds`.

    Half of the allowed failure probability is theirs, for messages that hide too little.

    Example:
        >>> for design in candidate_designs(Requirements(200, 0.2, 1e-5, colluding=0.1, messages=20), receivers=1):
        ...     print(design)
        random, 20 rounds, 1 receiver, value in shares, last 2 quiet
        random, 20 rounds, 1 receiver, value at once
        distinct, 20 rounds, 1 receiver, value in shares, last 2 quiet
        distinct, 20 rounds, 1 receiver, value at once
        permutation, 20 rounds, 1 receiver, value in shares, last 2 quiet
        permutation, 20 rounds, 1 receiver, value at once
    """
    n = requirements.parties
    ks = range(1, MAX_RECEIVERS + 1) if receivers is None else [integer("receivers", receivers, 1, n - 1)]
    designs: list[ProtocolDesign] = []
    for k in ks:
        longest = requirements.messages // k if rounds is None else integer("rounds", rounds, min=1)
        if k >= n or longest < 1 or longest * k > requirements.messages:
            continue
        for schedule in SCHEDULES:
            if (schedule == "permutation" and k > 1) or (schedule == "distinct" and k * longest >= n):
                continue  # no bound is known; nobody is left to send to
            if requirements.away > 0.0 and (k > 1 or schedule == "distinct"):
                continue  # no bound is known
            design = ProtocolDesign(schedule, longest, k)
            designs += [replace(design, quiet=min(2, longest - 1)), replace(design, kind="early")]
    return designs_that_hide_enough(requirements, designs, rounds, receivers)


def designs_that_hide_enough(
    requirements: Requirements,
    designs: list[ProtocolDesign],
    rounds: int | None = None,
    receivers: int | None = None,
    *,
    settled: bool = False,
) -> list[ProtocolDesign]:
    """Return the designs whose messages hide enough; refuse, with what could be done, if there are none."""
    if sufficient := [design for design in designs if design.hides_enough(requirements, settled=settled)]:
        return sufficient
    raise RequirementsNotMet(_why_not(requirements, rounds, receivers or 1, settled))


def with_quiet_rounds(design: ProtocolDesign) -> list[ProtocolDesign]:
    """Return the design with all numbers of quiet rounds that are tried, itself among them."""
    if design.kind == "early":
        return [design]
    return [replace(design, quiet=quiet) for quiet in QUIET_ROUNDS if quiet < design.rounds]


def _why_not(requirements: Requirements, rounds: int | None, receivers: int, settled: bool) -> str:
    """Say why no design within the message budget suffices, and what would."""
    messages, failure = requirements.messages, requirements.failure
    local_dp = f"Local DP, which needs no hidden messages, at a mean squared error of {requirements.local_mse:.3g}"
    if rounds is not None and rounds * receivers > messages:
        return f"rounds must be at most messages / receivers ({messages} / {receivers}), got {rounds}"
    if requirements.eavesdropped * requirements.parties > requirements.parties - 1:
        return (
            f"eavesdropped must leave a message of each round unseen, got {requirements.eavesdropped:g}: if all are "
            f"eavesdropped, none hides a value; lower it, or use {local_dp}"
        )
    schedule = "permutation" if receivers == 1 else "random"
    longest = ProtocolDesign(schedule, max(1, messages // receivers), receivers)
    too_few = (
        f"messages is {messages}, and so few hidden messages fail to protect someone with probability "
        f"{math.exp(longest.log_failure(requirements, settled=settled)):.2g}, more than the allowed {failure:g}"
    )
    enough = bisect_left(
        range(1, _MAX_ROUNDS + 1),
        True,
        key=lambda total: ProtocolDesign(schedule, total, receivers).hides_enough(requirements, settled=settled),
    )
    if enough == _MAX_ROUNDS:
        return f"{too_few}; more messages would not help: use {local_dp}"
    return f"{too_few}: allow at least {receivers * (enough + 1)} messages, or use {local_dp}"
