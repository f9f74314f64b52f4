"""The precondition of Theorem 2 for all numbers of rounds at once, beside dense ranks for one number of rounds.

    python benchmarks/conditions.py [--parties 5000] [--rounds 20] [--colluding 0.5] [--runs 100] [--skip-dense]

One receiver per party and round, full attendance, one schedule, drawn before the clock runs. The dense baselines get
the edge vectors ready made, of all T rounds; their times grow with the cube of n (minutes at n = 5,000), and nothing
they compute for T helps for another T. Times of inca are the best of several runs.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import inca
from inca.privacy.theorems.hidden_messages import HiddenRank, edge_vectors, hidden_rank
from inca.privacy.theorems.rank_by_round import first_round_met, rank_curve, rounds_to_connect
from inca.privacy.view import View
from inca.protocol.adversary import Adversary


def seconds(run: Callable[[], object], repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def fresh_rank(execution: inca.Execution, adversary: Adversary) -> HiddenRank:
    return hidden_rank(View(execution, adversary))


def compare(n: int, rounds: int, colluding: float, dense: bool) -> None:
    execution = inca.Execution(inca.RandomReceivers(n, rounds, seed=1), inca.incremental_injection(rounds))
    view = View(execution, Adversary.random(n, rounds, np.random.default_rng(1), colluding=colluding))
    receivers = np.stack([execution.sends(t).receivers[:, 0] for t in range(1, rounds + 1)])
    flags = ~np.isin(np.arange(n), view.honest)
    vectors = edge_vectors(view).matrix
    print(f"n = {n:,}, {view.honest.size:,} honest, T = {rounds}, k = 1, {vectors.shape[0]:,} hidden messages")
    first = rounds_to_connect(receivers, flags)
    assert first_round_met(view) == first  # and everything is compiled
    ours = seconds(lambda: rounds_to_connect(receivers, flags), 50)
    lines = {
        "inca, all T at once, schedule given": ours,
        "inca, all T at once, drawing the schedule": seconds(lambda: first_round_met(view), 20),
        "drawing the schedule alone": seconds(lambda: [execution.sends(t) for t in range(1, rounds + 1)], 20),
        "inca, hidden_rank of a new view, one T": seconds(lambda: hidden_rank(View(execution, view.adversary)), 5),
    }
    if dense:
        ranks: list[int] = []
        gram = np.asarray((vectors.T @ vectors).toarray())
        name = "numpy matrix_rank of the Gram matrix, one T"
        lines[name] = seconds(lambda: ranks.append(int(np.linalg.matrix_rank(gram, hermitian=True))), 1)
        matrix = vectors.toarray()
        name = "numpy matrix_rank of the vectors, one T"
        lines[name] = seconds(lambda: ranks.append(int(np.linalg.matrix_rank(matrix))), 1)
        assert set(ranks) == {int(rank_curve(view)[-1])}
    for name, taken in lines.items():
        print(f"  {name:44s} {1e3 * taken:12.3f} ms   {taken / ours:12,.1f} times inca's")
    print(f"  the precondition holds from T = {first} on")


def many(n: int, rounds: int, colluding: float, runs: int) -> None:
    """Repeat with new schedules, as for an estimate of the probability of failure."""
    flags = np.zeros(n, dtype=bool)
    flags[: int(colluding * n)] = True
    schedules = [inca.RandomReceivers(n, rounds, seed=seed) for seed in range(runs)]
    drawn = [np.stack([schedule.round(t).receivers[:, 0] for t in range(1, rounds + 1)]) for schedule in schedules]
    taken = seconds(lambda: [rounds_to_connect(receivers, flags) for receivers in drawn], 5)
    print(f"{runs} schedules: {1e3 * taken / runs:.3f} ms each")


def several_receivers(n: int, colluding: float) -> None:
    """Time the steps of the cascade for k = 2."""
    print("k = 2, one T, a new view each time")
    for rounds in (3, 5, 8, 12, 20):
        execution = inca.Execution(inca.RandomReceivers(n, rounds, 2, seed=1), inca.incremental_injection(rounds))
        adversary = Adversary.random(n, rounds, np.random.default_rng(1), colluding=colluding)
        rank = fresh_rank(execution, adversary)
        taken = seconds(partial(fresh_rank, execution, adversary), 2)
        print(f"  T = {rounds:2d}  {1e3 * taken:10.1f} ms   {rank}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--colluding", type=float, default=0.5)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--skip-dense", action="store_true", help="no dense ranks at full size, which take minutes")
    options = parser.parse_args()
    compare(options.parties // 5, options.rounds, options.colluding, True)
    compare(options.parties, options.rounds, options.colluding, not options.skip_dense)
    many(options.parties, options.rounds, options.colluding, options.runs)
    several_receivers(min(options.parties, 2000), options.colluding)
