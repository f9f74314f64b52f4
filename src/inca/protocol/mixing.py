"""One round's mixing W y and its adjoint, straight from who sends what to whom, without building the matrix.

`one_receiver` says that everyone sends the same share to exactly one party, which has kernels of its own.
"""

from __future__ import annotations

import numpy as np

from inca._base.kernels import Flags, Ids, gather, gather_one, redirect, scatter, scatter_one
from inca._base.types import Array
from inca.protocol.schedules import Round


def mixed(step: Round, y: Array, one_receiver: bool) -> Array:
    """Return W y for messages y, (n,) or (n, d)."""
    out = _kept(step, y)
    deliver(step, y, out, (0, len(y)), (0, y[0].size), one_receiver)
    return out


def mixed_back(step: Round, rows: Array, one_receiver: bool) -> Array:
    """Return the transpose of W times `rows`, (n,) or (n, d)."""
    out = _kept(step, rows)
    if rows.ndim == 1 and one_receiver:
        gather_one(out, rows, step.receivers.reshape(-1), step.share)
    else:
        gather(out, rows, step.receivers.reshape(-1), step.share, _flat(step.weights))
    return out


def deliver(
    step: Round, y: Array, out: Array, senders: tuple[int, int], columns: tuple[int, int], one_receiver: bool
) -> None:
    """Add to `out` what a range of senders sends of its messages y, in a range of columns if they are vectors."""
    receivers = step.receivers.reshape(-1)
    if y.size == len(y):
        y, out = y.reshape(-1), out.reshape(-1)
    if y.ndim == 1 and one_receiver:
        scatter_one(out, y, receivers, step.share, *senders)
    else:
        scatter(out, y, receivers, step.share, _flat(step.weights), *senders, *columns)


def redirected(step: Round, there: Flags) -> Ids:
    """Return the receivers of a round, with the sender itself for every share that has an end where nobody is there."""
    receivers = np.empty(step.receivers.shape, np.int32)
    redirect(step.receivers.reshape(-1), there, receivers.reshape(-1))
    return receivers


def _kept(step: Round, y: Array) -> Array:
    """Return what the parties keep of their messages for themselves."""
    return np.asarray((step.kept if y.ndim == 1 else step.kept[:, np.newaxis]) * y)


def _flat(weights: Array | None) -> Array | None:
    return None if weights is None else weights.reshape(-1)
