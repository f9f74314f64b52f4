"""Training a shared model by private averages of what the parties would change in it.

In each step every party works out an update on its own data, clips it, and the updates are averaged privately;
everyone then takes the same step of an optimizer. A Gaussian shift of mu per step makes sqrt(steps) mu in all, even
though the updates of a step depend on the results of earlier ones (docs/accounting.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from inca._base.types import Array
from inca._base.validation import finite_array, generator, instance, integer, listed, method_of, refuse
from inca.errors import InvalidInput
from inca.learn.averagers.base import Averager, RemoteRecords
from inca.learn.budget import Budget
from inca.learn.spending import take_releases
from inca.learn.training.clipping import Clipping
from inca.learn.training.contributions import Contributions, LocalSteps, PartyData
from inca.learn.training.models import Model
from inca.learn.training.optimizers import SGD, Optimizer
from inca.privacy.dp_event import gaussian_dp_event


@dataclass(frozen=True)
class TrainingStep:
    """What everyone knows of a step.

    Nothing else is kept. How many updates were clipped, or the loss on the parties' records, are functions of private
    data to which no noise was added: a party may look at its own, but whoever publishes them gives away what the budget
    does not count.

    Attributes:
        mu: The loss of the step.
        sigma_noise: The standard deviation of the noise in each coordinate; infinite if nobody was left.
        norm: The Euclidean norm of the average; None if nobody was left, and then the parameters stayed as they were.
    """

    mu: float
    sigma_noise: float
    norm: float | None

    @property
    def skipped(self) -> bool:
        """Whether nobody was left."""
        return self.norm is None


@dataclass(frozen=True, eq=False, repr=False)
class TrainingResult:
    """A trained model.

    Attributes:
        parameters: The parameters after the last step, (d,).
        sensitivity: How far one protected change can move a party's contribution.
        history: What everyone knows of each step.
        failure_probability: How likely the averager's plan fails in any step; it adds to delta. None: not known.
    """

    parameters: Array
    sensitivity: float
    history: tuple[TrainingStep, ...]
    failure_probability: float | None = None

    def __repr__(self) -> str:
        return f"TrainingResult(shape={self.parameters.shape}, steps={len(self.history)}, mu={self.mu:.4g})"

    @property
    def mu(self) -> float:
        """The loss of all steps together; skipped ones count, since messages were sent."""
        return math.sqrt(math.fsum(step.mu**2 for step in self.history))

    def dp_event(self) -> Any:
        """Return all steps together as one event of the dp_accounting library, for an accountant of the user's own.

        The `failure_probability` is no part of it; it adds to delta there, too.

        Returns:
            A `GaussianDpEvent` with noise multiplier 1 / `mu`.

        Raises:
            InvalidInput: If dp_accounting is not installed.
        """
        return gaussian_dp_event(self.mu)


@dataclass(frozen=True)
class TrainingRules:
    """How `train` clips and applies updates, and what each step may cost.

    Args:
        clipping: What is protected, and the length that updates are scaled down to.
        optimizer: The rule for shared steps; `SGD()` by default.
        local: Steps of each party on its own before each average.
        penalty: The gradient of a term that depends on no data, such as a ridge: added to the average, it costs no
            privacy and is not clipped.
        mu: The loss of each step; by default equal ones that use up what is left of the budget.
    """

    clipping: Clipping
    optimizer: Optimizer | None = None
    local: LocalSteps | None = None
    penalty: Callable[[Array], Array] | None = None
    mu: float | None = None

    def __post_init__(self) -> None:
        instance("clipping", self.clipping, Clipping)
        if self.optimizer is not None:
            method_of("optimizer", self.optimizer, "begin", "an optimizer, such as inca.learn.SGD(0.1)")
        if self.local is not None:
            instance("local", self.local, LocalSteps)
        if self.penalty is not None:
            method_of("penalty", self.penalty, "__call__", "a function")


def train(
    model: Model,
    datasets: Sequence[PartyData | RemoteRecords],
    averager: Averager,
    budget: Budget,
    steps: int,
    rng: np.random.Generator,
    rules: TrainingRules,
    *,
    on_step: Callable[[int, Array], None] | None = None,
) -> TrainingResult:
    """Train by private averages of clipped gradients, or of clipped changes if there are `local` steps.

    The loss of all steps is taken off the budget before any record is looked at. It stays taken if training stops
    early. Missing records are refused before. Once training has begun, whether it goes on never depends on private
    records: an update (of a party, or of a record if records are protected) with a number that is NaN or infinite
    counts as zero, and neither is it told nor counted whose or how many these were. Parties that leave during a step
    are back in the next one. The guarantee of each step is the averager's; a plan that fails with some probability may
    do so in every step, so what is promised is the budget's epsilon at its delta plus `failure_probability` of the
    result. All records are used in all steps. Memory grows with parties times parameters, not with steps.

    On a network (`NetworkAverager`) each party calls this with its own data, `RemoteRecords` for those of the others,
    and all else the same; it ends with the same parameters for all.

    Args:
        model: The parameters to begin with and the gradient of a mean loss.
        datasets: Features and targets of each party.
        averager: Averages vectors of as many parties.
        budget: What the loss of all steps is taken from.
        steps: The number of private averages.
        rng: The source of all randomness.
        rules: How updates are clipped and applied, and what each step may cost.
        on_step: Called after each step with its number, from 1, and the released parameters.

    Returns:
        The trained parameters and the history.

    Raises:
        BudgetExceeded: If less is left of the budget.
        InvalidInput: If an argument cannot be used, updates have another shape than the parameters, there are more
            steps than the averager was made for, or its plan fails with a larger probability than the budget accepts.

    Example:
        >>> from inca.learn import SimulatedAverager
        >>> class Mean:
        ...     parameters = np.zeros(2)
        ...     def gradient(self, parameters, features, targets):
        ...         return parameters - features.mean(axis=0)
        >>> datasets = [(np.full((3, 2), 0.5), np.zeros(3))] * 100
        >>> averager, budget, rng = SimulatedAverager.of("central", 100), Budget(4.0, 1e-5), np.random.default_rng(1)
        >>> result = train(Mean(), datasets, averager, budget, 10, rng, TrainingRules(Clipping(1.0)))
        >>> result.parameters.shape, len(result.history), round(budget.epsilon_spent, 6)
        ((2,), 10, 4.0)
    """
    method_of("model", model, "gradient", "a model with parameters and gradient")
    method_of("averager", averager, "average", "an averager, such as inca.learn.SimulatedAverager")
    instance("budget", budget, Budget)
    instance("rules", rules, TrainingRules)
    if on_step is not None:
        method_of("on_step", on_step, "__call__", "a function")
    count, source = integer("steps", steps, min=1), generator(rng)
    held = listed("datasets", datasets, "pairs of features and targets, one for each party")
    if len(held) != averager.parties:
        refuse("the number of datasets", len(held), f"{averager.parties}, one for each party")
    parameters = finite_array("model.parameters", model.parameters, (1,), "one vector").copy()
    if parameters.size == 0:
        refuse("the number of model.parameters", 0, "at least 1")
    update = (rules.optimizer or SGD()).begin(parameters.size)
    contributions = Contributions(model, held, rules.clipping, rules.local, parameters.size)
    cost = take_releases(budget, averager, rules.clipping.level, count, rules.mu)
    mu_step = cost.mu
    history = []
    for step in range(1, count + 1):
        rows = contributions.at(parameters)
        average = averager.average(rows, contributions.sensitivity, mu_step, source, max_norm=contributions.max_norm)
        gradient = average.estimate
        norm = None if gradient is None else float(np.linalg.norm(gradient))
        history.append(TrainingStep(mu_step, math.sqrt(average.var_noise), norm))
        if gradient is not None:
            parameters = update(parameters, gradient if rules.penalty is None else gradient + rules.penalty(parameters))
            if not np.isfinite(parameters).all():
                raise InvalidInput(f"the parameters after step {step} are not finite: a smaller rate may help")
        if on_step is not None:
            on_step(step, parameters.copy())
    return TrainingResult(parameters, contributions.sensitivity, tuple(history), cost.failure_probability)
