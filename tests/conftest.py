from __future__ import annotations

import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# What helper modules assert is explained like what tests assert.
pytest.register_assert_rewrite("helpers")

from helpers.examples import PROFILES  # noqa: E402

# The first example compiles kernels, so deadlines would measure the compiler; examples are the same every time.
# `make test-all` looks at more of them (--hypothesis-profile thorough).
for profile, count in PROFILES.items():
    settings.register_profile(
        profile, deadline=None, derandomize=True, max_examples=count, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")


@pytest.fixture(scope="session")
def loaded_programs() -> Iterator[Path]:
    """A folder with `inca` and `python` that have loaded the library already."""
    from helpers.warm_programs import warm_programs

    with warm_programs() as folder:
        yield folder


@pytest.fixture(scope="session")
def programs(request: pytest.FixtureRequest) -> Path:
    """A folder with `inca` and `python`: those that have loaded the library, in `make test-all` those installed."""
    if request.config.getoption("--hypothesis-profile") == "thorough":
        return Path(sys.executable).parent
    folder: Path = request.getfixturevalue("loaded_programs")
    return folder


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly what could not be tested on this machine."""
    from helpers.browser import browser_path

    missing = []
    if browser_path() is None:
        missing.append("there is no Chromium on this machine, so the dashboard was not tried in a browser")
    if find_spec("torch") is None:
        missing.append("PyTorch is not installed, so what trains its modules was not tried, docs/pytorch.md included")
    for sentence in missing:
        terminalreporter.write_line(f"NOT TESTED: {sentence}", red=True, bold=True)
