"""Many jobs, on the cores of this machine or on a cluster, one way for all of them.

joblib is the only interface: its own processes by default, dask for a cluster. Each job carries its seed, and BLAS has
one thread in every worker, so neither the engine nor the number of workers changes a result.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack, contextmanager, suppress
from threading import Event
from typing import Any, Self

from inca._base.extras import require_extra
from inca._base.threads import available_cores
from inca._base.validation import integer, refuse
from inca.errors import InvalidInput, WorkerLost
from inca.jobs.job import Job, perform_job

KINDS = ("processes", "serial", "dask")
ANSWER_TIMEOUT_S = 10.0
"""How long a scheduler may take to answer."""


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
        require_extra(f"engine {kind}", "cluster" if kind == "dask" else "reproduce")
        self._open = ExitStack()

    def __enter__(self) -> Self:
        if self.kind == "dask":
            self._open.enter_context(_client(self.address, self.workers))
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        """Yield (place, result) of each job as soon as it is done.

        Closed before its end, it begins no further job. Those that have begun are finished by processes, and cancelled
        on a cluster.
        """
        from joblib import Parallel, delayed, parallel_config

        stopped = Event()

        def calls() -> Iterator[Any]:
            for place, job in enumerate(jobs):
                if stopped.is_set():
                    return
                yield delayed(perform_job)(place, job, job.source)

        backend = {"processes": "loky", "serial": "sequential", "dask": "dask"}[self.kind]
        with parallel_config(backend=backend):
            workers = None if self.kind == "dask" else self.workers  # dask knows its own
            finished = Parallel(n_jobs=workers, return_as="generator_unordered")(calls())
            try:
                for place, text in finished:
                    yield place, json.loads(text)
            except Exception as error:
                if isinstance(error, BrokenExecutor) or type(error).__name__ == "KilledWorker":  # dask's
                    raise WorkerLost("a worker died; the same command resumes where it stopped") from None
                raise
            finally:
                stopped.set()
                self._wind_down(finished)

    def _wind_down(self, finished: Generator[Any, None, None]) -> None:
        """End work that nobody waits for any more.

        joblib would kill its processes. If one of them has just finished a job and the next one is being submitted, the
        thread that manages them then looks for a job that was dropped, and dies of a KeyError. On a busy machine, where
        that thread waits for its turn, this happens. So processes are left to finish the few jobs they have.
        """
        if self.kind == "processes":
            with suppress(Exception):  # whatever becomes of them
                for _ in finished:
                    pass
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # that work was lost
                finished.close()


@contextmanager
def _client(address: str | None, workers: int) -> Iterator[None]:
    """Connect to a scheduler, or start one on this machine."""
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        try:
            if address is None:
                cluster = LocalCluster(
                    n_workers=workers, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
                )
                stack.enter_context(cluster)
                stack.enter_context(Client(cluster))
            else:
                stack.enter_context(Client(address, timeout=ANSWER_TIMEOUT_S))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"address must be that of a dask scheduler, got {address!r}: {error}") from None
        yield
