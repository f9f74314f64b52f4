"""A run as the page draws it, round by round."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inca._base.types import Array
from inca.dashboard.scene import Scene
from inca.protocol.expected_error import expected_error
from inca.protocol.simulation import simulate


def run_view(scene: Scene, given: Mapping[str, str]) -> dict[str, Any]:
    """Return who sends to whom, who is there, all messages and weights, and the estimate as it forms.

    `receivers[t-1][i]` are those that party i sends to in round t; where a share came back it is i itself (erratum
    E1). `messages[t][i]` is y_i^(t), `clean[t][i]` the same without any noise; null in a run that really happened.
    """
    execution, adversary = scene.execution, scene.seen_by(given)
    n, rounds = execution.parties, execution.rounds
    adversary.observed(execution)  # refuses ids and messages that there are not
    present = np.array([execution.presence.row(t) for t in range(rounds + 1)])
    weights = np.array(list(execution.weight_history()))
    view: dict[str, Any] = {
        "parties": n,
        "rounds": rounds,
        "receivers": [execution.sends(t).receivers.tolist() for t in range(1, rounds + 1)],
        "intended": [execution.schedule.round(t).receivers.tolist() for t in range(1, rounds + 1)],
        "present": present.astype(int).tolist(),
        "weights": _rounded(weights),
        "published": np.flatnonzero(execution.published).tolist(),
        "weight": execution.weight,
        "undelivered": [list(entry) for entry in execution.undelivered],
        "sigma_independent": scene.sigma_independent,
        "sigma_cancelling": scene.sigma_cancelling,
        "injection": _injection(scene),
        "colluding": list(adversary.colluding),
    }
    return view | _simulated(scene, present, weights)


def _simulated(scene: Scene, present: Array, weights: Array) -> dict[str, Any]:
    """Return values, messages and estimates; only made-up values are ever shown."""
    if scene.values is None or scene.noise is None:
        return {"simulated": False, "values": None, "messages": None, "clean": None, "estimates": None, "error": None}
    execution, values = scene.execution, scene.values
    messages = simulate(execution, values, noise=scene.noise, record=True).history
    clean = simulate(execution, values, 0.0, 0.0, np.random.default_rng(0), record=True).history
    assert messages is not None and clean is not None and scene.sigma_independent is not None
    assert scene.sigma_cancelling is not None
    carried = np.where(present, weights, 0.0).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = np.where(present, messages, 0.0).sum(axis=1) / carried
    budget = expected_error(execution, scene.sigma_independent, scene.sigma_cancelling, values=values)
    return {
        "simulated": True,
        "values": _rounded(values),
        "messages": _rounded(messages),
        "clean": _rounded(clean),
        "estimates": [float(each) if np.isfinite(each) else None for each in estimates],
        "truth": float(values.mean()),
        "error": None
        if not np.isfinite(budget.total)
        else {"independent": budget.independent, "cancelling": budget.cancelling, "data": budget.data},
    }


def _injection(scene: Scene) -> dict[str, Any]:
    """Return the portions of value and noise of every round, for the picture of what goes in."""
    injection = scene.execution.injection
    level = np.sqrt((injection.noise**2).sum(axis=1))
    return {"value": _rounded(injection.value), "noise": _rounded(level)}


def _rounded(numbers: Array) -> list[Any]:
    """Six digits are more than a screen shows, and a third of the bytes."""
    with np.errstate(divide="ignore", invalid="ignore"):
        scale = 10.0 ** (5 - np.floor(np.log10(np.abs(np.where(numbers == 0.0, 1.0, numbers)))))
        return list((np.round(numbers * scale) / scale).tolist())
