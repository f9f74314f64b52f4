"""The rounds of a circle that join all parties that stay: up to 14 parties, every choice of what is taken away."""

from __future__ import annotations

from functools import cache
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

import inca
from helpers.examples import examples
from helpers.strategies import generator, seeds
from inca.errors import InvalidInput
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.hidden_messages import hidden_rank
from inca.privacy.view import View
from inca.protocol.adversary import Adversary

SIZES = [*range(2, 11), *(pytest.param(n, marks=pytest.mark.slow) for n in range(11, 15))]


@cache
def fewest_cut(n: int) -> NDArray[np.int64]:
    """Return, by rounds and number of removed parties, the fewest messages whose loss cuts somebody off.

    All ways to put the parties into a part, another part and the removed are gone through; party 0, as all are alike,
    is in the first part.
    """
    first, second = np.ones(1, np.int64), np.zeros(1, np.int64)
    for party in range(1, n):
        bit = 1 << party
        first, second = np.concatenate([first, first | bit, first]), np.concatenate([second, second, second | bit])
    first, second = first[second > 0], second[second > 0]
    removed, between = n - np.bitwise_count(first | second).astype(np.int64), np.zeros(first.size, np.int64)
    fewest = np.full((n, n - 1), -1)
    for rounds in range(n):
        if rounds:
            for one, other in ((first, second), (second, first)):
                receivers = ((one << rounds) | (one >> (n - rounds))) & ((1 << n) - 1)
                between += np.bitwise_count(receivers & other)
        for gone in range(n - 1):
            fewest[rounds, gone] = between[removed == gone].min()
    return fewest


@pytest.mark.parametrize("n", SIZES)
def test_it_is_the_least_number_that_withstands_every_choice(n: int) -> None:
    fewest = fewest_cut(n)
    for removed in range(n - 1):
        for lost in range(2 * n + 1):
            enough = [rounds for rounds in range(n) if fewest[rounds, removed] > lost]
            assert circle_rounds(n, removed, lost) == (enough[0] if enough else None), (removed, lost)
            assert not enough or enough == list(range(enough[0], n)), "one more round may not do harm"


@pytest.mark.parametrize(
    ("n", "removed", "lost", "rounds"),
    [
        *((4, 2, 1, 3), (5, 3, 1, 4), (6, 4, 1, 5)),  # pairs that stay need both messages
        *((10, 2, 1, 2), (12, 4, 1, 3), (20, 4, 1, 3), (50, 10, 1, 6), (70, 14, 1, 8)),
        *((2, 0, 0, 1), (2, 0, 1, 1), (2, 0, 2, None), (3, 1, 1, 2), (3, 1, 2, None), (3, 0, 1, 1)),
        *((2**31 - 1, 14, 1, 8), (2**31 - 1, 2**31 - 3, 1, 2**31 - 2), (2**31 - 1, 2**31 - 3, 2, None)),
    ],
)
def test_known_values(n: int, removed: int, lost: int, rounds: int | None) -> None:
    assert circle_rounds(n, removed, lost) == rounds


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [
        ((5, 4), "removed must be at most 3 of 5 parties, as at least two must stay, got 4"),
        ((2, 1), "removed must be at most 0 of 2 parties, as at least two must stay, got 1"),
        ((5, -1), "removed must be at least 0, got -1"),
        ((5, 1, -1), "lost must be at least 0, got -1"),
        ((1, 0), "parties must be from 2 to 2147483647, got 1"),
    ],
)
def test_what_no_circle_can_serve_is_refused(numbers: tuple[int, ...], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        circle_rounds(*numbers)


@st.composite
def wanted(draw: st.DrawFn) -> tuple[int, int, int, int]:
    n = draw(st.integers(3, 300))
    removed, lost = draw(st.integers(0, min(30, n - 2))), draw(st.integers(0, 8))
    rounds = circle_rounds(n, removed, lost)
    return (n, removed, lost, rounds) if rounds is not None else (n, 0, 0, 1)


@given(wanted(), seeds)
@examples(quick=20, thorough=2000)
def test_whatever_is_taken_away_at_random_or_around_a_party(numbers: tuple[int, int, int, int], seed: int) -> None:
    n, removed, lost, rounds = numbers
    rng = generator(seed)
    near = rng.permutation([d for d in range(-rounds, rounds + 1) if d % n])  # may wrap around
    around = [int(d) % n for d in near] if rng.random() < 0.7 else []
    order = list(dict.fromkeys([*around, *rng.permutation(np.arange(1, n)).tolist()]))
    stay = sorted(set(range(n)) - set(order[:removed]))
    messages = [(i, (i + r) % n) for i in stay for r in range(1, rounds + 1) if (i + r) % n in set(stay)]
    of_one = [m for m in messages if 0 in m] if rng.random() < 0.7 else []
    taken = list(dict.fromkeys([*of_one, *(messages[place] for place in rng.permutation(len(messages)))]))[:lost]
    graph = nx.Graph([message for message in messages if message not in taken])
    graph.add_nodes_from(stay)
    assert nx.is_connected(graph)


@given(wanted())
def test_with_one_round_less_a_party_can_be_surrounded(numbers: tuple[int, int, int, int]) -> None:
    n, removed, lost, rounds = numbers
    shorter = range(1, rounds)
    exchanged = {p: sum((r - p) % n == 0 or (r + p) % n == 0 for r in shorter) for p in range(1, n)}
    most = sorted(exchanged.values(), reverse=True)
    assert sum(most[removed:]) <= lost, "party 0 keeps no message if its best partners and the others' are taken away"


@pytest.mark.parametrize("n", [4, 5, 6, pytest.param(7, marks=pytest.mark.slow)])
def test_hidden_messages_have_full_rank_for_every_coalition_and_every_lost_message(n: int) -> None:
    """The condition of Theorem 2 as the accountant's own view has it; a message that is seen hides as little."""
    for removed in range(n - 1):
        if (rounds := circle_rounds(n, removed)) is None:
            continue
        execution = inca.Execution(inca.CircleSchedule(n, rounds), inca.incremental_injection(rounds))
        for colluding in combinations(range(n), removed):
            for t in range(rounds):
                for party in set(range(n)) - set(colluding):
                    assert hidden_rank(View(execution, Adversary(colluding, [(t, party)]))).met
