"""What is protected in training, and how far one change of it can move a party's contribution."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from inca._base.safe_numbers import safe_length
from inca._base.types import Array
from inca._base.validation import one_of
from inca.learn.budget import ProtectionLevel
from inca.protocol.domain import Ball

PartyWeights = Literal["equal", "records"]
"""What a party counts for in the average: each the same, or in proportion to its records."""


@dataclass(frozen=True)
class Clipping:
    """What is protected, and how far one change of it can move a party's contribution.

    Party i of n has m_i records, M in all; the m_i are public. The averager takes the plain mean of contributions, so
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

    Args:
        max_norm: C, the length that updates or gradients of records are scaled down to, from 1e-100 to 1e100.
        level: Who is protected: "party" or "record".
        weights: "equal" or "records"; by default what suits the level.

    Raises:
        InvalidInput: If a word is unknown, or doubles cannot clip to this length.

    Example:
        >>> Clipping(1.0, "record").sensitivity([10, 30]), Clipping(1.0, "record", "equal").sensitivity([10, 30])
        (0.1, 0.2)
        >>> Clipping(1.0).sensitivity([10, 30]), Clipping(1.0, "party", "records").sensitivity([10, 30])
        (2.0, 3.0)
    """

    max_norm: float
    level: ProtectionLevel = "party"
    weights: PartyWeights | None = None

    def __post_init__(self) -> None:
        safe_length("max_norm", self.max_norm)
        one_of("level", self.level, get_args(ProtectionLevel))
        if self.weights is not None:
            one_of("weights", self.weights, get_args(PartyWeights))

    def clipped(self, updates: Array) -> Array:
        """Return rows that are no longer than `max_norm`; a row with a number that is not finite becomes zero.

        That happens silently: a stop, a warning or a count would tell of private records what no noise hides. Zero is
        no longer than what is clipped to, so the sensitivity is that of all others.

        Args:
            updates: One row for each party, or for each record if records are protected.

        Returns:
            As many rows.

        Example:
            >>> Clipping(1.0).clipped(np.array([[3.0, 4.0], [np.nan, 1.0]]))
            array([[0.6, 0.8],
                   [0. , 0. ]])
        """
        with np.errstate(all="ignore"):
            finite = np.where(np.isfinite(updates).all(axis=1, keepdims=True), updates, 0.0)
            return Ball(self.max_norm).validate(finite, clip=True)  # longer than any number: scaled to nothing

    def party_weights(self, sizes: Sequence[int]) -> Array:
        """Return w_i for parties of these sizes."""
        counts = np.asarray(sizes, dtype=np.float64)
        chosen = self.weights or ("equal" if self.level == "party" else "records")
        return np.ones(len(counts)) if chosen == "equal" else counts / counts.mean()

    def sensitivity(self, sizes: Sequence[int]) -> float:
        """Return how far one protected change can move the contribution of the party where it is largest."""
        weights = self.party_weights(sizes)
        return 2.0 * self.max_norm * float(np.max(weights if self.level == "party" else weights / np.asarray(sizes)))
