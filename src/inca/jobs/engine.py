"""Many jobs, on the cores of this machine or on a cluster, one way for all of them.

Processes are joblib's, a cluster is dask's. Each job carries its seed, and BLAS has one thread in every worker, so
neither the engine nor the number of workers changes a result.

dask does a job again, on another worker, if its worker died. How long to wait where there is no worker at all is
decided here. joblib's dask backend would wait for ever for a job that failed, so dask is asked directly.
"""

from __future__ import annotations

import logging
import operator
import pickle
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib import import_module
from queue import Empty, SimpleQueue
from threading import Event
from typing import TYPE_CHECKING, Any, Self

from inca._base.extras import importing
from inca._base.threads import available_cores
from inca._base.validation import integer, refuse
from inca.errors import InvalidInput, MissingLibrary, WorkerLost
from inca.jobs.job import Job, perform_job

if TYPE_CHECKING:
    from distributed import Client

KINDS = {"processes": ("joblib", "reproduce"), "serial": None, "dask": ("distributed", "cluster")}
"""What each needs: a library, and the extra that it is in."""
ANSWER_TIMEOUT_S = 10.0  # for a scheduler
WORKER_TIMEOUT_S = 60.0  # without any worker, until the work is given up
LOOK_EVERY_S = 1.0


class Engine:
    """Where jobs are done; it starts when it is entered.

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
        if needed := KINDS[kind]:
            with importing(f"engine {kind}", extra=needed[1]):  # so that what is missing is named before any work
                import_module(needed[0])

    def __enter__(self) -> Self:
        if self.kind == "dask":
            self._client = self._open.enter_context(_connected(self.address, self.workers))
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def results(self, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
        """Yield (place, result) of each job as soon as it is done.

        Closed before its end, it begins no further job. Those that have begun are finished by processes, and cancelled
        on a cluster.
        """
        if self.kind == "dask":
            return _on_cluster(self._client, jobs)
        if self.kind == "processes":
            return _in_processes(jobs, self.workers)
        return ((place, perform_job(job, *job.origin)) for place, job in enumerate(jobs))


def _in_processes(jobs: Sequence[Job], workers: int) -> Generator[tuple[int, Any], None, None]:
    from joblib import Parallel, delayed

    stopped = Event()
    calls = (delayed(_placed)(place, job, *job.origin) for place, job in enumerate(jobs) if not stopped.is_set())
    finished = Parallel(n_jobs=workers, backend="loky", return_as="generator_unordered")(calls)
    try:
        for outcome in finished:  # noqa: UP028  # `yield from` would close it, and so kill its processes
            yield outcome
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


def _placed(place: int, job: Job, source: str, libraries: str) -> tuple[int, Any]:
    return place, perform_job(job, source, libraries)


@contextmanager
def _connected(address: str | None, workers: int) -> Iterator[Client]:
    """Connect to a scheduler, with dask's own certificates if it is at tls://, or start one with workers here."""
    from distributed import Client
    from distributed.utils import silence_logging_cmgr

    options: dict[str, Any] = {"timeout": ANSWER_TIMEOUT_S}
    if address is None:
        options = {"n_workers": workers, "threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": None}
        options["silence_logs"] = logging.CRITICAL
    with silence_logging_cmgr(logging.CRITICAL):  # what matters of lost connections becomes an error
        try:
            with warnings.catch_warnings(action="ignore", category=UserWarning):  # of other versions: refused below
                client = Client(address, **options)
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).split("\n", maxsplit=1)[0]
            raise InvalidInput(f"address must be that of a dask scheduler, got {address!r}: {reason}") from None
        with client:
            _check_version(client)
            yield client


def _check_version(client: Client) -> None:
    versions = client.get_versions()
    theirs, ours = (versions[side]["packages"]["distributed"] for side in ("scheduler", "client"))
    if theirs != ours:
        raise InvalidInput(f"the scheduler's version of dask must be the same as here ({ours}), got {theirs}")


def _on_cluster(client: Client, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
    from toolz import compose

    # Nothing of inca is read until a worker does the job: so a scheduler needs no inca, and a worker without it raises
    # an error. Reading a function of inca as it receives the job, such a worker would end without a word.
    calls = [pickle.dumps(partial(perform_job, job, *job.origin)) for job in jobs]
    futures = client.map(compose(operator.call, pickle.loads), calls, pure=False)
    address, finished = client.scheduler.address, SimpleQueue[Any]()
    places = {future.key: place for place, future in enumerate(futures)}
    try:
        for future in futures:
            future.add_done_callback(finished.put)
        last_seen = time.monotonic()
        while places:
            try:
                future = finished.get(timeout=LOOK_EVERY_S)
                is_failed = future.status == "error"
                outcome = future.exception() if is_failed else future.result(timeout=LOOK_EVERY_S)
            except Empty:
                pass
            except CancelledError:  # also of a job that was done, if its result was not fetched before
                raise WorkerLost(f"the scheduler at {address} is gone, or has dropped the work") from None
            except TimeoutError:
                finished.put(future)  # the result was lost with its worker before it was fetched: worked out again
            else:
                if is_failed:
                    raise _explained(outcome)
                yield places.pop(future.key), outcome
                last_seen = time.monotonic()
                continue
            if client.scheduler_info()["workers"]:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= WORKER_TIMEOUT_S:
                lost = f"there has been no worker at {address} for {WORKER_TIMEOUT_S:.0f} s"
                raise WorkerLost(f"{lost}: dask worker {address}")
    finally:
        with suppress(Exception):  # a scheduler that is gone has nothing to cancel
            client.cancel(futures, force=True)


def _explained(error: Any) -> BaseException:
    """Return what to raise where a job failed with this error."""
    if type(error).__name__ == "KilledWorker":
        count = error.allowed_failures + 1
        return WorkerLost(f"{count} workers died while they did the same job, perhaps for want of memory")
    if isinstance(error, MissingLibrary):
        return MissingLibrary(f"a worker of the cluster lacks a library: {error}")
    if isinstance(error, ImportError | AttributeError):  # no inca, an old one, or one that is not complete
        return InvalidInput(f"every worker must have inca and its libraries as here, but one says: {error}")
    assert isinstance(error, BaseException)
    return error
