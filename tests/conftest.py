from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# What helper modules assert is explained like what tests assert.
pytest.register_assert_rewrite("party_room", "transport_room", "session_room")

# The first example compiles kernels, so deadlines would measure the compiler; examples are the same every time.
settings.register_profile(
    "inca", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("inca")
