"""Whether the messages that a cohort exchanged keep its members joined, whichever few of them collude.

Members that exchanged a message, in either direction, are partners. If more than c members must be taken away before
the others fall apart (the graph's connectivity is above c), hidden messages join all honest members of the cohort,
against every coalition of c of them at once. A lost message, or a member that left, is just missing in the graph. The
test is exact and needs some n searches instead of one for every coalition (docs/conditions.md, "The circle").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from inca._base.validation import integer, refuse
from inca.privacy.theorems.hidden_messages import HiddenMessages
from inca.privacy.view import View


@dataclass(frozen=True, eq=False)
class MessageGraph:
    """Which members of a cohort exchanged a message with which, in either direction.

    Attributes:
        partners: For each member, those of the others with whom it did.

    Example:
        >>> ring = MessageGraph.among(range(4), [(0, 1), (1, 2), (2, 3), (3, 0)])
        >>> ring.partners_in(0), ring.keeps_joined(1), ring.keeps_joined(2)
        (2, True, False)
    """

    partners: Mapping[int, frozenset[int]]

    @classmethod
    def among(cls, cohort: Iterable[int], messages: Iterable[tuple[int, int]]) -> MessageGraph:
        """Return the graph of delivered messages (sender, receiver); those to or from others do not count."""
        partners: dict[int, set[int]] = {member: set() for member in cohort}
        for sender, receiver in messages:
            if sender != receiver and sender in partners and receiver in partners:
                partners[sender].add(receiver)
                partners[receiver].add(sender)
        return cls({member: frozenset(others) for member, others in partners.items()})

    @classmethod
    def of(cls, view: View) -> MessageGraph:
        """Return the graph of the hidden messages among the honest parties of a view.

        That of a cohort is `MessageGraph.of(View(execution).of_cohort())`. Each message must have one receiver: one
        with several is known if any of them colludes, so who is whose partner would not decide.

        Example:
            >>> from inca import CircleSchedule, Execution, incremental_injection
            >>> run = Execution(CircleSchedule(7, rounds=2), incremental_injection(2))
            >>> MessageGraph.of(View(run)).keeps_joined(3)
            True
        """
        hidden = HiddenMessages.of(view)
        if hidden.sent.nnz != hidden.sender.size:
            refuse("the number of receivers of a message", int(np.diff(hidden.sent.indptr).max()), "1")
        ends = view.honest[hidden.sender].tolist(), view.honest[hidden.sent.indices].tolist()
        return cls.among(view.honest.tolist(), zip(*ends, strict=True))

    def partners_in(self, party: int) -> int:
        """Return how many partners a party has, 0 if it is no member; as many colluders can surround it."""
        return len(self.partners.get(party, ()))

    def cut_around(self, party: int, colluders: int) -> frozenset[int] | None:
        """Return at most c other members without which messages do not join a member with all that remain.

        If it has so few partners these are, else it is a smallest such cut; of equally small ones, the one next to the
        member and the first other. Where only c + 1 members are left, it is all others. None: there is no such cut.

        Args:
            party: A member.
            colluders: c.

        Example:
            >>> bridge = MessageGraph.among(range(5), [(0, 1), (0, 2), (1, 3), (2, 3), (3, 4)])
            >>> bridge.cut_around(0, 1), sorted(bridge.cut_around(0, 2)), bridge.cut_around(3, 1)
            (frozenset({3}), [1, 2], None)
        """
        if self.keeps_joined(colluders):
            return None
        if len(self.partners) <= colluders + 1:
            return frozenset(self.partners) - {party}
        if len(self.partners[party]) <= colluders:
            return self.partners[party]
        names = list(self.partners)
        place = {member: index for index, member in enumerate(names)}
        partners = [frozenset(place[other] for other in others) for others in self.partners.values()]
        start = place[party]
        far = set(range(len(names))) - partners[start] - {start}
        cuts = [_cut(partners, start, partners[other], colluders) for other in sorted(far)]
        fewest = min((cut for cut in cuts if cut is not None), key=len, default=None)
        return None if fewest is None else frozenset(names[member] for member in fewest)

    def keeps_joined(self, colluders: int) -> bool:
        """Return whether messages join the other members of the cohort, whichever c of them collude.

        False means that some c members cut others off, or that fewer than two others would be left.

        Args:
            colluders: c.
        """
        needed = integer("colluders", colluders) + 1
        if not self.partners or any(len(others) < needed for others in self.partners.values()):
            return False  # so it is, too, if fewer than two others would be left
        place = {member: index for index, member in enumerate(self.partners)}
        partners = [frozenset(place[other] for other in others) for others in self.partners.values()]
        # Let Q be at most c members that separate others, and j the first whom they separate from an earlier one. If j
        # is among the first c + 1, too few paths lead to that one; else Q parts j from all earlier ones (Even 1975).
        for one, other in combinations(range(needed), 2):
            if other not in partners[one] and not has_paths(partners, one, partners[other], needed):
                return False
        return all(has_paths(partners, j, frozenset(range(j)), needed) for j in range(needed, len(partners)))


def has_paths(partners: Sequence[frozenset[int]], start: int, ends: frozenset[int], wanted: int) -> bool:
    """Return whether as many paths as wanted lead from a member to different ends and meet nowhere but at their start.

    A path of one step is always the best use of its end.

    >>> bridge = [frozenset({1, 2}), frozenset({0, 3}), frozenset({0, 3}), frozenset({1, 2, 4}), frozenset({3})]
    >>> has_paths(bridge, 0, frozenset({3, 4}), wanted=2), has_paths(bridge, 0, frozenset({2, 3}), wanted=2)
    (False, True)
    """
    direct = partners[start] & ends
    paths = _Paths(partners, start, ends, blocked=direct)
    return all(paths.add_one() for _ in range(wanted - len(direct)))


def _cut(partners: Sequence[frozenset[int]], start: int, ends: frozenset[int], most: int) -> frozenset[int] | None:
    """Return the fewest members without which no path leads from a member to any end, if they are not too many.

    They are as many as there are paths that meet nowhere (Menger 1927): one on each, behind which no search gets.
    """
    direct = partners[start] & ends
    paths = _Paths(partners, start, ends, blocked=direct)
    for _ in range(most - len(direct) + 1):
        if not paths.add_one():
            return direct | paths.filled
    return None


class _Paths:
    """Paths from a member to different ends that meet nowhere but at their start, found one by one.

    It is the largest flow with room for one path at each member. Place 2v is before member v and 2v + 1 behind it: a
    path that comes to a member of an earlier path is before it, and can only take back the step that led there.
    """

    def __init__(
        self, partners: Sequence[frozenset[int]], start: int, ends: frozenset[int], blocked: frozenset[int]
    ) -> None:
        self._partners, self._start, self._ends, self._blocked = partners, start, ends, blocked
        self._previous: dict[int, int] = {}  # of each member on a path, the one before it
        self.filled: frozenset[int] = frozenset()
        """Once no path can be added: one member of each."""

    def add_one(self) -> bool:
        """Add a path on a shortest way, if there is one more; say whether there is."""
        first = 2 * self._start + 1
        came, waiting = {first: first}, deque([first])
        while waiting:
            place = waiting.popleft()
            for further in self._steps(place):
                if further in came:
                    continue
                came[further] = place
                member, behind = divmod(further, 2)
                if not behind and member in self._ends and member not in self._previous:
                    self._keep(further, came)
                    return True
                waiting.append(further)
        self.filled = frozenset(place // 2 for place in came if not place % 2 and place + 1 not in came)
        return False

    def _steps(self, place: int) -> list[int]:
        """Return where one can go from a place."""
        member, behind = divmod(place, 2)
        if not behind:
            return [2 * self._previous.get(member, member) + 1]
        steps = [2 * partner for partner in self._partners[member] - self._blocked]
        return [*steps, 2 * member] if member in self._previous else steps

    def _keep(self, place: int, came: dict[int, int]) -> None:
        """Add the steps that led to a place, and take back those that were gone backwards."""
        added: dict[int, int] = {}
        while (before := came[place]) != place:
            member, earlier = place // 2, before // 2
            if member != earlier and before % 2:
                added[member] = earlier
            elif member != earlier:
                del self._previous[earlier]
            place = before
        self._previous |= added
