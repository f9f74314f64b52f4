from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from helpers.strategies import generator, presences, seeds
from inca import InputError, Presence

FALSE_ALARM = 1e-7  # of each statistical test below; seeds are fixed


@given(st.tuples(st.integers(2, 20), st.integers(1, 6)).flatmap(lambda size: presences(*size)))
def test_rows_start_full_and_counts_agree(presence: Presence) -> None:
    rows = np.stack([presence.row(t) for t in range(presence.rounds + 1)])
    assert rows[0].all()
    assert np.array_equal(presence.rounds_attended(), rows[:-1].sum(axis=0))
    assert presence == Presence.explicit(rows)
    assert presence.nobody_absent == rows.all()


@given(st.integers(2, 200), st.integers(1, 20), st.floats(0, 1), seeds)
def test_leavers_are_as_many_as_asked_for_and_stay_away(n: int, rounds: int, fraction: float, seed: int) -> None:
    presence = Presence.leaving(n, rounds, fraction, generator(seed))
    rows = np.stack([presence.row(t) for t in range(rounds + 1)])
    assert (~rows[-1]).sum() == round(fraction * n)
    assert (np.diff(rows.astype(int), axis=0) <= 0).all()


def test_leaving_rounds_are_uniform() -> None:
    presence = Presence.leaving(20_000, 10, 1.0, generator(3))
    sizes = [int(presence.row(t).sum()) for t in range(11)]
    assert stats.chisquare(-np.diff(sizes)).pvalue > FALSE_ALARM


def test_markov_absence_has_the_chances_asked_for() -> None:
    n, rounds = 5000, 12
    presence = Presence.markov(n, rounds, leave=0.2, rejoin=0.6, rng=generator(4))
    rows = np.stack([presence.row(t) for t in range(rounds + 1)])
    left = (rows[:-1] & ~rows[1:]).sum(), rows[:-1].sum()
    back = (~rows[:-1] & rows[1:]).sum(), (~rows[:-1]).sum()
    assert stats.binomtest(int(left[0]), int(left[1]), 0.2).pvalue > FALSE_ALARM
    assert stats.binomtest(int(back[0]), int(back[1]), 0.6).pvalue > FALSE_ALARM


def test_trace(tmp_path: Path) -> None:
    file = tmp_path / "trace.csv"
    file.write_text("party,leaves,returns\n0,1,2\n0,3,4\n2,2,\n1,4,5\n")
    presence = Presence.trace(file, parties=3, rounds=4)
    rows = [presence.row(t).astype(int).tolist() for t in range(5)]
    assert rows == [[1, 1, 1], [0, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("party,leaves\n0,1\n", r"has the columns \['party', 'leaves'\], but party,leaves,returns"),
        ("", "has the columns None"),
        ("party,leaves,returns\n3,1,\n", "party in line 2 of .* is 3, but a whole number from 0 to 2"),
        ("party,leaves,returns\n0,0,\n", "leaves in line 2 of .* is 0"),
        ("party,leaves,returns\n0,5,\n", "leaves in line 2 of .* is 5"),
        ("party,leaves,returns\n0,2,2\n", "returns in line 2 of .* is 2"),
        ("party,leaves,returns\n0,x,\n", r"line 2 of .* is \['0', 'x', ''\], but whole numbers"),
        ("party,leaves,returns\n0\n", "line 2 of .* but whole numbers"),
    ],
)
def test_bad_traces_are_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=words):
        Presence.trace(file, parties=3, rounds=4)
    with pytest.raises(InputError, match="cannot be read"):
        Presence.trace(tmp_path / "none.csv", parties=3, rounds=4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Presence.everyone(1, 3), "parties is 1"),
        (lambda: Presence.everyone(3, 0), "rounds is 0"),
        (
            lambda: Presence.explicit([[1, 0], [1, 1]]),
            r"present\[0\]\[1\] is 0, but 1, as everyone is present in round 0",
        ),
        (lambda: Presence.explicit([[1, 1], [1, 2]]), "not 0 or 1"),
        (lambda: Presence.explicit([[1.0, 1.0], [1.0, np.nan]]), "not 0 or 1"),
        (lambda: Presence.explicit([["a", "b"]]), "rounds is 0"),
        (lambda: Presence.explicit([["a", "b"], ["c", "d"]]), "not 0 or 1"),
        (lambda: Presence.explicit([[1, 1], [1]]), "rows of different lengths"),
        (lambda: Presence.explicit([1, 1]), "shape of present"),
        (lambda: Presence.leaving(4, 3, 1.5, generator(1)), "fraction is 1.5"),
        (lambda: Presence.leaving(4, 3, float("nan"), generator(1)), "fraction is nan"),
        (lambda: Presence.markov(4, 3, -0.1, 0.5, generator(1)), "leave is -0.1"),
        (lambda: Presence.markov(4, 3, 0.1, 2, generator(1)), "rejoin is 2"),
        (lambda: Presence.leaving(4, 3, 0.5, None), "rng is None, but a numpy.random.Generator"),  # type: ignore[arg-type]
        (lambda: Presence.markov(4, 3, 0.5, 0.5, 7), "rng is 7"),  # type: ignore[arg-type]
        (lambda: Presence.everyone(4, 3).row(4), "t is 4"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
