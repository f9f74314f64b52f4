"""What workers do: runs by the thousand, as functions of plain arguments with plain results.

Runs are numbered from `first`; a run depends on the seed, its number and the other arguments, so work can be cut into
pieces anywhere. Noise levels are squared and in units of s^2 / mu^2, what Local DP needs, if nothing else is said.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from inca._base.validation import whole_parties
from inca.errors import IncaError
from inca.mechanisms.base import Mechanism
from inca.mechanisms.central_local import CentralDP, LocalDP
from inca.mechanisms.compare import baselines, own_mechanisms
from inca.mechanisms.gopa import Gopa, random_graph
from inca.mechanisms.inca import Inca
from inca.mechanisms.muffliato import Muffliato, Stopping
from inca.planning.plan import plan
from inca.planning.requirements import Requirements
from inca.planning.sampled import sample_view
from inca.privacy.calibration import Tradeoff
from inca.privacy.tail_quantile import least_ratios
from inca.privacy.theorems.preconditions import theorem4
from inca.privacy.theorems.rank_by_round import first_round_met
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.design import ProtocolDesign
from inca.protocol.execution import Execution
from inca.protocol.expected_error import expected_error
from inca.protocol.injection import incremental_injection
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.presence import Presence
from inca.protocol.schedules import RandomReceivers
from inca.protocol.simulation import simulate
from inca.reproduction.rounds_to_connect import rounds_needed

# Keys of random streams: what calibrates is not what is run.
_RANKS, _NEEDS, _ERRORS, _GOPA_NEEDS, _GOPA_ERRORS, _OWN, *_OTHERS, _PLANNED = range(11)
_MECHANISMS = ("Central DP", "Local DP", "Muffliato, printed", "Muffliato, corrected")


def _streams(first: int, runs: int, *key: int) -> Iterator[tuple[int, np.random.Generator]]:
    """Yield a seed and a generator for each run; the key tells settings apart, so that they are independent."""
    for number in range(first, first + runs):
        source = np.random.SeedSequence([*key, number])
        yield int(source.generate_state(1, np.uint64)[0] >> np.uint64(1)), np.random.default_rng(source)


def first_rounds(parties: int, colluding: int, first: int, runs: int, seed: int) -> list[int]:
    """Return how many runs meet Theorem 2's precondition after 0, 1, 2, .. rounds; the last place counts the rest."""
    return [int(count) for count in rounds_needed(parties, colluding, runs, seed, first)]


def rounds_met(
    parties: int, receivers: int, rounds: int, colluding: float, eavesdropped: float, first: int, runs: int, seed: int
) -> list[int]:
    """Return how many runs meet that precondition after 0, .., T rounds, for any k and adversary, by exact ranks.

    The last place counts those that do not. With everyone present a run of T rounds contains that of each fewer.
    """
    counts = [0] * (rounds + 2)
    eavesdropped_messages = whole_parties("eavesdropped", eavesdropped, parties)
    for run_seed, rng in _streams(first, runs, seed, _RANKS, receivers, eavesdropped_messages):
        schedule = RandomReceivers(parties, rounds, receivers, seed=run_seed)
        execution = Execution(schedule, incremental_injection(rounds))
        adversary = Adversary.random(parties, rounds, rng, colluding=colluding, eavesdropped=eavesdropped)
        met = first_round_met(View(execution, adversary))
        counts[rounds + 1 if met is None else met] += 1
    return counts


def noise_needed(
    requirements: dict[str, Any],
    receivers: int,
    rounds: int,
    own: list[float],
    first: int,
    runs: int,
    seed: int,
) -> list[list[list[float]]]:
    """Return the least cancelling noise of each run, for each level of independent noise: by Theorem 4, and exactly.

    Infinite where none will do.
    """
    required = Requirements(epsilon=1.0, delta=1e-5, **requirements)
    parties, dropout = required.parties, required.dropout
    design = ProtocolDesign("random", rounds, receivers)
    needed = []
    for run_seed, _ in _streams(first, runs, seed, _NEEDS, receivers, rounds, round(dropout * parties)):
        tradeoff = Tradeoff(sample_view(required, design, dropout, run_seed))
        by_theorem = partial(tradeoff.sigma_cancelling_by_theorem, theorem4(tradeoff.view))
        needed.append([[_squared(by_theorem, var), _squared(tradeoff.sigma_cancelling, var)] for var in own])
    return needed


def _squared(level: Callable[..., float], var_independent: float) -> float:
    try:
        return level(1.0, sigma_independent=math.sqrt(var_independent)) ** 2
    except IncaError:  # no level suffices
        return math.inf


def errors(
    parties: int,
    receivers: int,
    rounds: int,
    dropout: float,
    levels: list[list[float]],
    first: int,
    runs: int,
    seed: int,
) -> list[list[float]]:
    """Return, for each run on uniform values, what remains of the noise, and its squared errors.

    First the expected squared error per unit of independent noise, of cancelling noise, and of the values' variance;
    then the squared error that was seen with each pair (sigma_independent, sigma_cancelling) of `levels`.
    """
    rows = []
    for run_seed, rng in _streams(first, runs, seed, _ERRORS, receivers, rounds, round(dropout * parties)):
        presence = Presence.leaving(parties, rounds, dropout, rng)
        schedule = RandomReceivers(parties, rounds, receivers, seed=run_seed)
        execution = Execution(schedule, incremental_injection(rounds), presence)
        budget = expected_error(execution, NoiseLevels(independent=1.0, cancelling=1.0), variance=1.0)
        row = [budget.independent, budget.cancelling, budget.data]
        values = rng.random(parties)
        for noise_levels in _noise_levels(levels):
            estimate = simulate(execution, values, noise_levels, rng).estimate
            row.append(math.nan if estimate is None else float((estimate - values.mean()) ** 2))
        rows.append(row)
    return rows


