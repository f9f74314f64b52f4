"""A first idea of a plan in a fraction of a second, for those who move sliders."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inca.planning.designs import Shape, shapes
from inca.planning.requirements import Wish
from inca.planning.search import Judge
from inca.protocol.expected_error import ErrorBudget

_VIEWS, _PARTIES, _CROWD = 4, 60, 2000  # sampled for a first idea


@dataclass(frozen=True)
class Rough:
    """A design, its noise and its expected error, from a handful of sampled views: an idea, not a promise."""

    shape: Shape
    sigma_independent: float
    sigma_cancelling: float
    budget: ErrorBudget


def rough(wish: Wish) -> Rough:
    """Return about what `plan` will find, from so few views that nobody waits; refuse what `plan` refuses.

    Noise that suffices in a handful of views is less than what all but a tiny fraction of them need, and the design is
    not searched for: one receiver by permutation if that hides enough. So the plan's error is usually larger, by
    half or more where many leave.

    >>> idea = rough(Wish(parties=60, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1))
    >>> idea.shape.schedule, idea.budget.total < 60 * idea.budget.independent
    ('permutation', True)
    """
    kinds = [shape for shape in shapes(wish) if shape.kind == "incremental"]
    shape = next((each for each in kinds if each.schedule == "permutation"), kinds[0])
    _, factor, level, remains = Judge(wish, _VIEWS, _PARTIES, lambda: None, _CROWD).best(shape)
    var_independent, var_cancelling = wish.var_local * factor / wish.honest, wish.var_local * level
    budget, _ = remains.error(wish, var_independent, var_cancelling)
    return Rough(shape, math.sqrt(var_independent), math.sqrt(var_cancelling), budget)
