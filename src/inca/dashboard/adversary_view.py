"""A run through an adversary's eyes: what it sees, what it can make of it, and what that means for each party."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inca._base.files import null_for_infinity
from inca._base.validation import InputError, real
from inca.dashboard.scene import Scene, number
from inca.privacy.accountant import account
from inca.privacy.attack import observe, reconstruct
from inca.privacy.gaussian import epsilon_for
from inca.privacy.theorems.preconditions import Facts, conditions
from inca.privacy.view import View
from inca.protocol.simulation import simulate

_WORK = 3e10  # rows^2 x columns beyond which guesses would keep the page waiting
_PRIOR = 0.5, 1.0 / 12.0  # mean and variance of a value that is anywhere between 0 and 1


def eyes_view(scene: Scene, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the losses of all honest parties, what is seen, and the adversary's best guesses."""
    delta = real("delta", number("delta", given.get("delta", "1e-5"), float), 0.0, 1.0)
    if scene.sigma_independent is None or scene.sigma_cancelling is None:
        raise InputError("the file names no noise levels, so there is no loss to work out")
    view = View(scene.execution, scene.seen_by(given))
    losses = account(view, scene.sigma_independent, scene.sigma_cancelling)
    epsilon = losses.epsilon(delta)
    worst, mu = losses.worst
    fields = {
        "colluding": list(view.adversary.colluding),
        "tapped": len(view.adversary.eavesdropped),
        "notion": view.adversary.notion,
        "seen": view.seen.astype(int).tolist(),
        "rows": int(view.shape[0]),
        "honest": losses.honest.tolist(),
        "mu": losses.mu.tolist(),
        "epsilon": epsilon.tolist(),
        "delta": delta,
        "worst": {"party": worst, "mu": mu, "epsilon": float(epsilon.max())},
        "local": float(epsilon_for(1.0 / scene.sigma_independent, delta)) if scene.sigma_independent else None,
        "conditions": _conditions(view),
        "guesses": _guesses(scene, view),
    }
    return dict(null_for_infinity(fields))


def _conditions(view: View) -> list[dict[str, Any]]:
    try:
        return [{"name": each.name, "holds": each.holds, "why": each.why} for each in conditions(Facts.of(view))]
    except InputError as error:
        return [{"name": "theorems", "holds": None, "why": str(error)}]


def _guesses(scene: Scene, view: View) -> dict[str, Any]:
    """Return the best guess of every honest value: by one who knows all others, and by one who knows nothing."""
    rows, values, terms = view.shape
    if scene.values is None or scene.noise is None:
        return {"why_not": "guesses need the messages, which are in a simulation only"}
    if rows == 0:
        return {"why_not": "it sees nothing at all"}
    if float(rows) ** 2 * (values + terms) > _WORK or not view.fits:
        return {"why_not": f"{rows:,} observed messages are too many to work out guesses while one waits"}
    assert scene.sigma_independent is not None and scene.sigma_cancelling is not None
    outcome = simulate(scene.execution, scene.values, noise=scene.noise, record=True)
    seen = observe(view, outcome, scene.values, scene.noise)
    levels = scene.sigma_independent, scene.sigma_cancelling
    informed = reconstruct(view, seen, *levels, others=scene.values)
    naive = reconstruct(view, seen, *levels, prior=_PRIOR)
    return {
        "truth": scene.values[view.honest].tolist(),
        "informed": [_finite(each) for each in informed.estimate],
        "informed_error": [_finite(each) for each in informed.standard_error],
        "naive": [_finite(each) for each in naive.estimate],
        "naive_error": [_finite(each) for each in naive.standard_error],
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
