"""Loads and compiles all that a node needs, so that it is not done when a session begins."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future

from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.privacy.accountant import account
from inca.privacy.certificate import certify
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.injection import incremental_injection
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.schedules import RandomReceivers
from inca.protocol.transcript import Transcript


def warm_up() -> None:
    """Run once, on a small example, what a node computes at the end of a session."""
    execution = Execution(RandomReceivers(4, 3, seed=1), incremental_injection(3))
    adversary = Adversary([0])
    account(View(execution, adversary), NoiseLevels(independent=1.0, cancelling=10.0), sensitivity=1.0)
    certify(Transcript(execution, sigma_independent=1.0, sigma_cancelling=10.0, adversary=adversary, sensitivity=1.0))
    discrete_gaussian(2**32, 8, Keystream(bytes(32), b"warm"))


async def in_daemon_thread(job: Callable[[], object]) -> None:
    """Do something long that need not be finished when the process is to stop: the first time, much is compiled."""
    done: Future[None] = Future()
    done.set_running_or_notify_cancel()  # so that whoever waits may give up, and nothing is wrong when it ends

    def run() -> None:
        try:
            job()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=run, daemon=True).start()
    await asyncio.wrap_future(done)
