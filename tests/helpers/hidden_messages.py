"""Hidden messages found from their definition, for tests of the theorems."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

import inca
from helpers.strategies import executions, generator
from inca.privacy.view import View
from inca.protocol.adversary import Adversary

flint = pytest.importorskip("flint")


@st.composite
def views(draw: st.DrawFn, all_at_end: bool = False) -> View:
    execution = draw(executions(all_at_end))
    n, rounds = execution.parties, execution.rounds
    colluding = draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    rng, rate = generator(draw(st.integers(0, 2**32))), draw(st.sampled_from([0.0, 0.1, 0.4]))
    eavesdropped = [(t, i) for t in range(rounds + 1) for i in range(n) if rng.random() < rate]
    return View(execution, Adversary(colluding, eavesdropped))


def drawn(n: int, rounds: int, k: int, seed: int, colluding: float = 0.3, leaving: float = 0.0) -> View:
    rng = generator(seed)
    presence = inca.Presence.leaving(n, rounds, leaving, rng)
    execution = inca.Execution(
        inca.RandomReceivers(n, rounds, k, seed=seed), inca.incremental_injection(rounds), presence
    )
    return View(execution, Adversary.random(n, rounds, rng, colluding=colluding, eavesdropped=0.05))


def plain_messages(view: View) -> dict[tuple[int, int], np.ndarray]:
    """Columns of W^O_{t+1} - I of hidden messages, from the definition: all that sent something unobserved."""
    execution, found = view.execution, {}
    for t in range(execution.rounds):
        step = execution.weights(t + 1).toarray()
        for i in view.honest.tolist():
            held = [s for s in range(t + 1) if execution.presence.row(s)[i]][-1]
            same = [s for s in range(held, execution.rounds + 1) if view.computed[s, i] == held]
            column = step[:, i] * (np.arange(execution.parties) != i)
            if column.any() and not any(view.seen[s, i] for s in same):
                column[i] = -sum(Fraction(entry) for entry in column)
                found[t, i] = column[view.honest]
    return found


def exact_rank(rows: list[np.ndarray], parties: int) -> int:
    """The rank of vectors whose entries off the diagonal are doubles and that sum to 0, by rational arithmetic."""
    entries = []
    for row in rows:
        numbers = [Fraction(float(x)) if x > 0 else Fraction(0) for x in row]
        numbers[int(np.flatnonzero(row < 0)[0])] = -sum(numbers, Fraction(0))
        entries += [flint.fmpq(x.numerator, x.denominator) for x in numbers]
    return int(flint.fmpq_mat(len(rows), parties, entries).rref()[1]) if rows else 0


def solvable(view: View, changes: np.ndarray) -> bool:
    """Whether B f + A Delta = 0 has a solution for every column f of `changes`."""
    right = view.value @ changes
    if not right.size:
        return True
    solution = np.linalg.lstsq(view.noise, -right, rcond=None)[0]
    return bool(np.abs(view.noise @ solution + right).max() < 1e-7)
