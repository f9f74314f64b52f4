"""From requirements to a plan: the parameters of a run, what error to expect, what is promised, and how it is known.

Settled runs are planned in closed form; by the paper's own recipe, from sampled views. A plan is a file.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inca._base.options import PlanOptions
from inca._base.types import Progress
from inca._base.validation import file_path, instance, integer, method_of, one_of, refuse
from inca._base.version import __version__
from inca.documents.document import finite_or_none, infinite_if_none
from inca.documents.fields import ErrorParts
from inca.documents.plan import PlanDocument, RequirementFields, SamplingFields
from inca.errors import InvalidInput
from inca.planning.requirements import Requirements
from inca.planning.sampled import dropout_rates, paper_design, paper_noise, sampled_error
from inca.planning.settled import SettledNoise, joined_design, settled_error, settled_noise
from inca.privacy.gaussian import rule_from_file, rule_to_file
from inca.protocol.adversary import Adversary
from inca.protocol.design import ProtocolDesign
from inca.protocol.execution import Execution
from inca.protocol.execution_files import injection_fields
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.topup import TopUp
from inca.protocol.transcript import AgreedGuarantee, Transcript
from inca.protocol.usefulness import remark_on_error

_RUNS = 450  # sampled for the error, where it depends on who is absent when


@dataclass(frozen=True)
class Sampled:
    """What was sampled for a plan that is not proven: views at each dropout rate."""

    views: int
    dropouts: tuple[float, ...]


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs but the values; made by `inca.plan`, kept as a file by `write` and `read_plan`.

    Args:
        requirements: What the plan meets.
        design: The schedule, rounds, receivers and injection.
        recipe: "best": those who stay undo what they exchanged with leavers (docs/settlement.md), and the noise is
            proven to suffice. "paper": Algorithm 2 as it is, with the noise that sampled views are seen to need.
        noise_levels: The standard deviations of both kinds of noise.
        budget: The expected error per coordinate, at the dropout rate of the requirements.
        failure_probability: How likely an honest party's loss exceeds what is allowed, at most; it adds to delta. It is
            over random schedules, adversaries and leavers; 0 is certain, against every coalition of the size.
        spare: How many of the honest parties that stay a party need not be joined with.
        standard_error: That of the expected error, where who is absent was sampled.
        sampled: What was sampled, of a plan that is not proven.

    Example:
        >>> import inca
        >>> plan = inca.plan(inca.Requirements(parties=20, epsilon=1.0, colluding=0.1, dropout=0.1))
        >>> print(plan.design)
        circle, 3 rounds, 1 receiver, value in shares
        >>> plan.execution(seed=1).rounds, plan.failure_probability
        (3, 0.0)
    """

    requirements: Requirements
    design: ProtocolDesign
    recipe: str
    noise_levels: NoiseLevels
    budget: ErrorBudget
    failure_probability: float
    spare: int = 0
    standard_error: float = 0.0
    sampled: Sampled | None = None

    @property
    def settles(self) -> bool:
        """Whether those who stay undo what they exchanged with leavers."""
        return self.recipe == "best"

    @property
    def settlement(self) -> str:
        """The same as files have it: "settled", or "none"."""
        return "settled" if self.settles else "none"

    @property
    def factor(self) -> float:
        """The independent variance over the least that could do, s^2 / (mu^2 n_H) (Theorem 2)."""
        return self.noise_levels.independent**2 * self.requirements.honest / self.requirements.var_local_dp

    @property
    def expected_mse(self) -> float:
        """The expected squared error per coordinate."""
        return self.budget.total

    @property
    def remark(self) -> str:
        """A sentence if guessing the middle of the domain would do as well as a run; else empty."""
        return remark_on_error(self.expected_mse, self.requirements.sensitivity)

    @cached_property
    def noise(self) -> SettledNoise:
        """The noise of a settled run with its top-up; refused for plans of runs that do not settle."""
        if not self.settles:
            raise InvalidInput("only settled runs top up their noise, and this plan is for runs that do not settle")
        return settled_noise(self.requirements, self.design.rounds, self.spare)

    @property
    def topup(self) -> TopUp:
        """What each party adds when it settles, by the weights of the cohort."""
        return self.noise.topup

    def noise_levels_of(self, execution: Execution) -> NoiseLevels:
        """Return the noise of an execution, with the top-up for its cohort."""
        if execution.cohort is None:
            return self.noise_levels
        return replace(self.noise, levels=self.noise_levels).levels_of(execution)

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
        return execution.settled() if self.settles else execution

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
        if (execution.cohort is not None) != self.settles:
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
        return PlanDocument(
            inca=__version__,
            requirements=RequirementFields(**wanted | {"rule": rule_to_file(requirements.rule)}),
            rounds=design.rounds,
            receivers=design.receivers,
            schedule=design.schedule,
            injection=injection_fields(design.injection()),
            sigma_independent=self.noise_levels.independent,
            sigma_cancelling=self.noise_levels.cancelling,
            sigma_together=self.topup.together if self.settles else 0.0,
            spare=self.spare,
            expected_mse=finite_or_none(self.expected_mse),
            error=_error_parts(self.budget),
            standard_error=self.standard_error,
            central_mse=requirements.central_mse,
            local_mse=requirements.local_mse,
            failure_probability=self.failure_probability,
            sampled=None if self.sampled is None else SamplingFields(**asdict(self.sampled)),
            **chosen,
        )

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON (`inca-plan/2`), whole or not at all."""
        self.document().write(path)


def _error_parts(budget: ErrorBudget) -> ErrorParts:
    return ErrorParts(**{name: finite_or_none(part) for name, part in asdict(budget).items()})


def _budget(parts: ErrorParts) -> ErrorBudget:
    return ErrorBudget(**{name: infinite_if_none(part) for name, part in msgspec.structs.asdict(parts).items()})


def plan(requirements: Requirements, options: PlanOptions | None = None, *, progress: Progress | None = None) -> Plan:
    """Find the parameters of least error that meet the requirements.

    Settled runs are planned by formulas that are proven (`inca.planning.settled`), in no time for any number of
    parties. With recipe "paper" Algorithm 2 is calibrated as the paper does it, on sampled views; the result does not
    depend on chance, as they are sampled from fixed seeds.

    Args:
        requirements: The guarantee, the adversary, the dropouts and how many messages may be sent.
        options: What is fixed; by default nothing is.
        progress: Called with the views done and their total, where views are sampled.

    Returns:
        A plan: the design, the noise levels, the expected error, and how likely the guarantee fails.

    Raises:
        RequirementsNotMet: If no plan meets the requirements; the sentence says why, and what could be done.
        InvalidInput: If an argument is out of its range.

    Example:
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.1)
        >>> best = plan(requirements)
        >>> print(best.design)
        permutation, 6 rounds, 1 receiver, value in shares
        >>> round(best.expected_mse / requirements.central_mse, 3)  # of a trusted curator, with everybody present
        1.403
    """
    instance("requirements", requirements, Requirements)
    options = instance("options", PlanOptions() if options is None else options, PlanOptions)
    if progress is not None:
        method_of("progress", progress, "__call__", "a function")
    one_of("recipe", options.recipe, ("best", "paper"))
    integer("views", options.views, min=2)
    if options.recipe == "paper":
        return _by_the_paper(requirements, options, progress)
    if options.receivers not in (None, 1):
        refuse("receivers", options.receivers, "1, but for recipe paper: with more no noise is proven to suffice")
    joined = joined_design(requirements, options.rounds)
    noise = settled_noise(requirements, joined.design.rounds, joined.spare)
    noise.levels.refuse_uncancelled()
    error, standard_error = settled_error(requirements, noise, requirements.leavers), 0.0
    if requirements.away > 0.0:
        error, standard_error = sampled_error(
            requirements, joined.design, noise.levels_of, requirements.dropout, _RUNS, settled=True
        )
    return Plan(
        requirements=requirements,
        design=joined.design,
        recipe="best",
        noise_levels=noise.levels,
        budget=error,
        failure_probability=joined.failure,
        spare=joined.spare,
        standard_error=standard_error,
    )


def _by_the_paper(requirements: Requirements, options: PlanOptions, progress: Progress | None) -> Plan:
    views, rates = options.views, dropout_rates(requirements)
    done, total = 0, views * len(rates)

    def count() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    design = paper_design(requirements, options.rounds, options.receivers)
    levels = paper_noise(requirements, design, views, count)
    error, standard_error = sampled_error(requirements, design, lambda _: levels, requirements.dropout, _RUNS)
    return Plan(
        requirements=requirements,
        design=design,
        recipe="paper",
        noise_levels=levels,
        budget=error,
        failure_probability=1.0 / (views + 1.0),  # the next view is as likely as any of them to need most
        standard_error=standard_error,
        sampled=Sampled(views, rates),
    )


def read_plan(path: str | Path) -> Plan:
    """Read a plan that `Plan.write` wrote.

    Args:
        path: The JSON file, of format `inca-plan/2`.

    Returns:
        The plan, equal to the one that was written.

    Raises:
        InvalidInput: If the file cannot be read, or is not a plan.

    Example:
        >>> import inca, tempfile
        >>> from pathlib import Path
        >>> plan = inca.plan(inca.Requirements(20, 1.0, colluding=0.1))
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
    fields = msgspec.structs.asdict(document.requirements)
    design = ProtocolDesign(document.schedule, document.rounds, document.receivers)
    if injection_fields(design.injection()) != document.injection:
        raise InvalidInput("injection must be incremental, without quiet rounds")
    plan = Plan(
        requirements=Requirements(**fields | {"rule": rule_from_file(document.requirements.rule)}),
        design=design,
        recipe=document.recipe,
        noise_levels=NoiseLevels(independent=document.sigma_independent, cancelling=document.sigma_cancelling),
        budget=_budget(document.error),
        failure_probability=document.failure_probability,
        spare=document.spare,
        standard_error=document.standard_error,
        sampled=None if document.sampled is None else Sampled(**msgspec.structs.asdict(document.sampled)),
    )
    if plan.settles:
        _check_proven(plan, document)
    return plan


def _check_proven(plan: Plan, document: PlanDocument) -> None:
    """Refuse a file that claims more than what is proven of its requirements and rounds, by working it out anew."""
    joined = joined_design(replace(plan.requirements, messages=None), plan.design.rounds)
    if (joined.design, joined.spare) != (plan.design, plan.spare):
        refuse("the design", f"{plan.design}, spare {plan.spare}", f"{joined.design}, spare {joined.spare}")
    proven = {
        "sigma_independent": plan.noise.levels.independent,
        "sigma_cancelling": plan.noise.levels.cancelling,
        "sigma_together": plan.topup.together,
        "failure_probability": joined.failure,
    }
    for name, number in proven.items():
        if not math.isclose(getattr(document, name), number, rel_tol=1e-9):
            refuse(name, getattr(document, name), f"{number:.12g}, as its requirements and rounds give")
