"""The adversary's view of a run: what it sees, how well it can guess values, and what each party loses."""

from __future__ import annotations

from typing import Any

import numpy as np

from inca._base.files import null_for_infinity
from inca._base.types import Array
from inca.dashboard.shown_run import DOMAIN, UNIT, ShownRun
from inca.errors import IncaError
from inca.privacy.accountant import account
from inca.privacy.attack import Reconstruction, observe, reconstruct
from inca.privacy.gaussian import epsilon_for
from inca.privacy.theorems.preconditions import conditions
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.simulation import simulate

_MAX_GUESS_WORK = 3e10  # rows^2 x columns beyond which guesses would keep the page waiting
_PRIOR = (DOMAIN.low + DOMAIN.high) / 2.0, (DOMAIN.high - DOMAIN.low) ** 2 / 12.0  # of a value anywhere in the domain


def adversary_view(run: ShownRun, adversary: Adversary, delta: float, sensitivity: float) -> dict[str, Any]:
    """Return the losses of all honest parties, what is seen, and the adversary's best guesses."""
    noise_levels = run.transcript.noise_levels
    view = View(run.execution, adversary)
    losses = account(view, noise_levels, sensitivity=sensitivity).in_whole_numbers(run.transcript.rounding)
    epsilon = losses.epsilon(delta)
    why_no_guesses = _why_no_guesses(run, view)
    independent = noise_levels.independent
    fields = {
        "colluding": list(adversary.colluding),
        "eavesdropped": len(adversary.eavesdropped),
        "notion": adversary.notion,
        "seen": view.seen.astype(int).tolist(),
        "honest": losses.honest.tolist(),
        "mu": losses.mu.tolist(),
        "epsilon": epsilon.tolist(),
        "delta": delta,
        "sensitivity": sensitivity,
        "worst": {"party": losses.worst_party, "mu": losses.max_mu, "epsilon": float(epsilon.max())},
        "epsilon_independent_only": float(epsilon_for(sensitivity / independent, delta)) if independent else None,
        "conditions": _conditions(view),
        "guesses": None if why_no_guesses else _guesses(run, view),
        "why_no_guesses": why_no_guesses,
    }
    return dict(null_for_infinity(fields))


def _conditions(view: View) -> list[dict[str, Any]]:
    try:
        return [{"name": check.name, "holds": check.holds, "why": check.why} for check in conditions(view)]
    except IncaError as error:
        return [{"name": "theorems", "holds": None, "why": str(error)}]


def _why_no_guesses(run: ShownRun, view: View) -> str:
    rows, values, terms = view.shape
    if run.data is None:
        return "guesses need the messages, which only a simulation has"
    if rows == 0:
        return "it sees nothing at all"
    if float(rows) ** 2 * (values + terms) > _MAX_GUESS_WORK or not view.fits:
        return f"{rows:,} observed messages are too many to compute guesses while one waits"
    return ""


def _guesses(run: ShownRun, view: View) -> dict[str, Any]:
    """Return the best guess of every honest value: by an adversary that knows all others, and by one that does not."""
    data, noise_levels = run.data, run.transcript.noise_levels
    assert data is not None
    outcome = simulate(run.execution, data.values, noise=data.noise, record=True)
    seen = observe(view, outcome, data.values, data.noise)
    return {
        "domain": [DOMAIN.low, DOMAIN.high],
        "unit": UNIT,
        "true_values": data.values[view.honest].tolist(),
        "informed": _finite(reconstruct(view, seen, noise_levels, others=data.values)),
        "naive": _finite(reconstruct(view, seen, noise_levels, prior=_PRIOR)),
    }


def _finite(reconstruction: Reconstruction) -> dict[str, list[float | None]]:
    def finite(numbers: Array) -> list[float | None]:
        return [float(number) if np.isfinite(number) else None for number in numbers]

    return {"estimates": finite(reconstruction.estimate), "standard_errors": finite(reconstruction.standard_error)}
