"""The main job in one call: plan, run, account, and release the mean only if its guarantee holds.

All parties are simulated on this machine; `inca.network` runs the same protocol between real ones.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from inca._base.randomness import SystemNormals
from inca._base.types import Array, Progress
from inca._base.validation import between_0_and_1, generator, refuse
from inca.errors import InvalidInput
from inca.planning.designs import ProtocolDesign
from inca.planning.plan import SETTLEMENTS, Plan
from inca.planning.requirements import Requirements
from inca.planning.search import plan as make_plan
from inca.privacy.certificate import Certificate, certify
from inca.privacy.gaussian import Rule
from inca.protocol.adversary import Adversary, RandomAdversary
from inca.protocol.domain import Domain, falls_short
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget, expected_error
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.simulation import simulate
from inca.protocol.transcript import Transcript
from inca.protocol.usefulness import EstimateInDomain

AUDIT_UP_TO = 5000
"""Parties up to which a run is audited by default; more take minutes and gigabytes."""


@dataclass(frozen=True, eq=False)
class PrivateMean:
    """A private mean and what it cost; made by `inca.average`.

    Attributes:
        estimate: The mean, a float or one entry per coordinate, in the domain; None if it was withheld or nobody was
            left.
        interval: (low, high) for the mean of all parties' values, each coordinate on its own: exact for the noise, wide
            enough for whatever values dropouts took with them, and in the domain. None without an estimate.
        confidence: The probability with which an interval covers its mean, at least.
        certificate: What the execution gave away to the adversary; None if no guarantee was asked for or the run was
            not audited.
        plan: The plan that was followed; None where noise levels were given instead.
        expected_error: The exact expected squared error of this execution, summed over coordinates; `data` is the
            worst case over the domain.
        transcript: Everything public about the run, for `inca.write_execution`.
        withheld: Why there is no estimate; empty if there is one.
        unconstrained: The estimate as the noise left it, before it was moved into the domain; it is unbiased.
        says_nothing: Whether guessing the middle of the domain would do as well (`inca.protocol.usefulness`); True
            without an estimate.
        remarks: Sentences that belong to the estimate: that noise took it out of the domain, that a guess would do as
            well.
    """

    estimate: float | Array | None
    interval: tuple[float | Array, float | Array] | None
    confidence: float
    certificate: Certificate | None
    plan: Plan | None
    expected_error: ErrorBudget
    transcript: Transcript = field(repr=False)
    dimensions: int = 1
    withheld: str = ""
    unconstrained: float | Array | None = None
    says_nothing: bool = True
    remarks: tuple[str, ...] = ()

    @property
    def standard_error(self) -> float:
        """The standard deviation of the noise in each coordinate, exact; infinite if nobody is left."""
        return math.sqrt(self.expected_error.noise / self.dimensions)

    @property
    def present(self) -> int:
        """How many final messages make up the estimate."""
        return int(self.transcript.execution.published.sum())

    @property
    def guarantee_holds(self) -> bool | None:
        """Whether the audited loss is at most the required epsilon; None if no audit was made."""
        if self.plan is None or self.certificate is None:
            return None
        return self.certificate.worst_epsilon <= self.plan.requirements.epsilon


def average(
    values: ArrayLike,
    domain: Domain,
    *,
    epsilon: float | None = None,
    delta: float = 1e-5,
    adversary: Adversary | RandomAdversary | None = None,
    dropout: float = 0.0,
    messages: int = 20,
    rule: Rule = "analytic",
    plan: Plan | None = None,
    noise_levels: NoiseLevels | None = None,
    design: ProtocolDesign | None = None,
    rounds: int | None = None,
    receivers: int | None = None,
    settlement: str | None = None,
    late: int = 0,
    views: int = 300,
    presence: Callable[[int, int], Presence] | None = None,
    clip: bool = False,
    audit: bool | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> PrivateMean:
    """Estimate the mean of one value or vector per party with differential privacy, by Algorithm 2.

    Say how much noise in one of three ways: `epsilon`, for which a plan of least error is made; a `plan` made before;
    or `noise_levels`, which promise nothing. With a plan, the realized execution is audited, and the estimate is
    withheld if the guarantee does not hold for it.

    Args:
        values: One number or one row of numbers per party.
        domain: The public set that every value lies in: `inca.Interval(low, high)` or `inca.Ball(radius)`.
        epsilon: The required epsilon of every honest party.
        delta: The required delta.
        adversary: Against whom values are protected: `inca.RandomAdversary(colluding=0.1)` for a tenth of the parties,
            whoever they are, or an `inca.Adversary` with ids. Required with `epsilon`: there is no default promise.
        dropout: The fraction of parties that leaves for good; planned for and simulated.
        messages: How many messages a party may send.
        rule: `analytic` or, as in the paper, `classic`.
        plan: A plan made by `inca.plan` or read by `inca.read_plan`.
        noise_levels: Noise for a run without a guarantee.
        design: The protocol of a run without a guarantee; by default 20 rounds with random receivers.
        rounds: Fixes the number of rounds that a plan may choose.
        receivers: Fixes the number of receivers per round that a plan may choose.
        settlement: "settled": those who stay undo what they exchanged with leavers, who then leave no noise behind;
            "none": Algorithm 2 as it is. By default as the plan says, settled for a plan to be made, and "none" with
            `noise_levels`.
        late: How many late leavers a plan guards against: parties that settle and then do not publish.
        views: How many random views a plan is calibrated on, where it is not looked up.
        presence: Who is there, as a function of (parties, rounds), instead of `dropout` parties leaving at random.
        clip: Whether values outside the domain are moved in; else they are refused.
        audit: Whether to account for the realized execution; by default up to 5,000 parties.
        confidence: How likely each interval is to cover its mean, at least.
        rng: Makes the run repeatable, for research: NOT private. By default the operating system's randomness.
        progress: Called with (`plan`, `run` or `audit`; steps done; steps in all).

    Returns:
        The estimate with its interval, certificate, plan and expected error, and with what must be said of it.

    Raises:
        InvalidInput: If values lie outside the domain, or arguments do not go together.
        RequirementsNotMet: If no plan meets the guarantee.

    Example:
        >>> import inca
        >>> waiting = np.random.default_rng(1).uniform(20, 200, size=30)  # minutes, one number per hospital
        >>> mean = inca.average(
        ...     waiting,
        ...     inca.Interval(0, 240),
        ...     epsilon=4.0,
        ...     adversary=inca.RandomAdversary(colluding=0.1),
        ...     dropout=0.05,
        ...     messages=10,
        ...     views=10,
        ...     rng=np.random.default_rng(2),
        ... )
        >>> low, high = mean.interval
        >>> mean.guarantee_holds, low < float(waiting.mean()) < high
        (True, True)

        With a smaller epsilon, what so few parties can say is no more than a guess:

        >>> levels = inca.NoiseLevels(independent=400.0, cancelling=4000.0)
        >>> few = inca.average(waiting[:4], inca.Interval(0, 240), noise_levels=levels, rng=np.random.default_rng(25))
        >>> few.estimate, few.interval, few.says_nothing
        (0.0, (0.0, 240.0), True)
        >>> for sentence in few.remarks:
        ...     print(sentence)
        The noise took the estimate to -193.577, outside [0, 240]: 0 is the nearest mean there is.
        The standard error 200 is a large part of the range [0, 240]: guessing 120, the middle, would do as well.
    """
    between_0_and_1("confidence", confidence)
    table = domain.validate(values, clip=clip)
    n, dimensions = len(table), table[:1].size
    source = np.random.default_rng() if rng is None else generator(rng)
    _check_combinations(epsilon, plan, noise_levels, design, rounds, receivers, settlement, late)
    sensitivity = domain.sensitivity(dimensions)
    if epsilon is not None:
        size = _required_size(adversary, n)
        requirements = Requirements(
            parties=n,
            epsilon=epsilon,
            delta=delta,
            colluding=size.colluding,
            eavesdropped=size.eavesdropped,
            dropout=dropout,
            messages=messages,
            rule=rule,
            sensitivity=sensitivity,
            variance=sensitivity**2 / 12.0 / dimensions,  # uniform in an interval, each coordinate
        )
        plan = make_plan(
            requirements,
            rounds=rounds,
            receivers=receivers,
            settlement=settlement or "settled",
            late=late,
            views=views,
            progress=_phase(progress, "plan"),
        )
    elif plan is not None:
        _check_plan(plan, n, sensitivity, adversary)
    if plan is not None:
        design, noise_levels = plan.design, plan.noise_levels
    assert noise_levels is not None
    design = design or ProtocolDesign("random", rounds=20)
    seed = secrets.randbits(63) if rng is None else int(source.integers(2**63))
    there = presence or partial(Presence.leaving, fraction=dropout, rng=source)
    settles = (settlement if plan is None else plan.settlement) == "settled"
    execution = Execution(design.draw_schedule(n, seed), design.injection(), there(n, design.rounds))
    execution = execution.settled() if settles else execution
    noise_levels = noise_levels if plan is None else plan.noise_levels_of(execution)
    noise_source = SystemNormals() if rng is None else source
    outcome = simulate(execution, table, noise_levels, noise_source, progress=_phase(progress, "run"))
    transcript = Transcript(
        execution,
        sigma_independent=noise_levels.independent,
        sigma_cancelling=noise_levels.cancelling,
        sigma_topup=noise_levels.topup,
        adversary=_observer(adversary, plan, n, design.rounds, source),
        sensitivity=sensitivity,
        agreed=None if plan is None else plan.agreed,
    )
    certificate = None
    if plan is not None and (n <= AUDIT_UP_TO if audit is None else audit):
        required = plan.requirements
        certificate = certify(
            transcript,
            sensitivity=required.sensitivity,
            rule=required.rule,
            progress=_phase(progress, "audit"),
        )
    error = expected_error(execution, noise_levels, dimensions=dimensions, domain=domain)
    mean = PrivateMean(None, None, confidence, certificate, plan, error, transcript, dimensions)
    if outcome.estimate is None:
        return replace(mean, withheld="none of the parties was present at the end")
    if mean.guarantee_holds is False:
        return replace(mean, withheld="the guarantee does not hold for this execution")
    shown = EstimateInDomain(outcome.estimate, domain, error, confidence)
    return replace(
        mean,
        estimate=shown.estimate,
        interval=shown.interval,
        unconstrained=outcome.estimate,
        says_nothing=shown.says_nothing,
        remarks=shown.remarks,
    )


def _check_combinations(
    epsilon: float | None,
    plan: Plan | None,
    noise_levels: NoiseLevels | None,
    design: ProtocolDesign | None,
    rounds: int | None,
    receivers: int | None,
    settlement: str | None,
    late: int,
) -> None:
    """Refuse arguments that do not go together, before any work."""
    ways = {"epsilon": epsilon, "plan": plan, "noise_levels": noise_levels}
    named = [name for name, value in ways.items() if value is not None]
    if not named:
        raise InvalidInput("epsilon, plan or noise_levels must say how much noise there is, got none of them")
    if len(named) > 1:
        raise InvalidInput(f"{named[0]} cannot be combined with {named[1]}")
    if noise_levels is None and design is not None:
        raise InvalidInput("design cannot be combined with epsilon or plan, which decide it")
    if epsilon is None and (rounds is not None or receivers is not None):
        fixed, hint = "receivers" if rounds is None else "rounds", ": say it in design" if plan is None else ""
        raise InvalidInput(f"{fixed} cannot be combined with {named[0]}{hint}")
    if settlement is not None and settlement not in SETTLEMENTS:
        refuse("settlement", settlement, " or ".join(SETTLEMENTS))
    if plan is not None and settlement is not None:
        raise InvalidInput("settlement cannot be combined with plan, which decides it")
    if epsilon is None and late:
        raise InvalidInput(f"late cannot be combined with {named[0]}: it is for a plan to be made")


def _required_size(adversary: Adversary | RandomAdversary | None, parties: int) -> RandomAdversary:
    if adversary is None:
        refuse("adversary", None, "whom values are protected against, such as inca.RandomAdversary(colluding=0.1)")
    return adversary.fractions(parties) if isinstance(adversary, Adversary) else adversary


def _check_plan(plan: Plan, parties: int, sensitivity: float, adversary: Adversary | RandomAdversary | None) -> None:
    if plan.requirements.parties != parties:
        refuse("the number of parties of the plan", plan.requirements.parties, f"one per row of values ({parties})")
    if falls_short(plan.requirements.sensitivity, sensitivity):
        must_be = f"at least that of the domain ({sensitivity:g})"
        refuse("the sensitivity of the plan", plan.requirements.sensitivity, must_be)
    planned = plan.requirements.agreed.adversary
    if isinstance(adversary, Adversary):
        enough = adversary.at_least(planned, parties, plan.design.rounds)
    else:
        enough = adversary is None or (
            adversary.colluding >= planned.colluding and adversary.eavesdropped >= planned.eavesdropped
        )
    if not enough:  # a guarantee that holds against less than it was planned for would be called kept
        refuse("adversary", adversary, f"at least as large as planned ({planned})")


def _observer(
    adversary: Adversary | RandomAdversary | None,
    plan: Plan | None,
    parties: int,
    rounds: int,
    rng: np.random.Generator,
) -> Adversary:
    """Return against whom the run is audited: the adversary named, or one of the size named or planned for."""
    if isinstance(adversary, Adversary):
        return adversary
    if adversary is not None:
        return adversary.draw(parties, rounds, rng)
    return Adversary() if plan is None else plan.adversary(rng)


def _phase(progress: Callable[[str, int, int], None] | None, name: str) -> Progress | None:
    return None if progress is None else partial(progress, name)
