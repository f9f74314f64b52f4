"""A piece of work for one worker, and how a worker does it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
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


def perform_job(place: int, job: Job, source: str) -> tuple[int, str]:
    """Do one job, anywhere, and return its place and its result as JSON; refuse if the code there is another.

    Args:
        place: Which of the jobs it is.
        job: The job.
        source: The digest of the source code where the job comes from.
    """
    if job.source != source:
        refuse("a worker's source code of inca", job.source[:16], f"the same as here ({source[:16]})")
    with one_blas_thread():
        return place, json.dumps(job.run(**job.settings))
