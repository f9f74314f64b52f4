from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# What helper modules assert is explained like what tests assert.
pytest.register_assert_rewrite("helpers")

# The first example compiles kernels, so deadlines would measure the compiler; examples are the same every time.
# `make test-all` looks at more of them (--hypothesis-profile thorough).
for profile, examples in (("thorough", 200), ("quick", 30)):
    settings.register_profile(
        profile, deadline=None, derandomize=True, max_examples=examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what could not be tested on this machine."""
    from helpers.browser import browser_path

    if browser_path() is None:
        sentence = "NOT TESTED: there is no Chromium on this machine, so the dashboard was not tried in a browser"
        terminalreporter.write_line(sentence, red=True, bold=True)
