"""Settlement by the rule itself: every single transfer is booked, and each of the cohort undoes its own."""

from __future__ import annotations

import numpy as np

import inca
from inca._base.types import Array


def booked(execution: inca.Execution, injected: Array) -> Array:
    """Settle by the rule itself: keep a list of all transfers, and let each of the cohort undo its own."""
    n, lost = execution.parties, {(entry.round, entry.sender, entry.receiver) for entry in execution.late}
    cohort = execution.presence.row(execution.rounds) if execution.cohort is None else execution.cohort
    y, undone = injected[0].copy(), np.zeros_like(injected[0])
    offered = execution.offered()
    for t in range(1, execution.rounds + 1):
        step, intended = execution.sends(t), offered.round(t)
        new = injected[t].copy()
        for i in range(n):
            new[i] += y[i]
            transfers = zip(step.receivers[i].tolist(), step.fractions[i].tolist(), strict=True)
            for j, fraction in transfers:
                if j in (-1, i):
                    continue
                amount = fraction * y[i]
                new[i] -= amount
                new[j] += amount
                if cohort[i] and not cohort[j]:
                    undone[i] += amount
                if cohort[j] and not cohort[i]:
                    undone[j] -= amount
            for j in intended.receivers[i].tolist():
                if (t, i, j) in lost:
                    new[i] -= intended.share * y[i]
                    undone[i] += intended.share * y[i]
        y = new
    return np.asarray(np.where(cohort[:, np.newaxis], y + undone, y))


def injected_by(execution: inca.Execution, u: Array, eta: Array) -> Array:
    """Return what each party injects in each round, (T+1, n, d)."""
    parts = [execution.coefficients(i) for i in range(execution.parties)]
    return np.stack([c[:, np.newaxis] * u[i] + z @ eta[i] for i, (c, z) in enumerate(parts)], axis=1)
