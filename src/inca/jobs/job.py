"""A piece of work for one worker, and how a worker does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any

from inca._base.threads import one_blas_thread
from inca._base.validation import refuse
from inca.jobs.sources import source_digest


@dataclass(frozen=True)
class Job:
    """A piece of work for one worker: a function of a module of inca, and its arguments.

    The arguments are plain numbers, texts and lists of them, the seed among them, and so is the result. So it depends
    on nothing else, and a finished job can be recognised.

    Example:
        >>> from inca.reproduction.runs import first_rounds
        >>> job = Job(first_rounds, {"parties": 4, "colluding": 0, "first": 0, "runs": 100, "seed": 1})
        >>> job.name, job.room
        ('first_rounds', 'reproduction')
    """

    run: Callable[..., Any]
    settings: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name of the function."""
        return self.run.__name__

    @property
    def room(self) -> str:
        """The folder below inca that the function belongs to."""
        return self.run.__module__.split(".")[1]

    @property
    def source(self) -> str:
        """The digest of the source code that the result depends on."""
        return source_digest(self.room)


@cache
def library_versions() -> str:
    """Return the versions of the libraries that numbers come from.

    Example:
        >>> library_versions().startswith("numpy ")
        True
    """
    return ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "numba"))


def perform_job(place: int, job: Job, source: str, libraries: str) -> tuple[int, str]:
    """Do one job, anywhere, and return its place and its result as JSON; refuse if it might be another one there.

    Args:
        place: Which of the jobs it is.
        job: The job.
        source: The digest of the source code where the job comes from.
        libraries: The versions of libraries there.
    """
    if job.source != source:
        refuse("a worker's source code of inca", job.source[:16], f"the same as here ({source[:16]})")
    if library_versions() != libraries:
        refuse("a worker's libraries", library_versions(), f"the same as here ({libraries})")
    with one_blas_thread():
        return place, json.dumps(job.run(**job.settings))
