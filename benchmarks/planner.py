"""Plans: how long they take, how much noise they have, and whether runs keep what they say. Prints tables.

python benchmarks/planner.py plans    time, rounds and noise from 4 parties to 10^9, beside secure aggregation (seconds)
python benchmarks/planner.py recipe   the same beside the paper's recipe, which samples views (a minute)
python benchmarks/planner.py runs     simulated runs at four dropout rates, with the exact loss of everyone (5 minutes)
python benchmarks/planner.py executions    exact losses of 3,000 plans, and how many parties are cut off (5 minutes)
python benchmarks/planner.py worst    the worst that a search finds on circles of 11 to 70 parties (5 minutes)
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable
from multiprocessing import get_context
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

import inca
from inca.mechanisms.inca import Inca
from inca.mechanisms.mask_graph import least_mask_graph
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.privacy.theorems.hidden_messages import HiddenMessages
from inca.protocol.undelivered import Undelivered

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


def runs(count: int = 2000) -> None:
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


def execution_of(job: int) -> tuple[float, int, int, float, str]:
    """Run a plan of 5 to 1,000 parties with full, planned or half attendance; return what the exact losses show.

    That is the largest mu over the allowed one of the parties joined with all but the spare others, how many are not,
    how many there are, the stated probability of that (nothing is promised at half attendance), and which attendance.
    """
    rng = np.random.default_rng((11, job))
    parties = round(math.exp(rng.uniform(math.log(5), math.log(1000))))
    failure = 1e-6 if job % 2 else 0.02  # large enough to be counted
    plan = inca.plan(inca.Requirements(parties, epsilon=1.0, failure=failure))
    attendance = ("full", "planned", "half")[job % 3]
    leaving = {"full": 0.0, "planned": plan.requirements.leavers / parties, "half": 0.5}[attendance]
    execution = plan.execution(job, inca.Presence.leaving(parties, plan.design.rounds, leaving, rng))
    view = inca.View(execution, plan.adversary(rng)).of_cohort()
    losses = inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0)
    groups = HiddenMessages.of(view).component
    joined = np.bincount(groups)[groups] >= groups.size - plan.spare
    worst = float(losses.mu[joined].max(initial=0.0)) / plan.requirements.mu
    return worst, int((~joined).sum()), groups.size, plan.failure_probability, attendance


def executions() -> None:
    print("3,000 plans of 5 to 1,000 parties, a tenth colluding, a tenth may leave: exact losses of one run of each")
    with get_context("fork").Pool() as pool:
        seen = pool.map(execution_of, range(3000), chunksize=10)
    for attendance in ("full", "planned", "half"):
        rows = [row for row in seen if row[4] == attendance]
        lost, people = sum(row[1] for row in rows), sum(row[2] for row in rows)
        print(
            f"{attendance:8} {len(rows):5} runs, {people:7,} parties  largest mu / allowed, where joined: "
            f"{max(row[0] for row in rows):.5f}  not joined: {lost}",
            end="",
        )
        if attendance == "half":
            print(" (more leave than planned)")
            continue
        expected = sum(row[2] * row[3] for row in rows)
        print(f", stated: at most {expected:.1f}")


def worst_of(job: tuple[int, int]) -> float:
    """Climb to the worst coalition, leavers and lost message of a circle; return its mu over the allowed one."""
    parties, start = job
    rng, plan = np.random.default_rng((12, start)), inca.plan(inca.Requirements(parties, epsilon=1.0))
    rounds, requirements = plan.design.rounds, plan.requirements
    rows = np.array([plan.design.draw_schedule(parties, 0).round(t).receivers for t in range(1, rounds + 1)])

    def loss(order: NDArray[np.int64], when: NDArray[np.int64], lost: tuple[int, int]) -> float:
        colluders, leavers = order[: requirements.colluders], order[requirements.colluders :][: requirements.leavers]
        present, sent, undelivered = np.ones((rounds + 1, parties), dtype=bool), rows.copy(), []
        for leaver in leavers:
            present[when[leaver] :, leaver] = False
        t, sender = lost
        if present[t + 1, sender]:
            undelivered = [Undelivered(t + 1, sender, int(sent[t, sender, 0]), t + 1)]
            sent[t, sender, 0] = -1
        execution = inca.Execution(
            inca.ExplicitSchedule(sent),
            plan.design.injection(),
            inca.Presence.explicit(present),
            undelivered=undelivered,
        ).settled()
        view = inca.View(execution, inca.Adversary(colluders.tolist())).of_cohort()
        return inca.account(view, plan.noise_levels_of(execution), sensitivity=1.0).max_mu / requirements.mu

    order, when, lost = rng.permutation(parties), rng.integers(1, rounds + 1, parties), (0, 0)
    best = loss(order, when, lost)
    for _ in range(150):
        i, j = rng.integers(parties, size=2)
        other, moved = order.copy(), when.copy()
        other[i], other[j] = order[j], order[i]
        moved[rng.integers(parties)] = rng.integers(1, rounds + 1)
        message = (int(rng.integers(rounds)), int(rng.integers(parties))) if rng.random() < 0.5 else lost
        if (found := loss(other, moved, message)) >= best:
            order, when, lost, best = other, moved, message, found
    return best


def worst() -> None:
    print(
        "circles: the largest exact mu / allowed that a search over coalitions, leavers, times and lost messages finds"
    )
    for parties in (11, 12, 15, 20, 30, 45, 70):
        with get_context("fork").Pool() as pool:
            found = pool.map(worst_of, [(parties, start) for start in range(8)], chunksize=1)
        print(f"{parties:3} parties  {max(found):.5f}", flush=True)


if __name__ == "__main__":
    parts: dict[str, Callable[[], None]] = {
        "plans": plans,
        "recipe": recipe,
        "runs": runs,
        "executions": executions,
        "worst": worst,
    }
    chosen = sys.argv[1:] or list(parts)
    if unknown := [name for name in chosen if name not in parts]:
        sys.exit(f"{unknown[0]} is not one of {', '.join(parts)}")
    for part in chosen:
        print(f"--- {part}", flush=True)
        print(f"({timed(parts[part])[1]:.0f} s)", flush=True)
