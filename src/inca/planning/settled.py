"""Plans of settled runs, in closed form and proven: which rounds, how much noise, what error (docs/planner.md).

1. *Who must be joined gives the rounds.* On a circle ceil((c + L + m + 1) / 2) rounds join the honest that stay, for
   certain, against every c colluders, L leavers and m messages that are lost or seen. Where that takes too many
   rounds, or parties miss rounds or messages are eavesdropped, every round is a random permutation, and the least
   number of rounds is taken with which a party is cut off from too many others no more often than allowed (C9).
2. *The inequality gives the noise* (`inca.privacy.theorems.joined_bound`). With V >= f s^2 / mu^2 left by those who
   stay, cancelling noise of (T + 6) h s^2 / ((1 - 1 / f) mu^2) suffices for h honest parties. It costs nothing, as it
   cancels, so f is next to 1.
3. Everyone starts with noise for full attendance, f s^2 / (mu^2 h), and tops up what lacks (`inca.protocol.topup`).

A leaver, whatever was seen of it, loses at most s sqrt(sum_t C_t^2) / sigma_Delta, C_t <= 1 being what it has injected
by round t: less than sqrt(T (f - 1) / ((T + 6) h)) mu, which is no more than mu / 20.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from inca._base.validation import integer
from inca.errors import InvalidInput, RequirementsNotMet
from inca.planning.requirements import Requirements
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.joined_bound import cancelling_variance_for_factor
from inca.privacy.theorems.party_cut_off import SPARE_COST, log_cut_off_for_party, permutation_rounds
from inca.protocol.design import ProtocolDesign
from inca.protocol.execution import Execution
from inca.protocol.expected_error import ErrorBudget
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.topup import TopUp

FACTOR = 1.005
"""f: the independent variance of the honest parties that stay, over the least there can be (Theorem 2)."""
LOST_MESSAGES = 1
"""So many messages may be lost, late or seen on a circle without anyone being less protected."""
MOST_CIRCLE_ROUNDS = 8
"""A circle that needs more rounds than this costs more than its certainty is worth."""
_MOST_ROUNDS = 1000  # up to which a refusal looks for a sufficient number
_NO_SPARE = 1e-10  # as a cost of spare parties: less than one of 2^31
_ROUND_UP = 1.0 + 1e-9  # more than rounding takes, so that a full attendance needs no top-up


@dataclass(frozen=True)
class JoinedDesign:
    """A design whose hidden messages join the honest parties that stay, and how surely.

    Attributes:
        design: A circle or permutations.
        failure: How likely a given party is joined with fewer than all but `spare` of them, at most; 0 is certain.
        spare: How many of them it may lack.
    """

    design: ProtocolDesign
    failure: float
    spare: int


def joined_design(requirements: Requirements, rounds: int | None = None) -> JoinedDesign:
    """Return the design of least rounds, or with as many as asked for, that joins the honest parties that stay.

    Raises:
        RequirementsNotMet: If no design within the messages does; the sentence says what would.

    Example:
        >>> print(joined_design(Requirements(10, 1.0, colluding=0.1, dropout=0.1)).design)
        circle, 2 rounds, 1 receiver, value in shares
        >>> drawn = joined_design(Requirements(1000, 1.0, colluding=0.1, dropout=0.1))
        >>> drawn.design.schedule, drawn.design.rounds, drawn.failure <= 1e-6
        ('permutation', 5, True)
    """
    n, known = requirements.parties, requirements.colluders + requirements.leavers
    if n - known < 2:
        raise RequirementsNotMet(_too_few_honest(requirements))
    most = _MOST_ROUNDS if requirements.messages is None else requirements.messages - 1
    if rounds is not None and integer("rounds", rounds, min=1) > most:
        raise RequirementsNotMet(
            f"rounds must be at most {most:,}, as with the final message that makes {most + 1:,} messages, got {rounds}"
        )
    chosen = most if rounds is None else rounds
    undisturbed = requirements.away == requirements.eavesdropped == 0.0
    circle = circle_rounds(n, known, LOST_MESSAGES) if undisturbed else None
    certain = None
    if circle is not None and circle <= chosen and (rounds or circle) < n:
        certain = JoinedDesign(ProtocolDesign("circle", rounds or circle), 0.0, 0)
        if circle <= MOST_CIRCLE_ROUNDS:
            return certain
    gone = {"eavesdropped": requirements.eavesdropped, "away": requirements.away}
    cost = _NO_SPARE if requirements.away else SPARE_COST  # of parties with unequal weights a few may weigh more
    try:
        drawn = permutation_rounds(n, known, requirements.failure, most=_MOST_ROUNDS, cost=cost, **gone)
    except InvalidInput:  # so many do not suffice
        drawn = None
    if certain is not None and circle is not None and circle <= (_MOST_ROUNDS if drawn is None else drawn.rounds):
        return certain
    if drawn is None or drawn.rounds > chosen:
        sufficient = [*([] if circle is None else [circle]), *([] if drawn is None else [drawn.rounds])]
        raise RequirementsNotMet(_too_few_rounds(requirements, chosen, sufficient))
    failure = drawn.failure_probability
    if rounds is not None and rounds > drawn.rounds:
        log_failure = log_cut_off_for_party(n, known, rounds, spare=drawn.spare, **gone)
        failure = min(failure, math.exp(log_failure) * _ROUND_UP + math.ulp(0.0))
    return JoinedDesign(ProtocolDesign("permutation", rounds or drawn.rounds), failure, drawn.spare)


def _too_few_honest(requirements: Requirements) -> str:
    n, colluders, leavers = requirements.parties, requirements.colluders, requirements.leavers
    who = [f"{count:,} may {verb}" for count, verb in ((colluders, "collude"), (leavers, "leave")) if count]
    return (
        f"of {n:,} parties {' and '.join(who)}, which leaves fewer than the two honest ones that hide each other: at "
        f"least {colluders + leavers + 2:,} parties are needed with as many, or use Local DP, at a mean squared error "
        f"of {requirements.local_mse:.3g}"
    )


def _too_few_rounds(requirements: Requirements, rounds: int, sufficient: list[int]) -> str:
    local_dp = f"use Local DP, which needs no hidden messages, at a mean squared error of {requirements.local_mse:.3g}"
    if not sufficient:
        return f"no number of rounds hides enough: lower away or eavesdropped, or {local_dp}"
    too_few = "1 round is too few" if rounds == 1 else f"{rounds} rounds are too few"
    return (
        f"{too_few} to join every honest party with the others: {min(sufficient)} are needed, that "
        f"is {min(sufficient) + 1} messages a party; allow as many, or {local_dp}"
    )


@dataclass(frozen=True)
class SettledNoise:
    """The noise of a settled run.

    Attributes:
        levels: sigma_* and sigma_Delta.
        topup: What is added at settlement.
    """

    levels: NoiseLevels
    topup: TopUp

    def levels_of(self, execution: Execution) -> NoiseLevels:
        """Return the noise of a settled execution, with the top-up for its cohort."""
        return replace(self.levels, topup=self.topup.sigma(execution.cohort_weights))


def settled_noise(requirements: Requirements, rounds: int, spare: int = 0) -> SettledNoise:
    """Return the noise that is proven to suffice where all but `spare` of the honest that stay are joined.

    Example:
        >>> noise = settled_noise(Requirements(10, 1.0, colluding=0.1, dropout=0.1), rounds=2)
        >>> round(noise.levels.ratio)  # 9 sqrt(200 (2 + 6))
        360
    """
    unit, honest = requirements.var_local_dp, requirements.honest
    staying = honest - requirements.leavers
    factor = FACTOR * staying / (staying - spare)  # of the fewer that stay, each one that is spare weighs more
    cancelling = cancelling_variance_for_factor(
        factor=FACTOR,
        mu=requirements.mu,
        weight=1.0,
        joined=honest,
        rounds=rounds,
        sensitivity=requirements.sensitivity,
    )
    independent = math.sqrt(unit * factor / honest * _ROUND_UP)
    levels = NoiseLevels(independent=independent, cancelling=math.sqrt(cancelling * _ROUND_UP))
    together = math.sqrt(unit * factor * _ROUND_UP**0.5)
    return SettledNoise(levels, TopUp(together, independent, requirements.colluders))


def settled_error(requirements: Requirements, noise: SettledNoise, leavers: int) -> ErrorBudget:
    """Return the expected error of the estimate if so many leave and the others miss no round.

    Those who stay all have the variance sigma_*^2 + sigma_top^2, so that their mean has it over their number; the
    values of those who left are missing.
    """
    staying = requirements.parties - leavers
    if staying < 1:
        return ErrorBudget(math.inf, math.inf, math.inf)
    topup = noise.topup.full(staying)
    return ErrorBudget(
        independent=(noise.levels.independent**2 + topup**2) / staying,
        cancelling=0.0,
        data=requirements.value_variance * (1.0 / staying - 1.0 / requirements.parties),
    )
