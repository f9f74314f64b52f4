"""The dissemination phase: how all parties learn the estimate from the final messages, which are public.

After round T every present party holds a final message and its weight; the estimate is the sum of the former
over the sum of the latter. The paper suggests gossip averaging or, where parties may still vanish, epidemics:
a final message that gets lost counts as its owner's absence in round T (section on Algorithm 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
from numpy.random import Generator
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components
from scipy.special import betaincinv

from inca.kernels import Flags, Ids, U, Words, compiled
from inca.schedule.graphs import GraphLike, StaticGraph
from inca.simulation import Outcome
from inca.validation import Array, finite_array, real, refuse, whole

_Indices = NDArray[np.int64]
_MOST_SIMULATED = 50_000  # parties in an epidemic: two matrices of m^2 bits, 310 MB each
_MOST_NODES = 5_000  # of a graph whose eigenvalues are computed densely
_MOST_ROUNDS = 100_000  # that `epidemic_rounds` tries; enough unless nearly everything is lost
_CUT = 1e-40  # probabilities up to this are not followed any further but counted as failures
_ROUNDING = 1e-13  # times sqrt(n): ten times the relative error that a round of the chain can make


@dataclass(frozen=True, eq=False)
class Dissemination:
    """What the parties know in the end, and what it cost.

    `outcome.execution.published` marks the final messages that reached all `survivors` (ids). `estimates` has
    a row for each of these, (m,) or (m, d), NaN where what a party holds has no weight. `messages` counts all
    sends. `agreed`: all are within the accuracy asked for (averaging), or hold the same messages (epidemic).
    """

    method: str
    outcome: Outcome
    estimates: Array
    survivors: _Indices
    rounds: int
    messages: int
    agreed: bool

    @property
    def deviation(self) -> float | None:
        """The largest distance of an estimate from `outcome.estimate`; None without it, infinite for NaN."""
        aim = self.outcome.estimate
        return None if aim is None else _farthest(self.estimates, aim)


def exact(outcome: Outcome) -> Dissemination:
    """Tell everyone: each of the m parties sends its final message to the m-1 others, in no time and no loss.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental(2))
    >>> exact(Outcome(execution, np.array([1.0, 2.0, 3.0, 6.0]))).estimates.tolist()
    [3.0, 3.0, 3.0, 3.0]
    """
    ids, _ = _published(outcome)
    if (aim := outcome.estimate) is None:  # nobody learns anything, at no cost
        ids = ids[:0]
    estimates = np.full((ids.size, *outcome.messages.shape[1:]), 0.0 if aim is None else aim)
    return Dissemination("exact", outcome, estimates, ids, 0, ids.size * (ids.size - 1), True)


def gossip_average(
    outcome: Outcome,
    accuracy: float,
    rng: Generator,
    graph: GraphLike | None = None,
    most_rounds: int = 10_000,
) -> Dissemination:
    """Average by random pairs (Boyd, Ghosh, Prabhakar, Shah 2006, "Randomized gossip algorithms").

    In every tick a uniformly random one of the m publishing parties wakes and picks a uniformly random other,
    or neighbour in `graph`, whose nodes are these parties in order of id. Both replace (sum, weight) by the
    mean of theirs, 2 messages; their estimate is sum / weight. A round is m ticks. We stop after the round
    that brings all within `accuracy` of the exact estimate; parties, who cannot know, take `gossip_rounds`.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental(2))
    >>> gossip_average(Outcome(execution, np.arange(4.0)), 1e-9, np.random.default_rng(1)).deviation < 1e-9
    True
    """
    near = None if graph is None or outcome.present < 2 else _neighbours(graph, outcome.present)
    _check_rng(rng)
    return _average("gossip", outcome, accuracy, most_rounds, lambda state: _gossip_round(state, rng, near))


def gossip_rounds(parties: int, relative_accuracy: float, graph: GraphLike | None = None) -> int:
    """Return how many rounds of gossip give ||x - mean|| <= eps ||x(0)|| with probability at least 1 - eps.

    This is the bound of Boyd et al. 2006: 3 ln(1/eps) / ln(1/lambda2) ticks, lambda2 being the second largest
    eigenvalue of the expected matrix of a tick, W = I - sum_ij P_ij (e_i-e_j)(e_i-e_j)^T / (2n). Without a
    graph P_ij = 1/(n-1), the sum is 2 (n I - 1 1^T) / (n-1), and so lambda2 = 1 - 1/(n-1).

    >>> gossip_rounds(1000, 1e-6)
    42
    """
    n, epsilon = whole("parties", parties, least=1), real("relative_accuracy", relative_accuracy, 1e-300, 1.0)
    if n == 1:
        return 0
    gap = 1.0 / (n - 1) if graph is None else _gossip_gap(_neighbours(graph, n))
    # Where lambda2 = 0 a single tick makes all equal, but that one is needed.
    ticks = 1.0 if gap >= 1.0 else max(1.0, 3.0 * math.log(epsilon) / math.log1p(-gap))
    return math.ceil(ticks / n)


def push_sum(outcome: Outcome, accuracy: float, rng: Generator, most_rounds: int = 10_000) -> Dissemination:
    """Average by one-way sends (Kempe, Dobra, Gehrke 2003, "Gossip-based computation of aggregate ...").

    In every round each of the m publishing parties keeps half of its (sum, weight) and sends half to a
    uniformly random other, m messages in all; its estimate is sum / weight. We stop as in `gossip_average`.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental(2))
    >>> push_sum(Outcome(execution, np.arange(4.0)), 1e-9, np.random.default_rng(1)).deviation < 1e-9
    True
    """
    _check_rng(rng)
    return _average("push-sum", outcome, accuracy, most_rounds, lambda state: _push_round(state, rng))


def epidemic(outcome: Outcome, rounds: int, rng: Generator, loss: float = 0.0, crash: float = 0.0) -> Dissemination:
    """Spread all final messages by push-pull (Demers et al. 1987, "Epidemic algorithms for replicated ...").

    Each of the m publishing parties starts with its own. Before every round each party still there vanishes
    for good with chance `crash`; then each contacts a uniformly random other of the m. If that one is there,
    both send each other all they knew before the round, either way lost with chance `loss`: 2 messages, else
    1. A final message that some survivor lacks in the end is lost; all are, if nobody survives.

    >>> import inca
    >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental(2))
    >>> epidemic(Outcome(execution, np.arange(4.0)), 20, np.random.default_rng(1)).estimates.tolist()
    [1.5, 1.5, 1.5, 1.5]
    """
    ids, table = _published(outcome)
    known, there, messages = _spread(ids.size, rounds, rng, loss, crash)
    held = _held_by_all(known, there)
    lost = np.bincount(ids[~held], minlength=outcome.execution.parties) > 0
    delivered = replace(outcome, execution=outcome.execution.losing(lost)) if lost.any() else outcome
    common = np.append(outcome.messages[ids[held]].sum(axis=0), delivered.weight)
    state = np.tile(common, (int(there.sum()), 1))
    agreed = True
    for word in np.unique(np.flatnonzero(~held) // 64):
        more = np.flatnonzero(~held[64 * word : 64 * word + 64])
        knows = known[there, word][:, np.newaxis] >> more.astype(np.uint64) & U(1)
        state += knows @ table[64 * word + more]
        agreed = agreed and not knows.any()
    estimates = _estimates(state, outcome)
    return Dissemination("epidemic", delivered, estimates, ids[there], int(rounds), messages, agreed)


def epidemic_loss(parties: int, rounds: int, loss: float = 0.0) -> float:
    """Return an upper bound on the chance that `epidemic` without crashes loses any final message anywhere.

    It is n times the chance that one message, spread by pulls only, has not reached everyone. Push-pull does
    at least as well: give both processes the same contacts and the same losses of replies. Who learns the
    message by pulls has asked an informed party and got the reply; by induction that one is informed under
    push-pull too, and so now is the asker. By pulls I informed parties become I + Binomial(n - I, (1 - loss)
    I / (n - 1)), as each other one asks an informed one with that chance. This is followed exactly but for
    tails below 1e-40, which count as failures, and raised by more than rounding can take. Time grows as
    n^1.5: 20 000 parties take seconds.

    >>> round(epidemic_loss(2, 3, loss=0.1), 9)  # 2 messages, 3 lost replies each
    0.002
    """
    n, count = whole("parties", parties, least=1), whole("rounds", rounds, 1, 2**31)
    return min(1.0, _pull_only(n, real("loss", loss, 0.0, 1.0), count, 0.0)[1])


def epidemic_rounds(parties: int, failure: float, loss: float = 0.0) -> int:
    """Return the least number of rounds for which `epidemic_loss` is at most `failure`, from 1e-20 to 1.

    >>> epidemic_rounds(1000, 1e-9)
    41
    """
    n, wanted = whole("parties", parties, least=1), real("failure", failure, 1e-20, 1.0)
    rounds, bound = _pull_only(n, real("loss", loss, 0.0, 1.0), _MOST_ROUNDS, wanted)
    if bound > wanted:
        raise refuse("loss", loss, f"a chance with which {_MOST_ROUNDS} rounds bring failure to {wanted:g}")
    return rounds


def epidemic_loss_simulated(
    parties: int,
    rounds: int,
    rng: Generator,
    loss: float = 0.0,
    crash: float = 0.0,
    *,
    trials: int = 1000,
    confidence: float = 0.99,
) -> tuple[float, float]:
    """Estimate the chance that some survivor of `epidemic` lacks some final message, or that nobody survives.

    Return the frequency among `trials` and an upper limit that holds with the given `confidence` (one-sided,
    Clopper and Pearson 1934). Mind that who crashes before the first round takes its message along.

    >>> epidemic_loss_simulated(20, 20, np.random.default_rng(1), loss=0.1, trials=100)[0]
    0.0
    """
    m, tries = whole("parties", parties, least=1), whole("trials", trials, least=1)
    level = real("confidence", confidence, 0.0, 1.0)
    failed = sum(not _held_by_all(*_spread(m, rounds, rng, loss, crash)[:2]).all() for _ in range(tries))
    return failed / tries, 1.0 if failed == tries else float(betaincinv(failed + 1, tries - failed, level))


def _check_rng(rng: object) -> None:
    if not isinstance(rng, Generator):
        raise refuse("rng", rng, "a numpy.random.Generator")


def _published(outcome: Outcome) -> tuple[_Indices, Array]:
    """Return the ids of the m published messages, and these beside their weights as (m, d+1)."""
    ids = np.flatnonzero(outcome.execution.published)
    messages = finite_array("outcome.messages", outcome.messages, (1, 2), "(n,) or (n, d)")
    return ids, np.column_stack([messages[ids], outcome.weights[ids]])


def _average(
    method: str, outcome: Outcome, accuracy: float, most_rounds: int, step: Callable[[Array], int]
) -> Dissemination:
    tolerance, limit = real("accuracy", accuracy, least=0.0), whole("most_rounds", most_rounds, least=1)
    if tolerance == 0.0:
        raise refuse("accuracy", accuracy, "a finite number above 0")
    ids, state = _published(outcome)
    if (aim := outcome.estimate) is None:
        return replace(exact(outcome), method=method)
    rounds = messages = 0
    while (off := _farthest(estimates := _estimates(state, outcome), aim)) > tolerance:
        if rounds == limit:
            wanted = f"more ({method} is still {off:g} off, accuracy is {tolerance:g})"
            raise refuse("most_rounds", limit, wanted)
        messages += step(state)
        rounds += 1
    return Dissemination(method, outcome, estimates, ids, rounds, messages, True)


def _estimates(state: Array, outcome: Outcome) -> Array:
    """Return sum / weight for each row of `state`, NaN where there is no weight."""
    estimates = np.full((state.shape[0], state.shape[1] - 1), np.nan)
    with np.errstate(over="ignore"):  # a first trace of weight may be tiny
        np.divide(state[:, :-1], state[:, -1:], out=estimates, where=state[:, -1:] != 0.0)
    return estimates.reshape(state.shape[0], *outcome.messages.shape[1:])


def _farthest(estimates: Array, aim: float | Array) -> float:
    with np.errstate(over="ignore"):
        gaps = np.abs(estimates - aim) if estimates.ndim == 1 else np.linalg.norm(estimates - aim, axis=1)
    return float(np.where(np.isnan(gaps), np.inf, gaps).max(initial=0.0))


def _neighbours(graph: GraphLike, parties: int) -> Ids:
    """Return the neighbours of each node, padded with -1, of a connected undirected graph on n >= 2 nodes."""
    if len(graph.adj) != parties:
        raise refuse("the number of nodes of graph", len(graph.adj), f"one per party ({parties})")
    near = StaticGraph.from_networkx(graph, rounds=1).round(1).receivers
    node, slot = np.nonzero(near >= 0)
    links = sp.coo_array((np.ones(node.size), (node, near[node, slot])), shape=(parties, parties))
    if (parts := int(connected_components(links, directed=False)[0])) > 1:
        raise refuse("the number of parts of graph", parts, "a connected graph, which has 1,")
    return near


def _gossip_gap(near: Ids) -> float:
    """Return 1 - lambda2(W) for gossip on a graph, as the second smallest eigenvalue of I - W."""
    if (n := near.shape[0]) > _MOST_NODES:
        raise refuse("the number of nodes of graph", n, f"at most {_MOST_NODES}")
    node, slot = np.nonzero(near >= 0)
    chances = np.zeros((n, n))
    chances[node, near[node, slot]] = 1.0 / np.bincount(node)[node]
    both = (chances + chances.T) / (2.0 * n)
    return float(np.linalg.eigvalsh(np.diag(both.sum(axis=1)) - both)[1])


def _others(callers: _Indices, rng: Generator, near: Ids | None = None) -> _Indices:
    """Draw for each of m callers a uniformly random other one of the m parties, or one of those near it."""
    if near is not None:
        return np.asarray(near[callers, rng.integers((near >= 0).sum(axis=1)[callers])], np.int64)
    pick = rng.integers(callers.size - 1, size=callers.size)
    return np.asarray(pick + (pick >= callers), np.int64)


@compiled
def _average_pairs(state: Array, wake: _Indices, other: _Indices) -> None:
    """Let the pairs average their rows, one pair after the other."""
    for tick in range(wake.size):
        for e in range(state.shape[1]):
            mean = 0.5 * (state[wake[tick], e] + state[other[tick], e])
            state[wake[tick], e] = mean
            state[other[tick], e] = mean


def _gossip_round(state: Array, rng: Generator, near: Ids | None = None) -> int:
    wake = np.asarray(rng.integers(len(state), size=len(state)))
    _average_pairs(state, wake, _others(wake, rng, near))
    return 2 * len(state)


def _push_round(state: Array, rng: Generator) -> int:
    state *= 0.5
    np.add.at(state, _others(np.arange(len(state)), rng), state.copy())
    return len(state)


def _spread(m: int, rounds: int, rng: Generator, loss: float, crash: float) -> tuple[Words, Flags, int]:
    """Run an epidemic; return who knows what (one bit each), who is still there, and the messages sent."""
    _check_rng(rng)
    count, lossy, crashing = whole("rounds", rounds, 1), real("loss", loss, 0, 1), real("crash", crash, 0, 1)
    if m > _MOST_SIMULATED:
        wanted = f"at most {_MOST_SIMULATED} (for more, epidemic_loss gives a bound without simulation)"
        raise refuse("the number of final messages", m, wanted)
    everyone = np.arange(m)
    known = np.zeros((m, -(-m // 64)), np.uint64)
    known[everyone, everyone // 64] = U(1) << (everyone % 64).astype(np.uint64)
    there, messages = np.ones(m, dtype=bool), 0
    for _ in range(count):
        there &= rng.random(m) >= crashing
        if m > 1:
            contacts = _others(everyone, rng)
            reached = there & there[contacts]
            messages += int(there.sum() + reached.sum())
            _push_pull(known.copy(), known, contacts, reached[:, np.newaxis] & (rng.random((m, 2)) >= lossy))
    return known, there, messages


@compiled
def _push_pull(known: Words, fresh: Words, contacts: _Indices, arrives: Flags) -> None:
    """Add to `fresh` what all learn in a round; arrives[i] tells of i's call and the reply."""
    for i in range(contacts.size):
        for word in range(known.shape[1]):
            if arrives[i, 0]:
                fresh[contacts[i], word] |= known[i, word]
            if arrives[i, 1]:
                fresh[i, word] |= known[contacts[i], word]


