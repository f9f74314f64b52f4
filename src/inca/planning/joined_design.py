"""Which rounds join the honest parties of a settled run that stay, and how surely: the first step of a proven plan.

On a *circle* ceil((c + L + m + 1) / 2) rounds do it for certain, against every c colluders, L leavers and m messages
that are lost or seen. Where that takes too many rounds, or parties miss rounds or messages are eavesdropped, every
round is a random *permutation*, and the least number of rounds is taken with which a party is cut off from too many
others no more often than allowed (C9).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from inca._base.validation import integer
from inca.errors import InvalidInput, RequirementsNotMet
from inca.planning.designs import ProtocolDesign
from inca.planning.requirements import Requirements
from inca.privacy.theorems.circle import circle_rounds
from inca.privacy.theorems.party_cut_off import log_cut_off_for_party, permutation_rounds

LOST_MESSAGES = 1
"""So many messages may be lost, late or seen on a circle without anyone being less protected."""
MOST_CIRCLE_ROUNDS = 8
"""A circle that needs more rounds than this costs more than its certainty is worth."""
_MOST_ROUNDS = 1000  # up to which a refusal looks for a sufficient number


@dataclass(frozen=True)
class JoinedDesign:
    """A design whose hidden messages join the honest parties that stay, and how surely."""

    design: ProtocolDesign
    failure: float
    """The probability that a party is joined with fewer than all but `spare` of them, at most."""
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
    n, colluders, leavers = requirements.parties, requirements.colluders, requirements.leavers
    most = requirements.messages - 1 if rounds is None else integer("rounds", rounds, min=1)
    if n - colluders - leavers < 2:
        raise RequirementsNotMet(
            f"of {n} parties {colluders} may collude and {leavers} leave, so that fewer than two honest ones may be "
            f"left: at least {colluders + leavers + 2} parties are needed, or use Local DP, at a mean squared error of "
            f"{requirements.local_mse:.3g}"
        )
    if most >= requirements.messages:
        raise RequirementsNotMet(f"rounds is {most}, and with the final message that makes {most + 1}: allow as many")
    undisturbed = requirements.away == requirements.eavesdropped == 0.0
    circle = circle_rounds(n, colluders + leavers, LOST_MESSAGES) if undisturbed else None
    if circle is not None and circle <= min(most, MOST_CIRCLE_ROUNDS) and (rounds or circle) < n:
        return JoinedDesign(ProtocolDesign("circle", rounds or circle), 0.0, 0)
    gone = {"eavesdropped": requirements.eavesdropped, "away": requirements.away}
    try:
        drawn = permutation_rounds(n, colluders + leavers, requirements.failure, most=_MOST_ROUNDS, **gone)
    except InvalidInput:  # so many do not suffice
        drawn = None
    if drawn is None or drawn.rounds > most:
        sufficient = [*([] if circle is None else [circle]), *([] if drawn is None else [drawn.rounds])]
        raise RequirementsNotMet(_too_few(requirements, most, sufficient))
    if rounds is None:
        failure = drawn.failure_probability
    else:
        failure = math.exp(log_cut_off_for_party(n, colluders + leavers, rounds, spare=drawn.spare, **gone))
    return JoinedDesign(ProtocolDesign("permutation", rounds or drawn.rounds), failure, drawn.spare)


def _too_few(requirements: Requirements, most: int, sufficient: list[int]) -> str:
    local_dp = f"use Local DP, which needs no hidden messages, at a mean squared error of {requirements.local_mse:.3g}"
    if not sufficient:
        return f"no number of rounds hides enough: lower away or eavesdropped, or {local_dp}"
    return (
        f"messages is {most + 1}, and so few fail to join someone with the others with a probability of more than the "
        f"allowed {requirements.failure:g}: allow at least {min(sufficient) + 1} messages, or {local_dp}"
    )
