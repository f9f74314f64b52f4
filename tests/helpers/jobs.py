"""Jobs of a reproduction that take a moment, and an engine that counts them."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator, Sequence
from functools import cache
from typing import Any

from inca.jobs.engine import Engine
from inca.jobs.job import Job, perform_job
from inca.reproduction.runs import first_rounds, gopa_needed, noise_needed

JOBS = [
    *(Job(first_rounds, {"parties": 40, "colluding": 9, "first": f, "runs": 50, "seed": 5}) for f in range(0, 300, 50)),
    Job(
        noise_needed,
        {
            "requirements": {"parties": 30, "colluding": 0.1, "dropout": 0.1},
            "receivers": 1,
            "rounds": 8,
            "own": [0.07, 0.2],
            "first": 0,
            "runs": 3,
            "seed": 5,
        },
    ),
    Job(
        gopa_needed,
        {
            "requirements": {"parties": 30, "colluding": 0.1},
            "exchanges": 8,
            "early": 2,
            "late": 1,
            "own": 0.07,
            "first": 0,
            "runs": 3,
            "seed": 5,
        },
    ),
]


def silent(done: int, total: int) -> None:
    """Report no progress."""
    del done, total


@cache
def expected_results() -> list[Any]:
    """Return the results of these jobs, done here."""
    return [perform_job(job, *job.origin) for job in JOBS]


class CountingEngine(Engine):
    """Counts the jobs that were asked for."""

    asked = 0

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        """Count the jobs and do them."""
        self.asked += len(jobs)
        return super().results(jobs)


def ending_its_worker() -> None:
    """Be a job that kills whoever does it, as the system does with a process that wants too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)
