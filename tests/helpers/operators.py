"""What the operator of the accountant does to vectors, written down as matrices."""

from __future__ import annotations

import numpy as np

from inca._base.types import Array
from inca.privacy._covariance_operator import WIDTH, Operator, columns_of_b, multiply, workspace


def scaled_sigma(operator: Operator) -> Array:
    """Return scale Sigma scale."""
    columns, room = [], workspace(operator)
    for lo in range(0, operator.height, WIDTH):
        vectors = np.zeros((operator.height, WIDTH))
        places = np.arange(lo, min(lo + WIDTH, operator.height))
        vectors[places, places - lo] = 1.0
        columns.append(np.empty_like(vectors))
        multiply(operator, vectors, columns[-1], room)
    return np.hstack([np.empty((operator.height, 0)), *columns])[:, : operator.height]


def scaled_b(operator: Operator, honest: int, given_sums: bool = False) -> Array:
    """Return scale B, or what sums of final messages leave of it."""
    columns, room = [], workspace(operator)
    for lo in range(0, honest, WIDTH):
        columns.append(np.empty((operator.height, WIDTH)))
        columns_of_b(operator, np.arange(lo, min(lo + WIDTH, honest)), columns[-1], room, given_sums)
    return np.hstack(columns)[:, :honest]
