"""A loss as an event of the dp_accounting library, so that it composes with other mechanisms in the user's accountant.

It needs dp_accounting, which nothing else here does: pip install dp-accounting. Without it this file can still be
imported.
"""

from __future__ import annotations

import math
from typing import Any

from inca._base.validation import refuse
from inca.errors import MissingLibrary


def gaussian_dp_event(mu: float) -> Any:
    """Return the event of dp_accounting that gives away as much as a release of loss mu.

    A release of loss mu tells at most as much as the Gaussian mechanism with noise of 1 / mu times the sensitivity, for
    the neighbours that mu is about: one party's value is replaced by another, or one record where records are
    protected. That is what accountants of dp_accounting make of the event by default. One for `REPLACE_ONE` takes the
    sensitivity of a Gaussian event for that of adding or removing a record; by privacy loss distributions it then
    counts twice the loss, which is safe and more than needed.

    Example:
        >>> gaussian_dp_event(0.5)
        GaussianDpEvent(noise_multiplier=2.0)
        >>> gaussian_dp_event(math.inf)
        NonPrivateDpEvent()
    """
    loss = float(mu)
    if not loss >= 0.0:
        refuse("mu", mu, "at least 0")
    events = _dp_accounting()
    if loss == 0.0:
        return events.NoOpDpEvent()
    if math.isinf(loss):
        return events.NonPrivateDpEvent()
    return events.GaussianDpEvent(noise_multiplier=1.0 / loss)


def _dp_accounting() -> Any:
    try:
        import dp_accounting
    except ModuleNotFoundError:
        raise MissingLibrary("dp_event needs dp_accounting: pip install dp-accounting") from None
    return dp_accounting
