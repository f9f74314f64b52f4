"""Training a shared model by private averages of what the parties would change in it.

In each step every party works out an update on its own data, clips it, and the updates are averaged privately;
everyone then takes the same step of an optimiser. A Gaussian shift of mu per step makes sqrt(steps) mu in all, also
though the updates of a step depend on the results of earlier ones (docs/accounting.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.types import Array
from inca._base.validation import InputError, finite_array, generator, positive, real, refuse, whole
from inca.learn.averagers.base import Averaging, Elsewhere
from inca.learn.budget import Budget, UsedUp
from inca.protocol.domain import Ball

Level = Literal["party", "record"]
Weights = Literal["equal", "records"]
Part = tuple[ArrayLike, ArrayLike]
"""One party's records: features and targets, of the same length."""
_Tables = tuple[NDArray[Any], NDArray[Any]]
Move = Callable[[Array, Array], Array]
"""From parameters and a gradient to the next parameters."""

_ENTRIES = 1 << 22  # entries of gradients of single records held at a time: 32 megabytes


class Model(Protocol):
    """What is trained: a vector of parameters and the gradient of a mean loss."""

    @property
    def parameters(self) -> Array:
        """Where training begins, (d,)."""
        ...

    def gradient(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of the mean loss over the records, (d,)."""
        ...


@runtime_checkable
class RecordModel(Model, Protocol):
    """A model that also knows the gradient of each record; privacy of single records needs it."""

    def record_gradients(self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the gradient of each record's loss, (m, d)."""
        ...


class Optimiser(Protocol):
    """A rule for steps; its state is made of released averages only, so everyone has the same."""

    def begin(self, dimensions: int) -> Move:
        """Return the rule with a fresh state."""
        ...


@dataclass(frozen=True)
class Descent:
    """Gradient descent with momentum: v <- momentum v + g, parameters <- parameters - rate v.

    >>> move = Descent(rate=0.5, momentum=0.5).begin(1)
    >>> move(move(np.zeros(1), np.ones(1)), np.ones(1)).tolist()
    [-1.25]
    """

    rate: float = 0.1
    momentum: float = 0.0

    def begin(self, dimensions: int) -> Move:
        """Return the rule with no velocity."""
        rate, momentum = positive("rate", self.rate), real("momentum", self.momentum, 0.0, 1.0)
        velocity = np.zeros(dimensions)

        def move(parameters: Array, gradient: Array) -> Array:
            np.multiply(velocity, momentum, out=velocity)
            np.add(velocity, gradient, out=velocity)
            return parameters - rate * velocity

        return move


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma, Ba 2015, algorithm 1): each coordinate's step is divided by the root of its mean square.

    >>> move = Adam(rate=0.5).begin(2)
    >>> move(np.zeros(2), np.array([1e-3, -7.0])).round(3).tolist()
    [-0.5, 0.5]
    """

    rate: float = 0.01
    first: float = 0.9
    second: float = 0.999

    def begin(self, dimensions: int) -> Move:
        """Return the rule with no past."""
        rate, first, second = positive("rate", self.rate), self.first, self.second
        for name in ("first", "second"):
            if real(name, getattr(self, name), 0.0, 1.0) == 1.0:
                raise refuse(name, 1.0, "a number below 1")
        mean, square = np.zeros(dimensions), np.zeros(dimensions)
        count = 0

        def move(parameters: Array, gradient: Array) -> Array:
            nonlocal count
            count += 1
            mean[:] = first * mean + (1.0 - first) * gradient
            square[:] = second * square + (1.0 - second) * gradient**2
            root = np.sqrt(square / (1.0 - second**count))
            return parameters - rate * (mean / (1.0 - first**count)) / (root + 1e-8)

        return move


@dataclass(frozen=True)
class LocalSteps:
    """Model averaging: each party descends `count` times from the shared parameters, at `rate`, before the average.

    What it contributes is the mean gradient on its way, (shared - own) / (count rate), so that clipping has the scale
    of one gradient. `Descent(rate=count * rate)` then makes the shared parameters the average of the parties' own ones.

    >>> class Parabola:
    ...     parameters = np.ones(1)
    ...     def gradient(self, parameters, features, targets):
    ...         return parameters
    >>> LocalSteps(count=2, rate=0.5).update(Parabola(), np.ones(1), np.zeros(1), np.zeros(1)).tolist()
    [0.75]
    """

    count: int
    rate: float

    def __post_init__(self) -> None:
        """Refuse steps that go nowhere."""
        whole("count", self.count, least=1)
        positive("rate", self.rate)

    def update(self, model: Model, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the mean gradient on the way."""
        own = parameters.copy()
        for _ in range(self.count):
            own -= self.rate * np.asarray(model.gradient(own, features, targets))
        return (parameters - own) / (self.count * self.rate)


