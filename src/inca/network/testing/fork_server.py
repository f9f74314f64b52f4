"""A process that has loaded the program, from which others are forked."""

from __future__ import annotations

import multiprocessing
import os
import time

from inca.network.membership.identity import Identity

FORK_SERVER = multiprocessing.get_context("forkserver")
"""Makes processes that have loaded the program already."""
FORK_SERVER.set_forkserver_preload(["inca.network.testing.preload"])
# Many processes on few cores: threads of their own would only wait for each other.
_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


def start_fork_server() -> None:
    """Start the process that others are forked from, and wait until it has loaded the program."""
    before = dict(os.environ)
    os.environ.update(dict.fromkeys(_ONE_THREAD, "1"))
    try:
        _run_at_once(1)
    finally:
        for name in _ONE_THREAD:
            del os.environ[name]
        os.environ.update(before)


def measure_start_up(count: int) -> float:
    """Return the seconds that so many processes take to start, all at once, on this machine as busy as it is now.

    It scales the times that a cluster agrees on: a party that is not there when its session begins is not waited for.
    """
    start_fork_server()
    began = time.monotonic()
    _run_at_once(count)
    return time.monotonic() - began


def _run_at_once(count: int) -> None:
    processes = [FORK_SERVER.Process(target=_practise) for _ in range(count)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


def _practise() -> None:
    """Do a little of what a party does when it starts."""
    Identity.create("practice")
