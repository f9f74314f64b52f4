"""Threads where they pay: on small matrices several BLAS threads wait for each other longer than they work."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController

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
