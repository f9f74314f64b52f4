"""Plans: how long they take, how much noise they have, and whether runs keep what they say. Prints tables.

python benchmarks/planner.py plans    time, rounds and noise from 4 parties to 10^9, beside secure aggregation (seconds)
python benchmarks/planner.py recipe   the same beside the paper's recipe, which samples views (a minute)
python benchmarks/planner.py runs     simulated runs at three dropout rates, with the exact loss of everyone (3 minutes)
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import TypeVar

import numpy as np

import inca
from inca.mechanisms.inca import Inca
from inca.mechanisms.mask_graph import least_mask_graph
from inca.mechanisms.secure_aggregation import SecureAggregation

Result = TypeVar("Result")


def required(parties: int, dropout: float) -> inca.Requirements:
    return inca.Requirements(parties, epsilon=0.2, delta=1e-5, colluding=0.1, dropout=dropout)


def timed(work: Callable[..., Result], *arguments: object) -> tuple[Result, float]:
    start = time.perf_counter()
    return work(*arguments), time.perf_counter() - start


def noise_over_ideal(plan: inca.Plan) -> float:
    """The noise of the mean over that of an ideal secure aggregation with as many colluders and leavers."""
    requirements = plan.requirements
    return plan.budget.noise / SecureAggregation(requirements).expected_error(requirements.dropout).budget.noise


def plans() -> None:
    print(
        "epsilon 0.2, delta 1e-5, a tenth colluding; seconds of inca.plan and of the least graph of SecAgg+ (baseline)"
    )
    inca.plan(required(1000, 0.2))  # what is imported late
    for parties in (4, 10, 50, 200, 1000, 10**5, 10**9):
        for dropout in (0.0, 0.1, 0.2):
            requirements = required(parties, dropout)
            if requirements.honest - requirements.leavers < 2:
                continue
            plan, own = timed(inca.plan, requirements)
            _, other = timed(least_mask_graph, requirements)
            print(
                f"{parties:13,} parties, {dropout:3.0%} leaving  {own:.4f} s  {other:.4f} s  noise "
                f"{noise_over_ideal(plan):.4f} of ideal  fails with {plan.failure_probability:.1e}  {plan.design}",
                flush=True,
            )


def recipe() -> None:
    print(
        "seconds, and mean squared error / Central DP, a tenth leaving; the paper's recipe samples 900 views (baseline)"
    )
    for parties in (20, 50, 200):
        requirements = required(parties, 0.1)
        row = []
        for name in ("best", "paper"):
            plan, took = timed(inca.plan, requirements, inca.PlanOptions(recipe=name))
            row.append(f"{name} {took:8.4f} s  error {plan.expected_mse / requirements.central_mse:6.2f}")
        print(f"{parties:5} parties  {'   '.join(row)}", flush=True)


def run_once(job: tuple[inca.Plan, float, int]) -> tuple[float, float, float]:
    """The squared error of a run, the worst epsilon of anyone, and of those who left."""
    plan, rate, seed = job
    rng = np.random.default_rng((11, seed))
    execution = plan.execution(seed, inca.Presence.leaving(plan.requirements.parties, plan.design.rounds, rate, rng))
    levels, values = plan.noise_levels_of(execution), rng.random(plan.requirements.parties)
    estimate = inca.simulate(execution, values, levels, rng).estimate
    losses = inca.account(inca.View(execution, plan.adversary(rng)), levels, sensitivity=1.0)
    epsilons = losses.epsilon(plan.requirements.delta)
    assert estimate is not None and execution.cohort is not None
    left = [epsilon for party, epsilon in zip(losses.honest, epsilons, strict=True) if not execution.cohort[party]]
    return (float(estimate) - float(values.mean())) ** 2, float(np.max(epsilons)), float(max(left, default=0.0))


def runs(count: int = 1000) -> None:
    print(f"200 parties, epsilon 0.2, planned for 0.2 leaving; error / Central DP; {count} runs and exact losses each")
    requirements = required(200, 0.2)
    plan, central = inca.plan(requirements), requirements.central_mse
    for rate in (0.0, 0.05, 0.1, 0.2):
        with get_context("fork").Pool() as pool:
            squares, worst, left = np.array(pool.map(run_once, [(plan, rate, seed) for seed in range(count)])).T
        error = squares.std(ddof=1) / math.sqrt(count) / central
        print(
            f"{rate:7.0%} leave  expected {Inca(plan).expected_error(rate).mse / central:.3f}, simulated "
            f"{squares.mean() / central:.3f} +- {error:.3f}  ideal secure aggregation that is planned for as many "
            f"{SecureAggregation(required(200, rate)).expected_error(rate).mse / central:.3f}  largest epsilon "
            f"{worst.max():.4f}, of a leaver {left.max():.4f}; above {requirements.epsilon:g} in "
            f"{int((worst > requirements.epsilon).sum())} runs",
            flush=True,
        )


if __name__ == "__main__":
    parts: dict[str, Callable[[], None]] = {"plans": plans, "recipe": recipe, "runs": runs}
    chosen = sys.argv[1:] or list(parts)
    if unknown := [name for name in chosen if name not in parts]:
        sys.exit(f"{unknown[0]} is not one of {', '.join(parts)}")
    for part in chosen:
        print(f"--- {part}", flush=True)
        print(f"({timed(parts[part])[1]:.0f} s)", flush=True)
