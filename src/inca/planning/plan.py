"""A plan: the parameters of a run, what error to expect, what is promised, and how that is known. It is a file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inca._base.validation import file_path, integer, refuse
from inca._base.version import __version__
from inca.documents.document import finite_or_none, infinite_if_none
from inca.documents.fields import ErrorParts
from inca.documents.plan import AlternativeFields, PlanDocument, RequirementFields, SamplingFields
from inca.errors import InvalidInput
from inca.planning.designs import ProtocolDesign
from inca.planning.requirements import Requirements
from inca.planning.settled_noise import SettledNoise
from inca.privacy.gaussian import rule_from_file, rule_to_file
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.execution_files import injection_fields
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.topup import TopUp
from inca.protocol.transcript import AgreedGuarantee, Transcript
from inca.protocol.usefulness import remark_on_error

SETTLEMENTS = ("settled", "none")
_MOST_TOPUPS = 1000  # in the list of a file; `factor` and sums of the injection give the others (docs/settlement.md)


@dataclass(frozen=True)
class SamplingDetails:
    """How the level of the cancelling noise is known."""

    views: int
    parties: int
    dropouts: tuple[float, ...]
    confidence: float
    checked: int
    kind: str = "extrapolated"
    known: float | None = None

    @property
    def looked_up(self) -> bool:
        """Whether the level comes from the tables of drawn views."""
        return self.known is not None and self.kind != "proven"


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
        settlement: "settled" if those who stay undo what they exchanged with leavers (docs/settlement.md), "none" for
            Algorithm 2 as it is.

    Example:
        >>> import inca
        >>> requirements = inca.Requirements(parties=20, epsilon=1.0, delta=1e-5, messages=8)
        >>> plan = inca.plan(requirements, inca.PlanOptions(recipe="paper", views=10))
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
    settlement: str = "none"

    @property
    def expected_mse(self) -> float:
        """The expected squared error per coordinate."""
        return self.budget.total

    @property
    def remark(self) -> str:
        """A sentence if guessing the middle of the domain would do as well as a run; else empty."""
        return remark_on_error(self.expected_mse, self.requirements.sensitivity)

    @cached_property
    def failure_probability(self) -> float:
        """How likely an honest party's loss exceeds what is allowed, at most; it adds to delta.

        It is over random schedules, adversaries and leavers. Where views were sampled, or the level is proven, it even
        bounds the probability that this happens to any party of a run. It is never less than the probability that
        hidden messages join a party with too few others (C8), whatever a file says.
        """
        exceeded = 0.0 if self.sampling.kind == "proven" else self.requirements.failure / 2.0
        stated = self.requirements.failure if self.sampling.looked_up else self.structure_bound + exceeded
        if self.settlement != "settled" or self.settled_noise.start >= 1.0:  # Local DP's noise hides without messages
            return stated
        return max(stated, math.exp(self.design.log_cut_off(self.requirements, self.factor)))

    @cached_property
    def settled_noise(self) -> SettledNoise:
        """The noise of a settled run by how many leave; refused for plans without settlement."""
        if self.settlement != "settled":
            raise InvalidInput("only settled runs top up their noise, and this plan is for runs that do not settle")
        unit = self.requirements.var_local_dp
        return SettledNoise(
            self.requirements,
            self.design.injection(),
            self.factor,
            level=self.noise_levels.cancelling**2 / unit,
            start=self.noise_levels.independent**2 / unit,
        )

    def sigma_topup(self, leavers: int) -> float:
        """Return the level of the noise that each party adds when it settles.

        If more leave than planned, each party adds so much that it is protected whoever else is there.

        Args:
            leavers: How many parties have left.

        Returns:
            The standard deviation; 0 without settlement.

        Raises:
            InvalidInput: If more leave than planned, and no top-up is known to suffice.

        Example:
            >>> import inca
            >>> requirements = inca.Requirements(parties=100, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1)
            >>> plan = inca.plan(requirements)
            >>> plan.sigma_topup(0), plan.sigma_topup(5) < plan.sigma_topup(10)
            (0.0, True)
        """
        integer("leavers", leavers, 0, self.requirements.parties)
        if self.settlement != "settled" or leavers == 0:
            return 0.0
        return math.sqrt(self.requirements.var_local_dp * self.settled_noise.topup(leavers))

    @property
    def topup(self) -> TopUp:
        """What each party adds when it settles, by the weights of the cohort; refused for plans without settlement."""
        if self.settlement != "settled":
            raise InvalidInput("only settled runs top up their noise, and this plan is for runs that do not settle")
        together = math.sqrt(self.requirements.var_local_dp * self.factor)
        return TopUp(together, self.noise_levels.independent, self.requirements.colluders)

    def noise_levels_of(self, execution: Execution) -> NoiseLevels:
        """Return the noise of an execution, with the top-up for its cohort."""
        if execution.cohort is None:
            return self.noise_levels
        return replace(self.noise_levels, topup=self.topup.sigma(execution.total_weights[execution.cohort]))

    @property
    def agreed(self) -> AgreedGuarantee:
        """What a run of the plan promises, as an execution's file has it."""
        return replace(self.requirements.agreed, failure=self.failure_probability)

    def execution(self, seed: int, presence: Presence | None = None) -> Execution:
        """Return a run of this plan.

        Args:
            seed: The seed that the schedule is drawn from.
            presence: Who is there, by default everyone.

        Returns:
            The execution; settled among those present in the last round if the plan is.
        """
        schedule = self.design.draw_schedule(self.requirements.parties, seed)
        execution = Execution(schedule, self.design.injection(), presence)
        return execution.settled() if self.settlement == "settled" else execution

    def adversary(self, rng: np.random.Generator) -> Adversary:
        """Draw an adversary of the size that is required."""
        return self.requirements.agreed.adversary.draw(self.requirements.parties, self.design.rounds, rng)

    def check(self, transcript: Transcript) -> None:
        """Refuse an execution that does not follow this plan; its schedule is taken to be drawn as planned.

        Args:
            transcript: The execution, with its noise levels.

        Raises:
            InvalidInput: If its size, its injection, its noise levels or whether it is settled are not as planned.
        """
        execution = transcript.execution
        for name, actual, planned in (
            ("parties", execution.parties, self.requirements.parties),
            ("rounds", execution.rounds, self.design.rounds),
            ("receivers", execution.schedule.slots, self.design.receivers),
            ("sigma_independent", transcript.sigma_independent, self.noise_levels.independent),
            ("sigma_cancelling", transcript.sigma_cancelling, self.noise_levels.cancelling),
        ):
            self._check_number(name, actual, planned)
        if (execution.cohort is not None) != (self.settlement == "settled"):
            settlement = "none" if execution.cohort is None else "settled"
            refuse("settlement of the execution", settlement, f"{self.settlement}, as planned")
        self._check_number("sigma_topup", transcript.sigma_topup, self.noise_levels_of(execution).topup)
        if execution.injection != self.design.injection():
            raise InvalidInput("the injection of the execution must be the planned one, got another")

    @staticmethod
    def _check_number(name: str, actual: float | None, planned: float) -> None:
        if actual is None or not math.isclose(actual, planned, rel_tol=1e-12):
            refuse(f"{name} of the execution", actual, f"{planned:.12g}, as planned")

    def document(self) -> PlanDocument:
        """Return the plan as a document."""
        requirements, design = self.requirements, self.design
        wanted: dict[str, Any] = {name: getattr(requirements, name) for name in RequirementFields.__struct_fields__}
        chosen: dict[str, Any] = {"recipe": self.recipe, "settlement": self.settlement}
        listed = range(min(requirements.leavers, _MOST_TOPUPS) + 1) if self.settlement == "settled" else ()
        return PlanDocument(
            inca=__version__,
            requirements=RequirementFields(**wanted | {"rule": rule_to_file(requirements.rule)}),
            rounds=design.rounds,
            receivers=design.receivers,
            schedule=design.schedule,
            quiet_rounds=design.quiet,
            injection=injection_fields(design.injection()),
            factor=self.factor,
            sigma_independent=self.noise_levels.independent,
            sigma_cancelling=self.noise_levels.cancelling,
            expected_mse=finite_or_none(self.expected_mse),
            error=_error_parts(self.budget),
            standard_error=self.standard_error,
            central_mse=requirements.central_mse,
            local_mse=requirements.local_mse,
            failure_probability=self.failure_probability,
            structure_bound=self.structure_bound,
            sampling=SamplingFields(**_renamed(asdict(self.sampling), kind="source")),
            considered=tuple(map(_alternative_fields, self.considered)),
            further=tuple(map(_alternative_fields, self.further)),
            sigma_topup=tuple(self.sigma_topup(leavers) for leavers in listed),
            **chosen,
        )

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON (`inca-plan/1`), whole or not at all."""
        self.document().write(path)


def _error_parts(budget: ErrorBudget) -> ErrorParts:
    return ErrorParts(**{name: finite_or_none(part) for name, part in asdict(budget).items()})


def _budget(parts: ErrorParts) -> ErrorBudget:
    return ErrorBudget(**{name: infinite_if_none(part) for name, part in msgspec.structs.asdict(parts).items()})


def _alternative_fields(alternative: AlternativeDesign) -> AlternativeFields:
    relative = finite_or_none(alternative.relative_mse)
    return AlternativeFields(design=alternative.design, messages=alternative.messages, relative_mse=relative)


def _alternative(fields: AlternativeFields) -> AlternativeDesign:
    return AlternativeDesign(fields.design, fields.messages, infinite_if_none(fields.relative_mse))


def _renamed(fields: dict[str, Any], **names: str) -> dict[str, Any]:
    return {names.get(name, name): entry for name, entry in fields.items()}


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
        >>> plan = inca.plan(inca.Requirements(20, 1.0, messages=8), inca.PlanOptions(recipe="paper", views=10))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.write(Path(folder) / "plan.json")
        ...     read_plan(Path(folder) / "plan.json") == plan
        True
    """
    document = PlanDocument.read(file_path("path", path))
    try:
        return _plan(document)
    except InvalidInput as error:
        raise InvalidInput(f"{path} cannot be read as {document.kind}: {error}") from None


def _plan(document: PlanDocument) -> Plan:
    fields, sampling = msgspec.structs.asdict(document.requirements), msgspec.structs.asdict(document.sampling)
    kind = "early" if document.injection.kind == "early" else "incremental"
    design = ProtocolDesign(document.schedule, document.rounds, document.receivers, document.quiet_rounds, kind)
    if injection_fields(design.injection()) != document.injection:
        raise InvalidInput(f"injection must have the stated number of quiet rounds ({document.quiet_rounds})")
    return Plan(
        requirements=Requirements(**fields | {"rule": rule_from_file(document.requirements.rule)}),
        design=design,
        recipe=document.recipe,
        factor=document.factor,
        noise_levels=NoiseLevels(independent=document.sigma_independent, cancelling=document.sigma_cancelling),
        budget=_budget(document.error),
        standard_error=document.standard_error,
        structure_bound=document.structure_bound,
        sampling=SamplingDetails(**_renamed(sampling, source="kind")),
        considered=tuple(map(_alternative, document.considered)),
        further=tuple(map(_alternative, document.further)),
        settlement=document.settlement,
    )
