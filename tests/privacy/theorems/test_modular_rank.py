"""Ranks modulo primes, against exact ranks of fractions, and the vectors that come with them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.strategies import generator
from inca.privacy.theorems import _modular_rank

flint = pytest.importorskip("flint")


def test_arithmetic_modulo_primes() -> None:
    rng = generator(1)
    numbers = np.concatenate([rng.random(50), [1 / 3, 1.0, 5e-324, 2.0**-1030 * 3, 1e-300]])
    for prime in _modular_rank._PRIMES:
        assert flint.fmpz(prime).is_prime()
        residues, p, q = _modular_rank._dyadic(numbers, prime)
        for number, residue in zip(numbers.tolist(), residues.tolist(), strict=True):
            exact = Fraction(number)
            assert residue == exact.numerator * pow(exact.denominator, -1, prime) * 2**32 % prime
            back = np.uint64(_modular_rank.inverse(np.uint64(residue), p, q))
            assert _modular_rank.times(np.uint64(residue), back, p, q) == 2**32 % prime
        for size, rank in ((1, 1), (7, 3), (20, 20), (30, 11)):
            low = (rng.integers(prime, size=(size, rank)) @ rng.integers(2, size=(rank, size + 3))) % prime
            low[rng.random(low.shape) < 0.2] = 0
            expected = flint.nmod_mat(size, size + 3, low.reshape(-1).tolist(), prime).rank()
            assert len(_modular_rank.eliminate(low.astype(np.uint32), p, q)) == expected


Message = tuple[int, dict[int, float]]
"""Who sent it, and which fraction each of its receivers got."""


def asked(messages: list[Message], inner: int, width: int, needed: int) -> tuple[int, list[int]]:
    """Return what `rank_and_null_vector` says of messages in the order of their senders."""
    heads = [head for _, parts in messages for head in parts]
    fractions = [part for _, parts in messages for part in parts.values()]
    start = np.cumsum([0] + [len(parts) for _, parts in messages])
    rank, f = _modular_rank.rank_and_null_vector(
        np.array([sender for sender, _ in messages], dtype=np.intp),
        start.astype(np.int32),
        np.array(heads, dtype=np.intp),
        np.array(fractions),
        inner,
        width,
        needed,
    )
    return rank, f.tolist()


def exact_rank(messages: list[Message], width: int) -> int:
    """Return the rank of the vectors that have each receiver's fraction, and minus their sum at the sender."""
    entries = []
    for sender, parts in messages:
        row = [Fraction(parts.get(column, 0.0)) for column in range(width)]
        row[sender] = -sum(row, Fraction(0))
        entries += [flint.fmpq(x.numerator, x.denominator) for x in row]
    return int(flint.fmpq_mat(len(messages), width, entries).rref()[1])


def is_balanced(f: list[int], messages: list[Message], prime: int) -> bool:
    """Return whether f is orthogonal to all vectors modulo a prime."""
    sums = [
        sum((Fraction(part) * (f[head] - f[sender]) for head, part in parts.items()), Fraction(0))
        for sender, parts in messages
    ]
    return all(0 <= entry < prime for entry in f) and all(total.numerator % prime == 0 for total in sums)


@st.composite
def sent(draw: st.DrawFn) -> tuple[list[Message], int, int]:
    """Messages of `inner` parties, at least one of each, to each other and, over them, to some that send nothing."""
    inner, silent = draw(st.integers(1, 8)), draw(st.integers(1, 4))
    rng, few = generator(draw(st.integers(0, 2**32))), draw(st.booleans())
    messages: list[Message] = []
    for sender in range(inner):
        for _ in range(int(rng.integers(1, 3 if few else 6))):
            others = [column for column in range(inner + silent) if column != sender]
            heads = rng.choice(others, size=min(len(others), int(rng.integers(1, 4))), replace=False).tolist()
            equal = rng.random() < 0.5
            messages.append((sender, {head: 0.25 if equal else float(rng.uniform(0.05, 0.3)) for head in heads}))
    leading = set(range(inner, inner + silent))
    for _ in range(inner):
        leading |= {sender for sender, parts in messages if not leading.isdisjoint(parts)}
    assume(len(leading) == inner + silent)
    return messages, inner, inner + silent


@given(sent())
def test_the_rank_is_that_of_fractions_and_the_vector_is_orthogonal_to_all_messages(
    drawn: tuple[list[Message], int, int],
) -> None:
    messages, inner, width = drawn
    expected = exact_rank(messages, width)
    rank, f = asked(messages, inner, width, width - 1)
    assert rank == expected
    assert is_balanced(f, messages, _modular_rank._PRIMES[0])
    for needed in range(inner, width):
        assert asked(messages, inner, width, needed)[0] == min(expected, needed)


