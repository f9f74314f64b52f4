"""All schedules that have a name and one number of receivers for everyone, drawn or not, by that name."""

from __future__ import annotations

from inca._base.randomness import PublicSeed
from inca._base.validation import one_of, refuse
from inca.protocol.schedules.base import Schedule
from inca.protocol.schedules.circle import CircleSchedule
from inca.protocol.schedules.random import DRAWN_KINDS, random_schedule

SCHEDULE_KINDS = (*DRAWN_KINDS, "circle")
"""The names that `schedule_of_kind` knows."""


def schedule_of_kind(
    kind: str,
    parties: int,
    rounds: int,
    receivers: int = 1,
    *,
    seed: int | PublicSeed | None = None,
    share: float | None = None,
) -> Schedule:
    """Return the schedule of a given kind: `circle` (`CircleSchedule`), or one of those of `random_schedule`.

    Args:
        kind: One of `SCHEDULE_KINDS`.
        parties: n, at least 2.
        rounds: T, at least 1.
        receivers: k, the receivers of a party in a round; 1 on a circle.
        seed: Needed by the kinds that are drawn; the circle has no use for it.
        share: The fraction of its message that a party sends to each receiver; by default 1/(k+1).

    Raises:
        InvalidInput: If the kind is unknown, a number is out of range, or a seed is missing.

    Example:
        >>> schedule_of_kind("circle", 4, 3).round(3).receivers[:, 0].tolist()
        [3, 0, 1, 2]
        >>> schedule_of_kind("permutation", 4, 3, seed=1).slots
        1
    """
    one_of("schedule", kind, SCHEDULE_KINDS)
    if kind == "circle":
        if receivers != 1:
            refuse("receivers", receivers, "1 on a circle")
        return CircleSchedule(parties, rounds, share=share)
    if seed is None:
        refuse("seed", seed, f"given, as a schedule of kind {kind} is drawn")
    return random_schedule(kind, parties, rounds, receivers, seed=seed, share=share)
