"""The rank of many sparse vectors, exactly: Gaussian elimination modulo a prime on random combinations of them.

Doubles are integers times powers of 2, so that fractions have residues modulo an odd prime p. A rank modulo p is never
above the true one. Residues are kept times 2^32 (Montgomery 1985), where products need no division.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags, U, Words, compiled, mix64
from inca._base.types import Array

Places = NDArray[np.intp]
Residues = NDArray[np.uint32]

_PRIMES = (2**31 - 1, 2**31 - 19)  # so small that `times` stays within 64 bits
_LOW32, _32 = U(0xFFFFFFFF), U(32)


def rank_and_null_vector(
    sender: Places, start: NDArray[np.int32], heads: Places, fractions: Array, inner: int, width: int, needed: int
) -> tuple[int, Words]:
    """Return the rank of the messages' vectors, at most `needed`, and a random f modulo a prime orthogonal to them.

    Message m of `sender[m]` went to `heads` start[m] to start[m+1]-1, which got the `fractions`; senders are columns
    below `inner` of `width`, each sends something, and from each of them messages lead over others to a column that
    sends nothing. So one random combination for each sender makes `inner` independent rows: their determinant is a sum
    over forests that lead there (matrix-tree theorem). A rank below `needed` is told after two primes have agreed.
    """
    limit = min(needed, sender.size)
    first = np.zeros(sender.size, dtype=bool)
    first[np.unique(sender, return_index=True)[1]] = True
    every, rank = np.ones(sender.size, dtype=bool), -1
    f = np.empty(0, np.uint64)
    # One message of each sender is sparse and mostly enough. Where it is not, combinations of all decide.
    for own, prime in ((first, _PRIMES[0]), (every, _PRIMES[0]), (every, _PRIMES[1])):
        residues, p, q = _dyadic(fractions, prime)
        matrix = np.zeros((limit, width), dtype=np.uint32)
        combine(sender, start.astype(np.intp), heads, residues, own, matrix, inner, p, q)
        pivots = eliminate(matrix, p, q)
        if len(pivots) > rank:
            rank, f = len(pivots), solution(matrix, pivots, p, q)
        if rank == limit:
            break
    return rank, f


def _dyadic(numbers: Array, prime: int) -> tuple[Residues, np.uint64, np.uint64]:
    """Return numbers * 2^32 modulo a prime, exactly, as doubles are integers times powers of 2.

    With it come p and q for `times`.
    """
    mantissa, exponent = np.frexp(numbers)
    integers = np.ldexp(mantissa, 53).astype(np.uint64) % U(prime)
    kinds, which = np.unique(exponent, return_inverse=True)
    powers = np.array([pow(2, int(e) - 53 + 32, prime) for e in kinds], dtype=np.uint64)
    residues = integers * powers[which.reshape(-1)] % U(prime)
    return residues.astype(np.uint32), U(prime), U(-pow(prime, -1, 2**32) % 2**32)


@compiled
def times(a: np.uint64, b: np.uint64, p: np.uint64, q: np.uint64) -> np.uint64:
    """Return a b / 2^32 modulo the prime p < 2^31, where q = -1/p modulo 2^32 (Montgomery 1985)."""
    product = a * b
    reduced = (product + ((product * q) & _LOW32) * p) >> _32
    return min(reduced, reduced - p)  # what is below 0 is huge


@compiled
def combine(
    sender: Places,
    start: Places,
    heads: Places,
    residues: Residues,
    own: Flags,
    out: Residues,
    inner: int,
    p: np.uint64,
    q: np.uint64,
) -> None:
    """Fill `out` with random combinations of the messages' vectors: row i < inner of i's `own`, the others of all.

    Such combinations have the rank of what they combine but for a probability of about rows / p, and never more, if
    own messages lead as in `rank_and_null_vector`. Message m went to `heads` start[m] to start[m+1]-1, which got the
    fractions `residues`.
    """
    rows = out.shape[0]
    for m in range(sender.size):
        for place in range(inner - own[m], rows):
            row = place if place >= inner else sender[m]
            factor = mix64(U(m) * U(rows) + U(row) + p) % p
            for e in range(start[m], start[m + 1]):
                part = times(factor, U(residues[e]), p, q)
                for column, change in ((heads[e], part), (sender[m], p - part)):
                    total = U(out[row, column]) + change
                    out[row, column] = min(total, total - p)


@compiled
def eliminate(matrix: Residues, p: np.uint64, q: np.uint64) -> Places:
    """Eliminate a matrix of residues times 2^32 modulo p; return its pivots (row, column), as many as its rank.

    The matrix is sparse at first, so the next pivot is in the column with the fewest entries and there in the row
    with the fewest (after Markowitz 1957).
    """
    rows, columns = matrix.shape
    in_row, in_column = np.zeros(rows, np.int64), np.zeros(columns, np.int64)
    for r in range(rows):
        for column in range(columns):
            in_row[r] += matrix[r, column] != 0
            in_column[column] += matrix[r, column] != 0
    pivots = np.empty((rows, 2), np.intp)
    for rank in range(rows):
        c = pivot = -1
        for column in range(columns):
            if in_column[column] > 0 and (c < 0 or in_column[column] < in_column[c]):
                c = column
        if c < 0:
            return pivots[:rank]
        for r in range(rows):
            if in_row[r] > 0 and matrix[r, c] != 0 and (pivot < 0 or in_row[r] < in_row[pivot]):
                pivot = r
        pivots[rank, 0], pivots[rank, 1] = pivot, c
        in_row[pivot] = 0  # which takes the row out
        places = np.flatnonzero(matrix[pivot])
        for e in places:
            in_column[e] -= 1
        scale = inverse(U(matrix[pivot, c]), p, q)
        for r in range(rows):
            if in_row[r] == 0 or matrix[r, c] == 0:
                continue
            factor = p - times(U(matrix[r, c]), scale, p, q)
            for e in places:
                total = U(matrix[r, e]) + times(factor, U(matrix[pivot, e]), p, q)
                total = min(total, total - p)
                change = np.int64(total != 0) - np.int64(matrix[r, e] != 0)
                matrix[r, e] = total
                in_row[r] += change
                in_column[e] += change
    return pivots


@compiled
def solution(matrix: Residues, pivots: Places, p: np.uint64, q: np.uint64) -> Words:
    """Return a random f modulo p that every row of an eliminated matrix is orthogonal to."""
    f = np.empty(matrix.shape[1], np.uint64)
    for column in range(f.size):
        f[column] = mix64(U(column) + p) % p
    for step in range(len(pivots) - 1, -1, -1):
        row, c = matrix[pivots[step, 0]], pivots[step, 1]
        f[c], total = U(0), U(0)
        for e in np.flatnonzero(row):
            total += times(U(row[e]), f[e], p, q)
        f[c] = times(p - total % p, inverse(U(row[c]), p, q), p, q)
    return f


@compiled
def inverse(a: np.uint64, p: np.uint64, q: np.uint64) -> np.uint64:
    """Return 2^64 / a modulo the prime p, so that times(a, it) is 2^32 (Fermat's little theorem)."""
    result, exponent = (U(1) << _32) % p, p - U(2)
    while exponent > U(0):
        if exponent & U(1):
            result = times(result, a, p, q)
        a = times(a, a, p, q)
        exponent >>= U(1)
    return result
