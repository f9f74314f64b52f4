"""The protocol as a plain loop over parties and messages, written straight from Algorithm 2 and the errata.

Slow and simple on purpose: what the library computes is held against this. Works with floats and with fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Number = Any
Matrix = list[list[Number]]


def effective_weights(w: Matrix, present: Sequence[bool]) -> Matrix:
    """W^O_t of Algorithm 2 with erratum E1; w[i][j] is the fraction that j sends to i."""
    n = len(w)
    result = [[0 * w[0][0] for _ in range(n)] for _ in range(n)]
    for i in range(n):
        if not present[i]:
            result[i][i] = 1
            continue
        for j in range(n):
            if present[j] and j != i:
                result[i][j] = w[i][j]
        result[i][i] = w[i][i] + sum(w[j][i] for j in range(n) if not present[j])
    return result


def adapted(c: Sequence[Number], z: Sequence[Sequence[Number]], present: Sequence[bool]) -> tuple[list[Number], Matrix]:
    """c^(i) and Z^(i) of one party with erratum E2."""
    last = len(c) - 1
    own_c: list[Number] = []
    own_z: list[list[Number]] = []
    for t in range(last + 1):
        if not present[t]:
            own_c.append(0)
            own_z.append([0] * last)
            continue
        r = sum(1 for s in range(t) if present[s])
        own_c.append(c[r])
        own_z.append(list(z[r]) if t < last else [-sum(row[k] for row in own_z) for k in range(last)])
    return own_c, own_z


def run(
    weights: Sequence[Matrix],
    present: Sequence[Sequence[bool]],
    c: Sequence[Number],
    z: Sequence[Sequence[Number]],
    values: Sequence[Number],
    independent: Sequence[Number],
    cancelling: Sequence[Sequence[Number]],
) -> tuple[Matrix, Matrix]:
    """Messages y_i^(t) and the weights that travel beside them, for t = 0..T."""
    n, rounds = len(values), len(weights)
    histories = [adapted(c, z, [present[t][i] for t in range(rounds + 1)]) for i in range(n)]

    def injected(i: int, t: int) -> Number:
        own_c, own_z = histories[i]
        noise = sum(own_z[t][k] * cancelling[i][k] for k in range(rounds))
        return own_c[t] * (values[i] + independent[i]) + noise

    y = [[injected(i, 0) for i in range(n)]]
    beside = [[histories[i][0][0] for i in range(n)]]
    for t in range(1, rounds + 1):
        w = effective_weights(weights[t - 1], present[t])
        messages, masses = [], []
        for i in range(n):
            if present[t][i]:
                messages.append(sum(w[i][j] * y[t - 1][j] for j in range(n)) + injected(i, t))
                masses.append(sum(w[i][j] * beside[t - 1][j] for j in range(n)) + histories[i][0][t])
            else:
                messages.append(y[t - 1][i])
                masses.append(beside[t - 1][i])
        y.append(messages)
        beside.append(masses)
    return y, beside


def intended_weights(receivers: Sequence[Sequence[int]], fractions: Sequence[Sequence[Number]]) -> Matrix:
    """W_t from each party's receivers (-1: nobody) and the fractions they get; columns sum to 1."""
    n = len(receivers)
    one = 1
    w: Matrix = [[0 for _ in range(n)] for _ in range(n)]
    for i in range(n):
        w[i][i] = one
        for j, fraction in zip(receivers[i], fractions[i], strict=True):
            if j >= 0:
                w[j][i] += fraction
                w[i][i] -= fraction
    return w
