"""What it costs if parties settle for slightly different sets S: exactly, for runs that are drawn. No command line.

`python benchmarks/growth.py different` prints it; docs/growth.md says what it means. A party *misses* a leaver if it
does not know that it left, and undoes nothing that they exchanged; it *doubts* a party that will publish if it takes it
for gone, and undoes what they exchanged although the other end does not.

Whoever is right about what, the published sum is that of a run in which all agree, plus e(t, i) times the share that i
sends in round t, for all t and i: -1 if the sender publishes and does not undo the transfer, +1 if its receiver
publishes and does not undo it, both added up. As everything is linear, the coefficients of all values and noise terms
in the sum follow from one pass backwards over the rounds, as in `inca.protocol.expected_error`, and need O(n) memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import inca
from inca._base.types import Array
from inca.protocol.expected_error import ErrorBudget

Flags = NDArray[np.bool_]
Ids = NDArray[np.integer]
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio, odd


class Beliefs(NamedTuple):
    """Who is taken for gone by whom: coins of every ordered pair of parties, the same whenever they are looked at.

    Attributes:
        missed: The probability with which a party does not know of a leaver.
        doubted: The probability with which a party takes one that publishes for gone.
        seed: Decides both.
    """

    missed: float = 0.0
    doubted: float = 0.0
    seed: int = 1

    def takes_for_gone(self, party: Ids, partner: Ids, partner_publishes: Flags) -> Flags:
        """Return whether each party takes its partner for gone, and undoes what they exchanged."""
        coin = pair_coins(party, partner, self.seed)
        return np.where(partner_publishes, coin < self.doubted, coin >= self.missed)


def pair_coins(party: Ids, partner: Ids, seed: int) -> Array:
    """Return a number from [0, 1) for each ordered pair, by the hash splitmix64 (Steele, Lea, Flood 2014).

    A table of all pairs would have n^2 entries.

    >>> a, b = np.array([1, 2, 1]), np.array([2, 1, 2])
    >>> coins = pair_coins(a, b, seed=3)
    >>> bool(coins[0] == coins[2] != coins[1])
    True
    """
    words = _mixed(np.asarray(party, np.uint64) ^ np.uint64(((seed + 1) * _GOLDEN) % 2**64))
    words = _mixed(words ^ (np.asarray(partner, np.uint64) * np.uint64(_GOLDEN)))
    return np.asarray(words >> np.uint64(11), np.float64) * 2.0**-53


def _mixed(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)  # modulo 2^64, as arrays are
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


# --- error, for a million parties -----------------------------------------------------------------------------------


def one_sided(execution: inca.Execution, beliefs: Beliefs, t: int) -> Array:
    """Return e(t, i): -1, 0 or 1 for the share that each party sends in round t, to one receiver."""
    assert execution.cohort is not None
    publishes, everyone = execution.cohort, np.arange(execution.parties)
    receiver = execution.sends(t).receivers[:, 0]
    sent = (receiver >= 0) & (receiver != everyone)
    taken_off = publishes & ~beliefs.takes_for_gone(everyone, receiver, publishes[receiver])
    credited = publishes[receiver] & ~beliefs.takes_for_gone(receiver, everyone, publishes)
    return np.where(sent, credited.astype(np.float64) - taken_off, 0.0)


class DifferentCohorts(NamedTuple):
    """What parties of different opinions publish together.

    Attributes:
        error: The expected error of their estimate, over the noise; values vary as stated.
        one_sided: How many transfers were undone at one end only, or not at all beside a leaver.
        weight: The sum of their weights; that of the cohort if all agree.
    """

    error: ErrorBudget
    one_sided: int
    weight: float


def expected_error(
    execution: inca.Execution, levels: inca.NoiseLevels, beliefs: Beliefs, variance: float
) -> DifferentCohorts:
    """Return the exact error of a settled run in which parties differ in whom they take for gone.

    Args:
        execution: A settled run of the incremental family with one receiver a round; its cohort publishes.
        levels: Its noise.
        beliefs: Who takes whom for gone.
        variance: That of the values.
    """
    cohort, scales = execution.cohort, execution.injection.mask_scales
    assert cohort is not None and scales is not None
    n, rounds, share = execution.parties, execution.rounds, execution.schedule.round(1).share
    counter = execution.presence.rounds_attended().astype(np.int64)
    value, masks, later, b = np.zeros((4, n))
    published, count = cohort.astype(np.float64), 0
    for t in range(rounds, -1, -1):
        here = execution.presence.row(t)
        if t < rounds:
            counter -= here
        a = published + b
        value += np.where(here, a * execution.injection.value[counter], 0.0)
        if t < rounds:  # a mask leaves again in the next round attended
            masks += np.where(here, (scales[np.minimum(counter, rounds - 1)] * (a - later)) ** 2, 0.0)
        later = np.where(here, a, later)
        if t > 0:
            e = one_sided(execution, beliefs, t)
            count += int(np.count_nonzero(e))
            b = execution.mix_adjoint(t, b) + share * e
    weight = float(value.sum())
    off = value / weight - 1.0 / n
    independent = levels.independent**2 * float(value @ value) + levels.topup**2 * int(cohort.sum())
    error = ErrorBudget(
        independent / weight**2, levels.cancelling**2 * float(masks.sum()) / weight**2, variance * float(off @ off)
    )
    return DifferentCohorts(error, count, weight)


# --- privacy, for a few hundred -------------------------------------------------------------------------------------


def messages_in_units(execution: inca.Execution) -> Iterator[Array]:
    """Yield y^(0)..y^(T) as combinations of all values with their noise, and of all noise terms: (n, n + n T)."""
    n, rounds = execution.parties, execution.rounds
    parts = [execution.coefficients(i) for i in range(n)]
    y = np.zeros((n, n + n * rounds))
    for t in range(rounds + 1):
        y = execution.mix(t, y) if t > 0 else y
        for i, (value, noise) in enumerate(parts):
            y[i, i] += value[t]
            y[i, n + i * rounds : n + (i + 1) * rounds] += noise[t]
        yield y


def final_messages(execution: inca.Execution, messages: list[Array], gone: Flags) -> Array:
    """Return what everyone would publish, by the books: gone[i, j] says that i takes j for gone."""
    final, share = messages[-1].copy(), execution.schedule.round(1).share
    for t in range(1, execution.rounds + 1):
        for i, j in enumerate(execution.sends(t).receivers[:, 0].tolist()):
            if j not in (-1, i):
                amount = share * messages[t - 1][i]
                final[i] += amount if gone[i, j] else 0.0
                final[j] -= amount if gone[j, i] else 0.0
    return final


def all_beliefs(execution: inca.Execution, beliefs: Beliefs) -> Flags:
    """Return a table of who takes whom for gone, for small n."""
    assert execution.cohort is not None
    party, partner = np.indices((execution.parties, execution.parties))
    return beliefs.takes_for_gone(party, partner, execution.cohort[partner])


def losses(
    execution: inca.Execution, colluding: list[int], levels: inca.NoiseLevels, published: list[Flags]
) -> dict[int, float]:
    """Return the exact loss mu of every honest party if the cohort publishes once for each of these tables of beliefs.

    Args:
        execution: A settled run with one receiver a round.
        colluding: Who shows the adversary everything.
        levels: The noise; a party that publishes twice adds the same top-up noise, as its journal has it.
        published: For each publication, who takes whom for gone.
    """
    assert execution.cohort is not None
    n, rounds = execution.parties, execution.rounds
    view = inca.View(execution, inca.Adversary(colluding))
    honest, publishing = view.honest, view.honest[execution.cohort[view.honest]]
    messages = list(messages_in_units(execution))
    rows = [messages[t][honest[view.seen[t, honest]]] for t in range(rounds)]
    seen = sum(len(part) for part in rows)
    finals = [final_messages(execution, messages, gone)[publishing] for gone in published]
    again = [(finals[0], np.ones(len(publishing), bool))]
    again += [(final, np.abs(final - finals[0]).max(axis=1) > 0) for final in finals[1:]]  # others say nothing new
    owners = np.concatenate([np.flatnonzero(new) for _, new in again])
    everything = np.concatenate([*rows, *(final[new] for final, new in again)])
    value = everything[:, honest]
    noise = everything[:, n:].reshape(len(everything), n, rounds)[:, honest]
    noise = noise.reshape(len(everything), honest.size * rounds)
    topup = np.zeros((len(everything), len(publishing)))
    topup[seen + np.arange(len(owners)), owners] = levels.topup
    root = np.hstack([levels.independent * value, levels.cancelling * noise, topup])
    left, scale, _ = np.linalg.svd(root, full_matrices=False)
    kept = scale > 1e-11 * scale.max(initial=0.0)
    squares = np.square((left.T @ value)[kept] / scale[kept, np.newaxis]).sum(axis=0)
    return dict(zip(honest.tolist(), np.sqrt(squares).tolist(), strict=True))
