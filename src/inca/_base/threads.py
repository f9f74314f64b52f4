"""Threads where they pay: on small matrices several BLAS threads wait for each other longer than they work."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

from inca._base.types import Progress

_MIN_ROWS = 500  # of a matrix for which several threads pay


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS works with one thread for each caller."""
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


def blas_threads_for(size: int) -> AbstractContextManager[Any]:
    """Return a context in which BLAS works on matrices of that size with one thread, if they are small."""
    return nullcontext() if size >= _MIN_ROWS else one_blas_thread()


@cache
def _controller() -> ThreadpoolController:
    import scipy.linalg  # noqa: F401  # the libraries to be limited must be there when they are looked for

    return ThreadpoolController()


class Crew:
    """The calling thread and others, who take jobs from a common list in order."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._pool = ThreadPoolExecutor(max(1, threads - 1))  # starts threads only when they get work

    def __enter__(self) -> Crew:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown()

    def work(self, jobs: Sequence[Callable[[], Any]], report: Progress | None = None) -> list[Any]:
        """Do all jobs and return their results; raise the first error of a thread, after all have stopped.

        The calling thread reports the number of jobs done and their total, now and then, and at the end.
        """
        results: list[Any] = [None] * len(jobs)
        numbers = iter(range(len(jobs)))  # its steps are atomic, so threads may share it
        done: list[int] = []

        def take(report: Progress | None = None) -> None:
            try:
                for number in numbers:
                    results[number] = jobs[number]()
                    done.append(number)
                    if report is not None and len(done) < len(jobs):
                        report(len(done), len(jobs))
            except BaseException:
                for _ in numbers:  # nobody needs the rest
                    pass
                raise

        others = [self._pool.submit(take) for _ in range(self.threads - 1)]
        try:
            take(report)
        finally:
            wait(others)
        for other in others:
            other.result()
        if report is not None:
            report(len(jobs), len(jobs))
        return results
