"""Losses in exact rational arithmetic, and small random views of every kind to hold the accountant against."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from flint import fmpq, fmpq_mat

import inca
from inca._base.kernels import Flags


def rational(number: float) -> fmpq:
    return fmpq(*float(number).as_integer_ratio())


def exact_squares(view: inca.View, levels: inca.NoiseLevels) -> list[Fraction]:
    """Return mu^2 of every honest party for unit sensitivity: Theorem 1 on the view's rows, nothing rounded.

    Shares of messages, of values and the noise levels are taken for the binary fractions that they are; what a sender
    keeps is all the rest. The rows must be independent, as they are in the incremental family with noise above 0.
    """
    b, root = exact_system(view, levels)
    if not b.nrows():
        return [Fraction(0)] * view.honest.size
    solved = (root * root.transpose()).solve(b)
    squares = [sum((b[k, i] * solved[k, i] for k in range(b.nrows())), start=fmpq(0)) for i in range(b.ncols())]
    return [Fraction(int(square.p), int(square.q)) for square in squares]


def exact_system(view: inca.View, levels: inca.NoiseLevels) -> tuple[fmpq_mat, fmpq_mat]:
    """Return B, and G with Sigma = G G^T."""
    execution, honest = view.execution, view.honest.tolist()
    n, rounds, count = execution.parties, execution.rounds, len(honest)
    independent, cancelling, topup = map(rational, (levels.independent, levels.cancelling, levels.topup))
    values = [rational(x) for x in execution.injection.value.tolist()]
    masks = [[rational(x) for x in row] for row in execution.injection.noise.tolist()]
    attended, columns = [0] * n, count * (rounds + 1)
    injected_noise = [[fmpq(0)] * rounds for _ in range(n)]

    def injected(t: int) -> fmpq_mat:
        new = fmpq_mat(n, columns)
        for place, i in enumerate(honest):
            if not execution.presence.row(t)[i]:
                continue
            row = [-x for x in injected_noise[i]] if t == rounds else masks[attended[i]]
            new[i, place] = values[attended[i]]
            for k in range(rounds):
                new[i, count + place * rounds + k] = row[k]
                injected_noise[i][k] += row[k]
            attended[i] += 1
        return new

    def moved(t: int, within: Flags | None) -> fmpq_mat:
        """W - I, of what stays inside a cohort alone if one is given."""
        step, changes = execution.sends(t), fmpq_mat(n, n)
        for i in range(n):
            for j, fraction in zip(step.receivers[i].tolist(), step.fractions[i].tolist(), strict=True):
                if j >= 0 and (within is None or (within[i] and within[j])):
                    changes[j, i] += rational(fraction)
                    changes[i, i] -= rational(fraction)
        return changes

    y = injected(0)
    undone = fmpq_mat(n, columns)
    rows: list[list[fmpq]] = []
    for t in range(rounds + 1):
        if t > 0:
            change = moved(t, None) * y
            if execution.cohort is not None:
                undone += moved(t, execution.cohort) * y - change
            y = y + change + injected(t)
        table, final = y.table(), (y + undone).table()
        settles = np.zeros(n, dtype=bool) if t < rounds or execution.cohort is None else execution.cohort
        rows += [(final if settles[i] else table)[i] for i in honest if view.known[t, i]]
    settled = np.flatnonzero(view.settled).tolist()
    b, root = fmpq_mat(len(rows), count), fmpq_mat(len(rows), columns + len(settled))
    for place, row in enumerate(rows):
        for k, entry in enumerate(row):
            root[place, k] = entry * (independent if k < count else cancelling)
            if k < count:
                b[place, k] = entry
    for k, place in enumerate(settled):
        root[place, columns + k] = topup
    return b, root


def random_view(seed: int) -> inca.View:
    """Return a small view: components, absences, leavers, settled or not, shares that failed, taps, colluders."""
    rng = np.random.default_rng(seed)
    n, rounds = int(rng.integers(2, 10)), int(rng.integers(1, 6))
    k = int(rng.integers(1, min(3, n - 1) + 1)) if rng.random() < 0.4 else 1
    groups = np.sort(rng.integers(0, rng.choice([1, 1, 2, 3, 4]), n))
    nobody = rng.choice([0.0, 0.1, 0.4])
    receivers = np.full((rounds, n, k), -1)
    for t in range(rounds):
        for i in range(n):
            others = np.flatnonzero((groups == groups[i]) & (np.arange(n) != i))
            chosen = rng.permutation(others)[:k]
            receivers[t, i, : chosen.size] = chosen
    receivers[rng.random(receivers.shape) < nobody] = -1
    present = rng.random((rounds + 1, n)) >= rng.choice([0.0, 0.0, 0.2, 0.4])
    if rng.random() < 0.4:  # who leaves is gone for good
        left = rng.integers(1, rounds + 2, n)
        present &= (np.arange(rounds + 1)[:, np.newaxis] < left) | (rng.random(n) < 0.6)
    present[0] = True
    settles, fails = rng.random() < 0.4, rng.choice([0.0, 0.0, 0.2])
    failed = (rng.random(receivers.shape) < fails) & (receivers >= 0) & present[1:, :, np.newaxis]
    undelivered = []
    for step, sender, slot in np.argwhere(failed).tolist():
        t = step + 1
        back = int(rng.choice([0, t] if settles else [0, *range(t, rounds + 1)]))
        undelivered.append((t, sender, int(receivers[step, sender, slot]), back))
    receivers[failed] = -1
    variances = rng.random(rounds) + 0.2 if rng.random() < 0.3 else None
    quiet = int(rng.integers(0, rounds + 1)) if rng.random() < 0.4 else 0
    execution = inca.Execution(
        inca.ExplicitSchedule(receivers, share=[None, 0.4 / k, 0.75 / k][rng.integers(3)]),
        inca.incremental_injection(rounds, quiet=quiet, variances=variances),
        inca.Presence.explicit(present),
        undelivered=undelivered,
    )
    if settles:
        execution = execution.settled(present[-1] & (rng.random(n) < rng.choice([1.0, 0.8])))
    if rng.random() < 0.2:
        execution = execution.without_finals(rng.random(n) < 0.3)
    colluding = rng.permutation(n)[: rng.binomial(n - 1, rng.choice([0.0, 0.1, 0.3]))]
    tapped = np.argwhere(rng.random((rounds + 1, n)) < rng.choice([0.0, 0.0, 0.1, 0.3]))
    view = inca.View(execution, inca.Adversary(colluding.tolist(), [(int(t), int(i)) for t, i in tapped]))
    cohort = execution.cohort
    if cohort is not None and rng.random() < 0.3 and cohort[view.honest].any():
        view = view.of_cohort()
    return view


def random_levels(seed: int, lowest: float = -7.0, highest: float = 8.0) -> inca.NoiseLevels:
    rng = np.random.default_rng((seed, 1))
    own = float(rng.choice([1.0, 0.37]))
    ratio = float(10.0 ** rng.uniform(lowest, highest))
    return inca.NoiseLevels(independent=own, cancelling=own * ratio, topup=float(rng.choice([0.0, 0.3, 2.0])))
