"""What the planner brings, and whether what it relies on holds. Prints tables; each part can be asked for alone.

python benchmarks/planner.py claims        the plan, the paper's recipe, the rivals; simulations and audits (15 minutes)
python benchmarks/planner.py plans         how long plans take, from 50 parties to a million (8 minutes)
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
from dataclasses import replace
from multiprocessing import get_context
from typing import Any

import numpy as np

import inca
from inca._base.types import Array
from inca.mechanisms.cordp import CorDP
from inca.mechanisms.gopa import Gopa
from inca.planning.designs import Shape
from inca.planning.sampling import factors, sample_needs, view
from inca.privacy.calibration import Tradeoff
from inca.privacy.tail_quantile import tail_level
from inca.protocol.schedules import Round

WISH = inca.Wish(parties=200, epsilon=0.2, delta=1e-5, colluding=0.1, messages=20)
RATES = (0.05, 0.1, 0.2)
CHANCE = WISH.failure / 2 / WISH.honest


def spread(work: Callable[[Any], Any], jobs: Iterable[Any]) -> list[Any]:
    """Do the jobs on all cores."""
    with get_context("fork").Pool() as pool:
        return pool.map(work, list(jobs), chunksize=5)


# --- claims ---


def run_once(job: tuple[inca.Plan, int]) -> tuple[float, float]:
    """Simulate and audit one run of a plan; return its squared error and its epsilon, at full attendance too."""
    plan, seed = job
    rng = np.random.default_rng((seed, 4))
    n, levels = plan.wish.parties, (plan.sigma_independent, plan.sigma_cancelling)
    values = rng.random(n)
    execution = plan.execution(seed, inca.Presence.leaving(n, plan.shape.rounds, plan.wish.dropout, rng))
    estimate = inca.simulate(execution, values, *levels, rng).estimate
    assert isinstance(estimate, float)
    adversary = plan.adversary(rng)
    certificate = inca.certify(inca.Transcript(execution, *levels, adversary.colluding), delta=plan.wish.delta)
    return (estimate - float(values.mean())) ** 2, certificate.worst_epsilon


def claims(runs: int = 1000) -> None:
    central = WISH.central_mse
    print(
        f"{WISH.parties} parties, epsilon {WISH.epsilon:g}, delta {WISH.delta:g}, a tenth colluding, 20 messages each"
    )
    print("mean squared error / Central DP; simulated: mean of", runs, "runs +- standard error; audits passed")
    print("dropout  planned  paper  ratio  GOPA 1/2  ratio  GOPA 1/4  GOPA one  CorDP  simulated         audits")
    for rate in RATES:
        wish = replace(WISH, dropout=rate)
        plan, paper = inca.plan(wish), inca.plan(wish, recipe="paper")
        gopas = [Gopa(wish, late=0.5), Gopa(wish, late=0.25), Gopa(wish, late_leavers=1)]
        half, quarter, one = (each.expected_error(rate).mse / central for each in gopas)
        own, old = plan.expected_mse / central, paper.expected_mse / central
        found = np.array(spread(run_once, [(plan, seed) for seed in range(runs)]))
        error = found[:, 0].std(ddof=1) / math.sqrt(runs) / central
        print(
            f"{rate:7g}  {own:7.2f}  {old:5.1f}  {own / old:5.2f}  {half:8.1f}  {own / half:5.2f}  {quarter:8.1f}  "
            f"{one:8.1f}  {CorDP(wish).expected_error(rate).mse / central:5.1f}  "
            f"{found[:, 0].mean() / central:6.2f} +- {error:.2f}   {int((found[:, 1] <= wish.epsilon).sum())} of {runs}"
            f" (largest epsilon {found[:, 1].max():.3f})",
            flush=True,
        )
    print("the worst of", runs, "sampled views instead of an extrapolated tail, planned and paper alike:")
    for rate in RATES:
        wish = replace(WISH, dropout=rate)
        plan, paper = inca.plan(wish, views=100), inca.plan(wish, recipe="paper", views=100)
        errors = [worst_of(each, runs) for each in (plan, paper)]
        print(f"{rate:7g}  planned {errors[0] / central:6.2f}  paper {errors[1] / central:6.2f}  ", end="")
        print(f"ratio {errors[0] / errors[1]:.2f}", flush=True)


def worst_of(plan: inca.Plan, runs: int) -> float:
    """The error of a plan whose cancelling noise is what the worst of so many views at full attendance needs."""
    tried = np.array([plan.factor]) if plan.recipe == "paper" else factors(plan.wish, plan.wish.parties)
    jobs = [(plan.wish, plan.shape, 0.0, seed, tuple(tried)) for seed in range(runs)]
    level = np.max([found.max(axis=1) for found in spread(needs_of, jobs)], axis=0)
    parts = plan.budget
    errors = parts.independent * tried / plan.factor + parts.data
    errors += parts.cancelling * level / (plan.sigma_cancelling**2 / plan.wish.var_local)
    return float(errors.min())


def needs_of(job: tuple[inca.Wish, Shape, float, int, tuple[float, ...]]) -> Array:
    """The needs of all parties of one view."""
    wish, shape, rate, seed, tried = job
    targets = np.minimum(np.array(tried) / wish.honest, 1.0)
    found = Tradeoff(view(wish, shape, wish.parties, rate, seed)).least_ratios(targets)
    return np.asarray(found * targets[:, np.newaxis])


# --- plans ---


def plans() -> None:
    print("seconds for a plan, epsilon 0.2, delta 1e-5, a tenth colluding, a tenth leaving, 20 messages")
    for parties in (50, 200, 1000, 5000, 10**6):
        start = time.perf_counter()
        plan = inca.plan(replace(WISH, parties=parties, dropout=0.1))
        seconds = time.perf_counter() - start
        relative = plan.expected_mse / plan.wish.local_mse
        print(f"{parties:9,} parties  {seconds:4.0f} s  error {relative:.3g} x Local DP  {plan.shape}", flush=True)


# --- tails ---


def tails(fresh: int = 2000) -> None:
    print("chance that a run exceeds a level extrapolated from 100 views to a failure of 0.01, and to one of 0.001,")
    print(f"in {fresh} other views: mean over eight sets of 100 views, and in how many of them it is above the target")
    base = inca.Wish(parties=100, epsilon=0.2, delta=1e-5, colluding=0.1, messages=40)
    cases = [
        (base, Shape("permutation", 6, quiet=1), 0.0, 2.0),
        (base, Shape("permutation", 10, quiet=2), 0.1, 2.0),
        (base, Shape("permutation", 20, quiet=3), 0.1, 3.0),
        (base, Shape("random", 20), 0.0, 1.4),
        (replace(base, colluding=0.3), Shape("permutation", 20, quiet=2), 0.1, 2.0),
        (replace(base, colluding=0.0, eavesdropped=0.3), Shape("permutation", 12, quiet=2), 0.1, 2.0),
        (replace(base, parties=50), Shape("permutation", 20, quiet=2), 0.2, 2.0),
    ]
    for wish, shape, rate, factor in cases:
        found = [
            each[0] for each in spread(needs_of, [(wish, shape, rate, seed, (factor,)) for seed in range(800 + fresh)])
        ]
        worst = np.array([each.max() for each in found[800:]])
        chances = []
        for failure in (0.01, 0.001):
            levels = [
                tail_level(found[start : start + 100], failure / wish.honest, np.random.default_rng(0))
                for start in range(0, 800, 100)
            ]
            exceeded = np.array([(worst > level).mean() for level in levels])
            chances.append(f"{exceeded.mean():.4f} ({int((exceeded > failure).sum())} of 8)")
        who = f"{wish.parties} parties, {wish.colluding:g} colluding, {wish.eavesdropped:g} tapped, {rate:g} leaving"
        print(f"{chances[0]}  {chances[1]}  {who}; {shape}; factor {factor:g}", flush=True)


# --- populations ---


def populations() -> None:
    print("median, 99 % and 99.9 % quantile of what a party needs, factor 2, permutation, 20 rounds, last 2 quiet")
    wish, shape = replace(WISH, parties=2000, dropout=0.1), Shape("permutation", 20, quiet=2)
    for parties, count in ((120, 200), (240, 100), (480, 40), (960, 12)):
        row = []
        for rate in (0.0, 0.1):
            needs = np.concatenate(
                sample_needs(wish, shape, parties, rate, range(count), np.array([2.0])).views, axis=1
            )
            row.append("  ".join(f"{level:.4f}" for level in np.quantile(needs[0], [0.5, 0.99, 0.999])))
        print(f"{parties:5} parties   nobody leaves: {row[0]}   a tenth leaves: {row[1]}", flush=True)


# --- exposure ---


def exposed(seed: int) -> tuple[Array, Array]:
    """For each honest party of a view: which of the messages that it sends and gets are hidden, and what it needs."""
    found = view(WISH, Shape("permutation", 20, quiet=2), 200, 0.0, seed)
    needs = Tradeoff(found).least_ratios(np.array([2.0 / WISH.honest]))[0] * 2.0 / WISH.honest
    sent, got = np.zeros((200, 20)), np.zeros((200, 20))
    for t in range(20):
        hidden = np.flatnonzero(~found.seen[t])
        sent[hidden, t] = 1.0
        got[found.execution.sends(t + 1).receivers[hidden, 0], t] = 1.0
    return np.hstack([sent, got])[found.honest], needs


def exposure(views: int = 300) -> None:
    sampled = spread(exposed, range(views))
    hidden, need = np.concatenate([each[0] for each in sampled]), np.concatenate([each[1] for each in sampled])
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
    return inca.Injection(profile / profile.sum(), inca.incremental(rounds).noise)


def idea_once(job: tuple[str, float, bool, int]) -> Any:
    """What remains of an execution, or else the needs of a view, for one idea."""
    name, rate, remains, seed = job
    rng = np.random.default_rng((seed, 1))
    n, rounds, kind, injection = 200, 20, "permutation", inca.incremental(20, quiet=2)
    if name.startswith("quiet"):
        injection = inca.incremental(rounds, quiet=int(name.split()[1]))
    elif name in ("random receivers", "distinct receivers"):
        kind = name.split()[0]
    elif name == "value at once":
        injection = inca.early(rounds)
    elif name != "ring":
        injection = shares(name, rounds)
    presence = inca.Presence.leaving(n, rounds, rate, rng)
    schedule = Ring(n, rounds, seed) if name == "ring" else inca.random_schedule(kind, n, rounds, seed=seed)
    execution = inca.Execution(schedule, injection, presence)
    if remains:
        budget = inca.expected_error(execution, 1.0, 1.0)
        return n * budget.independent, n * budget.cancelling
    targets = np.minimum(factors(WISH, n) / WISH.honest, 1.0)
    found = Tradeoff(inca.View(execution, inca.Adversary.random(n, rounds, rng, colluding=0.1))).least_ratios(targets)
    return found * targets[:, np.newaxis]


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
                found = spread(idea_once, [(name, attended, False, seed) for seed in range(count)])
                levels.append([tail_level([each[i] for each in found], CHANCE) for i in range(found[0].shape[0])])
            remains = np.mean(spread(idea_once, [(name, rate, True, seed) for seed in range(150)]), axis=0)
            errors = remains[0] * factors(WISH, 200) / WISH.honest + remains[1] * np.max(levels, axis=0)
            row.append(float(errors.min()) * WISH.parties)
        print(f"{name:28}", *(f"{error:7.2f}" for error in row), flush=True)


if __name__ == "__main__":
    parts = {
        "claims": claims,
        "plans": plans,
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
