"""Finished jobs in a file: what is done is never done again, and nothing half-done is believed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from inca._base.types import Progress
from inca.errors import InvalidInput, WorkerLost
from inca.jobs.engine import Engine
from inca.jobs.job import Job, source_digest


class Checkpoint:
    """Finished jobs in a file, one per line, so that interrupted work resumes where it stopped.

    A job is recognised by its function, its arguments and the source code it depends on, so a result is never that of
    another version. A line that was cut short is done again. `spent` is how many seconds were worked in all calls for
    the same purpose.
    """

    def __init__(self, path: Path, room: str, purpose: str = "") -> None:
        self._source = source_digest(room)[:16]
        self.path, self.purpose, self._results, self.spent = path, purpose, dict[str, Any](), 0.0
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read as a list of finished jobs: {error}") from None
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                entry = json.loads(line)
                if entry["source"] != self._source:
                    continue
                if "key" in entry:
                    self._results[entry["key"]] = entry["result"]
                elif entry["purpose"] == purpose:
                    self.spent += float(entry["spent"])

    def find(self, job: Job) -> tuple[bool, Any]:
        """Return whether a job is done, and its result."""
        return job.key in self._results, self._results.get(job.key)

    def add(self, job: Job, result: Any) -> None:
        """Keep a result."""
        self._results[job.key] = result
        self._append(key=job.key, result=result)

    def spend(self, seconds: float) -> None:
        """Keep how long was worked."""
        self.spent += seconds
        self._append(purpose=self.purpose, spent=seconds)

    def _append(self, **entry: Any) -> None:
        try:
            with self.path.open("a", encoding="utf-8") as file:
                # A line of its own, also after one that was cut short.
                file.write("\n" * (file.tell() > 0) + json.dumps({"source": self._source, **entry}))
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be written: {error.strerror or error}") from None


def complete_jobs(jobs: Sequence[Job], engine: Engine, checkpoint: Checkpoint | None, progress: Progress) -> list[Any]:
    """Return the results of jobs in order, performing only those that the checkpoint does not have.

    A result is kept as soon as it is there; without a checkpoint nothing is. `progress` is called with the jobs done
    and their total, also before the first one. If workers die, `WorkerLost` says whether what is done was kept.
    """
    known = [(False, None) if checkpoint is None else checkpoint.find(job) for job in jobs]
    results = {place: result for place, (is_done, result) in enumerate(known) if is_done}
    rest = [place for place in range(len(jobs)) if place not in results]
    progress(len(results), len(jobs))
    if not rest:
        return [result for _, result in known]
    try:
        with closing(engine.results([jobs[place] for place in rest])) as finished:
            for number, result in finished:
                results[rest[number]] = result
                if checkpoint is not None:
                    checkpoint.add(jobs[rest[number]], result)
                progress(len(results), len(jobs))
    except WorkerLost as lost:
        after = "nothing was kept" if checkpoint is None else "the same command resumes where it stopped"
        raise WorkerLost(f"{lost}; {after}") from None
    return [results[place] for place in range(len(jobs))]
