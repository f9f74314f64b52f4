from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from helpers.strategies import generator, presences, seeds
from inca import InvalidInput, Presence

FALSE_ALARM = 1e-7  # of each statistical test below; seeds are fixed


@given(st.tuples(st.integers(2, 20), st.integers(1, 6)).flatmap(lambda size: presences(*size)))
def test_rows_start_full_and_counts_agree(presence: Presence) -> None:
    rows = np.stack([presence.row(t) for t in range(presence.rounds + 1)])
    assert rows[0].all()
    assert np.array_equal(presence.rounds_attended(), rows[:-1].sum(axis=0))
    assert presence == Presence.explicit(rows)
    assert presence.all_present == rows.all()


@given(st.integers(2, 200), st.integers(1, 20), st.floats(0, 1), seeds)
def test_leavers_are_as_many_as_asked_for_and_stay_away(n: int, rounds: int, fraction: float, seed: int) -> None:
    presence = Presence.leaving(n, rounds, fraction, generator(seed))
    rows = np.stack([presence.row(t) for t in range(rounds + 1)])
    assert (~rows[-1]).sum() == math.ceil(fraction * n - 1e-9)
    assert (np.diff(rows.astype(int), axis=0) <= 0).all()


def test_who_is_away_comes_back_and_is_away_as_often_as_said() -> None:
    presence = Presence.leaving(2000, 10, 0.1, generator(4), away=0.2)
    assert presence.row(0).all() and int(presence.row(10).sum()) == 1800
    stayers = presence.row(10)
    missed = np.array([(~presence.row(t))[stayers].mean() for t in range(1, 10)])
    # 16,200 coin flips: 5 standard errors are exceeded with probability 6e-7.
    assert abs(missed.mean() - 0.2) < 5 * np.sqrt(0.2 * 0.8 / 16_200)
    leavers = [presence.row(t)[~stayers] for t in range(11)]
    assert not leavers[10].any()
    assert Presence.leaving(5, 3, 0.0, generator(1), away=1.0).row(2).tolist() == [False] * 5
    assert Presence.leaving(5, 3, 0.0, generator(1), away=1.0).row(3).all()


def test_leaving_rounds_are_uniform() -> None:
    presence = Presence.leaving(20_000, 10, 1.0, generator(3))
    sizes = [int(presence.row(t).sum()) for t in range(11)]
    assert stats.chisquare(-np.diff(sizes)).pvalue > FALSE_ALARM


def test_markov_absence_has_the_probabilities_asked_for() -> None:
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
    presence = Presence.from_csv(file, parties=3, rounds=4)
    rows = [presence.row(t).astype(int).tolist() for t in range(5)]
    assert rows == [[1, 1, 1], [0, 1, 1], [1, 1, 0], [0, 1, 0], [1, 0, 0]]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("party,leaves\n0,1\n", "the columns of .* must be party,leaves,returns, got 'party,leaves'"),
        ("", "the columns of .* must be party,leaves,returns, got ''"),
        ("party,leaves,returns\n3,1,\n", "party in line 2 of .* must be from 0 to 2, got 3"),
        ("party,leaves,returns\n0,0,\n", "leaves in line 2 of .* must be from 1 to 4, got 0"),
        ("party,leaves,returns\n0,5,\n", "leaves in line 2 of .* must be from 1 to 4, got 5"),
        ("party,leaves,returns\n0,2,2\n", "returns in line 2 of .* must be from 3 to 5, got 2"),
        (
            "party,leaves,returns\n0,x,\n",
            r"line 2 of .* must be three integers, the last one perhaps empty, got \['0', 'x', ''\]",
        ),
        (
            "party,leaves,returns\n0\n",
            r"line 2 of .* must be three integers, the last one perhaps empty, got \['0', None, None\]",
        ),
    ],
)
def test_bad_traces_are_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "trace.csv"
    file.write_text(text)
    with pytest.raises(InvalidInput, match=words):
        Presence.from_csv(file, parties=3, rounds=4)
    with pytest.raises(InvalidInput, match="cannot be read"):
        Presence.from_csv(tmp_path / "none.csv", parties=3, rounds=4)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Presence.everyone(1, 3), "parties must be at least 2, got 1"),
        (lambda: Presence.everyone(3, 0), "rounds must be at least 1, got 0"),
        (
            lambda: Presence.explicit([[1, 0], [1, 1]]),
            r"present\[0\]\[1\] must be 1, as everyone is present in round 0, got 0",
        ),
        (lambda: Presence.explicit([[1, 1], [1, 2]]), r"present\[1\]\[1\] must be 0 or 1, got 2"),
        (lambda: Presence.explicit([[1.0, 1.0], [1.0, np.nan]]), r"present\[1\]\[1\] must be 0 or 1, got nan"),
        (lambda: Presence.explicit([["a", "b"]]), "rounds must be at least 1, got 0"),
        (lambda: Presence.explicit([["a", "b"], ["c", "d"]]), r"present\[0\]\[0\] must be 0 or 1, got 'a'"),
        (lambda: Presence.explicit([[1, 1], [1]]), "rows of different lengths"),
        (lambda: Presence.explicit([1, 1]), "shape of present"),
        (lambda: Presence.leaving(4, 3, 1.5, generator(1)), r"fraction must be from 0 to 1, got 1\.5"),
        (lambda: Presence.leaving(4, 3, 0.5, generator(1), away=-0.1), r"away must be from 0 to 1, got -0\.1"),
        (
            lambda: Presence.leaving(4, 3, float("nan"), generator(1)),
            "fraction must be a finite number, from 0 to 1, got nan",
        ),
        (lambda: Presence.markov(4, 3, -0.1, 0.5, generator(1)), r"leave must be from 0 to 1, got -0\.1"),
        (lambda: Presence.markov(4, 3, 0.1, 2, generator(1)), "rejoin must be from 0 to 1, got 2"),
        (lambda: Presence.leaving(4, 3, 0.5, None), r"rng must be a numpy\.random\.Generator, got None"),  # type: ignore[arg-type]
        (lambda: Presence.markov(4, 3, 0.5, 0.5, 7), r"rng must be a numpy\.random\.Generator, got 7"),  # type: ignore[arg-type]
        (lambda: Presence.everyone(4, 3).row(4), "t must be from 0 to 3, got 4"),
    ],
)
def test_bad_input_is_refused(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        make()


def test_it_prints_its_size() -> None:
    assert repr(Presence.everyone(5, 2)) == "Presence(parties=5, rounds=2, nobody ever absent)"
    assert repr(Presence.explicit([[1, 1], [1, 0]])) == "Presence(parties=2, rounds=1, some absent)"
