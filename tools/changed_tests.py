"""Print the tests that concern what has changed: since the last commit, or in it if nothing has.

    python tools/changed_tests.py

Tests mirror the source tree, so a change in src/inca/privacy/view.py concerns its own examples and
tests/privacy/test_view.py, or all of tests/privacy where there is no such file.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[1]
FALLBACK = ("tests/_base", "tests/protocol", "tests/privacy")
"""What is tested if nothing that has changed has tests of its own."""


def changed() -> list[str]:
    """Return the files that differ from the last commit, or those of that commit if there are none."""
    now = _git("diff", "--name-only", "HEAD") + _git("ls-files", "--others", "--exclude-standard")
    return now or _git("diff", "--name-only", "HEAD~1", "HEAD")


def concerned(names: Iterable[str], root: Path = ROOT) -> list[str]:
    """Return the test files, folders and files with examples that concern these files, each once.

    >>> concerned(["src/inca/privacy/view.py", "README.md", "gone.py"])
    ['README.md', 'src/inca/privacy/view.py', 'tests/privacy/test_view.py']
    """
    return sorted({test for name in names for test in _concerned(PurePosixPath(name), root)})


def _concerned(name: PurePosixPath, root: Path) -> Iterator[str]:
    exists = (root / name).exists()
    if name.parts[:2] == ("src", "inca") and name.suffix == ".py":
        if exists:
            yield str(name)
        folder = PurePosixPath("tests", *name.parts[2:-1])
        mirror = folder / f"test_{name.stem.lstrip('_')}.py"
        if (root / mirror).exists():
            yield str(mirror)
        elif folder != PurePosixPath("tests") and (root / folder).exists():
            yield str(folder)
    elif exists and (
        (name.parts[0] == "tests" and name.name.startswith("test_"))
        or (name.suffix == ".md" and (name.parts[0] == "docs" or str(name) == "README.md"))
        or (name.parts[0] == "tools" and name.suffix == ".py")
    ):
        yield str(name)


def _git(*words: str) -> list[str]:
    return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()


if __name__ == "__main__":
    print("\n".join(concerned(changed()) or FALLBACK))
