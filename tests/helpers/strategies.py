"""Random small executions for hypothesis: any schedule kind, any presence, any valid injection."""

from __future__ import annotations

import networkx as nx
import numpy as np
from hypothesis import strategies as st

import inca
from inca.protocol.schedules import SCHEDULE_KINDS, schedule_of_kind


@st.composite
def schedules(draw: st.DrawFn, n: int, rounds: int) -> inca.Schedule:
    seed = draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    kinds = ["random", "permutation", "explicit", "weights", "graph"] + ["distinct", "circle"] * (n > rounds)
    kind = draw(st.sampled_from(kinds))
    if kind in SCHEDULE_KINDS:
        most = {"random": n - 1, "permutation": min(3, (n + 1) // 2), "distinct": (n - 1) // rounds, "circle": 1}
        k = draw(st.integers(1, most[kind]))
        return schedule_of_kind(kind, n, rounds, k, seed=seed, share=draw(st.sampled_from([None, 1 / k, 0.1 / k])))
    if kind == "explicit":
        k = draw(st.integers(1, n - 1))
        receivers = inca.RandomReceivers(n, rounds, k, seed=seed)
        ids = np.stack([receivers.round(t).receivers for t in range(1, rounds + 1)])
        ids[rng.random(ids.shape) < 0.3] = -1
        return inca.ExplicitSchedule(ids)
    if kind == "weights":
        matrices = rng.random((rounds, n, n)) * (rng.random((rounds, n, n)) < 0.6) + np.eye(n) * 0.1
        return inca.ExplicitSchedule.from_matrices(list(matrices / matrices.sum(axis=1, keepdims=True)))
    graph = nx.gnp_random_graph(n, 0.6, seed=seed)
    weights = draw(st.sampled_from(["metropolis", "uniform"]))
    return inca.StaticGraph.from_networkx(graph, rounds, weights=weights, disconnected=True)


@st.composite
def presences(draw: st.DrawFn, n: int, rounds: int, all_at_end: bool = False) -> inca.Presence:
    rate = draw(st.sampled_from([0.0, 0.2, 0.6, 1.0]))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    flags = rng.random((rounds + 1, n)) >= rate
    flags[0] = True
    if all_at_end:
        flags[-1] = True
    return inca.Presence.explicit(flags)


@st.composite
def injections(draw: st.DrawFn, rounds: int) -> inca.Injection:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    kind = draw(st.sampled_from(["incremental", "variances", "quiet", "early", "general"]))
    if kind == "incremental":
        return inca.incremental_injection(rounds)
    if kind == "variances":
        return inca.incremental_injection(rounds, variances=rng.random(rounds) + 0.1)
    if kind == "quiet":
        return inca.incremental_injection(rounds, quiet=draw(st.integers(0, rounds)))
    if kind == "early":
        return inca.early_injection(rounds, variances=rng.random(rounds) + 0.1)
    value, noise = rng.random(rounds + 1), rng.normal(size=(rounds, rounds)) + 3 * np.eye(rounds)
    return inca.Injection(value / value.sum(), np.vstack([noise, -noise.sum(axis=0)]))


@st.composite
def executions(draw: st.DrawFn, all_at_end: bool = False, largest: int = 8) -> inca.Execution:
    n, rounds = draw(st.integers(2, largest)), draw(st.integers(1, 6))
    presence = draw(presences(n, rounds, all_at_end))
    return inca.Execution(draw(schedules(n, rounds)), draw(injections(rounds)), presence)


@st.composite
def interrupted(draw: st.DrawFn, largest: int = 6, returns: bool = True) -> inca.Execution:
    """Executions with offers that were not credited: back in their round, late (if there are `returns`), or lost."""
    n, rounds = draw(st.integers(2, largest)), draw(st.integers(1, 5))
    k, seed = draw(st.integers(1, min(3, n - 1))), draw(st.integers(0, 2**32))
    rng = np.random.default_rng(seed)
    share = draw(st.sampled_from([None, 0.9 / k]))
    rate = draw(st.sampled_from([0.0, 0.3]))
    flags = rng.random((rounds + 1, n)) >= rate
    flags[0] = True
    drawn = inca.RandomReceivers(n, rounds, k, seed=seed)
    receivers = np.stack([drawn.round(t).receivers for t in range(1, rounds + 1)])
    receivers[rng.random(receivers.shape) < 0.1] = -1
    failed = rng.random(receivers.shape) < draw(st.sampled_from([0.1, 0.3]))
    failed[rng.integers(rounds), rng.integers(n)] = True
    failed &= (receivers >= 0) & flags[1:, :, np.newaxis]
    undelivered = []
    for step, sender, slot in np.argwhere(failed):
        t = int(step) + 1
        back = int(rng.choice([0, t, *(range(t, rounds + 1) if returns else [0])]))
        undelivered.append((t, int(sender), int(receivers[step, sender, slot]), back))
    receivers[failed] = -1
    schedule, presence = inca.ExplicitSchedule(receivers, share=share), inca.Presence.explicit(flags)
    return inca.Execution(schedule, draw(injections(rounds)), presence, undelivered=undelivered)


@st.composite
def settled(draw: st.DrawFn, all_publish: bool = True) -> inca.Execution:
    """Executions whose final messages are settled by some of those present at the end, all of whom may publish."""
    unsettled = draw(st.one_of(executions(), interrupted(returns=False)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    everyone = unsettled.presence.row(unsettled.rounds)
    cohort = everyone & (rng.random(unsettled.parties) < draw(st.sampled_from([1.0, 0.7])))
    execution = unsettled.settled(cohort)
    return execution if all_publish else execution.without_finals(rng.random(unsettled.parties) < 0.4)


def generator(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


seeds = st.integers(0, 2**32)
