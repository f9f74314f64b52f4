"""The page that lists where losses are stated names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def named_tests() -> list[tuple[Path, str]]:
    """Every `file.py::test` of the page; `::test` alone is in the file named before it."""
    page, path, found = (ROOT / "docs" / "stated-losses.md").read_text(), Path(), []
    for file, test in re.findall(r"`([\w/]*?\.py)?(?:::(\w+))?`", page):
        path = ROOT / "tests" / file.removeprefix("tests/") if file else path
        if file or test:
            found.append((path, test))
    return found


def test_all_tests_that_are_named_are_there() -> None:
    tests = named_tests()
    assert len(tests) > 30
    missing = [
        f"{path.relative_to(ROOT)}::{test}"
        for path, test in tests
        if not path.exists() or (test and f"def {test}(" not in path.read_text())
    ]
    assert missing == []
