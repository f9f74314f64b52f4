"""Finished jobs in a file: what is done is never done again, and nothing half-done is believed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from inca._base.types import Progress
from inca.errors import InvalidInput, WorkerLost
from inca.jobs.engine import Engine
from inca.jobs.job import Job
from inca.jobs.sources import source_digest


class Checkpoint:
    """Finished jobs in a file, one per line, so that interrupted work resumes where it stopped.

    A job is recognised by its function, its arguments and the source code it depends on, so a result is never that of
    another version. A line that was cut short is done again. `spent` is how many seconds were worked in all calls for
    the same purpose.

    Args:
        path: The file; it is made when the first job is finished.
        room: The folder below inca whose jobs they are.
        purpose: What the seconds were spent on.

    Raises:
        InvalidInput: If the file cannot be read.
    """

    def __init__(self, path: Path, room: str, purpose: str = "") -> None:
        self._source = source_digest(room)[:16]
        self.path, self.purpose, self._results, self.spent = path, purpose, dict[str, Any](), 0.0
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path} cannot be read as a list of finished jobs: {error}") from None
        for line in lines:
            try:
                entry = json.loads(line)
                if entry.get("source") == self._source:
                    if "key" in entry:
                        self._results[entry["key"]] = entry["result"]
                    elif entry["purpose"] == purpose:
                        self.spent += float(entry["spent"])
            except (ValueError, KeyError, TypeError, AttributeError):
                continue

    def find(self, job: Job) -> tuple[bool, Any]:
        """Return whether a job is done, and its result."""
        key = _key(job)
        return key in self._results, self._results.get(key)

    def add(self, job: Job, result: Any) -> None:
        """Keep a result."""
        key = _key(job)
        self._results[key] = result
        self._append({"key": key, "run": job.name, "settings": dict(job.settings), "result": result})

    def spend(self, seconds: float) -> None:
        """Keep how long was worked."""
        self.spent += seconds
        self._append({"purpose": self.purpose, "spent": seconds})

    def _append(self, entry: dict[str, Any]) -> None:
        entry = {"source": self._source, **entry}
        try:
            with self.path.open("a", encoding="utf-8") as file:
                # A line of its own, also after one that was cut short.
                file.write("\n" * (file.tell() > 0) + json.dumps(entry))
        except OSError as error:
            raise InvalidInput(f"{self.path} cannot be written: {error.strerror or error}") from None


def complete_jobs(jobs: Sequence[Job], engine: Engine, checkpoint: Checkpoint | None, progress: Progress) -> list[Any]:
    """Return the results of jobs in order, performing only those that the checkpoint does not have.

    Args:
        jobs: What is to be done.
        engine: Where it is done.
        checkpoint: What has been done, and where results are kept as soon as they are there; None to keep nothing.
        progress: Called with the jobs done and their total, also before the first one.

    Raises:
        WorkerLost: If workers died; the sentence says whether what is done was kept.
    """
    known = [(False, None) if checkpoint is None else checkpoint.find(job) for job in jobs]
    results = [result for _, result in known]
    open_places = [place for place, (is_done, _) in enumerate(known) if not is_done]
    done = len(jobs) - len(open_places)
    progress(done, len(jobs))
    if not open_places:
        return results
    try:
        with closing(engine.results([jobs[place] for place in open_places])) as finished:
            for number, result in finished:
                place = open_places[number]
                if checkpoint is not None:
                    checkpoint.add(jobs[place], result)
                results[place] = result
                done += 1
                progress(done, len(jobs))
    except WorkerLost as lost:
        after = "nothing was kept" if checkpoint is None else "the same command resumes where it stopped"
        raise WorkerLost(f"{lost}; {after}") from None
    return results


def _key(job: Job) -> str:
    text = json.dumps([job.name, dict(job.settings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
