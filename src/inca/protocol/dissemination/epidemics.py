"""Epidemics: all final messages spread to everyone, although sends get lost and parties vanish."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.random import Generator
from scipy.special import betaincinv

from inca._base.kernels import Flags, U, Words, compiled
from inca._base.types import Array
from inca._base.validation import generator, real, refuse, whole
from inca.protocol.dissemination.base import (
    Dissemination,
    Indices,
    estimates_from,
    published_messages,
    random_others,
)
from inca.protocol.simulation import Outcome

_MOST_SIMULATED = 50_000  # parties in an epidemic: two matrices of m^2 bits, 310 MB each
_MOST_ROUNDS = 100_000  # that `epidemic_rounds` tries; enough unless nearly everything is lost
_CUT = 1e-40  # probabilities up to this are not followed any further but counted as failures
_ROUNDING = 1e-13  # times sqrt(n): ten times the relative error that a round of the chain can make


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
    ids, table = published_messages(outcome)
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
    estimates = estimates_from(state, outcome)
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


def _spread(m: int, rounds: int, rng: Generator, loss: float, crash: float) -> tuple[Words, Flags, int]:
    """Run an epidemic; return who knows what (one bit each), who is still there, and the messages sent."""
    generator(rng)
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
            contacts = random_others(everyone, rng)
            reached = there & there[contacts]
            messages += int(there.sum() + reached.sum())
            _push_pull(known.copy(), known, contacts, reached[:, np.newaxis] & (rng.random((m, 2)) >= lossy))
    return known, there, messages


@compiled
def _push_pull(known: Words, fresh: Words, contacts: Indices, arrives: Flags) -> None:
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
