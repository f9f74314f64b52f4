"""Terms for tests."""

from __future__ import annotations

import time
from typing import Any

from inca.network.membership.terms import Terms

SEED = "00112233445566778899aabbccddeeff"
_FIXED: dict[str, Any] = {
    "rounds": 6,
    "schedule": "permutation",
    "sigma_independent": 3,
    "sigma_cancelling": 30.5,
    "dimension": 4,
    "lower": 0,
    "upper": 1,
    "epsilon": 1,
    "delta": 1e-5,
    "rule": "analytic",
    "colluding": 0.1,
    "min_participants": 3,
    "start": 1894694400.25,
    "period": 10,
    "max_clock_skew": 0.5,
    "seed": SEED,
}


def fixed_terms(**changes: Any) -> Terms:
    """Return terms of which every number is known, that of the session included."""
    return Terms(**(_FIXED | changes))


def terms(**changes: Any) -> Terms:
    """Return terms of a session that begins in an hour."""
    fields: dict[str, Any] = {"rounds": 3, "schedule": "permutation"}
    fields |= {"sigma_independent": 50.0, "sigma_cancelling": 500.0, "dimension": 1, "lower": 0.0, "upper": 240.0}
    fields |= {"epsilon": 50.0, "delta": 1e-3, "rule": "analytic", "colluding": 0.0, "min_participants": 3}
    fields |= {"start": time.time() + 3620.0, "period": 10.0, "max_clock_skew": 1.0}
    return Terms(**(fields | changes))
