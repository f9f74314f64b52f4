from __future__ import annotations

from hypothesis import HealthCheck, settings

# The first example compiles kernels, so deadlines would measure the compiler; examples are the same every time.
settings.register_profile(
    "inca", deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("inca")
