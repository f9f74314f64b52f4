"""What the planner brings, and whether what it relies on holds. Prints tables; each part can be asked for alone.

python benchmarks/planner.py settled       settled plans: time, error, simulations, audits, levels (10 minutes)
python benchmarks/planner.py claims        not settled: plan, paper's recipe, baselines; runs and audits (15 minutes)
python benchmarks/planner.py plans         how long plans take, from 50 parties to a million (8 minutes)
python benchmarks/planner.py threads       views one after the other, and in threads (1 minute)
python benchmarks/planner.py tails         levels extrapolated from 100 views, held against 2,000 fresh ones (4 minutes)
python benchmarks/planner.py populations   needs in sub-populations of growing size (2 minutes)
python benchmarks/planner.py exposure      which of its messages a party's need depends on (1 minute)
python benchmarks/planner.py ideas [IDEA]  what helped against dropouts and what did not (10 minutes)
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np

import inca
from inca._base.threads import available_cores, one_blas_thread
from inca._base.types import Array
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.mechanisms.inca import Inca
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.designs import ProtocolDesign
from inca.planning.level_tables import needed_level
from inca.planning.sampling import candidate_factors, sample_cancelling_noise, sample_view
from inca.privacy.calibration import Tradeoff
from inca.privacy.tail_quantile import tail_level
from inca.protocol.schedules import Round

REQUIREMENTS = inca.Requirements(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, messages=20, dropout=0.0)
RATES = (0.05, 0.1, 0.2)
PROBABILITY = REQUIREMENTS.failure / 2 / REQUIREMENTS.honest


def spread(work: Callable[[Any], Any], jobs: Iterable[Any]) -> list[Any]:
    """Do the jobs on all cores."""
    with get_context("fork").Pool() as pool:
        return pool.map(work, list(jobs), chunksize=5)


# --- claims ---


def run_once(job: tuple[inca.Plan, int]) -> tuple[float, float]:
    """Simulate and audit one run of a plan; return its squared error and its epsilon, at full attendance too."""
    plan, seed = job
    rng = np.random.default_rng((seed, 4))
    n, noise_levels = plan.requirements.parties, plan.noise_levels
    values = rng.random(n)
    execution = plan.execution(seed, inca.Presence.leaving(n, plan.design.rounds, plan.requirements.dropout, rng))
    estimate = inca.simulate(execution, values, noise_levels, rng).estimate
    assert isinstance(estimate, float)
    transcript = inca.Transcript(
        execution,
        sigma_independent=noise_levels.independent,
        sigma_cancelling=noise_levels.cancelling,
        adversary=inca.Adversary(plan.adversary(rng).colluding),
    )
    required = plan.requirements
    certificate = inca.certify(transcript, sensitivity=required.sensitivity, delta=required.delta)
    return (estimate - float(values.mean())) ** 2, certificate.worst_epsilon


def claims(runs: int = 1000) -> None:
    central = REQUIREMENTS.central_mse
    print(
        f"{REQUIREMENTS.parties} parties, epsilon {REQUIREMENTS.epsilon:g}, delta {REQUIREMENTS.delta:g}, "
        "a tenth colluding, 20 messages each"
    )
    print("mean squared error / Central DP; simulated: mean of", runs, "runs +- standard error; audits passed")
    print("dropout  planned  paper  ratio  GOPA 1/2  ratio  GOPA 1/4  GOPA one  CorDP  simulated         audits")
    for rate in RATES:
        requirements = replace(REQUIREMENTS, dropout=rate)
        plan, paper = (
            inca.plan(requirements, inca.PlanOptions(settlement="none")),
            inca.plan(requirements, inca.PlanOptions(recipe="paper")),
        )
        gopas = [Gopa(requirements, late=0.5), Gopa(requirements, late=0.25), Gopa(requirements, late_leavers=1)]
        half, quarter, one = (gopa.expected_error(rate).mse / central for gopa in gopas)
        own, old = plan.expected_mse / central, paper.expected_mse / central
        simulated = np.array(spread(run_once, [(plan, seed) for seed in range(runs)]))
        error = simulated[:, 0].std(ddof=1) / math.sqrt(runs) / central
        passed = int((simulated[:, 1] <= requirements.epsilon).sum())
        print(
            f"{rate:7g}  {own:7.2f}  {old:5.1f}  {own / old:5.2f}  {half:8.1f}  {own / half:5.2f}  {quarter:8.1f}  "
            f"{one:8.1f}  {CorDP(requirements).expected_error(rate).mse / central:5.1f}  "
            f"{simulated[:, 0].mean() / central:6.2f} +- {error:.2f}   {passed} of {runs}"
            f" (largest epsilon {simulated[:, 1].max():.3f})",
            flush=True,
        )
    print("the worst of", runs, "sampled views instead of an extrapolated tail, planned and paper alike:")
    for rate in RATES:
        requirements = replace(REQUIREMENTS, dropout=rate)
        plan = inca.plan(requirements, inca.PlanOptions(settlement="none", views=100))
        paper = inca.plan(requirements, inca.PlanOptions(recipe="paper", views=100))
        errors = [worst_of(either, runs) for either in (plan, paper)]
        print(f"{rate:7g}  planned {errors[0] / central:6.2f}  paper {errors[1] / central:6.2f}  ", end="")
        print(f"ratio {errors[0] / errors[1]:.2f}", flush=True)


def worst_of(plan: inca.Plan, runs: int) -> float:
    """The error of a plan whose cancelling noise is what the worst of so many views at full attendance needs."""
    tried = (
        np.array([plan.factor])
        if plan.recipe == "paper"
        else candidate_factors(plan.requirements, plan.requirements.parties)
    )
    jobs = [(plan.requirements, plan.design, 0.0, seed, tuple(tried)) for seed in range(runs)]
    level = np.max([needs.max(axis=1) for needs in spread(needs_of, jobs)], axis=0)
    parts = plan.budget
    errors = parts.independent * tried / plan.factor + parts.data
    errors += parts.cancelling * level / (plan.noise_levels.cancelling**2 / plan.requirements.var_local_dp)
    return float(errors.min())


def needs_of(job: tuple[inca.Requirements, ProtocolDesign, float, int, tuple[float, ...]]) -> Array:
    """The needs of all parties of one view."""
    requirements, design, rate, seed, tried = job
    targets = np.minimum(np.array(tried) / requirements.honest, 1.0)
    ratios = Tradeoff(sample_view(requirements, design, requirements.parties, rate, seed)).least_ratios(targets)
    return np.asarray(ratios * targets[:, np.newaxis])


# --- settled plans ---


def settled(runs: int = 1000) -> None:
    print("seconds for a plan (the first one loads the tables, and is not shown), mean squared error / Central DP")
    inca.plan(REQUIREMENTS)
    for parties in (10, 50, 200, 1000, 10**5, 10**9):
        requirements = replace(REQUIREMENTS, parties=parties, dropout=0.1)
        start = time.perf_counter()
        plan = inca.plan(requirements)
        seconds = time.perf_counter() - start
        noise, ideal = plan.budget.noise, SecureAggregation(requirements).expected_error(0.1).budget.noise
        print(f"{parties:13,} parties  {seconds:.3f} s  noise {noise / requirements.central_mse:.3f}, ", end="")
        print(f"{noise / ideal:.3f} of ideal secure aggregation's  {plan.design}", flush=True)
    print(f"200 parties, planned for 0.2 leaving; {runs} runs and audits, leavers' own losses included")
    plan = inca.plan(replace(REQUIREMENTS, dropout=0.2))
    for rate in (0.0, 0.1, 0.2):
        expected = Inca(plan).expected_error(rate).mse / REQUIREMENTS.central_mse
        simulated = np.array(spread(settled_once, [(plan, rate, seed) for seed in range(runs)]))
        error = simulated[:, 0].std(ddof=1) / math.sqrt(runs) / REQUIREMENTS.central_mse
        passed = int((simulated[:, 1] <= REQUIREMENTS.epsilon).sum())
        print(f"{rate:7g} leave  expected {expected:.3f}, simulated ", end="")
        print(
            f"{simulated[:, 0].mean() / REQUIREMENTS.central_mse:.3f} +- {error:.3f}  audits: {passed} of {runs} ",
            end="",
        )
        print(f"(largest epsilon {simulated[:, 1].max():.4f}, of a leaver {simulated[:, 2].max():.4f})", flush=True)
    print("fraction of parties that need more than the level, in fresh exact views, 0.3 known, 10 rounds, factor 1.1")
    for parties, views in ((200, 400), (1000, 20)):
        for failure in (1e-2, 1e-3, 1e-6):
            jobs = [(parties, failure, seed) for seed in range(views)]
            exceeding = np.array(spread(exceeding_once, jobs))
            print(
                f"{parties:6} parties  stated {failure:g}  counted {exceeding.mean():.2g} in {views} views", flush=True
            )


def settled_once(job: tuple[inca.Plan, float, int]) -> tuple[float, float, float]:
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


def exceeding_once(job: tuple[int, float, int]) -> float:
    """The fraction of the parties of a fresh view that need more than the level that is looked up."""
    parties, failure, seed = job
    known, factor = round(0.3 * parties), 1.1
    needed = needed_level(10, 0.3, factor, parties, failure=failure, confidence=0.95)
    assert needed is not None
    levels = inca.NoiseLevels(independent=math.sqrt(factor / (parties - known)), cancelling=math.sqrt(needed.level))
    design = ProtocolDesign("permutation", 10, quiet=1)
    execution = inca.Execution(design.draw_schedule(parties, 10**8 + seed), design.injection())
    losses = inca.account(inca.View(execution, inca.Adversary(range(known))), levels, sensitivity=1.0)
    return float((losses.mu > 1.0).mean())


# --- plans ---


def plans() -> None:
    print("seconds for a plan, epsilon 0.2, delta 1e-5, a tenth colluding, a tenth leaving, 20 messages")
    for parties in (50, 200, 1000, 5000, 10**6):
        start = time.perf_counter()
        plan = inca.plan(replace(REQUIREMENTS, parties=parties, dropout=0.1), inca.PlanOptions(settlement="none"))
        seconds = time.perf_counter() - start
        relative = plan.expected_mse / plan.requirements.local_mse
        print(f"{parties:9,} parties  {seconds:4.0f} s  error {relative:.3g} x Local DP  {plan.design}", flush=True)


# --- threads ---


def sample_twice(parties: int, seeds: range) -> tuple[float, float]:
    """Return how many milliseconds a view takes one after the other, and in as many threads as there are cores."""
    requirements, design = replace(REQUIREMENTS, parties=parties), ProtocolDesign("permutation", 20, quiet=2)
    factors = candidate_factors(requirements, parties)

    def sample(seed: int) -> None:
        Tradeoff(sample_view(requirements, design, parties, 0.1, seed)).least_ratios(factors / requirements.honest)

    with one_blas_thread(), ThreadPoolExecutor(available_cores()) as pool:
        start = time.perf_counter()
        list(map(sample, seeds))
        middle = time.perf_counter()
        list(pool.map(sample, seeds))
    return 1e3 * (middle - start) / len(seeds), 1e3 * (time.perf_counter() - middle) / len(seeds)


def threads(views: int = 24) -> None:
    print(
        f"a view of 20 rounds, a tenth colluding and leaving: one after the other, and in {available_cores()} threads"
    )
    for parties in (20, 50, 100, 200, 400):
        pairs = [sample_twice(parties, range(views * attempt, views * (attempt + 1))) for attempt in range(5)]
        one, several = (min(times) for times in zip(*pairs, strict=True))
        print(f"{parties:4} parties  {one:5.1f} ms  {several:5.1f} ms   threads take {several / one:.2f} times as long")


# --- tails ---


def tails(fresh: int = 2000) -> None:
    print("how likely a run exceeds a level extrapolated from 100 views to a failure of 0.01, and to one of 0.001,")
    print(f"in {fresh} other views: mean over eight sets of 100 views, and in how many of them it is above the target")
    base = inca.Requirements(parties=100, epsilon=0.2, delta=1e-5, colluding=0.1, messages=40, dropout=0.0)
    cases = [
        (base, ProtocolDesign("permutation", 6, quiet=1), 0.0, 2.0),
        (base, ProtocolDesign("permutation", 10, quiet=2), 0.1, 2.0),
        (base, ProtocolDesign("permutation", 20, quiet=3), 0.1, 3.0),
        (base, ProtocolDesign("random", 20), 0.0, 1.4),
        (replace(base, colluding=0.3), ProtocolDesign("permutation", 20, quiet=2), 0.1, 2.0),
        (replace(base, colluding=0.0, eavesdropped=0.3), ProtocolDesign("permutation", 12, quiet=2), 0.1, 2.0),
        (replace(base, parties=50), ProtocolDesign("permutation", 20, quiet=2), 0.2, 2.0),
    ]
    for requirements, design, rate, factor in cases:
        jobs = [(requirements, design, rate, seed, (factor,)) for seed in range(800 + fresh)]
        needs = [by_factor[0] for by_factor in spread(needs_of, jobs)]
        worst = np.array([need.max() for need in needs[800:]])
        rates = []
        for failure in (0.01, 0.001):
            levels = [
                tail_level(needs[start : start + 100], failure / requirements.honest, np.random.default_rng(0))
                for start in range(0, 800, 100)
            ]
            exceeded = np.array([(worst > level).mean() for level in levels])
            rates.append(f"{exceeded.mean():.4f} ({int((exceeded > failure).sum())} of 8)")
        who = f"{requirements.parties} parties, {requirements.colluding:g} colluding"
        who += f", {requirements.eavesdropped:g} eavesdropped, {rate:g} leaving"
        print(f"{rates[0]}  {rates[1]}  {who}; {design}; factor {factor:g}", flush=True)


# --- populations ---


def populations() -> None:
    print("median, 99 % and 99.9 % quantile of what a party needs, factor 2, permutation, 20 rounds, last 2 quiet")
    requirements, design = replace(REQUIREMENTS, parties=2000, dropout=0.1), ProtocolDesign("permutation", 20, quiet=2)
    for parties, count in ((120, 200), (240, 100), (480, 40), (960, 12)):
        row = []
        for rate in (0.0, 0.1):
            needs = np.concatenate(
                sample_cancelling_noise(
                    requirements, design, parties, (rate, 0.0), range(count), np.array([2.0])
                ).views,
                axis=1,
            )
            row.append("  ".join(f"{level:.4f}" for level in np.quantile(needs[0], [0.5, 0.99, 0.999])))
        print(f"{parties:5} parties   nobody leaves: {row[0]}   a tenth leaves: {row[1]}", flush=True)


# --- exposure ---


def exposed(seed: int) -> tuple[Array, Array]:
    """For each honest party of a view: which of the messages that it sends and gets are hidden, and what it needs."""
    view = sample_view(REQUIREMENTS, ProtocolDesign("permutation", 20, quiet=2), 200, 0.0, seed)
    needs = Tradeoff(view).least_ratios(np.array([2.0 / REQUIREMENTS.honest]))[0] * 2.0 / REQUIREMENTS.honest
    sent, got = np.zeros((200, 20)), np.zeros((200, 20))
    for t in range(20):
        hidden = np.flatnonzero(~view.seen[t])
        sent[hidden, t] = 1.0
        got[view.execution.sends(t + 1).receivers[hidden, 0], t] = 1.0
    return np.hstack([sent, got])[view.honest], needs


def exposure(views: int = 300) -> None:
    sampled = spread(exposed, range(views))
    hidden, need = (np.concatenate(parts) for parts in zip(*sampled, strict=True))
    ones = np.ones((len(need), 1))
    print("share of the variance of 1/need that a linear regression on hidden messages explains, factor 2, 200 parties")
    for name, columns in (("sent and got", hidden), ("sent", hidden[:, :20]), ("got", hidden[:, 20:])):
        design = np.hstack([ones, columns])
        rest = 1 / need - design @ np.linalg.lstsq(design, 1 / need, rcond=None)[0]
        print(f"  {name:13} {1 - float(rest.var() / (1 / need).var()):.2f}")


# --- ideas ---


class Ring(inca.Schedule):
    """Parties in a random order around a ring; in each round all send the same distance, and no distance twice."""

    def __init__(self, parties: int, rounds: int, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.parties, self.rounds, self.slots = parties, rounds, 1
        self._order = rng.permutation(parties)
        self._place = np.argsort(self._order)
        steps = rng.permutation(np.arange(1, (parties + 1) // 2))[:rounds]
        self._steps = np.where(rng.random(rounds) < 0.5, steps, parties - steps)

    def round(self, t: int) -> Round:
        receivers = self._order[(self._place + self._steps[t - 1]) % self.parties]
        return Round(receivers.astype(np.int32).reshape(-1, 1), share=0.5)


def shares(name: str, rounds: int) -> inca.Injection:
    """Injections of the value other than equal shares, with the noise of the incremental one."""
    t = np.arange(rounds + 1.0)
    quiet = t <= rounds - 2
    profile = {
        "equal shares, last 2 quiet": quiet * 1.0,
        "nothing at the start": quiet * (t > 0),
        "twice as much at the start": quiet * np.where(t == 0, 2.0, 1.0),
        "falling": quiet * (1.3 - 0.6 * t / rounds),
        "rising": quiet * (0.7 + 0.6 * t / rounds),
        "fading out over 5 rounds": np.minimum(1.0, (rounds - t) / 5.0),
    }[name]
    return inca.Injection(profile / profile.sum(), inca.incremental_injection(rounds).noise)


def idea_once(job: tuple[str, float, bool, int]) -> Any:
    """The error of an execution, or else the needs of a view, for one idea."""
    name, rate, of_error, seed = job
    rng = np.random.default_rng((seed, 1))
    n, rounds, kind, injection = 200, 20, "permutation", inca.incremental_injection(20, quiet=2)
    if name.startswith("quiet"):
        injection = inca.incremental_injection(rounds, quiet=int(name.split()[1]))
    elif name in ("random receivers", "distinct receivers"):
        kind = name.split()[0]
    elif name == "value at once":
        injection = inca.early_injection(rounds)
    elif name != "ring":
        injection = shares(name, rounds)
    presence = inca.Presence.leaving(n, rounds, rate, rng)
    schedule = Ring(n, rounds, seed) if name == "ring" else inca.random_schedule(kind, n, rounds, seed=seed)
    execution = inca.Execution(schedule, injection, presence)
    if of_error:
        budget = inca.expected_error(execution, inca.NoiseLevels(independent=1.0, cancelling=1.0))
        return n * budget.independent, n * budget.cancelling
    targets = np.minimum(candidate_factors(REQUIREMENTS, n) / REQUIREMENTS.honest, 1.0)
    view = inca.View(execution, inca.Adversary.random(n, rounds, rng, colluding=0.1))
    return Tradeoff(view).least_ratios(targets) * targets[:, np.newaxis]


def ideas(views: int = 80, names: tuple[str, ...] = ()) -> None:
    usual = ["equal shares, last 2 quiet", "quiet 0", "quiet 1", "quiet 3", "quiet 4"]
    usual += ["random receivers", "distinct receivers", "ring", "value at once"]
    usual += ["nothing at the start", "twice as much at the start", "falling", "rising", "fading out over 5 rounds"]
    print("mean squared error / Central DP at the best balance of both kinds of noise, dropouts", *RATES)
    for name in names or usual:
        count = views if name != "value at once" else 24  # this one has no fast route
        row = []
        for rate in RATES:
            levels = []
            for attended in (0.0, rate):
                views_of_idea = spread(idea_once, [(name, attended, False, seed) for seed in range(count)])
                rows = range(views_of_idea[0].shape[0])
                levels.append([tail_level([view[i] for view in views_of_idea], PROBABILITY) for i in rows])
            parts = np.mean(spread(idea_once, [(name, rate, True, seed) for seed in range(150)]), axis=0)
            errors = parts[0] * candidate_factors(REQUIREMENTS, 200) / REQUIREMENTS.honest + parts[1] * np.max(
                levels, axis=0
            )
            row.append(float(errors.min()) * REQUIREMENTS.parties)
        print(f"{name:28}", *(f"{error:7.2f}" for error in row), flush=True)


if __name__ == "__main__":
    parts = {
        "settled": settled,
        "claims": claims,
        "plans": plans,
        "threads": threads,
        "tails": tails,
        "populations": populations,
        "exposure": exposure,
        "ideas": ideas,
    }
    if sys.argv[1:2] == ["ideas"] and len(sys.argv) > 2:  # only these
        ideas(names=tuple(sys.argv[2:]))
        sys.exit()
    chosen = sys.argv[1:] or list(parts)
    if unknown := [name for name in chosen if name not in parts]:
        sys.exit(f"{unknown[0]} is not one of {', '.join(parts)}")
    for part in chosen:
        start = time.perf_counter()
        print(f"--- {part}", flush=True)
        parts[part]()
        print(f"({time.perf_counter() - start:.0f} s)", flush=True)
