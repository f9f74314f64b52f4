"""The main job in one call: plan, run, account, and release the mean only if its guarantee holds.

All parties are simulated on this machine; `inca.network` runs the same protocol between real ones.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from inca._base.options import ByHand, Guarantee
from inca._base.randomness import SystemNormals
from inca._base.types import Array, Progress
from inca._base.validation import between_0_and_1, generator, method_of, refuse
from inca._base.version import __version__
from inca.documents.average import AverageDocument, NoiseParts
from inca.documents.document import finite_or_none
from inca.documents.result import Numbers
from inca.planning.plan import Plan
from inca.planning.plan import plan as make_plan
from inca.planning.requirements import Requirements
from inca.privacy.certificate import Certificate, certify
from inca.protocol.adversary import Adversary, RandomAdversary
from inca.protocol.design import ProtocolDesign
from inca.protocol.domain import Domain, falls_short
from inca.protocol.execution import Execution
from inca.protocol.execution_files import agreed_fields
from inca.protocol.expected_error import ErrorBudget, expected_error
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.simulation import simulated_estimate
from inca.protocol.transcript import Transcript
from inca.protocol.usefulness import EstimateInDomain
from inca.reporting.verdict import verdict

AUDIT_UP_TO = 5000
"""Parties up to which a run is audited; `inca.certify` audits larger ones, in minutes and gigabytes."""


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
        """Whether this run keeps the guarantee that was asked for; None if that was not audited."""
        return None if self.certificate is None else verdict(self.certificate.document()).kept

    def document(self, columns: Sequence[str] = (), truth: Array | None = None) -> AverageDocument:
        """Return the mean as a document.

        Args:
            columns: Names of the coordinates.
            truth: The exact mean, to be shown beside the estimate; it is not private.
        """
        execution, error, plan, certificate = (
            self.transcript.execution,
            self.expected_error,
            self.plan,
            self.certificate,
        )
        adversary, nobody = self.transcript.known_adversary, self.transcript.execution.weight == 0.0
        return AverageDocument(
            inca=__version__,
            columns=tuple(columns) or None,
            estimate=_numbers(self.estimate),
            withheld=self.withheld,
            unconstrained=_numbers(self.unconstrained),
            interval=None if self.interval is None else (_plain(self.interval[0]), _plain(self.interval[1])),
            confidence=self.confidence,
            says_nothing=self.says_nothing,
            remarks=self.remarks,
            parties=execution.parties,
            present=self.present,
            weight=execution.weight,
            epsilon=None if certificate is None else finite_or_none(certificate.worst_epsilon),
            delta=None if plan is None else plan.requirements.delta,
            audited=certificate is not None,
            agreed=None if plan is None else agreed_fields(plan.agreed),
            met=self.guarantee_holds,
            colluding=len(adversary.colluding),
            eavesdropped=len(adversary.eavesdropped),
            standard_error=None if nobody else finite_or_none(self.standard_error),
            worst_case_error=None if nobody else finite_or_none(error.total**0.5),
            variance=None if nobody else NoiseParts(independent=error.independent, cancelling=error.cancelling),
            mean=_numbers(truth),
            plan=None if plan is None else plan.document(),
        )


def _numbers(value: float | Array | None) -> Numbers | None:
    return None if value is None else _plain(value)


def _plain(value: float | Array) -> Numbers:
    return float(value) if np.ndim(value) == 0 else tuple(np.asarray(value).tolist())


def average(
    values: ArrayLike,
    domain: Domain,
    noise: Guarantee | Plan | ByHand,
    *,
    adversary: Adversary | RandomAdversary | None = None,
    absences: float | Callable[[int, int], Presence] | None = None,
    confidence: float = 0.95,
    rng: np.random.Generator | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> PrivateMean:
    """Estimate the mean of one value or vector per party with differential privacy, by Algorithm 2.

    Choose the noise in one of three ways: a `Guarantee`, for which a plan of least error is made; a `Plan` made before;
    or `ByHand`, which promises nothing. With a guarantee or a plan, the realized execution of up to 5,000 parties is
    audited, and the estimate is withheld if the guarantee does not hold for it.

    Args:
        values: One number or one row of numbers per party.
        domain: The public set that every value lies in: `inca.Interval(low, high)` or `inca.Ball(radius)`.
        noise: `inca.Guarantee(epsilon=0.5, colluding=0.1)`, a plan made by `inca.plan` or read by `inca.read_plan`, or
            `inca.ByHand(sigma_independent=2, sigma_cancelling=20)`.
        adversary: Against whom the run is audited, at least as large as planned; by default drawn of the planned size.
        absences: The fraction of the parties that leaves for good, at random times, or who is there, as a function of
            (parties, rounds). By default the `dropout` that a guarantee names; else nobody leaves.
        confidence: How likely each interval is to cover its mean, at least.
        rng: Makes the run repeatable, for research: NOT private. By default the operating system's randomness.
        progress: Called with (`plan`, `run` or `audit`; steps done; steps in all).

    Returns:
        The estimate with its interval, certificate, plan and expected error, and with what must be said of it.

    Raises:
        InvalidInput: If values lie outside the domain (`domain.validate(values, clip=True)` moves them in), or a plan
            is not for them.
        RequirementsNotMet: If no plan meets the guarantee.

    Example:
        >>> import inca
        >>> waiting = np.random.default_rng(1).uniform(20, 200, size=30)  # minutes, one number per hospital
        >>> mean = inca.average(
        ...     waiting,
        ...     inca.Interval(0, 240),
        ...     inca.Guarantee(epsilon=4.0, colluding=0.1, dropout=0.05, messages=10),
        ...     rng=np.random.default_rng(2),
        ... )
        >>> low, high = mean.interval
        >>> mean.guarantee_holds, low < float(waiting.mean()) < high
        (True, True)

        With a smaller epsilon, what so few parties can say is no more than a guess:

        >>> loud = inca.ByHand(sigma_independent=400.0, sigma_cancelling=4000.0)
        >>> few = inca.average(waiting[:4], inca.Interval(0, 240), loud, rng=np.random.default_rng(25))
        >>> few.estimate, few.interval, few.says_nothing
        (0.0, (0.0, 240.0), True)
        >>> for sentence in few.remarks:
        ...     print(sentence)
        The noise took the estimate to -193.577, outside [0, 240]: 0 is the nearest mean there is.
        The standard error 200 is a large part of the range [0, 240]: guessing 120, the middle, would do as well.
    """
    between_0_and_1("confidence", confidence)
    method_of("domain", domain, "validate", "a domain, such as inca.Interval(low, high)")
    if progress is not None:
        method_of("progress", progress, "__call__", "a function")
    if not isinstance(adversary, (Adversary, RandomAdversary, type(None))):
        refuse("adversary", adversary, "an inca.RandomAdversary or inca.Adversary")
    table = domain.validate(values)
    n, dimensions = len(table), table[:1].size
    source = np.random.default_rng() if rng is None else generator(rng)
    sensitivity = domain.sensitivity(dimensions)
    plan: Plan | None = None
    if isinstance(noise, Guarantee):
        if absences is None:
            absences = 0.0 if noise.dropout is None else noise.dropout
        required = noise if isinstance(noise, Requirements) else Requirements.of(noise, domain, n, dimensions)
        plan = make_plan(required, progress=_phase(progress, "plan"))
    elif isinstance(noise, Plan):
        plan = noise
    elif isinstance(noise, ByHand):
        design, levels, settles = _by_hand(noise)
    else:
        refuse("noise", noise, "an inca.Guarantee, an inca.Plan or an inca.ByHand")
    if plan is not None:
        _check_plan(plan, n, sensitivity, adversary)
        design, levels, settles = plan.design, plan.noise_levels, plan.settles
    seed = secrets.randbits(63) if rng is None else int(source.integers(2**63))
    leaving = 0.0 if absences is None else absences
    there = leaving if callable(leaving) else partial(Presence.leaving, fraction=leaving, rng=source)
    execution = Execution(design.draw_schedule(n, seed), design.injection(), there(n, design.rounds))
    execution = execution.settled() if settles else execution
    levels = levels if plan is None else plan.noise_levels_of(execution)
    noise_source = SystemNormals() if rng is None else source
    unconstrained = simulated_estimate(execution, table, levels, noise_source, progress=_phase(progress, "run"))
    transcript = Transcript(
        execution,
        sigma_independent=levels.independent,
        sigma_cancelling=levels.cancelling,
        sigma_topup=levels.topup,
        adversary=_observer(adversary, plan, n, design.rounds, source),
        sensitivity=sensitivity,
        agreed=None if plan is None else plan.agreed,
    )
    certificate = None
    if plan is not None and n <= AUDIT_UP_TO:
        certificate = certify(
            transcript,
            sensitivity=plan.requirements.sensitivity,
            rule=plan.requirements.rule,
            progress=_phase(progress, "audit"),
        )
    error = expected_error(execution, levels, dimensions=dimensions, domain=domain)
    mean = PrivateMean(None, None, confidence, certificate, plan, error, transcript, dimensions)
    if unconstrained is None:
        return replace(mean, withheld="none of the parties was present at the end")
    if mean.guarantee_holds is False:
        return replace(mean, withheld="the guarantee does not hold for this execution")
    shown = EstimateInDomain(unconstrained, domain, error, confidence)
    return replace(
        mean,
        estimate=shown.estimate,
        interval=shown.interval,
        unconstrained=unconstrained,
        says_nothing=shown.says_nothing,
        remarks=shown.remarks,
    )


def _by_hand(noise: ByHand) -> tuple[ProtocolDesign, NoiseLevels, bool]:
    """Return the design, the levels of noise, and whether those who stay settle."""
    assert noise.sigma_independent is not None and noise.sigma_cancelling is not None
    design = ProtocolDesign(
        noise.schedule,
        rounds=20 if noise.rounds is None else noise.rounds,
        receivers=1 if noise.receivers is None else noise.receivers,
        quiet=noise.quiet_rounds,
        kind=noise.injection,
    )
    levels = NoiseLevels(independent=noise.sigma_independent, cancelling=noise.sigma_cancelling)
    return design, levels, noise.settlement == "settled"


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
