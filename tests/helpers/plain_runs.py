"""Algorithm 2 run plainly, party by party."""

from __future__ import annotations

import numpy as np

import inca
from helpers import reference
from helpers.executions import intended


def plain_run(execution: inca.Execution, values: np.ndarray, noise: inca.Noise) -> tuple[np.ndarray, np.ndarray]:
    present = [execution.presence.row(t).tolist() for t in range(execution.rounds + 1)]
    y, beside = reference.run(
        intended(execution),
        present,
        execution.injection.value.tolist(),
        execution.injection.noise.tolist(),
        values.tolist(),
        noise.independent.reshape(-1).tolist(),
        noise.cancelling.reshape(execution.parties, execution.rounds).tolist(),
    )
    return np.array(y, dtype=float), np.array(beside, dtype=float)