def test_parties_have_the_same_entry_only_if_they_must() -> None:
    """Parties 0 and 1 hear of each other and of party 4 alone, 2 is between 4 and 5, and nobody sends to 3."""
    messages: list[Message] = [(0, {1: 0.5}), (1, {4: 0.25}), (2, {4: 0.25, 5: 0.25}), (3, {4: 0.125, 5: 0.375})]
    rank, f = asked(messages, 4, 6, 5)
    assert rank == 4 and f[0] == f[1] == f[4]
    assert len({f[0], f[2], f[3], f[5]}) == 4
    prime = _modular_rank._PRIMES[0]
    assert (2 * f[2] - f[4] - f[5]) % prime == 0 == (4 * f[3] - f[4] - 3 * f[5]) % prime


def test_what_vanishes_modulo_the_first_prime_is_seen_modulo_the_second() -> None:
    first, second = _modular_rank._PRIMES
    messages: list[Message] = [(0, {2: first * 2.0**-32}), (1, {2: 0.5})]
    rank, f = asked(messages, 2, 4, 3)
    assert rank == exact_rank(messages, 4) == 2
    assert is_balanced(f, messages, second) and f[0] == f[1] == f[2] != f[3]
    other: list[Message] = [(0, {2: second * 2.0**-32}), (1, {2: 0.5})]
    rank, f = asked(other, 2, 4, 3)
    assert rank == 2 and is_balanced(f, other, first) and f[0] == f[1] == f[2] != f[3]


def test_all_messages_of_a_sender_are_tried_modulo_the_first_prime_too() -> None:
    """The first messages of parties 0 and 1 are dependent, and their second ones vanish modulo the second prime."""
    little = _modular_rank._PRIMES[1] * 2.0**-32
    messages: list[Message] = [(0, {1: 0.5}), (0, {2: little}), (1, {0: 0.5}), (1, {3: little})]
    assert asked(messages, 2, 4, 3)[0] == exact_rank(messages, 4) == 3


@pytest.mark.parametrize(("messages", "passes"), [(2, 1), (4, 2)])
def test_no_more_is_eliminated_than_the_rank_takes(messages: int, passes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes, eliminate = [], _modular_rank.eliminate

    def counted(matrix: _modular_rank.Residues, p: np.uint64, q: np.uint64) -> _modular_rank.Places:
        sizes.append(matrix.shape)
        return eliminate(matrix, p, q)

    monkeypatch.setattr(_modular_rank, "eliminate", counted)
    everything: list[Message] = [(0, {1: 0.5}), (0, {2: 0.5}), (1, {0: 0.5}), (1, {3: 0.5})]
    some = everything if messages == 4 else [everything[0], everything[3]]
    assert asked(some, 2, 4, 3)[0] == min(3, messages)
    assert sizes == [(min(3, messages), 4)] * passes


def residues(kind: str, prime: int) -> np.ndarray:
    """Return a matrix of 9 rows, of which some depend on the others unless it is sparse, with columns of 0."""
    rng = generator(len(kind))
    if kind == "low rank":
        matrix = (rng.integers(prime, size=(9, 5)) @ rng.integers(3, size=(5, 12))) % prime
    elif kind == "sparse":
        matrix = rng.integers(1, prime, size=(9, 12)) * (rng.random((9, 12)) < 0.2)
    else:
        matrix = np.eye(9, 12, k=1, dtype=np.int64) * 7
    matrix[:, [0, 4]] = 0
    return np.asarray(matrix)


@pytest.mark.parametrize("kind", ["low rank", "sparse", "one entry per row"])
@pytest.mark.parametrize("prime", _modular_rank._PRIMES)
def test_eliminated_rows_span_what_they_did_and_pivots_are_in_rows_and_columns_of_their_own(
    kind: str, prime: int
) -> None:
    _, p, q = _modular_rank._dyadic(np.ones(1), prime)
    matrix = residues(kind, prime)
    kept = matrix.astype(np.uint32)
    pivots = _modular_rank.eliminate(kept, p, q)
    both = [flint.nmod_mat(len(m), 12, m.reshape(-1).tolist(), prime).rank() for m in (kept, np.vstack([matrix, kept]))]
    assert both == [len(pivots)] * 2
    assert len(set(pivots[:, 0])) == len(set(pivots[:, 1])) == len(pivots)
    for step, (row, column) in enumerate(pivots):
        assert kept[row, column] != 0
        assert not kept[pivots[step + 1 :, 0], column].any()  # later rows have nothing there
    f = _modular_rank.solution(kept, pivots, p, q).tolist()
    assert all(sum(a * b for a, b in zip(row, f, strict=True)) % prime == 0 for row in matrix.tolist())
    free = [f[column] for column in np.flatnonzero(~matrix.any(axis=0))]  # whatever they are, they do no harm
    assert 2 <= len(free) == len(set(free)) and 0 not in free
