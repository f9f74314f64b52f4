"""The dissemination phase: how all parties learn the estimate from the final messages, which are public.

After round T every present party holds a final message and its weight; the estimate is the sum of the former
over the sum of the latter. The paper suggests gossip averaging or, where parties may still vanish, epidemics:
a final message that gets lost counts as its owner's absence in round T (section on Algorithm 2).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from inca._base.kernels import Flags, Ids, U, Words, compiled
from inca._base.types import Array
from inca._base.validation import finite_array, finite_float, generator, integer, positive, refuse
from inca.protocol.schedules.graphs import GraphLike, StaticGraph
from inca.protocol.simulation import Outcome

__all__ = ["Dissemination", "epidemic", "epidemic_loss", "epidemic_rounds", "exact", "gossip_average"]

_MAX_PARTIES = 50_000  # in a simulated epidemic: two matrices of m^2 bits, 310 MB each
_MAX_ROUNDS = 100_000  # that `epidemic_rounds` tries; enough unless nearly everything is lost
_CUT = 1e-40  # probabilities up to this are not followed any further but counted as failures
_ROUNDING = 1e-13  # times sqrt(n): ten times the relative error that a round of the chain can make

Indices = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Dissemination:
    """What the parties know in the end, and what it cost.

    Attributes:
        method: The way of dissemination.
        outcome: As before, but its execution's `published` marks the final messages that reached all survivors.
        estimates: A row for each survivor, (m,) or (m, d); NaN where what it holds has no weight.
        survivors: Their ids.
        rounds: How many rounds it took.
        messages: How many messages were sent.
        agreed: Whether all are within the accuracy asked for (averaging), or hold the same messages (epidemic).
    """

    method: str
    outcome: Outcome
    estimates: Array
    survivors: Indices
    rounds: int
    messages: int
    agreed: bool

    @property
    def deviation(self) -> float | None:
        """The largest distance of an estimate from `outcome.estimate`; None without it, infinite for NaN."""
        aim = self.outcome.estimate
        return None if aim is None else _farthest(self.estimates, aim)


def exact(outcome: Outcome) -> Dissemination:
    """Tell everyone: each of the m parties sends its final message to the m-1 others, in no time and without loss.

    Args:
        outcome: What the rounds left behind.

    Returns:
        What the parties know.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> exact(Outcome(execution, np.array([1.0, 2.0, 3.0, 6.0]))).estimates.tolist()
        [3.0, 3.0, 3.0, 3.0]
    """
    ids, _ = _published_messages(outcome)
    if (aim := outcome.estimate) is None:  # nobody learns anything, at no cost
        ids = ids[:0]
    estimates = np.full((ids.size, *outcome.messages.shape[1:]), 0.0 if aim is None else aim)
    return Dissemination("exact", outcome, estimates, ids, 0, ids.size * (ids.size - 1), True)


def gossip_average(
    outcome: Outcome,
    accuracy: float,
    rng: Generator,
    *,
    graph: GraphLike | None = None,
    max_rounds: int = 10_000,
) -> Dissemination:
    """Average by random pairs (Boyd, Ghosh, Prabhakar, Shah 2006, "Randomized gossip algorithms").

    In every tick a uniformly random one of the m publishing parties wakes and picks a uniformly random other, or
    neighbour. Both replace (sum, weight) by the mean of theirs, 2 messages; their estimate is sum / weight. A round is
    m ticks. We stop after the round that brings all within `accuracy`, which parties could not know.

    Args:
        outcome: What the rounds left behind.
        accuracy: The largest distance from the exact estimate, above 0.
        rng: Decides who wakes, and whom it picks.
        graph: Who may pick whom; its nodes are the publishing parties in order of id. By default everyone.
        max_rounds: After how many rounds to give up.

    Returns:
        What the parties know.

    Raises:
        InvalidInput: If the graph is not connected, a number is out of range, or `max_rounds` are too few.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> gossip_average(Outcome(execution, np.arange(4.0)), 1e-9, np.random.default_rng(1)).deviation < 1e-9
        True
    """
    near = None if graph is None or outcome.present < 2 else _neighbours(graph, outcome.present)
    generator(rng)
    tolerance, limit = positive("accuracy", accuracy), integer("max_rounds", max_rounds, min=1)
    ids, state = _published_messages(outcome)
    if (aim := outcome.estimate) is None:
        return replace(exact(outcome), method="gossip")
    rounds = 0
    while (off := _farthest(estimates := _estimates_from(state, outcome), aim)) > tolerance:
        if rounds == limit:
            refuse("max_rounds", limit, f"larger, as gossip is still {off:g} off and accuracy is {tolerance:g}")
        _gossip_round(state, rng, near)
        rounds += 1
    return Dissemination("gossip", outcome, estimates, ids, rounds, 2 * ids.size * rounds, True)


def _neighbours(graph: GraphLike, parties: int) -> Ids:
    """Return the neighbours of each node, padded with -1, of a connected undirected graph on n >= 2 nodes."""
    if len(graph.adj) != parties:
        refuse("the number of nodes of graph", len(graph.adj), f"{parties}, one per party")
    return StaticGraph.from_networkx(graph, rounds=1).round(1).receivers


@compiled
def _average_pairs(state: Array, wake: Indices, other: Indices) -> None:
    """Let the pairs average their rows, one pair after the other."""
    for tick in range(wake.size):
        for e in range(state.shape[1]):
            mean = 0.5 * (state[wake[tick], e] + state[other[tick], e])
            state[wake[tick], e] = mean
            state[other[tick], e] = mean


def _gossip_round(state: Array, rng: Generator, near: Ids | None = None) -> None:
    wake = np.asarray(rng.integers(len(state), size=len(state)))
    _average_pairs(state, wake, _random_others(wake, rng, near))


def epidemic(outcome: Outcome, rounds: int, rng: Generator, *, loss: float = 0.0, crash: float = 0.0) -> Dissemination:
    """Spread all final messages by push-pull (Demers et al. 1987, "Epidemic algorithms for replicated ...").

    Each of the m publishing parties starts with its own. In every round each party contacts a uniformly random other of
    the m. If that one is alive, both send each other all they knew before the round, 2 messages, else 1. A final
    message that some survivor lacks in the end is lost; all are, if nobody survives.

    Args:
        outcome: What the rounds left behind.
        rounds: How many rounds of contacts there are; see `epidemic_rounds`.
        rng: Decides who contacts whom, and what is lost.
        loss: The probability with which a message is lost.
        crash: The probability with which a living party crashes for good before each round.

    Returns:
        What the survivors know.

    Raises:
        InvalidInput: If a number is out of range, or there are more than 50,000 final messages.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(4, rounds=2, seed=1), inca.incremental_injection(2))
        >>> epidemic(Outcome(execution, np.arange(4.0)), 20, np.random.default_rng(1)).estimates.tolist()
        [1.5, 1.5, 1.5, 1.5]
    """
    ids, table = _published_messages(outcome)
    known, alive, messages = _spread(ids.size, rounds, rng, loss, crash)
    held = _held_by_all(known, alive)
    lost = np.bincount(ids[~held], minlength=outcome.execution.parties) > 0
    delivered = replace(outcome, execution=outcome.execution.without_finals(lost)) if lost.any() else outcome
    common = np.append(outcome.messages[ids[held]].sum(axis=0), delivered.weight)
    state = np.tile(common, (int(alive.sum()), 1))
    agreed = True
    for word in np.unique(np.flatnonzero(~held) // 64):
        bits = np.flatnonzero(~held[64 * word : 64 * word + 64])
        knows = known[alive, word][:, np.newaxis] >> bits.astype(np.uint64) & U(1)
        state += knows @ table[64 * word + bits]
        agreed = agreed and not knows.any()
    estimates = _estimates_from(state, outcome)
    return Dissemination("epidemic", delivered, estimates, ids[alive], int(rounds), messages, agreed)


def epidemic_loss(parties: int, rounds: int, *, loss: float = 0.0) -> float:
    """Return an upper bound on the probability that `epidemic` without crashes loses any final message anywhere.

    It is n times the probability that one message, spread by pulls only, has not reached everyone. Push-pull does at
    least as well: give both processes the same contacts and the same losses of replies. Who learns the message by pulls
    has asked an informed party and got the reply; by induction that one is informed under push-pull too, and so now is
    the asker. By pulls I informed parties become I + Binomial(n - I, (1 - loss) I / (n - 1)), as each other one asks an
    informed one with that probability. This is followed exactly but for tails below 1e-40, which count as failures, and
    raised by more than rounding can take. Time grows as n^1.5: 20,000 parties take seconds.

    Args:
        parties: n, the parties with final messages.
        rounds: How many rounds of contacts there are.
        loss: The probability with which a message is lost.

    Returns:
        The bound.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> round(epidemic_loss(2, 3, loss=0.1), 9)  # 2 messages, 3 lost replies each
        0.002
    """
    n, count = integer("parties", parties, min=1), integer("rounds", rounds, 1, 2**31)
    return min(1.0, _pull_only(n, finite_float("loss", loss, 0.0, 1.0), count, 0.0)[1])


def epidemic_rounds(parties: int, failure: float, *, loss: float = 0.0) -> int:
    """Return the least number of rounds for which `epidemic_loss` is at most `failure`.

    Args:
        parties: n, the parties with final messages.
        failure: The probability of a lost final message that is accepted, from 1e-20 to 1.
        loss: The probability with which a message is lost.

    Returns:
        The number of rounds.

    Raises:
        InvalidInput: If a number is out of range, or 100,000 rounds are too few.

    Example:
        >>> epidemic_rounds(1000, 1e-9)
        41
    """
    n, target = integer("parties", parties, min=1), finite_float("failure", failure, 1e-20, 1.0)
    lossy = finite_float("loss", loss, 0.0, 1.0)
    if target == 1.0:
        return 1  # which any probability is at most
    rounds, bound = _pull_only(n, lossy, _MAX_ROUNDS, target)
    if bound > target:
        refuse("loss", loss, f"small enough for a failure of {target:g} within {_MAX_ROUNDS:,} rounds")
    return rounds


def _spread(m: int, rounds: int, rng: Generator, loss: float, crash: float) -> tuple[Words, Flags, int]:
    """Run an epidemic; return who knows what (one bit each), who is still alive, and the messages sent."""
    generator(rng)
    integer("rounds", rounds, min=1)
    finite_float("loss", loss, 0.0, 1.0)
    finite_float("crash", crash, 0.0, 1.0)
    if m > _MAX_PARTIES:
        must_be = f"at most {_MAX_PARTIES} (for more, epidemic_loss gives a bound without simulation)"
        refuse("the number of final messages", m, must_be)
    everyone = np.arange(m)
    known = np.zeros((m, -(-m // 64)), np.uint64)
    known[everyone, everyone // 64] = U(1) << (everyone % 64).astype(np.uint64)
    alive, messages = np.ones(m, dtype=bool), 0
    for _ in range(rounds):
        alive &= rng.random(m) >= crash
        if m > 1:
            contacts = _random_others(everyone, rng)
            reached = alive & alive[contacts]
            messages += int(alive.sum() + reached.sum())
            _push_pull(known.copy(), known, contacts, reached[:, np.newaxis] & (rng.random((m, 2)) >= loss))
    return known, alive, messages


@compiled
def _push_pull(known: Words, fresh: Words, contacts: Indices, arrives: Flags) -> None:
    """Add to `fresh` what all learn in a round; arrives[i] tells of i's call and the reply."""
    for i in range(contacts.size):
        for word in range(known.shape[1]):
            if arrives[i, 0]:
                fresh[contacts[i], word] |= known[i, word]
            if arrives[i, 1]:
                fresh[i, word] |= known[contacts[i], word]


