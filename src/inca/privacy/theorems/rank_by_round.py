"""After how many rounds enough messages are hidden: the rank of Theorems 2 and 3 round by round."""

from __future__ import annotations

import numpy as np

from inca._base.kernels import Flags, Ids, compiled
from inca._base.validation import refuse
from inca.privacy.theorems.hidden_messages import HiddenMessages, delivered, root
from inca.privacy.view import View


def rank_curve(view: View) -> Ids:
    """Return the rank that the hidden messages of rounds 1..r have, for r = 0..T.

    With full attendance this is the rank of the same execution cut to r rounds: its last messages are public, the
    others are hidden or not as before. With one receiver per party it takes a single pass of union-find (fact F1).

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> rank_curve(View(Execution(RandomReceivers(10, rounds=4, seed=3), incremental_injection(4)))).tolist()
    [0, 8, 9, 9, 9]
    """
    rounds = view.execution.rounds
    if view.execution.schedule.slots == 1:
        return np.cumsum(merges_by_round(*_one_receiver(view)), dtype=np.int32)
    hidden = HiddenMessages.of(view)
    return np.array([hidden.until(r).rank.hidden for r in range(rounds + 1)], dtype=np.int32)


def first_round_met(view: View) -> int | None:
    """Return the least r for which the hidden messages of rounds 1..r have rank n_H - 1; None if there is none.

    For one receiver per party this is a single pass of union-find (fact F1), else a search by bisection; see
    `rank_curve` for what it means, and `hidden_rank` for "undecided". For a single honest party it is 0.

    >>> from inca import Execution, RandomReceivers, incremental_injection
    >>> first_round_met(View(Execution(RandomReceivers(10, rounds=4, seed=3), incremental_injection(4))))
    2
    """
    if view.execution.schedule.slots == 1:
        return _first_with(merges_by_round(*_one_receiver(view)), view.honest.size - 1)
    hidden, low, high = HiddenMessages.of(view), 0, view.execution.rounds
    if not hidden.rank.met:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if hidden.until(middle).rank.met else (middle + 1, high)
    return low


def rounds_to_connect(receivers: Ids, colluding: Flags, eavesdropped: Flags | None = None) -> int | None:
    """Return after how many rounds hidden messages connect the honest parties, one receiver per message (fact F1).

    This is `first_round_met` for those who draw schedules by the thousand.

    Example:
        >>> ring = np.array([[1, 2, 3, 0], [2, 3, 0, 1]], dtype=np.int32)
        >>> rounds_to_connect(ring, np.array([False, True, False, True]))
        2
    """
    if receivers.ndim != 2 or receivers.dtype != np.int32:
        refuse("receivers", f"{receivers.dtype} of shape {receivers.shape}", "int32 of shape (T, n)")
    parties = receivers.shape[1]
    for name, flags, shape in (("colluding", colluding, (parties,)), ("eavesdropped", eavesdropped, receivers.shape)):
        if flags is not None and (flags.shape != shape or flags.dtype != np.bool_):
            refuse(name, f"{flags.dtype} of shape {flags.shape}", f"bool of shape {shape}")
    if (unknown := (receivers < -1) | (receivers >= parties)).any():
        refuse("an id in receivers", int(receivers[unknown][0]), f"from -1 to {parties - 1}")
    merges = merges_by_round(receivers, colluding, eavesdropped)
    return _first_with(merges, parties - int(colluding.sum()) - 1)


@compiled
def merges_by_round(receivers: Ids, colluding: Flags, eavesdropped: Flags | None) -> Ids:
    """Return how many components of honest parties the hidden messages of rounds 0 (none), 1, .., T merge."""
    rounds, parties = receivers.shape
    honest = np.flatnonzero(~colluding)
    parent = np.arange(parties).astype(np.int32)
    merges = np.zeros(rounds + 1, dtype=np.int32)
    left = honest.size - 1
    for t in range(rounds):
        if left <= 0:
            break
        for i in honest:
            j = receivers[t, i]
            if j < 0 or colluding[j]:
                continue
            if eavesdropped is not None:  # noqa: SIM102 (a question for the compiler)
                if eavesdropped[t, i]:
                    continue
            a, b = root(parent, int(i)), root(parent, int(j))
            if a != b:
                parent[max(a, b)] = min(a, b)  # keeps trees flat, as ids are in no order
                merges[t + 1] += 1
        left -= merges[t + 1]
    return merges


def _first_with(merges: Ids, needed: int) -> int | None:
    """Return after how many rounds as many merges as needed have happened."""
    reached = np.cumsum(merges)
    return int(np.searchsorted(reached, needed)) if reached[-1] >= needed else None


def _one_receiver(view: View) -> tuple[Ids, Flags, Flags | None]:
    """Return the arguments of `merges_by_round` for an execution with one receiver per party."""
    execution = view.execution
    steps = [execution.sends(t) for t in range(1, execution.rounds + 1)]
    # Shares are above 0, but explicit weights need not be.
    receivers = np.stack([s.receivers if s.weights is None else np.where(delivered(s), s.receivers, -1) for s in steps])
    colluding = np.ones(execution.parties, dtype=bool)
    colluding[view.honest] = False
    plain = execution.presence.all_present and not view.adversary.eavesdropped and not execution.undelivered
    return receivers[:, :, 0], colluding, None if plain else view.known_when_sent
