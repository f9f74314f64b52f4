"""What is sampled: the error where absence is a matter of chance, and the paper's own recipe for Algorithm 2.

The recipe is equal shares, random receivers, and noise that sampled views need.
The independent noise is 1.3 times the least there could be, "providing a good balance" for dropouts; the cancelling
noise is the most that any honest party needed in so many random views. Nothing is proven of the next view. As the
sampled ones and the next are exchangeable, it needs more with a probability of at most 1 / (views + 1), over all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple

import numpy as np

from inca._base.threads import available_cores, one_blas_thread
from inca._base.validation import integer, refuse
from inca.errors import InvalidInput, RequirementsNotMet
from inca.planning.requirements import Requirements
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.design import ProtocolDesign
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget, expected_error
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence

PAPER_FACTOR = 1.3
"""What the paper multiplies the least independent variance with."""
PAPER_ROUNDS = 20
"""The rounds of the paper's experiments, where the messages allow as many."""
_FIRST_SEED = 10**6
_MOST_PARTIES_OF_VIEWS = 2000  # of views that are sampled whole
_MIN_PARTIES_FOR_THREADS = 200  # with fewer, threads wait for the interpreter longer than they work without it
_ROUND_UP = 1.0 + 1e-9
_MOST_PARTIES = 100_000  # where an error is sampled
_MAX_SENDERS = 400_000  # parties in all runs together


def sampled_error(
    requirements: Requirements,
    design: ProtocolDesign,
    levels_of: Callable[[Execution], NoiseLevels],
    dropout: float,
    runs: int,
    *,
    settled: bool = False,
) -> tuple[ErrorBudget, float]:
    """Return the mean of the exact errors of sampled runs, and its standard error (0 where one run is all).

    Args:
        requirements: How many parties, how often they are away, and the variance of their values.
        design: The schedule, which is drawn anew for each run.
        levels_of: The noise of an execution.
        dropout: The fraction of the parties that leaves for good.
        runs: How many runs, at most.
        settled: Whether those who stay settle.
    """
    n, away = requirements.parties, requirements.away
    if n > _MOST_PARTIES:
        refuse(
            "parties", n, f"at most {_MOST_PARTIES:,} where an expected error is sampled (with away, or not settled)"
        )
    # If nobody is absent, all runs are the same.
    count = 1 if dropout == 0.0 and away == 0.0 else max(4, min(runs, _MAX_SENDERS // n))

    def error_of_run(number: int) -> ErrorBudget:
        rng = np.random.default_rng((0, 2, number))
        presence = Presence.leaving(n, design.rounds, dropout, rng, away=away)
        execution = Execution(design.draw_schedule(n, number), design.injection(), presence)
        execution = execution.settled() if settled else execution
        return expected_error(execution, levels_of(execution), variance=requirements.value_variance)

    errors = np.array([astuple(error_of_run(number)) for number in range(count)])
    spread = 0.0 if count == 1 else float(errors.sum(axis=1).std(ddof=1) / math.sqrt(count))
    return ErrorBudget(*(float(part) for part in errors.mean(axis=0))), spread


def paper_factor(requirements: Requirements) -> float:
    """Return the factor of the paper's recipe: independent variance 1.3 s^2 / (mu^2 n (1 - dropout - colluding)).

    Example:
        >>> round(paper_factor(Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=0.2)), 4)
        1.6714
    """
    staying = requirements.honest - requirements.leavers
    if staying < 1:
        fractions = "fractions that leave an honest party present (the paper's factor counts these)"
        refuse("colluding + dropout", requirements.colluding + requirements.dropout, fractions)
    return PAPER_FACTOR * requirements.honest / staying


def paper_design(requirements: Requirements, rounds: int | None, receivers: int | None) -> ProtocolDesign:
    """Return random receivers with the rounds that were asked for, by default as many as the messages allow."""
    k = 1 if receivers is None else integer("receivers", receivers, 1, requirements.parties - 1)
    allowed = None if requirements.messages is None else (requirements.messages - 1) // k
    chosen = integer("rounds", rounds, min=1) if rounds is not None else PAPER_ROUNDS if allowed is None else allowed
    if chosen < 1 or (allowed is not None and chosen > allowed):
        needed = max(chosen, 1) * k + 1
        refuse("messages", requirements.messages, f"at least receivers times rounds and the final one ({needed})")
    return ProtocolDesign("random", chosen, k)


def sample_view(requirements: Requirements, design: ProtocolDesign, dropout: float, seed: int) -> View:
    """Draw a schedule, who leaves or is away, and an adversary of the required size."""
    n, rng = requirements.parties, np.random.default_rng((seed, 1))
    presence = Presence.leaving(n, design.rounds, dropout, rng, away=requirements.away if dropout else 0.0)
    adversary = Adversary.random(
        n, design.rounds, rng, colluding=requirements.colluding, eavesdropped=requirements.eavesdropped
    )
    return View(Execution(design.draw_schedule(n, seed), design.injection(), presence), adversary)


def dropout_rates(requirements: Requirements) -> tuple[float, ...]:
    """Return the dropout rates at which views are sampled: nobody leaves, half of those who may, all of them."""
    return (0.0, requirements.dropout / 2.0, requirements.dropout) if requirements.leavers else (0.0,)


def paper_noise(
    requirements: Requirements, design: ProtocolDesign, views: int, on_view_sampled: Callable[[], None]
) -> NoiseLevels:
    """Return the paper's independent noise, and the most cancelling noise that a party of the sampled views needs.

    Raises:
        RequirementsNotMet: If no cancelling noise protects every party of some view.
        InvalidInput: If there are too many parties to sample whole views of them.
    """
    if requirements.parties > _MOST_PARTIES_OF_VIEWS:
        most = f"at most {_MOST_PARTIES_OF_VIEWS:,} with recipe paper, which samples whole views"
        refuse("parties", requirements.parties, most)
    from inca.privacy.calibration import Tradeoff  # slow to import

    least = requirements.var_local_dp / requirements.honest
    independent = math.sqrt(least * paper_factor(requirements) * _ROUND_UP)
    seeds = [
        (dropout, _FIRST_SEED + number * views + view)
        for number, dropout in enumerate(dropout_rates(requirements))
        for view in range(views)
    ]

    def needed(setting: tuple[float, int]) -> float:
        tradeoff = Tradeoff(sample_view(requirements, design, *setting))
        return tradeoff.sigma_cancelling(
            mu=requirements.mu, sigma_independent=independent, sensitivity=requirements.sensitivity
        )

    cancelling = 0.0
    try:
        for level in _in_order(needed, seeds, threads=requirements.parties >= _MIN_PARTIES_FOR_THREADS):
            cancelling = max(cancelling, level)
            on_view_sampled()
    except InvalidInput as error:
        raise RequirementsNotMet(
            f"recipe paper does not meet the requirements with {design}: {error}; allow more messages, "
            "or use recipe best"
        ) from None
    return NoiseLevels(independent=independent, cancelling=cancelling)


def _in_order(
    needed: Callable[[tuple[float, int]], float], seeds: Iterable[tuple[float, int]], *, threads: bool
) -> Iterator[float]:
    with one_blas_thread(), ThreadPoolExecutor(available_cores()) as pool:
        yield from pool.map(needed, seeds) if threads else map(needed, seeds)