@dataclass(frozen=True)
class Clipping:
    """What is protected, and how far one change of it can move a party's contribution.

    Party i of n has m_i records, M in all; the m_i are public. The aggregator takes the plain mean of contributions, so
    weights w_i with mean 1 are multiplied in before: `equal` is w_i = 1, `records` is w_i = n m_i / M.

    - Level `party`: all records of a party change. Its update is clipped to length C and two of them differ by 2 C, so
      the sensitivity is 2 C max w_i. With `records` weights, a single large party makes the noise large for all: the
      default is `equal`.
    - Level `record`: one record is replaced. Each record's gradient is clipped to C, and their mean moves by 2 C / m_i,
      so the sensitivity is 2 C max (w_i / m_i). With `equal` weights this is 2 C / min m_i, and the smallest party
      decides. With `records` weights the size cancels and every record moves its party's contribution by 2 C n / M,
      whoever holds it: the default, and the mean is that over all records.

    Sizes stay what they are when data change. While parties are away, the weights of those present have mean 1 only on
    average; the sensitivity is that of contributions and stays.

    >>> Clipping(1.0, "record").sensitivity([10, 30]), Clipping(1.0, "record", "equal").sensitivity([10, 30])
    (0.1, 0.2)
    >>> Clipping(1.0).sensitivity([10, 30]), Clipping(1.0, "party", "records").sensitivity([10, 30])
    (2.0, 3.0)
    """

    length: float
    level: Level = "party"
    weights: Weights | None = None

    def __post_init__(self) -> None:
        """Refuse lengths of 0 and words that mean nothing here."""
        positive("length", self.length)
        if self.level not in ("party", "record"):
            raise refuse("level", self.level, "'party' or 'record'")
        if self.weights not in (None, "equal", "records"):
            raise refuse("weights", self.weights, "'equal' or 'records'")

    def party_weights(self, sizes: Sequence[int]) -> Array:
        """Return w_i for parties of these sizes."""
        counts = np.asarray(sizes, dtype=np.float64)
        chosen = self.weights or ("equal" if self.level == "party" else "records")
        return np.ones(len(counts)) if chosen == "equal" else counts / counts.mean()

    def sensitivity(self, sizes: Sequence[int]) -> float:
        """Return how far one protected change can move the contribution of the party where it is largest."""
        weights = self.party_weights(sizes)
        return 2.0 * self.length * float(np.max(weights if self.level == "party" else weights / np.asarray(sizes)))


@dataclass(frozen=True)
class Step:
    """What everyone knows of a step: its loss, the noise's standard deviation, and the length of the average.

    The last two are infinite and None if nobody was left: then the parameters stayed as they were. Nothing else is
    kept. How many updates were clipped, or the loss on the parties' records, are functions of private data to which no
    noise was added: a party may look at its own, but whoever publishes them gives away what the budget does not count.
    """

    mu: float
    noise: float
    length: float | None

    @property
    def skipped(self) -> bool:
        """Whether nobody was left."""
        return self.length is None


