"""Terms for tests."""

from __future__ import annotations

import time
from typing import Any

from inca.network.membership.roster import Terms

SEED = "00112233445566778899aabbccddeeff"


def terms(**changes: Any) -> Terms:
    fields: dict[str, Any] = {"rounds": 3, "receivers": 1, "schedule": "random", "quiet_rounds": 0}
    fields |= {"sigma_independent": 50.0, "sigma_cancelling": 500.0, "dimension": 1, "lower": 0.0, "upper": 240.0}
    fields |= {"epsilon": 50.0, "delta": 1e-3, "rule": "exact", "colluding": 0.0, "least_cohort": 3}
    fields |= {"start": time.time() + 3620.0, "period": 10.0, "clock_bound": 1.0}
    return Terms(**(fields | changes))