def _noise_levels(pairs: list[list[float]]) -> list[NoiseLevels]:
    return [NoiseLevels(independent=independent, cancelling=cancelling) for independent, cancelling in pairs]


def gopa_needed(
    requirements: dict[str, Any], exchanges: int, early: int, late: int, own: float, first: int, runs: int, seed: int
) -> list[float]:
    """Return GOPA's least pairwise noise for each of so many random graphs, adversaries and leavers.

    `early` parties are rolled back; `late` ones leave their terms, which protect their honest neighbours.
    """
    required = Requirements(epsilon=1.0, delta=1e-5, **requirements)
    parties, colluders = required.parties, required.colluders
    needed = []
    for _, rng in _streams(first, runs, seed, _GOPA_NEEDS, early, late):
        graph = random_graph(parties, exchanges, rng, rows=parties)
        honest, present, publishing = np.ones((3, parties), dtype=np.bool_)
        honest[rng.permutation(parties)[:colluders]] = False
        leavers = rng.permutation(parties)[: early + late]
        present[leavers[:early]] = False
        publishing[leavers] = False
        publishing &= honest
        terms = graph[np.ix_(publishing, honest & present)].sum(axis=1)
        stiffness, vectors = np.linalg.eigh(np.diag(terms) - graph[np.ix_(publishing, publishing)])
        ratios = least_ratios(vectors**2, np.maximum(stiffness, 0.0), np.array([own]))
        needed.append(float(ratios.max()) * own)
    return needed


def gopa_errors(
    requirements: dict[str, Any],
    exchanges: int,
    late: int,
    levels: list[list[float]],
    first: int,
    runs: int,
    seed: int,
) -> list[list[float]]:
    """Return GOPA's squared errors on uniform values with each pair (sigma_independent, sigma_cancelling)."""
    required = Requirements(**requirements)
    mechanisms = [
        Gopa(required, exchanges, late_leavers=late, noise_levels=noise_levels)
        for noise_levels in _noise_levels(levels)
    ]
    return [
        [_squared_error(mechanism, rng, required.dropout) for mechanism in mechanisms]
        for _, rng in _streams(first, runs, seed, _GOPA_ERRORS, required.leavers, late)
    ]


def own_errors(
    requirements: dict[str, Any], rounds: int, factor: float, drawn: int, first: int, runs: int, seed: int
) -> dict[str, Any]:
    """Return squared errors of runs of one schedule with everyone present, calibrated exactly to one adversary.

    The independent noise is `factor` times its least value s^2 / (mu^2 n_H) by Theorem 2. `drawn` is the seed of the
    schedule.
    """
    required = Requirements(**requirements)
    n = required.parties
    execution = Execution(RandomReceivers(n, rounds, seed=drawn), incremental_injection(rounds))
    rng = np.random.default_rng([seed, _OWN, required.colluders, drawn, 1])
    tradeoff = Tradeoff(View(execution, Adversary.random(n, rounds, rng, colluding=required.colluding)))
    independent = math.sqrt(required.var_local_dp * factor / required.honest)
    cancelling = tradeoff.sigma_cancelling(required.mu, sigma_independent=independent)
    noise_levels = NoiseLevels(independent=independent, cancelling=cancelling)
    squares = []
    for _, stream in _streams(first, runs, seed, _OWN, required.colluders):
        values = stream.random(n)
        estimate = simulate(execution, values, noise_levels, stream).estimate
        assert isinstance(estimate, float)
        squares.append((estimate - float(values.mean())) ** 2)
    worst = float(tradeoff.losses(noise_levels).epsilon(required.delta, required.rule).max())
    return {"sigma_cancelling": cancelling, "epsilon": worst, "squares": squares}


def mechanism_errors(name: str, requirements: dict[str, Any], first: int, runs: int, seed: int) -> list[float]:
    """Return squared errors of Central DP, Local DP or Muffliato (printed or corrected) with everyone present."""
    required = Requirements(**requirements)
    mechanism: Mechanism
    if name.startswith("Muffliato"):
        stopping: Stopping = "printed" if "printed" in name else "corrected"
        mechanism = Muffliato(required, stopping=stopping, conversion="renyi")
    else:
        mechanism = {"Central DP": CentralDP, "Local DP": LocalDP}[name](required)
    key = _OTHERS[_MECHANISMS.index(name)]
    return [_squared_error(mechanism, rng, 0.0) for _, rng in _streams(first, runs, seed, key)]


def _squared_error(mechanism: Mechanism, rng: np.random.Generator, dropout: float) -> float:
    values = rng.random(mechanism.requirements.parties)
    estimate = mechanism.run(values, rng, dropout)
    return math.nan if estimate is None else float((estimate - values.mean()) ** 2)


def predicted(name: str, requirements: dict[str, Any], views: int) -> dict[str, float] | None:
    """Return the expected error of a calibrated mechanism, as `inca compare` does; None if it cannot be calibrated."""
    required = Requirements(**requirements)
    try:
        mechanism = dict([*own_mechanisms(required, views), *baselines(required, views)])[name]()
        error = mechanism.expected_error(required.dropout)
    except IncaError:
        return None
    return {"mse": error.mse, "standard_error": error.standard_error, "messages": mechanism.messages}


def planned_errors(requirements: dict[str, Any], first: int, runs: int, seed: int) -> list[float]:
    """Return squared errors of runs of inca as planned on uniform values, at the required dropout rate."""
    required = Requirements(**requirements)
    mechanism = Inca(plan(required))
    streams = _streams(first, runs, seed, _PLANNED, required.leavers)
    return [_squared_error(mechanism, rng, required.dropout) for _, rng in streams]
