"""What the parties do in a step before the average: work out updates on their own data, clip and weight them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from inca._base.types import Array
from inca._base.validation import finite_array, integer, positive, refuse
from inca.errors import InvalidInput
from inca.learn.averagers.base import RemoteRecords
from inca.learn.training.clipping import Clipping
from inca.learn.training.models import Model, RecordModel

PartyData = tuple[ArrayLike, ArrayLike]
"""One party's records: features and targets, of the same length."""
_Tables = tuple[NDArray[Any], NDArray[Any]]

_BLOCK_ENTRIES = 1 << 22  # entries of gradients of single records held at a time: 32 megabytes


@dataclass(frozen=True)
class LocalSteps:
    """Model averaging: each party descends `count` times from the shared parameters, at `rate`, before the average.

    What it contributes is the mean gradient on its way, (shared - own) / (count rate), so that clipping has the scale
    of one gradient. `SGD(rate=count * rate)` then makes the shared parameters the average of the parties' own ones.

    Args:
        count: How many steps a party takes on its own.
        rate: The learning rate of these steps.

    Example:
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
        integer("count", self.count, min=1)
        positive("rate", self.rate)

    def update(self, model: Model, parameters: Array, features: NDArray[Any], targets: NDArray[Any]) -> Array:
        """Return the mean gradient on the way."""
        own = parameters.copy()
        for _ in range(self.count):
            own -= self.rate * np.asarray(model.gradient(own, features, targets))
        return (parameters - own) / (self.count * self.rate)


class Contributions:
    """The clipped updates of the parties whose data are here; one table with a row each serves all steps."""

    def __init__(
        self,
        model: Model,
        datasets: Sequence[PartyData | RemoteRecords],
        clipping: Clipping,
        local: LocalSteps | None,
        dimensions: int,
    ) -> None:
        self._by_record = clipping.level == "record"
        if self._by_record and local is not None:
            raise InvalidInput(
                "local steps cannot be combined with level 'record': clipping does not bound how far one record moves "
                "them"
            )
        if self._by_record and not isinstance(model, RecordModel):
            refuse("model", type(model).__name__, "a model with record_gradients, for level 'record'")
        self._model, self._local, self._clipping = model, local, clipping
        tables = [_checked(f"datasets[{party}]", data) for party, data in enumerate(datasets)]
        sizes = [len(data) if isinstance(data, RemoteRecords) else len(data[1]) for data in tables]
        weights, self.sensitivity = clipping.party_weights(sizes), clipping.sensitivity(sizes)
        self.max_norm = clipping.max_norm * float(weights.max())
        """A bound on the length of any party's row."""
        self._held = [(party, data) for party, data in enumerate(tables) if not isinstance(data, RemoteRecords)]
        self._weights = weights[[party for party, _ in self._held], np.newaxis]
        self._rows = np.empty((len(self._held), dimensions))

    def at(self, parameters: Array) -> Array:
        """Return one clipped and weighted row per party that is here.

        Updates that are not finite count as zero, silently: see `Clipping.clipped`.
        """
        self._rows.fill(0.0)
        with np.errstate(all="ignore"):  # also in the model: to warn or to raise would depend on records
            for (_, tables), row in zip(self._held, self._rows, strict=True):
                for weight, updates in self._updates(parameters, *tables):
                    if updates.shape[1:] != row.shape:
                        refuse("the shape of a gradient", updates.shape[1:], f"{row.shape}, that of the parameters")
                    row[:] += weight * self._clipping.clipped(updates).sum(axis=0)
        self._rows *= self._weights
        return self._rows

    def _updates(
        self, parameters: Array, features: NDArray[Any], targets: NDArray[Any]
    ) -> Iterator[tuple[float, Array]]:
        """Yield weights and rows to be clipped: the party's one update, or gradients of its records in blocks."""
        model = self._model
        if not self._by_record:
            if self._local is not None:
                update = self._local.update(model, parameters, features, targets)
            else:
                update = model.gradient(parameters, features, targets)
            yield 1.0, np.asarray(update, dtype=np.float64)[np.newaxis]
            return
        assert isinstance(model, RecordModel)
        block = max(1, _BLOCK_ENTRIES // parameters.size)
        for low in range(0, len(targets), block):
            block_targets = targets[low : low + block]
            gradients = model.record_gradients(parameters, features[low : low + block], block_targets)
            if np.ndim(gradients) == 0 or len(gradients) != len(block_targets):
                refuse("the shape of record_gradients", np.shape(gradients), "one row per record")
            yield 1.0 / len(targets), np.asarray(gradients, dtype=np.float64)


def _checked(name: str, data: PartyData | RemoteRecords) -> _Tables | RemoteRecords:
    """Return a party's data as arrays; refuse empty ones, and what is not a finite number."""
    if isinstance(data, RemoteRecords):
        tables: _Tables | RemoteRecords = data
        size = len(data)
    else:
        try:
            features, targets = data
        except (TypeError, ValueError):
            refuse(name, type(data).__name__, "a pair of features and targets, or RemoteRecords")
        tables = _numbers(f"the features of {name}", features), _numbers(f"the targets of {name}", targets)
        shapes = tuple(table.shape for table in tables)
        if () in shapes or shapes[0][0] != shapes[1][0]:
            refuse(f"the shapes of {name}", shapes, "as many targets as rows of features")
        size = shapes[1][0]
    if size == 0:
        refuse(f"the number of records of {name}", 0, "at least 1")
    return tables


def _numbers(name: str, values: ArrayLike) -> NDArray[Any]:
    """Return finite numbers in the type that they have, as a model may need it; targets may be true or false."""
    if getattr(values, "dtype", None) != np.bool_:
        finite_array(name, values, tuple(range(65)), "one row per record")
    return np.asarray(values)