@dataclass(frozen=True, eq=False)
class Training:
    """The parameters after the last step, what the releases add up to, and the history."""

    parameters: Array
    sensitivity: float
    history: tuple[Step, ...]

    @property
    def mu(self) -> float:
        """The loss of all steps together; skipped ones count, since messages were sent."""
        return math.sqrt(math.fsum(step.mu**2 for step in self.history))


def train(
    model: Model,
    parts: Sequence[Part | Elsewhere],
    aggregator: Averaging,
    budget: Budget,
    steps: int,
    rng: np.random.Generator,
    *,
    clipping: Clipping,
    optimiser: Optimiser | None = None,
    local: LocalSteps | None = None,
    penalty: Callable[[Array], Array] | None = None,
    mu: float | None = None,
    after: Callable[[int, Array], None] | None = None,
) -> Training:
    """Train by `steps` private averages of clipped gradients, or of clipped changes if there are `local` steps.

    The loss of all steps is taken off the budget before any record is looked at: equal mus that use up what is left, or
    `mu` for each. It stays taken if training stops early. A refused update (NaN, infinite) stops training before its
    step releases anything. Parties that leave during a step are back in the next one. The guarantee of each step is
    the aggregator's; a plan that may fail with some chance may do so in every step.

    `penalty` is the gradient of a term that depends on no data, such as a ridge: added to the average, it costs no
    privacy and is not clipped. `after` is called with the number of the step, from 1, and the released parameters.
    All records are used in all steps. Memory grows with parties times parameters, not with steps.

    On a network (`inca.learn.averagers.network.Sessions`) each party calls this with its own part, `Elsewhere` for
    those of the others, and all else the same; it ends with the same parameters for all.

    >>> from inca.learn import Aggregator
    >>> class Mean:
    ...     parameters = np.zeros(2)
    ...     def gradient(self, parameters, features, targets):
    ...         return parameters - features.mean(axis=0)
    >>> parts = [(np.full((3, 2), 0.5), np.zeros(3))] * 100
    >>> budget, rng = Budget(epsilon=4.0, delta=1e-5), np.random.default_rng(1)
    >>> found = train(Mean(), parts, Aggregator.of("central", 100), budget, 10, rng, clipping=Clipping(1.0))
    >>> found.parameters.shape, len(found.history), round(budget.epsilon_spent, 6)
    ((2,), 10, 4.0)
    """
    count, source = whole("steps", steps, least=1), generator(rng)
    tables = _checked(parts, aggregator.parties)
    parameters = finite_array("model.parameters", model.parameters, (1,), "one vector").copy()
    if parameters.size == 0:
        raise InputError("model.parameters is empty, but at least one parameter was expected")
    move = (optimiser or Descent()).begin(parameters.size)
    work = _Work(model, tables, clipping, local, parameters.size)
    share = _reserve(budget, count, mu)
    history = []
    for step in range(1, count + 1):
        rows = work.contributions(parameters, step)
        average = aggregator.average(rows, work.sensitivity, share, source, reach=work.reach)
        history.append(
            Step(share, math.sqrt(average.noise), None if average.vector is None else _length(average.vector))
        )
        if average.vector is not None:
            parameters = move(parameters, average.vector if penalty is None else average.vector + penalty(parameters))
            if not np.isfinite(parameters).all():
                raise InputError(f"the parameters after step {step} are not finite: a smaller rate may help")
        if after is not None:
            after(step, parameters.copy())
    return Training(parameters, work.sensitivity, tuple(history))


