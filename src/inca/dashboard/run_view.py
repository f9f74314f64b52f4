"""A run as the page draws it, round by round."""

from __future__ import annotations

from typing import Any

import numpy as np

from inca._base.types import Array
from inca.dashboard.shown_run import DOMAIN, UNIT, ShownRun, SimulatedData
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.expected_error import expected_error
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.simulation import Outcome, simulate
from inca.protocol.usefulness import EstimateInDomain

_DIGITS = 6  # more than a screen shows, and a third of the bytes


def run_view(run: ShownRun, adversary: Adversary) -> dict[str, Any]:
    """Return who sends to whom, who is present, and all weights; in a simulation also messages and estimates."""
    execution = run.execution
    adversary.check(execution)
    rounds = range(1, execution.rounds + 1)
    present = np.array([execution.presence.row(t) for t in range(execution.rounds + 1)])
    weights = np.array(list(execution.weight_history()))
    injection = execution.injection
    return {
        "parties": execution.parties,
        "rounds": execution.rounds,
        "receivers": [execution.sends(t).receivers.tolist() for t in rounds],
        "intended": [execution.schedule.round(t).receivers.tolist() for t in rounds],
        "present": present.astype(int).tolist(),
        "weights": _rounded(weights),
        "published": np.flatnonzero(execution.published).tolist(),
        "undelivered": [list(offer[:3]) for offer in execution.undelivered],
        "sigma_independent": run.transcript.sigma_independent,
        "sigma_cancelling": run.transcript.sigma_cancelling,
        "injection": {
            "value": _rounded(injection.value),
            "noise": _rounded(np.sqrt((injection.noise**2).sum(axis=1))),
        },
        "colluding": list(adversary.colluding),
        "simulation": run.data and _simulation(execution, run.transcript.noise_levels, run.data, present, weights),
    }


def _simulation(
    execution: Execution, noise_levels: NoiseLevels, data: SimulatedData, present: Array, weights: Array
) -> dict[str, Any]:
    """Return values, messages and estimates: `noiseless` are the messages without any noise.

    `estimates` are as the noise leaves them, round by round; `settled` are the final messages after those who are there
    have undone what they exchanged with those who left, or null if nobody has; `result` is what comes of it: in the
    domain, with its interval and remarks, or null if nobody is left.
    """
    noisy = simulate(execution, data.values, noise=data.noise, record=True)
    silent = NoiseLevels(independent=0.0, cancelling=0.0)
    silenced = simulate(execution, data.values, silent, np.random.default_rng(0), record=True)
    messages, noiseless = noisy.history, silenced.history
    assert messages is not None and noiseless is not None
    with np.errstate(divide="ignore", invalid="ignore"):
        estimates = np.where(present, messages, 0.0).sum(axis=1) / np.where(present, weights, 0.0).sum(axis=1)
    budget = expected_error(execution, noise_levels, values=data.values)
    parts = {"independent": budget.independent, "cancelling": budget.cancelling, "data": budget.data}
    return {
        "values": _rounded(data.values),
        "messages": _rounded(messages),
        "noiseless": _rounded(noiseless),
        "estimates": [float(estimate) if np.isfinite(estimate) else None for estimate in estimates],
        "settled": _settled(noisy, silenced) if execution.settlement_matters else None,
        "result": _result(execution, noise_levels, noisy.estimate),
        "domain": [DOMAIN.low, DOMAIN.high],
        "true_mean": float(data.values.mean()),
        "unit": UNIT,
        "expected_error": parts if np.isfinite(budget.total) else None,
    }


def _settled(noisy: Outcome, silenced: Outcome) -> dict[str, Any]:
    messages, noiseless = _rounded(noisy.messages), _rounded(silenced.messages)
    return {"messages": messages, "noiseless": noiseless, "weight": noisy.weight}


def _result(execution: Execution, noise_levels: NoiseLevels, estimate: float | Array | None) -> dict[str, Any] | None:
    if estimate is None:
        return None
    shown = EstimateInDomain(float(estimate), DOMAIN, expected_error(execution, noise_levels, domain=DOMAIN))
    return {
        "estimate": shown.estimate,
        "interval": list(shown.interval),
        "confidence": shown.confidence,
        "remarks": list(shown.remarks),
    }


def _rounded(numbers: Array) -> list[Any]:
    with np.errstate(divide="ignore", invalid="ignore"):
        magnitude = np.floor(np.log10(np.abs(np.where(numbers == 0.0, 1.0, numbers))))
        scale = 10.0 ** (_DIGITS - 1 - magnitude)
        return list((np.round(numbers * scale) / scale).tolist())
