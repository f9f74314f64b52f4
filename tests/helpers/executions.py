"""Executions with offers that were not delivered, and the same seen plainly."""

from __future__ import annotations

import numpy as np

import inca
from helpers import reference


def intended(execution: inca.Execution) -> list[reference.Matrix]:
    matrices = []
    for t in range(1, execution.rounds + 1):
        step = execution.schedule.round(t)
        fractions = np.full(step.receivers.shape, step.share) if step.weights is None else step.weights
        matrices.append(reference.intended_weights(step.receivers.tolist(), fractions.tolist()))
    return matrices


def offers(execution: inca.Execution) -> list[list[list[int]]]:
    """Who offers a share to whom in rounds 1..T, those that were not credited included."""
    rounds = [step.receivers.tolist() for step in execution.intended()]
    for t, sender, receiver, _ in execution.undelivered:
        rounds[t - 1][sender].append(receiver)
    return rounds


def present_flags(execution: inca.Execution) -> list[list[bool]]:
    return [[bool(flag) for flag in execution.presence.row(t)] for t in range(execution.rounds + 1)]


def fates(execution: inca.Execution) -> dict[tuple[int, int, int], int]:
    return {(t, sender, receiver): back for t, sender, receiver, back in execution.undelivered}
