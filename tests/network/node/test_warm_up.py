from __future__ import annotations

import asyncio
import threading

import pytest

from inca.network.node.warm_up import in_daemon_thread


def test_a_job_that_takes_long_does_not_keep_the_process_from_ending() -> None:
    """The first start compiles for long; whoever stops it then used to wait for all of it."""
    released = threading.Event()

    async def give_up() -> None:
        task = asyncio.create_task(in_daemon_thread(released.wait))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(give_up())  # would wait here for ever
    released.set()


def test_what_goes_wrong_in_the_thread_is_raised() -> None:
    def fail() -> None:
        raise ValueError("no such accountant")

    with pytest.raises(ValueError, match="no such accountant"):
        asyncio.run(in_daemon_thread(fail))
