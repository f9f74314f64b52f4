"""A piece of work for one worker, and the versions of source code and libraries on which its result depends."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import inca
from inca._base.files import files_digest
from inca._base.threads import one_blas_thread
from inca._base.validation import refuse

_PACKAGE = Path(inca.__file__).parent
_WORKERS = {"reproduction": ("reproduction/runs.py", "reproduction/rounds_to_connect.py"), "learn": ("learn/",)}
"""By room, the files that do its jobs."""
_NOT_COUNTED = (
    *("__main__.py", "private_mean.py", "cli/", "dashboard/", "jobs/", "reproduction/", "learn/", "network/"),
    *("reporting/", "_base/palette.py", "_base/plotting.py"),
)


@dataclass(frozen=True)
class Job:
    """A piece of work for one worker: a function of a module of inca, and its arguments.

    The arguments are plain numbers, texts and lists of them, the seed among them, and so is the result. So it depends
    on nothing else, and a finished job can be recognised.

    Example:
        >>> from inca.reproduction.runs import first_rounds
        >>> Job(first_rounds, {"parties": 4, "colluding": 0, "first": 0, "runs": 100, "seed": 1}).name
        'first_rounds'
    """

    run: Callable[..., Any]
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @property
    def key(self) -> str:
        """What the job is, as text."""
        return json.dumps([self.name, dict(self.settings)], sort_keys=True)

    @property
    def origin(self) -> tuple[str, str]:
        """The digest of the source code, and the versions of the libraries, that the result depends on here."""
        return source_digest(self.run.__module__.split(".")[1]), library_versions()


def counted_sources(room: str) -> list[str]:
    """Return the source files on which results of a room's jobs depend: the library and what workers do."""
    names = sorted(path.relative_to(_PACKAGE).as_posix() for path in _PACKAGE.rglob("*.py"))
    return [name for name in names if not name.startswith(_NOT_COUNTED) or name.startswith(_WORKERS.get(room, ()))]


@cache
def source_digest(room: str) -> str:
    """Return a digest of these files: a result is never that of another version."""
    return files_digest(_PACKAGE, counted_sources(room))


@cache
def library_versions() -> str:
    """Return the versions of the libraries that numbers come from."""
    return ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))


def perform_job(job: Job, source: str, libraries: str) -> Any:
    """Do a job, anywhere, and return its result as JSON gives it back; refuse unless its origin is the same here."""
    own_source, own_libraries = job.origin
    if own_source != source:
        refuse("a worker's source code of inca", own_source[:16], f"the same as here ({source[:16]})")
    if own_libraries != libraries:
        refuse("a worker's libraries", own_libraries, f"the same as here ({libraries})")
    with one_blas_thread():
        return json.loads(json.dumps(job.run(**job.settings)))
