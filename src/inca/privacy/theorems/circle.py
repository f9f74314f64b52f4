"""How many rounds of a circle join all parties that stay, for certain.

Over T rounds of `CircleSchedule` every party exchanges messages with the T next ones on either side. Removed parties
and lost messages may be chosen with the schedule in view: nothing is random, so there is no probability of failure.
The proof is in docs/conditions.md, "The circle".
"""

from __future__ import annotations

from inca._base.validation import integer, refuse


def circle_rounds(parties: int, removed: int, lost: int = 1) -> int | None:
    """Return the least number of rounds after which a circle joins all parties that stay, whatever is taken away.

    With n parties, R of them removed and m messages lost,

        T = ceil((R + m + 1) / 2)    if R + m + 1 < n,
        T = R + ceil((m + 1) / 2)    otherwise: then some pairs need both messages that they can exchange.

    Hidden messages then join the parties that stay, for *every* choice of the removed and the lost. After one round
    less, some choice cuts a party off.

    Args:
        parties: n.
        removed: R, how many parties' messages do not count: colluders and leavers. At least two parties must stay.
        lost: m, how many other messages do not count: lost, late or seen. A party that misses a round loses two.

    Returns:
        T, or None if even the n - 1 rounds that a circle can have are too few.

    Raises:
        InvalidInput: If a number is out of range.

    Example:
        >>> circle_rounds(10, removed=2), circle_rounds(50, removed=10)  # a tenth colludes, a tenth leaves
        (2, 6)
        >>> circle_rounds(5, removed=3), circle_rounds(5, removed=3, lost=2)
        (4, None)
    """
    n = integer("parties", parties, min=2, max=2**31 - 1)
    if (gone := integer("removed", removed)) > n - 2:
        refuse("removed", removed, f"at most {n - 2} of {n} parties, as at least two must stay")
    lacking = integer("lost", lost)
    if gone + lacking + 1 < n:
        return (gone + lacking + 2) // 2
    rounds = gone + (lacking + 2) // 2
    return rounds if rounds < n else None