def _held_by_all(known: Words, there: Flags) -> Flags:
    """Return which messages every party still there knows; none, if nobody is."""
    if not there.any():
        return np.zeros(there.size, dtype=bool)
    words = np.bitwise_and.reduce(known, axis=0, where=there[:, np.newaxis], initial=U(2**64 - 1))
    return np.unpackbits(words.astype("<u8").view(np.uint8), count=there.size, bitorder="little").astype(bool)


@compiled
def _binomial_side(out: Array, k: int, size: int, odds: float, chance: float) -> tuple[int, float, float]:
    """Write binomial probabilities at k+1, ... over that at the mode k: (number, sum, bound on the rest)."""
    count, total, last = 0, 0.0, 1.0
    ratio = odds * (size - k) / (k + 1)
    while chance * last * ratio > _CUT * (1.0 - ratio):  # ratios fall: a geometric series bounds the rest
        last *= ratio
        out[count] = last
        total += last
        count += 1
        ratio = odds * (size - k - count) / (k + count + 1)
    return count, total, last * ratio / (1.0 - ratio)


@compiled
def _pull_only(n: int, loss: float, most_rounds: int, target: float) -> tuple[int, float]:
    """Follow the chain of `epidemic_loss` until its bound is at most `target`: (rounds, bound)."""
    chances, up, down = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    chances[1] = 1.0
    bound, dropped, done = n * chances[1:n].sum(), 0.0, 0
    while loss < 1.0 and done < most_rounds and bound > target and chances[1:n].sum() >= _CUT:
        fresh = np.zeros(n + 1)
        for informed in range(1, n):
            chance, left = chances[informed], n - informed
            missing = n - 1 - informed + loss * informed
            if chance < _CUT or missing < _CUT:  # missing: the last party surely asks an informed one
                dropped += min(chance, missing)
                continue
            odds = (1.0 - loss) * informed / missing
            mode = min(left, int((left + 1) * odds / (1.0 + odds)))
            ups, above, tail = _binomial_side(up, mode, left, odds, chance)
            downs, below, other_tail = _binomial_side(down, left - mode, left, 1.0 / odds, chance)
            scale = chance / (1.0 + above + below)  # the sum of what is followed, so this errs upwards
            dropped += scale * (tail + other_tail)
            fresh[informed + mode] += scale
            for k in range(ups):
                fresh[informed + mode + 1 + k] += scale * up[k]
            for k in range(downs):
                fresh[informed + mode - 1 - k] += scale * down[k]
        chances = fresh
        done += 1
        # The true chance falls from round to round, so the least bound so far holds, whatever rounding does.
        bound = min(bound, n * (dropped + chances[1:n].sum()) * (1.0 + _ROUNDING * done * math.sqrt(n)))
    return done, bound
