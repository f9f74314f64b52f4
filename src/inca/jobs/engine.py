"""Many jobs, on the cores of this machine or on a cluster, one way for all of them.

Processes are joblib's, a cluster is dask's. Each job carries its seed, and BLAS has one thread in every worker, so
neither the engine nor the number of workers changes a result.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, suppress
from threading import Event
from typing import Any, Self

from inca._base.extras import importing
from inca._base.threads import available_cores
from inca._base.validation import integer, refuse
from inca.errors import InvalidInput, WorkerLost
from inca.jobs.cluster import cluster_results, connected
from inca.jobs.job import Job, library_versions, perform_job

KINDS = ("processes", "serial", "dask")


class Engine:
    """Where jobs are done; it starts when it is entered.

    Args:
        kind: "processes" on this machine, "serial" in this process, or "dask" on a cluster.
        workers: How many processes, by default one per available core.
        address: That of a running dask scheduler; without one, a local cluster is started, which listens on 127.0.0.1
            only.

    Raises:
        InvalidInput: If the kind is unknown, or what it needs is not installed.

    Example:
        >>> from inca.reproduction.runs import first_rounds
        >>> with Engine("serial") as engine:
        ...     settings = {"parties": 4, "colluding": 0, "first": 0, "runs": 100, "seed": 1}
        ...     list(engine.results([Job(first_rounds, settings)]))
        [(0, [0, 99, 1, 0, 0])]
    """

    def __init__(self, kind: str = "processes", workers: int | None = None, address: str | None = None) -> None:
        if kind not in KINDS:
            refuse("engine", kind, "one of " + ", ".join(KINDS))
        if address is not None and kind != "dask":
            raise InvalidInput(f"address cannot be combined with engine {kind}, only with dask")
        self.kind, self.address = kind, address
        self.workers = available_cores() if workers is None else integer("workers", workers, min=1)
        self._open, self._client = ExitStack(), None
        if kind == "processes":
            with importing("engine processes", extra="reproduce"):
                import joblib  # noqa: F401  # so that what is missing is said before any work
        elif kind == "dask":
            with importing("engine dask", extra="cluster"):
                import distributed  # noqa: F401

    def __enter__(self) -> Self:
        if self.kind == "dask":
            self._client = self._open.enter_context(connected(self.address, self.workers))
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        """Yield (place, result) of each job as soon as it is done.

        Closed before its end, it begins no further job. Those that have begun are finished by processes, and cancelled
        on a cluster.
        """
        if self.kind == "dask":
            return cluster_results(self._client, jobs)
        return _in_processes(jobs, self.workers) if self.kind == "processes" else _in_this_process(jobs)


def _in_this_process(jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
    for number, job in enumerate(jobs):
        place, text = perform_job(number, job, job.source, library_versions())
        yield place, json.loads(text)


def _in_processes(jobs: Sequence[Job], workers: int) -> Generator[tuple[int, Any], None, None]:
    from joblib import Parallel, delayed

    stopped = Event()

    def calls() -> Iterator[Any]:
        for place, job in enumerate(jobs):
            if stopped.is_set():
                return
            yield delayed(perform_job)(place, job, job.source, library_versions())

    finished = Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered")(calls())
    try:
        for place, text in finished:
            yield place, json.loads(text)
    except BrokenExecutor:
        raise WorkerLost("a worker died") from None
    finally:
        stopped.set()
        # joblib would kill its processes. If one of them has just finished a job and the next one is being submitted,
        # the thread that manages them then looks for a job that was dropped, and dies of a KeyError. On a busy machine,
        # where that thread waits for its turn, this happens. So processes are left to finish the few jobs they have.
        with suppress(Exception):  # whatever becomes of them
            for _ in finished:
                pass
