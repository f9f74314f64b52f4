"""Which source code a result depends on, and its digest: a result is never that of another version."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import inca
from inca._base.files import files_digest

_PACKAGE = Path(inca.__file__).parent
_WORKERS = {"reproduction": ("reproduction/runs.py", "reproduction/rounds_to_connect.py"), "learn": ("learn/",)}
"""By room, the files that do its jobs."""
_NOT_COUNTED = (
    "__main__.py",
    "private_mean.py",
    "cli/",
    "dashboard/",
    "jobs/",
    "reproduction/",
    "learn/",
    "network/",
    "_base/palette.py",
    "_base/plotting.py",
)


def counted_sources(room: str) -> list[str]:
    """Return the source files on which results depend: the library and what workers do; no pictures, pages or nodes.

    Args:
        room: The folder whose jobs they are.
    """
    names = sorted(path.relative_to(_PACKAGE).as_posix() for path in _PACKAGE.rglob("*.py"))
    return [name for name in names if not name.startswith(_NOT_COUNTED) or name.startswith(_WORKERS.get(room, ()))]


@cache
def source_digest(room: str) -> str:
    """Return a digest of these files."""
    return files_digest(_PACKAGE, counted_sources(room))
