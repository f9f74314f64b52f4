"""A plan: the parameters of a run, what error to expect, what is promised, and how that is known. It is a file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inca._base.files import write_json
from inca._base.validation import refuse
from inca._base.version import __version__
from inca.errors import InvalidInput
from inca.planning.designs import ProtocolDesign
from inca.planning.requirements import Requirements
from inca.privacy.gaussian import rule_from_file, rule_to_file
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.execution_files import injection_fields
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.transcript import AgreedGuarantee, Transcript
from inca.protocol.usefulness import remark_on_error

FORMAT = "inca-plan/1"


@dataclass(frozen=True)
class SamplingDetails:
    """How the level of the cancelling noise is known.

    `views` random views of `parties` parties each, a sub-population if these are fewer than all, were sampled for each
    of the dropout rates in `dropouts`; the level is extrapolated from them (`inca.privacy.tail_quantile`) with the
    stated `confidence`, and was `checked` exactly on so many further views of all parties.
    """

    views: int
    parties: int
    dropouts: tuple[float, ...]
    confidence: float
    checked: int


@dataclass(frozen=True)
class AlternativeDesign:
    """A design that was not chosen, and its error relative to the chosen one's."""

    design: str
    messages: int
    relative_mse: float


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs but the values; made by `inca.plan`, kept as a file by `write` and `read_plan`.

    Args:
        requirements: What the plan meets.
        design: The schedule, rounds, receivers and injection.
        recipe: "best", or "paper" for the paper's own design.
        factor: The variance of the independent noise over the least that could do, s^2 / (mu^2 n_H) (Theorem 2).
        noise_levels: The standard deviations of both kinds of noise.
        budget: The expected error per coordinate, at the dropout rate of the requirements.
        standard_error: That of the expected error, from sampling who leaves.
        structure_bound: The proven bound on the probability that no level of cancelling noise would suffice, be it with
            everyone present or with as many absent as is required (Theorem 2's rank).
        sampling: How the level of the cancelling noise is known.
        considered: Designs with as many messages that were compared.
        further: What other numbers of messages would bring.

    Example:
        >>> import inca
        >>> requirements = inca.Requirements(parties=20, epsilon=1.0, delta=1e-5, messages=8)
        >>> plan = inca.plan(requirements, recipe="paper", views=10)
        >>> print(plan.design)
        random, 8 rounds, 1 receiver, value in shares
        >>> plan.execution(seed=1).rounds, plan.failure_probability < requirements.failure
        (8, True)
    """

    requirements: Requirements
    design: ProtocolDesign
    recipe: str
    factor: float
    noise_levels: NoiseLevels
    budget: ErrorBudget
    standard_error: float
    structure_bound: float
    sampling: SamplingDetails
    considered: tuple[AlternativeDesign, ...] = ()
    further: tuple[AlternativeDesign, ...] = ()

    @property
    def expected_mse(self) -> float:
        """The expected squared error per coordinate."""
        return self.budget.total

    @property
    def remark(self) -> str:
        """A sentence if guessing the middle of the domain would do as well as a run; else empty."""
        return remark_on_error(self.expected_mse, self.requirements.sensitivity)

    @property
    def failure_probability(self) -> float:
        """How likely, in a run, any honest party's loss exceeds what is allowed: proven + extrapolated; adds to delta.

        It is over random schedules, adversaries and leavers.
        """
        return self.structure_bound + self.requirements.failure / 2.0

    @property
    def agreed(self) -> AgreedGuarantee:
        """What a run of the plan promises, as an execution's file has it."""
        return replace(self.requirements.agreed, failure=self.failure_probability)

    def execution(self, seed: int, presence: Presence | None = None) -> Execution:
        """Return a run of this plan.

        Args:
            seed: The seed that the schedule is drawn from.
            presence: Who is there, by default everyone.
        """
        return Execution(self.design.draw_schedule(self.requirements.parties, seed), self.design.injection(), presence)

    def adversary(self, rng: np.random.Generator) -> Adversary:
        """Draw an adversary of the size that is required."""
        return self.requirements.agreed.adversary.draw(self.requirements.parties, self.design.rounds, rng)

    def check(self, transcript: Transcript) -> None:
        """Refuse an execution that does not follow this plan; its schedule is taken to be drawn as planned.

        Args:
            transcript: The execution, with its noise levels.

        Raises:
            InvalidInput: If its size, its injection or its noise levels are not the planned ones.
        """
        execution = transcript.execution
        for name, actual, planned in (
            ("parties", execution.parties, self.requirements.parties),
            ("rounds", execution.rounds, self.design.rounds),
            ("receivers", execution.schedule.slots, self.design.receivers),
            ("sigma_independent", transcript.sigma_independent, self.noise_levels.independent),
            ("sigma_cancelling", transcript.sigma_cancelling, self.noise_levels.cancelling),
        ):
            if actual is None or not math.isclose(actual, planned, rel_tol=1e-12):
                refuse(f"{name} of the execution", actual, f"{planned:.12g}, as planned")
        if execution.injection != self.design.injection():
            raise InvalidInput("the injection of the execution must be the planned one, got another")

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON, under the names of the file format."""
        requirements, design = self.requirements, self.design
        return {
            "format": FORMAT,
            "inca": __version__,
            "wish": _requirements_fields(requirements),
            "recipe": self.recipe,
            "rounds": design.rounds,
            "receivers": design.receivers,
            "schedule": design.schedule,
            "quiet_rounds": design.quiet,
            "injection": injection_fields(design.injection()),
            "factor": self.factor,
            "sigma_independent": self.noise_levels.independent,
            "sigma_cancelling": self.noise_levels.cancelling,
            "expected_mse": self.expected_mse,
            "error": asdict(self.budget),
            "standard_error": self.standard_error,
            "central_mse": requirements.central_mse,
            "local_mse": requirements.local_mse,
            "failure_probability": self.failure_probability,
            "structure_bound": self.structure_bound,
            "sampling": asdict(self.sampling),
            "considered": [asdict(alternative) for alternative in self.considered],
            "further": [asdict(alternative) for alternative in self.further],
        }

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON (`inca-plan/1`), whole or not at all."""
        write_json(path, self.as_dict(), indent=1)

    def __str__(self) -> str:
        requirements, budget, central = self.requirements, self.budget, self.requirements.central_mse
        guarantee = f"{self.agreed} by the {requirements.rule} rule"
        lines = [
            f"Plan for {requirements.parties:,} parties: {guarantee}",
            f"  of values          that differ by at most {requirements.sensitivity:g}",
            f"  against            {_adversary(requirements)}",
            f"  in spite of        {_absences(requirements)}",
            f"  design             {self.design}",
            f"  noise              sigma_independent {self.noise_levels.independent:.6g} (factor {self.factor:.3g}), "
            f"sigma_cancelling {self.noise_levels.cancelling:.6g}",
            f"  expected error     {self.expected_mse:.4g} mean squared = {self.expected_mse / central:.3g} x Central "
            f"DP ({central:.3g}); Local DP {requirements.local_mse:.3g}",
            f"  of which           {_percent(budget.independent, budget)} independent noise, "
            f"{_percent(budget.cancelling, budget)} noise left by leavers, {_percent(budget.data, budget)} lost values",
            f"  may fail with      probability {self.failure_probability:.2g} in a run, which adds to delta: "
            f"{self.structure_bound:.2g} proven",
            f"                     that messages hide too little, {requirements.failure / 2:.2g} extrapolated",
            f"                     {_describe_sampling(self.sampling, requirements)}",
        ]
        if self.factor >= requirements.honest > 1:
            lines.append("  note               so few messages hide so little that this is Local DP: more would help")
        if self.remark:
            lines.append(f"  note               {self.remark}")
        lines += [f"  with {other.messages:>3} messages  {_change(other.relative_mse)}" for other in self.further]
        return "\n".join(lines)


def _requirements_fields(requirements: Requirements) -> dict[str, Any]:
    """Return the requirements for JSON; plans for nobody away stay what they were before there was such a field."""
    fields = asdict(requirements) | {"rule": rule_to_file(requirements.rule)}
    if requirements.away == 0.0:
        del fields["away"]
    return fields


def _absences(requirements: Requirements) -> str:
    leaving = f"up to {requirements.dropout:.3g} of the parties leaving for good"
    return f"{leaving}, and each missing {requirements.away:.3g} of the rounds" if requirements.away else leaving


def _adversary(requirements: Requirements) -> str:
    parts = []
    if requirements.colluding > 0:
        parts.append(f"{requirements.colluders:,} random colluding parties")
    if requirements.eavesdropped > 0:
        parts.append(f"eavesdroppers on {requirements.eavesdropped:.3g} of all messages")
    return " and ".join(parts) if parts else "whoever knows who sent to whom and sees the final messages"


def _describe_sampling(sampling: SamplingDetails, requirements: Requirements) -> str:
    of = f"{sampling.parties} parties" + ("" if sampling.parties == requirements.parties else " (sub-populations)")
    rates = ", ".join(f"{rate:.3g}" for rate in sampling.dropouts)
    checked = f"; checked on {sampling.checked} whole view{'s' * (sampling.checked > 1)}" if sampling.checked else ""
    return f"from {sampling.views} views of {of} each at dropout {rates}, confidence {sampling.confidence:g}{checked}"


def _percent(part: float, budget: ErrorBudget) -> str:
    return f"{part / budget.total:.1%}" if 0 < budget.total < math.inf else "0 %"


def _change(relative: float) -> str:
    change = relative - 1.0
    return f"the error would be {abs(change):.1%} {'larger' if change > 0 else 'smaller'}"


class _PlanDocument(msgspec.Struct):
    """The fields that are read; what can be computed from them, or only explains them, is not."""

    format: str
    recipe: str
    rounds: int
    receivers: int
    schedule: str
    quiet_rounds: int
    injection: dict[str, Any]
    factor: float
    sigma_independent: float
    sigma_cancelling: float
    error: dict[str, float]
    standard_error: float
    structure_bound: float
    sampling: dict[str, Any]
    requirements: dict[str, Any] = msgspec.field(name="wish")
    considered: list[dict[str, Any]] = []
    further: list[dict[str, Any]] = []


def read_plan(path: str | Path) -> Plan:
    """Read a plan that `Plan.write` wrote.

    Args:
        path: The JSON file, of format `inca-plan/1`.

    Returns:
        The plan, equal to the one that was written.

    Raises:
        InvalidInput: If the file cannot be read, or is not a plan.

    Example:
        >>> import inca, tempfile
        >>> from pathlib import Path
        >>> plan = inca.plan(inca.Requirements(20, 1.0, 1e-5, messages=8), recipe="paper", views=10)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.write(Path(folder) / "plan.json")
        ...     read_plan(Path(folder) / "plan.json") == plan
        True
    """
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read as a plan: {error.strerror or error}") from None
    try:
        return _plan(msgspec.json.decode(text, type=_PlanDocument))
    except (msgspec.DecodeError, TypeError, InvalidInput) as error:
        raise InvalidInput(f"{path} cannot be read as a plan: {error}") from None


def _plan(document: _PlanDocument) -> Plan:
    if document.format != FORMAT:
        refuse("format", document.format, FORMAT)
    kind = "early" if document.injection.get("kind") == "early" else "incremental"
    design = ProtocolDesign(document.schedule, document.rounds, document.receivers, document.quiet_rounds, kind)
    if injection_fields(design.injection()) != document.injection:
        raise InvalidInput(f"injection must have the stated number of quiet rounds ({document.quiet_rounds})")
    rule = rule_from_file(document.requirements.get("rule", "exact"))
    return Plan(
        requirements=Requirements(**document.requirements | {"rule": rule}),
        design=design,
        recipe=document.recipe,
        factor=document.factor,
        noise_levels=NoiseLevels(independent=document.sigma_independent, cancelling=document.sigma_cancelling),
        budget=ErrorBudget(**document.error),
        standard_error=document.standard_error,
        structure_bound=document.structure_bound,
        sampling=SamplingDetails(
            **document.sampling | {"dropouts": tuple(document.sampling.get("dropouts", ()))},
        ),
        considered=tuple(AlternativeDesign(**alternative) for alternative in document.considered),
        further=tuple(AlternativeDesign(**alternative) for alternative in document.further),
    )
