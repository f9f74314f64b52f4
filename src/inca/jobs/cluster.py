"""Jobs on a dask cluster, whose workers and scheduler may go at any time.

dask does a job again whose worker died, on another one. What it leaves to its users is here: how long to wait where
there is no worker at all, and a sentence for whatever cannot be mended by waiting.

It is asked directly rather than through joblib, which sets its number of jobs by the workers that are there at the
start, and waits for ever for a job that failed.
"""

from __future__ import annotations

import json
import logging
import pickle
import time
import warnings
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import CancelledError
from contextlib import ExitStack, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import uuid4

from inca.errors import IncaError, InvalidInput, MissingLibrary, WorkerLost
from inca.jobs.job import Job, library_versions, perform_job

if TYPE_CHECKING:
    from distributed import Client, Future

ANSWER_TIMEOUT_S = 10.0
"""How long a scheduler may take to answer."""
WORKER_TIMEOUT_S = 60.0
"""How long there may be no worker at all before the work is given up."""
LOOK_EVERY_S = 1.0


@contextmanager
def connected(address: str | None, workers: int) -> Iterator[Client]:
    """Connect to a scheduler, or start one with workers on this machine, which listens on 127.0.0.1 only.

    An address that begins with tls:// is spoken to with the certificates of dask's own configuration.

    Args:
        address: That of a scheduler, if there is one.
        workers: How many processes to start, if there is none.

    Raises:
        InvalidInput: If nothing at the address answers as a scheduler of the same version of dask does.
    """
    from distributed import Client, LocalCluster

    with ExitStack() as stack:
        stack.enter_context(_unlogged())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # of other versions: refused below, in one sentence
                if address is None:
                    place: dict[str, Any] = {"host": "127.0.0.1", "dashboard_address": None, "silence_logs": 50}
                    cluster = stack.enter_context(LocalCluster(n_workers=workers, threads_per_worker=1, **place))
                    client = stack.enter_context(Client(cluster))
                else:
                    client = stack.enter_context(Client(address, timeout=ANSWER_TIMEOUT_S))
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).split("\n", maxsplit=1)[0]
            raise InvalidInput(f"address must be that of a dask scheduler, got {address!r}: {reason}") from None
        _check_version(client)
        yield client


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep dask's logs of lost connections off the terminal: what matters of them is said in a sentence."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def _check_version(client: Client) -> None:
    versions = client.get_versions()
    theirs, ours = (versions[side]["packages"]["distributed"] for side in ("scheduler", "client"))
    if theirs != ours:
        raise InvalidInput(f"the scheduler's version of dask must be the same as here ({ours}), got {theirs}")


def cluster_results(client: Client, jobs: Sequence[Job]) -> Generator[tuple[int, Any], None, None]:
    """Yield (place, result) of each job as soon as it is done; closed before its end, cancel the others.

    Args:
        client: Connected to a scheduler.
        jobs: The jobs.

    Raises:
        WorkerLost: If there was no worker for a minute, one job was the end of several, or the scheduler is gone.
        MissingLibrary: If a worker has not what a job needs.
        IncaError: What a job raised.
    """
    finished: SimpleQueue[Future] = SimpleQueue()
    calls = [pickle.dumps(_Call(place, job)) for place, job in enumerate(jobs)]
    futures = client.map(pickle.loads, calls, key=[f"inca-{uuid4().hex}-{place}" for place in range(len(jobs))])
    try:
        for future in futures:
            future.add_done_callback(finished.put)
        for _ in jobs:
            place, text = _next_outcome(client, finished)
            yield place, json.loads(text)
    finally:
        with suppress(Exception):  # a scheduler that is gone has nothing to cancel
            client.cancel(futures, force=True)


class _Call:
    """A job that is done by unpickling it.

    So nothing of inca is read until a worker does the job: a scheduler needs no inca, and a worker without it raises an
    error. Reading a function of inca as it receives the job, such a worker would end without a word.
    """

    def __init__(self, place: int, job: Job) -> None:
        self._arguments = (place, job, job.source, library_versions())

    def __reduce__(self) -> tuple[Any, ...]:
        return perform_job, self._arguments


def _next_outcome(client: Client, finished: SimpleQueue[Future]) -> tuple[int, str]:
    """Return what comes of the next job that ends, however long it takes as long as somebody works."""
    alone_since = None
    while True:
        with suppress(Empty, TimeoutError):
            future = finished.get(timeout=LOOK_EVERY_S)
            if future.status == "error":
                _refuse(future)
            try:
                outcome: tuple[int, str] = future.result(timeout=LOOK_EVERY_S)
            except CancelledError:  # also of a job that was done, if its result was not fetched before
                raise WorkerLost(f"the scheduler at {_address(client)} is gone, or has dropped the work") from None
            except TimeoutError:
                finished.put(future)  # the result was lost with its worker before it was fetched: worked out again
                raise
            return outcome
        if client.scheduler_info()["workers"]:
            alone_since = None
            continue
        alone_since = alone_since or time.monotonic()
        if time.monotonic() - alone_since >= WORKER_TIMEOUT_S:
            where = _address(client)
            raise WorkerLost(f"there has been no worker at {where} for {WORKER_TIMEOUT_S:.0f} s: dask worker {where}")


def _refuse(future: Future) -> NoReturn:
    """Say why a job failed."""
    error = future.exception()
    if type(error).__name__ == "KilledWorker":
        raise WorkerLost(
            f"{error.allowed_failures + 1} workers died while they did the same job, perhaps for want of memory"
        )
    if isinstance(error, MissingLibrary):
        raise MissingLibrary(f"a worker of the cluster lacks a library: {error}")
    if isinstance(error, IncaError):
        raise error
    if isinstance(error, ImportError | AttributeError):  # no inca, an old one, or one that is not complete
        raise InvalidInput(f"every worker must have inca and its libraries as here, but one says: {error}")
    raise error


def _address(client: Client) -> str:
    return str(client.scheduler.address)
