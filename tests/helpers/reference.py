"""The protocol as a plain loop over parties and messages, written straight from Algorithm 2 and the errata.

Slow and simple on purpose: what the library computes is held against this. Works with floats and with fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
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


def balances(
    offers: Sequence[Sequence[Sequence[int]]],
    share: Number,
    present: Sequence[Sequence[bool]],
    undelivered: Mapping[tuple[int, int, int], int],
    credited: Collection[tuple[int, int, int]],
    injected: Callable[[int, int], Number],
) -> Matrix:
    """What every party holds after rounds 0..T if each share is debited, offered, and credited, returned or lost.

    `offers[t - 1][i]` are the receivers that i offers a share in round t, -1 for nobody; `undelivered[t, i, j]` is the
    round in which i has that share back, 0 for never; but if (t, i, j) is in `credited`, j got it in round t.
    `injected(i, t)` is what i puts in.
    """
    n, rounds = len(present[0]), len(offers)
    held = [injected(i, 0) for i in range(n)]
    history, pending = [list(held)], []
    for t in range(1, rounds + 1):
        before = list(held)
        for i in range(n):
            for j in offers[t - 1][i] if present[t][i] else ():
                if j < 0:
                    continue
                amount = share * before[i]
                held[i] -= amount
                if (t, i, j) in credited:
                    held[j] += amount
                elif (t, i, j) in undelivered:
                    pending.append((undelivered[t, i, j], i, amount))
                else:
                    held[j if present[t][j] else i] += amount
        for back, i, amount in pending:
            if back == t:
                held[i] += amount
        for i in range(n):
            if present[t][i]:
                held[i] += injected(i, t)
        history.append(list(held))
    return history


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


def observed(
    receivers: Sequence[Sequence[Sequence[int]]],
    present: Sequence[Sequence[bool]],
    colluding: Sequence[int],
    eavesdropped: Sequence[tuple[int, int]],
) -> list[tuple[int, int]]:
    """The honest parties' messages (t, i) that an adversary sees, with errata E4 and E7."""
    last, n = len(receivers), len(present[0])
    seen = []
    for t in range(last + 1):
        for i in range(n):
            if i in colluding:
                continue
            reaches = t == last and present[last][i]
            if t < last and present[t + 1][i]:
                reaches = any(j in colluding and present[t + 1][j] for j in receivers[t][i])
            if reaches or (t, i) in eavesdropped:
                seen.append((t, i))
    return seen


def losses(
    weights: Sequence[Matrix],
    present: Sequence[Sequence[bool]],
    c: Sequence[Number],
    z: Sequence[Sequence[Number]],
    seen: Sequence[tuple[int, int]],
    honest: Sequence[int],
    var_independent: Number,
    var_cancelling: Number,
) -> list[Number]:
    """mu_i^2 = h_i^T Sigma^-1 h_i of Theorem 1 for unit sensitivity; exact if the numbers are.

    Coefficients come from running the protocol with a single unknown set to 1; rows that depend on earlier ones
    are dropped; the system is solved by elimination.
    """
    n, rounds = len(present[0]), len(weights)

    def column(values: list[Number], cancelling: Matrix) -> list[Number]:
        messages, _ = run(weights, present, c, z, values, [0] * n, cancelling)
        return [messages[t][i] for t, i in seen]

    none = [[0] * rounds for _ in range(n)]
    b = [column([int(j == i) for j in range(n)], none) for i in honest]
    a = [
        column([0] * n, [[int(j == i and q == k) for q in range(rounds)] for j in range(n)])
        for i in honest
        for k in range(rounds)
    ]
    terms = [(var_independent, column) for column in b] + [(var_cancelling, column) for column in a]
    m = len(seen)
    sigma = [[sum(v * g[p] * g[q] for v, g in terms) for q in range(m)] for p in range(m)]
    # Eliminate [Sigma | B]: a row whose pivot vanishes is a combination of those before it.
    system = [[*row, *(h[p] for h in b)] for p, row in enumerate(sigma)]
    total = [0] * len(honest)
    for p in range(m):
        pivot = system[p][p]
        if pivot == 0:
            continue
        for place in range(len(honest)):
            total[place] += system[p][m + place] ** 2 / pivot
        for q in range(p + 1, m):
            factor = system[q][p] / pivot
            if factor:
                system[q] = [x - factor * y for x, y in zip(system[q], system[p], strict=True)]
    return total
