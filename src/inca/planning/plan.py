"""A plan: the parameters of a run, what error to expect, what is promised, and how that is known. It is a file."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inca._base.files import write_json
from inca._base.validation import InputError, refuse
from inca._base.version import __version__
from inca.planning.designs import Shape
from inca.planning.requirements import Wish
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.presence import Presence
from inca.protocol.transcript import Transcript, injection_fields

FORMAT = "inca-plan/1"


@dataclass(frozen=True)
class Sampling:
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
class Option:
    """A design that was considered, and its error relative to the chosen one's."""

    design: str
    messages: int
    relative_mse: float


@dataclass(frozen=True)
class Plan:
    """Everything that a run needs but the values; made by `inca.plan`, kept as a file by `write` and `read_plan`."""

    wish: Wish
    shape: Shape
    recipe: str
    factor: float
    sigma_independent: float
    sigma_cancelling: float
    budget: ErrorBudget
    """The expected error per coordinate, at the wished dropout rate."""
    standard_error: float
    """Of the expected error, from sampling who leaves."""
    structure_bound: float
    """The proven bound on the chance that, everyone being present, no level would suffice (Theorem 2's rank)."""
    sampling: Sampling
    considered: tuple[Option, ...] = ()
    further: tuple[Option, ...] = ()
    """What other numbers of messages would bring."""

    @property
    def expected_mse(self) -> float:
        """The expected squared error per coordinate."""
        return self.budget.total

    @property
    def failure_probability(self) -> float:
        """The chance, over schedules and adversaries, that someone's loss exceeds the wish: proven + extrapolated."""
        return self.structure_bound + self.wish.failure / 2.0

    def execution(self, seed: int, presence: Presence | None = None) -> Execution:
        """Return a run of this plan: a schedule from the seed, and who is there."""
        return Execution(self.shape.draw(self.wish.parties, seed), self.shape.injection(), presence)

    def adversary(self, rng: np.random.Generator) -> Adversary:
        """Draw an adversary of the wished size."""
        return Adversary.random(self.wish.parties, self.shape.rounds, rng, self.wish.colluding, self.wish.eavesdropped)

    def check(self, transcript: Transcript) -> None:
        """Refuse an execution that does not follow this plan; its schedule is taken to be drawn as planned."""
        execution = transcript.execution
        for name, found, planned in (
            ("parties", execution.parties, self.wish.parties),
            ("rounds", execution.rounds, self.shape.rounds),
            ("receivers", execution.schedule.slots, self.shape.receivers),
            ("sigma_independent", transcript.sigma_independent, self.sigma_independent),
            ("sigma_cancelling", transcript.sigma_cancelling, self.sigma_cancelling),
        ):
            if found is None or not math.isclose(found, planned, rel_tol=1e-12):
                raise refuse(f"{name} of the execution", found, f"{planned:.12g}, as planned,")
        if execution.injection != self.shape.injection():
            raise InputError("the execution has another injection of values and noise than the plan")

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {
            "format": FORMAT,
            "inca": __version__,
            "wish": asdict(self.wish),
            "recipe": self.recipe,
            "rounds": self.shape.rounds,
            "receivers": self.shape.receivers,
            "schedule": self.shape.schedule,
            "quiet_rounds": self.shape.quiet,
            "injection": injection_fields(self.shape.injection()),
            "factor": self.factor,
            "sigma_independent": self.sigma_independent,
            "sigma_cancelling": self.sigma_cancelling,
            "expected_mse": self.expected_mse,
            "error": asdict(self.budget),
            "standard_error": self.standard_error,
            "central_mse": self.wish.central_mse,
            "local_mse": self.wish.local_mse,
            "failure_probability": self.failure_probability,
            "structure_bound": self.structure_bound,
            "sampling": asdict(self.sampling),
            "considered": [asdict(option) for option in self.considered],
            "further": [asdict(option) for option in self.further],
        }

    def write(self, path: str | Path) -> None:
        """Write the plan as JSON, whole or not at all."""
        write_json(path, self.as_dict(), indent=1)

    def __str__(self) -> str:
        """Explain the plan."""
        wish, budget, central = self.wish, self.budget, self.wish.central_mse
        lines = [
            f"Plan for {wish.parties:,} parties: ({wish.epsilon:g}, {wish.delta:g})-DP by the {wish.rule} rule",
            f"  against            {_adversary(wish)}",
            f"  in spite of        up to {wish.dropout:.3g} of the parties leaving for good",
            f"  design             {self.shape}",
            f"  noise              sigma_independent {self.sigma_independent:.6g} (factor {self.factor:.3g}), "
            f"sigma_cancelling {self.sigma_cancelling:.6g}",
            f"  expected error     {self.expected_mse:.4g} mean squared = {self.expected_mse / central:.3g} x Central "
            f"DP ({central:.3g}); Local DP {wish.local_mse:.3g}",
            f"  of which           {_percent(budget.independent, budget)} independent noise, "
            f"{_percent(budget.cancelling, budget)} noise left by leavers, {_percent(budget.data, budget)} lost values",
            f"  chance of failure  {self.failure_probability:.2g}: {self.structure_bound:.2g} proven that messages "
            f"hide too little, {wish.failure / 2:.2g} extrapolated",
            f"                     {_sampled(self.sampling, wish)}",
        ]
        if self.factor >= wish.honest > 1:
            lines.append("  note               so few messages hide so little that this is Local DP: more would help")
        lines += [f"  with {option.messages:>3} messages  {_change(option.relative_mse)}" for option in self.further]
        return "\n".join(lines)


