from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# What helper modules assert is explained like what tests assert.
pytest.register_assert_rewrite("helpers")

from helpers import pace  # noqa: E402
from helpers.examples import PROFILES  # noqa: E402

# The first example compiles kernels, so deadlines would measure the compiler; examples are the same every time.
# `make test-all` looks at more of them (--hypothesis-profile thorough).
for profile, count in PROFILES.items():
    settings.register_profile(
        profile, deadline=None, derandomize=True, max_examples=count, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("quick")


TESTS = Path(__file__).parent


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(pace)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Let the garbage collector pass over what is loaded here, which stays to the end: each time takes 0.1 s."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put each file in which time passes between others, which compute meanwhile: side by side, they wait together."""
    files: dict[Path, list[pytest.Item]] = {}
    for item in items:
        files.setdefault(item.path, []).append(item)
    waiting = {path for path, tests in files.items() if any(test.get_closest_marker("real_time") for test in tests)}
    others = [path for path in files if path not in waiting]
    computing = sum(TESTS in path.parents for path in others)
    ordered = [(float(place), path) for place, path in enumerate(others)]
    ordered += [((place + 0.5) * computing / len(waiting), path) for place, path in enumerate(sorted(waiting))]
    items[:] = [item for _, path in sorted(ordered) for item in files[path]]


_PROGRAMS = pytest.StashKey[Path]()


def _warm_programs(config: pytest.Config) -> Path:
    """Return where they are until the tests end."""
    from helpers.warm_programs import warm_programs

    if _PROGRAMS not in config.stash:
        held = ExitStack()
        config.stash[_PROGRAMS] = held.enter_context(warm_programs())
        config.add_cleanup(held.close)
    return config.stash[_PROGRAMS]


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Let all processes that test share the programs: to load them takes seconds."""
    node.workerinput["programs"] = str(_warm_programs(node.config))


@pytest.fixture(scope="session")
def loaded_programs(pytestconfig: pytest.Config) -> Path:
    """A folder with `inca` and `python` that have loaded the library already."""
    shared = getattr(pytestconfig, "workerinput", {}).get("programs")
    return Path(shared) if shared else _warm_programs(pytestconfig)


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
    skipped = [report.longreprtext.partition("NOT TESTED: ")[2] for report in terminalreporter.getreports("skipped")]
    for sentence in (*missing, *dict.fromkeys(filter(None, skipped))):
        terminalreporter.write_line(f"NOT TESTED: {sentence}", red=True, bold=True)