def _held_by_all(known: Words, alive: Flags) -> Flags:
    """Return which messages all survivors know; none, if nobody survives."""
    if not alive.any():
        return np.zeros(alive.size, dtype=bool)
    words = np.bitwise_and.reduce(known, axis=0, where=alive[:, np.newaxis], initial=U(2**64 - 1))
    return np.unpackbits(words.astype("<u8").view(np.uint8), count=alive.size, bitorder="little").astype(bool)


@compiled
def _binomial_side(out: Array, k: int, size: int, odds: float, probability: float) -> tuple[int, float, float]:
    """Write binomial probabilities at k+1, ... over that at the mode k: (number, sum, bound on the rest)."""
    count, total, last = 0, 0.0, 1.0
    ratio = odds * (size - k) / (k + 1)
    while probability * last * ratio > _CUT * (1.0 - ratio):  # ratios fall: a geometric series bounds the rest
        last *= ratio
        out[count] = last
        total += last
        count += 1
        ratio = odds * (size - k - count) / (k + count + 1)
    return count, total, last * ratio / (1.0 - ratio)


@compiled
def _pull_only(n: int, loss: float, max_rounds: int, target: float) -> tuple[int, float]:
    """Follow the chain of `epidemic_loss` until its bound is at most `target`: (rounds, bound)."""
    probabilities, up, down = np.zeros(n + 1), np.zeros(n + 1), np.zeros(n + 1)
    probabilities[1] = 1.0
    bound, dropped, done = n * probabilities[1:n].sum(), 0.0, 0
    while loss < 1.0 and done < max_rounds and bound > target and probabilities[1:n].sum() >= _CUT:
        fresh = np.zeros(n + 1)
        for informed in range(1, n):
            probability, left = probabilities[informed], n - informed
            missing = n - 1 - informed + loss * informed
            if probability < _CUT or missing < _CUT:  # missing: the last party surely asks an informed one
                dropped += min(probability, missing)
                continue
            odds = (1.0 - loss) * informed / missing
            mode = min(left, int((left + 1) * odds / (1.0 + odds)))
            ups, above, tail = _binomial_side(up, mode, left, odds, probability)
            downs, below, other_tail = _binomial_side(down, left - mode, left, 1.0 / odds, probability)
            scale = probability / (1.0 + above + below)  # the sum of what is followed, so this errs upwards
            dropped += scale * (tail + other_tail)
            fresh[informed + mode] += scale
            for k in range(ups):
                fresh[informed + mode + 1 + k] += scale * up[k]
            for k in range(downs):
                fresh[informed + mode - 1 - k] += scale * down[k]
        probabilities = fresh
        done += 1
        # The true probability falls from round to round, so the least bound so far holds, whatever rounding does.
        bound = min(bound, n * (dropped + probabilities[1:n].sum()) * (1.0 + _ROUNDING * done * math.sqrt(n)))
    return done, bound


