"""Adversaries for tests, and what they see as plain matrices."""

from __future__ import annotations

import numpy as np

import inca
from helpers import reference
from helpers.executions import intended
from helpers.strategies import generator
from inca._base.types import Array


def adversary_of(
    execution: inca.Execution, seed: int, colluding: float = 0.3, eavesdropped: float = 0.2
) -> inca.Adversary:
    """Draw colluders, at least one party staying honest, and eavesdropped messages of rounds 0..T."""
    rng, n = generator(seed), execution.parties
    ids = rng.choice(n, size=min(n - 1, rng.binomial(n, colluding)), replace=False)
    messages = np.argwhere(rng.random((execution.rounds + 1, n)) < eavesdropped * rng.random())
    return inca.Adversary(ids.tolist(), [(int(t), int(i)) for t, i in messages])


def plain_system(view: inca.View) -> tuple[Array, Array]:
    """B and A column by column: run the plain protocol with one unknown 1 and all others 0."""
    execution = view.execution
    n, rounds = execution.parties, execution.rounds
    present = [[bool(flag) for flag in execution.presence.row(t)] for t in range(rounds + 1)]
    weights, c, z = intended(execution), execution.injection.value.tolist(), execution.injection.noise.tolist()

    def messages(values: list[float], cancelling: list[list[float]]) -> Array:
        y, _ = reference.run(weights, present, c, z, values, [0.0] * n, cancelling)
        return np.array([y[t][i] for t, i in view.rows])

    silent = [[0.0] * rounds for _ in range(n)]
    b = [messages([float(i == party) for i in range(n)], silent) for party in view.honest]
    a = [
        messages([0.0] * n, [[float(i == party and k == term) for k in range(rounds)] for i in range(n)])
        for party in view.honest
        for term in range(rounds)
    ]
    return np.array(b).T, np.array(a).T


def incremental_ones(execution: inca.Execution) -> inca.Execution:
    """The same execution with an injection of the incremental family, if it has another."""
    if execution.injection.mask_scales is not None:
        return execution
    injection = inca.incremental_injection(execution.rounds, variances=np.linspace(0.5, 2.0, execution.rounds))
    return inca.Execution(execution.schedule, injection, execution.presence)
