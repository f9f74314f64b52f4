"""How much time a test gets in which time really passes; a plugin of pytest.

What a test measures of the machine at its start need not hold to its end: when the machine stalls, parties are late for
rounds and connections time out, as they should. So a test marked `real_time` that has failed is run again with three
times as much time for everything, and then with nine times: a fault of the program is there however much time there
is. At the end it is said which tests were run again.
"""

from __future__ import annotations

import pytest

_ATTEMPTS = 3
_MORE = 3.0
_attempt = 1


def allowance() -> float:
    """Return how many times as long everything may take as in the first attempt."""
    return _MORE ** (_attempt - 1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.get_closest_marker("real_time"):
            item.add_marker(pytest.mark.flaky(reruns=_ATTEMPTS - 1))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    global _attempt  # noqa: PLW0603 - one test runs at a time in a process
    _attempt = getattr(item, "execution_count", 1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for test in dict.fromkeys(report.nodeid for report in terminalreporter.getreports("rerun")):
        terminalreporter.write_line(f"RUN AGAIN with more time, since it failed: {test}", yellow=True, bold=True)