def _adversary(wish: Wish) -> str:
    parts = []
    if wish.colluding > 0:
        parts.append(f"{wish.colluders:,} random colluding parties")
    if wish.eavesdropped > 0:
        parts.append(f"{wish.eavesdropped:.3g} of all messages tapped")
    return " and ".join(parts) if parts else "whoever knows who sent to whom and sees the final messages"


def _sampled(sampling: Sampling, wish: Wish) -> str:
    of = f"{sampling.parties} parties" + ("" if sampling.parties == wish.parties else " (sub-populations)")
    rates = ", ".join(f"{rate:.3g}" for rate in sampling.dropouts)
    checked = f"; checked on {sampling.checked} whole view{'s' * (sampling.checked > 1)}" if sampling.checked else ""
    return f"from {sampling.views} views of {of} each at dropout {rates}, confidence {sampling.confidence:g}{checked}"


def _percent(part: float, budget: ErrorBudget) -> str:
    return f"{part / budget.total:.1%}" if 0 < budget.total < math.inf else "0 %"


def _change(relative: float) -> str:
    change = relative - 1.0
    return f"the error would be {abs(change):.1%} {'larger' if change > 0 else 'smaller'}"


class _Document(msgspec.Struct):
    """The fields that are read; what can be computed from them, or only explains them, is not."""

    format: str
    wish: dict[str, Any]
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
    considered: list[dict[str, Any]] = []
    further: list[dict[str, Any]] = []


def read_plan(path: str | Path) -> Plan:
    """Read a plan that `Plan.write` wrote."""
    try:
        text = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read as a plan: {error.strerror or error}") from None
    try:
        document = msgspec.json.decode(text, type=_Document)
        if document.format != FORMAT:
            raise refuse("format", document.format, FORMAT)
        kind = "early" if document.injection.get("kind") == "early" else "incremental"
        shape = Shape(document.schedule, document.rounds, document.receivers, document.quiet_rounds, kind)
        if injection_fields(shape.injection()) != document.injection:
            raise InputError("injection does not have the stated number of quiet rounds")
        sampling = {**document.sampling, "dropouts": tuple(document.sampling.get("dropouts", ()))}
        return Plan(
            Wish(**document.wish),
            shape,
            document.recipe,
            document.factor,
            document.sigma_independent,
            document.sigma_cancelling,
            ErrorBudget(**document.error),
            document.standard_error,
            document.structure_bound,
            Sampling(**sampling),
            tuple(Option(**option) for option in document.considered),
            tuple(Option(**option) for option in document.further),
        )
    except (msgspec.DecodeError, TypeError, InputError) as error:
        raise InputError(f"{path} cannot be read as a plan: {error}") from None