def _published_messages(outcome: Outcome) -> tuple[Indices, Array]:
    """Return the ids of the m published messages, and these beside their weights as (m, d+1)."""
    ids = np.flatnonzero(outcome.execution.published)
    messages = finite_array("outcome.messages", outcome.messages, (1, 2), "(n,) or (n, d)")
    return ids, np.column_stack([messages[ids], outcome.weights[ids]])


def _estimates_from(state: Array, outcome: Outcome) -> Array:
    """Return sum / weight for each row of `state`, NaN where there is no weight."""
    estimates = np.full((state.shape[0], state.shape[1] - 1), np.nan)
    with np.errstate(over="ignore"):  # a first trace of weight may be tiny
        np.divide(state[:, :-1], state[:, -1:], out=estimates, where=state[:, -1:] != 0.0)
    return estimates.reshape(state.shape[0], *outcome.messages.shape[1:])


def _farthest(estimates: Array, aim: float | Array) -> float:
    """Return the largest Euclidean distance of an estimate from `aim`; NaN counts as infinitely far."""
    with np.errstate(over="ignore"):
        gaps = np.abs(estimates - aim) if estimates.ndim == 1 else np.linalg.norm(estimates - aim, axis=1)
    return float(np.where(np.isnan(gaps), np.inf, gaps).max(initial=0.0))


def _random_others(callers: Indices, rng: Generator, near: Ids | None = None) -> Indices:
    """Draw for each of m callers a uniformly random other one of the m parties, or one of those near it."""
    if near is not None:
        return np.asarray(near[callers, rng.integers((near >= 0).sum(axis=1)[callers])], np.int64)
    pick = rng.integers(callers.size - 1, size=callers.size)
    return np.asarray(pick + (pick >= callers), np.int64)
