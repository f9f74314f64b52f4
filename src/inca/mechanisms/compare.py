"""All mechanisms under the same requirements, at several dropout rates."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from inca._base.options import PlanOptions
from inca._base.validation import finite_float, integer, refuse
from inca.errors import IncaError
from inca.mechanisms.base import MeasuredError, Mechanism, measure
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.mechanisms.mask_graph import least_mask_graph
from inca.mechanisms.muffliato import Muffliato
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.mechanisms.serverless_aggregation import ServerlessAggregation
from inca.planning.plan import plan
from inca.planning.requirements import Requirements

_MIN_GOPA_VIEWS = 100


@dataclass(frozen=True)
class ComparisonEntry:
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
    measured: MeasuredError | None = None


PAPER = "inca, the paper's recipe"

NamedFactory = tuple[str, Callable[[], Mechanism]]
"""The name of a mechanism, and what makes it, which calibrates it."""


def own_mechanisms(requirements: Requirements, views: int = 300) -> Iterator[NamedFactory]:
    """Yield the ways to run inca: as planned, and as the paper does, which samples views for a minute."""
    yield "inca", lambda: Inca(plan(requirements))
    yield PAPER, lambda: Inca(plan(requirements, PlanOptions(recipe="paper", views=views)))


def baselines(requirements: Requirements, views: int = 200) -> Iterator[NamedFactory]:
    """Yield the names of all other mechanisms and what makes them; making one calibrates it.

    Args:
        requirements: What they are calibrated to.
        views: How many random graphs calibrate GOPA, at least 100.

    Yields:
        The name of a mechanism and a function without arguments that makes it.

    Example:
        >>> [name for name, make in baselines(Requirements(64, 0.5, 1e-5))][:3]
        ['Central DP', 'secure aggregation', 'secure aggregation, k-regular']
    """
    graph = "regular" if requirements.parties & (requirements.parties - 1) else "hypercube"
    graphs = max(views, _MIN_GOPA_VIEWS)
    yield "Central DP", lambda: CentralDP(requirements)
    yield "secure aggregation", lambda: SecureAggregation(requirements)
    yield (
        "secure aggregation, k-regular",
        lambda: SecureAggregation(requirements, neighbours=least_mask_graph(requirements).neighbours),
    )
    yield "secure aggregation, no server", lambda: ServerlessAggregation(requirements)
    yield "GOPA, half of the leavers late", lambda: Gopa(requirements, late=0.5, views=graphs)
    yield "GOPA, a quarter late", lambda: Gopa(requirements, late=0.25, views=graphs)
    yield "GOPA, one leaver late", lambda: Gopa(requirements, late_leavers=1, views=graphs)
    yield "GOPA, no leaver late", lambda: Gopa(requirements, late_leavers=0, views=graphs)
    # As many rounds as the paper's recipe has, so that both lose the same parties at the same times.
    yield "GOPA, leavers at random times", lambda: Gopa(requirements, rounds=requirements.usual_messages, views=graphs)
    yield "CorDP-DME", lambda: CorDP(requirements)
    yield "Local DP", lambda: LocalDP(requirements)
    yield f"Muffliato, {graph}", lambda: Muffliato(requirements, graph, rng=np.random.default_rng(0))


def guess_mse(requirements: Requirements) -> float:
    """Return the largest squared error of guessing the middle of the domain, which needs no data: s^2 / 4.

    The domain is an interval as long as the sensitivity s, so the mean is at most s / 2 from its middle. An estimate
    whose error is above this says nothing.

    Example:
        >>> requirements = Requirements(parties=200, epsilon=0.2, delta=1e-5)
        >>> guess_mse(requirements), round(guess_mse(requirements) / requirements.central_mse, 1)
        (0.25, 37.6)
    """
    return requirements.sensitivity**2 / 4.0


def compare(
    requirements: Requirements, dropouts: Sequence[float], *, runs: int = 0, views: int = 100, paper: bool = True
) -> list[ComparisonEntry]:
    """Calibrate every mechanism to the requirements at each dropout rate, and predict their errors.

    Args:
        requirements: The guarantee, the adversary and the message budget; its own dropout rate is not used.
        dropouts: The dropout rates.
        runs: How often each mechanism is also run, on uniform values from a fixed seed; 0 for not at all.
        views: How many random graphs calibrate GOPA (at least 100), and views the paper's recipe.
        paper: Whether the paper's recipe is compared, too, which takes a minute for each rate.

    Returns:
        One entry per mechanism and rate, mechanism by mechanism; one that cannot be calibrated says why.

    Raises:
        InvalidInput: If there is no rate, or one is not from 0 to 1.

    Example:
        >>> for entry in compare(Requirements(32, 1.0, 1e-5, messages=8), [0.0], views=20)[:2]:
        ...     print(entry.mechanism, round(entry.relative, 1))
        inca 1.1
        inca, the paper's recipe 1.5
    """
    rows = compare_one_by_one(requirements, dropouts, runs=runs, views=views, paper=paper)
    return [entry for row in rows for entry in row]


def compare_one_by_one(
    requirements: Requirements, dropouts: Sequence[float], *, runs: int = 0, views: int = 100, paper: bool = True
) -> Iterator[list[ComparisonEntry]]:
    """Return the same as `compare`, a list for each mechanism as soon as it is known."""
    rates = [finite_float("a dropout rate", rate, 0.0, 1.0) for rate in dropouts]
    if not rates:
        refuse("dropouts", list(dropouts), "at least one rate")
    integer("runs", runs)
    at_rates = [replace(requirements, dropout=rate) for rate in rates]
    by_rate = [[*own_mechanisms(at_rate, views), *baselines(at_rate, views)] for at_rate in at_rates]
    columns = [column for column in zip(*by_rate, strict=True) if paper or column[0][0] != PAPER]
    return (
        [
            evaluate(name, make, at_rate, runs, np.random.default_rng((number, place)))
            for number, ((name, make), at_rate) in enumerate(zip(column, at_rates, strict=True))
        ]
        for place, column in enumerate(columns)
    )


def evaluate(
    name: str,
    make: Callable[[], Mechanism],
    requirements: Requirements,
    runs: int = 0,
    rng: np.random.Generator | None = None,
) -> ComparisonEntry:
    """Make a mechanism and return its error at the required dropout rate, or why it cannot be made.

    Args:
        name: What the entry calls it.
        make: Makes the mechanism, which calibrates it.
        requirements: What it is calibrated to.
        runs: How often it is also run, if there is a generator; at least 2.
        rng: Decides the runs.
    """
    try:
        mechanism = make()
        mse = mechanism.expected_error(requirements.dropout).mse
        measured = None if rng is None or runs < 2 else measure(mechanism, rng, requirements.dropout, runs)
    except IncaError as refusal:
        return ComparisonEntry(name, requirements.dropout, None, None, None, "", False, str(refusal))
    return ComparisonEntry(
        mechanism=name,
        dropout=requirements.dropout,
        mse=mse,
        relative=mse / requirements.central_mse,
        messages=mechanism.messages,
        promise=mechanism.promise,
        weaker=mechanism.weaker,
        measured=measured,
    )
