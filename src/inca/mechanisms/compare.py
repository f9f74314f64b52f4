"""All mechanisms on one wish, at several dropout rates, under one accounting rule."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from inca._base.types import Progress
from inca._base.validation import InputError, real, refuse, whole
from inca.mechanisms.base import Measured, Mechanism, measure
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.mechanisms.muffliato import Muffliato
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.requirements import Wish
from inca.planning.search import plan


@dataclass(frozen=True)
class Entry:
    """One mechanism at one dropout rate: its expected error per coordinate, or why it has none."""

    mechanism: str
    dropout: float
    mse: float | None
    relative: float | None
    """The error over that of Central DP with everyone present."""
    messages: float | None
    promise: str
    weaker: bool
    """Whether the promise is weaker than inca's."""
    why_not: str = ""
    measured: Measured | None = None


Maker = tuple[str, Callable[[], Mechanism]]
"""The name of a mechanism, and what makes it, which calibrates it."""


def rivals(wish: Wish, views: int = 200) -> Iterator[Maker]:
    """Yield the names of all other mechanisms and what makes them for a wish; making one calibrates it.

    >>> [name for name, make in rivals(Wish(64, 0.5, 1e-5))][:3]
    ['Central DP', 'secure aggregation', 'GOPA, half of the leavers late']
    """
    graph = "regular" if wish.parties & (wish.parties - 1) else "hypercube"
    yield "Central DP", lambda: CentralDP(wish)
    yield "secure aggregation", lambda: SecureAggregation(wish)
    yield "GOPA, half of the leavers late", lambda: Gopa(wish, late=0.5, views=max(views, 100))
    yield "GOPA, a quarter late", lambda: Gopa(wish, late=0.25, views=max(views, 100))
    yield "GOPA, one leaver late", lambda: Gopa(wish, late_leavers=1, views=max(views, 100))
    yield "CorDP-DME", lambda: CorDP(wish)
    yield "Local DP", lambda: LocalDP(wish)
    yield f"Muffliato, {graph}", lambda: Muffliato(wish, graph, rng=np.random.default_rng(0))


def compare(
    wish: Wish,
    dropouts: Sequence[float],
    *,
    runs: int = 0,
    views: int = 300,
    progress: Progress | None = None,
) -> list[Entry]:
    """Calibrate every mechanism to the wish at each dropout rate and return their expected errors.

    With `runs` above 0 each is also run so often on uniform values, from a fixed seed.

    >>> for entry in compare(Wish(32, 1.0, 1e-5, messages=8), [0.0], views=20)[:3]:
    ...     print(entry.mechanism, round(entry.relative, 1))
    inca, planned 1.0
    inca, the paper's recipe 1.3
    Central DP 1.0
    """
    rates = [real("a dropout rate", rate, 0.0, 1.0) for rate in dropouts]
    if not rates:
        raise refuse("dropouts", list(dropouts), "at least one rate")
    whole("runs", runs)
    entries: list[Entry] = []
    total = len(rates) * (2 + len(list(rivals(wish))))
    for number, rate in enumerate(rates):
        each = replace(wish, dropout=rate)
        own: list[Maker] = [
            ("inca, planned", partial(_own, each, "best", views)),
            ("inca, the paper's recipe", partial(_own, each, "paper", views)),
        ]
        for name, make in [*own, *rivals(each, views)]:
            entries.append(predicted(name, make, each, runs, np.random.default_rng((number, len(entries)))))
            if progress is not None:
                progress(len(entries), total)
    return entries


def _own(wish: Wish, recipe: str, views: int) -> Mechanism:
    return Inca(plan(wish, recipe=recipe, views=views))


def predicted(
    name: str,
    make: Callable[[], Mechanism],
    wish: Wish,
    runs: int = 0,
    rng: np.random.Generator | None = None,
) -> Entry:
    """Make a mechanism and return its error at the wish's dropout rate, or why it cannot be made."""
    try:
        mechanism = make()
        mse = mechanism.expected_error(wish.dropout).mse
        measured = None if rng is None or runs < 2 else measure(mechanism, rng, wish.dropout, runs)
    except InputError as refusal:
        return Entry(name, wish.dropout, None, None, None, "", False, str(refusal))
    relative = mse / wish.central_mse
    return Entry(
        name, wish.dropout, mse, relative, mechanism.messages, mechanism.promise, mechanism.weaker, "", measured
    )