class _Work:
    """What the parties whose data are here do in a step; one table with a row each serves all steps."""

    def __init__(
        self,
        model: Model,
        parts: list[_Tables | Elsewhere],
        clipping: Clipping,
        local: LocalSteps | None,
        dimensions: int,
    ) -> None:
        by_record = clipping.level == "record"
        if by_record and local is not None:
            raise InputError(
                "local steps are given at level 'record', but how far one record moves them is not bounded by clipping"
            )
        if by_record and not isinstance(model, RecordModel):
            raise refuse("model", type(model).__name__, "a model with record_gradients, for level 'record'")
        self.model, self.local, self.ball, self.by_record = model, local, Ball(clipping.length), by_record
        sizes = [len(part) if isinstance(part, Elsewhere) else len(part[1]) for part in parts]
        weights, self.sensitivity = clipping.party_weights(sizes), clipping.sensitivity(sizes)
        self.reach = clipping.length * float(weights.max())
        self.held = [(party, part) for party, part in enumerate(parts) if not isinstance(part, Elsewhere)]
        self.weights = weights[[party for party, _ in self.held], np.newaxis]
        self.table = np.empty((len(self.held), dimensions))

    def contributions(self, parameters: Array, step: int) -> Array:
        """Return one clipped and weighted row per party that is here, or refuse the step."""
        self.table.fill(0.0)
        for (party, tables), row in zip(self.held, self.table, strict=True):
            for part, found in self._updates(parameters, *tables):
                if found.shape[1:] != row.shape or not np.isfinite(found).all():
                    what = f"of shape {found.shape}" if found.shape[1:] != row.shape else "not finite"
                    raise InputError(
                        f"the gradient of party {party} in step {step} is {what}, but {row.size} finite numbers were "
                        "expected; nothing was released in this step"
                    )
                with np.errstate(over="ignore"):  # longer than any number: scaled to nothing
                    row[:] += part * self.ball.admit(found, clip=True).sum(axis=0)
        self.table *= self.weights
        return self.table

    def _updates(
        self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]
    ) -> Iterator[tuple[float, Array]]:
        """Yield weights and rows to be clipped: the party's one update, or gradients of its records in blocks."""
        model = self.model
        if not self.by_record:
            update = self.local.update if self.local is not None else _gradient
            yield 1.0, np.asarray(update(model, parameters, features, targets), dtype=np.float64)[np.newaxis]
            return
        assert isinstance(model, RecordModel)
        block = max(1, _ENTRIES // parameters.size)
        for low in range(0, len(targets), block):
            found = model.record_gradients(parameters, features[low : low + block], targets[low : low + block])
            if np.ndim(found) == 0 or len(found) != len(targets[low : low + block]):
                raise refuse("the shape of record_gradients", np.shape(found), "one row per record")
            yield 1.0 / len(targets), np.asarray(found, dtype=np.float64)


def _gradient(model: Model, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
    return model.gradient(parameters, features, targets)


def _length(vector: Array) -> float:
    return float(np.linalg.norm(vector))


def _reserve(budget: Budget, steps: int, mu: float | None) -> float:
    """Take all steps off the budget and return the mu of one."""
    if mu is None:
        if budget.left <= budget.mu * 1e-6:  # what rounding leaves of a budget that was divided among releases
            raise UsedUp(f"{steps} steps were asked for, but nothing is left of the budget epsilon {budget.epsilon:g}")
        share = budget.split([1.0] * steps)[0]
    else:
        share = positive("mu", mu)
    budget.spend(share * math.sqrt(steps))
    return share


def _checked(parts: Sequence[Part | Elsewhere], parties: int) -> list[_Tables | Elsewhere]:
    """Return the parts as arrays, without looking at what they hold; refuse wrong numbers of them and empty ones."""
    if len(parts) != parties:
        raise refuse("the number of parts", len(parts), f"one for each of {parties} parties")
    tables: list[_Tables | Elsewhere] = []
    for party, part in enumerate(parts):
        if isinstance(part, Elsewhere):
            if len(part) == 0:
                raise InputError(f"parts[{party}] is empty, but every party needs at least one record")
            tables.append(part)
            continue
        x, y = np.asarray(part[0]), np.asarray(part[1])
        if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
            raise refuse(f"the shapes of parts[{party}]", (x.shape, y.shape), "as many targets as rows of features")
        if len(y) == 0:
            raise InputError(f"parts[{party}] is empty, but every party needs at least one record")
        tables.append((x, y))
    return tables
