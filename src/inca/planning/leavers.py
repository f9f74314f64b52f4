"""What parties that leave can lose at most in a settled run, from whom they sent to: no linear algebra, any schedule.

If a leaver's value changes by 1, let it send half of the change that it still holds with every hidden message, and
nothing with known ones, whose masks make up for what it holds. Whoever got a part keeps it: its masks make up for it in
all later rounds, and when it settles it undoes what the leaver sent. No message that anyone sees has changed, so by
Lemma 2 the squared loss is at most the squared changes of masks over sigma_cancelling^2 (docs/settlement.md).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from inca._base.kernels import Flags
from inca._base.types import Array
from inca.protocol.injection import Injection


def level_that_protects_leavers(injection: Injection) -> float:
    """Return the level at which leavers are protected whatever colluders saw of them: the sum of C_t^2 before round T.

    C_t is the part of the value that has been injected by round t. It is what `leaver_bounds` gives if no message is
    hidden: in every round a leaver's mask makes up for all that it holds.

    >>> from inca import incremental_injection
    >>> round(level_that_protects_leavers(incremental_injection(10, quiet=1)), 3)
    3.85
    """
    return float(np.sum(np.cumsum(injection.value)[:-1] ** 2))


def leaver_bounds(receivers: NDArray[np.integer], hidden: Flags, injection: Injection) -> Array:
    """Return bounds on the squared losses of leavers that sent in all rounds, in units of (s / sigma_cancelling)^2.

    A leaver that sent in fewer rounds loses no more.

    Example:
        >>> from inca import incremental_injection
        >>> receivers = np.array([[1, 2, 3], [1, 2, 3], [1, 1, 1]])
        >>> hidden = np.array([[False] * 3, [True] * 3, [True] * 3])
        >>> leaver_bounds(receivers, hidden, incremental_injection(3)).tolist()
        [0.875, 0.06640625, 0.11328125]
    """
    leavers, rounds = receivers.shape
    places = np.arange(leavers)
    held = np.full(leavers, injection.value[0])
    passed_on = np.zeros((leavers, int(receivers.max(initial=0)) + 1))
    kept_by_others, bound = np.zeros(leavers), np.zeros(leavers)
    for t in range(rounds):
        bound += np.where(hidden[:, t], 0.0, held**2) + kept_by_others
        sent = np.where(hidden[:, t], held / 2.0, 0.0)
        before = passed_on[places, receivers[:, t]]
        kept_by_others += sent * (2.0 * before + sent)
        passed_on[places, receivers[:, t]] = before + sent
        held += injection.value[t + 1] - sent
    return np.minimum(bound, level_that_protects_leavers(injection))
