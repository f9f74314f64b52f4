"""Errors of all mechanisms for a wish: at once what formulas give, soon a first idea of inca's, on request the plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from functools import partial
from typing import Any

from inca._base.files import null_for_infinity
from inca._base.types import Progress
from inca._base.validation import InputError, whole
from inca.dashboard.scene import number
from inca.mechanisms.base import Mechanism
from inca.mechanisms.compare import predicted, rivals
from inca.planning.quick_estimate import rough
from inca.planning.requirements import Wish
from inca.planning.search import plan
from inca.protocol.expected_error import ErrorBudget

_MUFFLIATO = 600  # parties up to which its graphs are worked out while one waits
_VIEWS = 300  # sampled for a plan, as `inca plan` does
DEFAULTS = {"parties": "200", "epsilon": "0.5", "delta": "1e-5", "colluding": "0.1", "dropout": "0.1", "messages": "20"}
_READ: dict[str, type] = {field.name: float for field in fields(Wish)} | {"parties": int, "messages": int, "rule": str}


def wish_for(given: Mapping[str, str]) -> Wish:
    """Read a wish from an address."""
    asked = DEFAULTS | {name: text for name, text in given.items() if name in _READ}
    return Wish(**{name: number(name, text, _READ[name]) for name, text in asked.items()})


def estimate(given: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """Yield one entry per mechanism: those with formulas first, then inca's first idea.

    `parts` is where the error comes from: independent noise, cancelling noise that is left, lost values.
    """
    wish = wish_for(given)
    yield {
        "wish": asdict(wish),
        "central_mse": wish.central_mse,
        "local_mse": wish.local_mse,
        "colluders": wish.colluders,
        "leavers": wish.leavers,
        "mu": wish.mu,
        "slow": [name for name, _ in rivals(wish) if _slow(name, wish)],
    }
    for name, make in rivals(wish):
        if not _slow(name, wish):
            yield _entry(name, make, wish)
    try:
        idea = rough(wish)
    except InputError as refusal:
        yield {"entry": {"mechanism": "inca", "mse": None, "relative": None, "why_not": str(refusal)}}
        return
    design = asdict(idea.shape) | {"text": str(idea.shape)}
    noise = {"sigma_independent": idea.sigma_independent, "sigma_cancelling": idea.sigma_cancelling}
    yield {"entry": _own("inca, first idea", idea.budget, wish) | {"design": design} | noise}


def full(given: Mapping[str, str], progress: Progress) -> dict[str, Any]:
    """Make the plan, as `inca plan` does; `views` are sampled, or 300."""
    views = whole("views", number("views", given.get("views", str(_VIEWS)), int), 2, 10_000)
    made = plan(wish_for(given), views=views, progress=progress)
    own = _own("inca, planned", made.budget, made.wish) | {"design": asdict(made.shape) | {"text": str(made.shape)}}
    return dict(null_for_infinity({"entry": own, "plan": made.as_dict(), "text": str(made)}))


def slow_rivals(given: Mapping[str, str]) -> Iterator[Callable[[], dict[str, Any]]]:
    """Yield what works out each rival that takes long."""
    wish = wish_for(given)
    for name, make in rivals(wish):
        if _slow(name, wish):
            yield partial(_entry, name, make, wish)


def _slow(name: str, wish: Wish) -> bool:
    """Whether a rival's calibration takes seconds or minutes: GOPA samples graphs, Muffliato needs large matrices."""
    return name.startswith("GOPA") or (name.startswith("Muffliato") and wish.parties > _MUFFLIATO)


def _entry(name: str, make: Callable[[], Mechanism], wish: Wish) -> dict[str, Any]:
    return {"entry": null_for_infinity(asdict(predicted(name, make, wish)))}


def _own(name: str, budget: ErrorBudget, wish: Wish) -> dict[str, Any]:
    return {
        "mechanism": name,
        "mse": budget.total,
        "relative": budget.total / wish.central_mse,
        "parts": {"independent": budget.independent, "cancelling": budget.cancelling, "data": budget.data},
        "messages": wish.messages,
        "weaker": False,
        "why_not": "",
    }
