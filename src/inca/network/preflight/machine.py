"""How fast this machine is at a session's work, measured by doing it on a sample, and how much memory it has."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np

from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.membership.identity import Identity, verify
from inca.network.node.session_cost import MachineSeconds
from inca.network.protocol.messages import Offer, decode, encode, payload_hash
from inca.network.protocol.opening.cohort_keys import clamped, public_of, shared_secrets
from inca.network.protocol.opening.deposits import Dealing
from inca.network.protocol.session import SessionConfig

Outcome = TypeVar("Outcome")
_SAMPLE = 2**19  # numbers at most
_SIGNATURES = 8
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # of a container


def measure_machine(
    session: SessionConfig, identity: Identity, trustees: int, threshold: int, *, write: float, assess: float
) -> MachineSeconds:
    """Measure what a session's work takes, on vectors of half a million numbers at most."""
    count = min(session.dimension, _SAMPLE)
    scale = session.payload_bytes / (8 * (count + 1))
    discrete_gaussian(session.sigma_cancelling, 8, Keystream(bytes(32), b"first"))  # which compiles it
    stream = Keystream(bytes(32), b"sample")
    drawn, numbers = _seconds(lambda: discrete_gaussian(session.sigma_cancelling, count, stream))
    vector = numbers.astype("<i8").tobytes()
    taken, _ = _seconds(lambda: (decode(encode(Offer(1, vector))), payload_hash(vector)))
    keys = [clamped(trustee.to_bytes(32, "little")) for trustee in range(trustees)]
    dealing = Dealing(bytes(32), 0, bytes(32), 0, {i: public_of(key) for i, key in enumerate(keys)}, threshold)
    deposit, sealed = dealing.deal(bytes(32), vector)

    def unseal() -> object:
        common = {i: shared_secrets(keys[i], [deposit.ephemeral])[0] for i in range(threshold)}
        message = dealing.opened(deposit, sealed, common)
        return message and np.zeros(count, dtype=np.int64) + np.frombuffer(message, dtype="<i8")

    unsealed, _ = _seconds(unseal)
    signature = identity.sign(vector[:32])
    verified, _ = _seconds(lambda: [verify(identity.certificate, vector[:32], signature) for _ in range(_SIGNATURES)])
    return MachineSeconds(
        draw=scale * drawn,
        take=scale * taken,
        write=write,
        unseal=scale * unsealed,
        verify=verified / _SIGNATURES,
        assess=assess,
    )


def _seconds(work: Callable[[], Outcome]) -> tuple[float, Outcome]:
    began = time.perf_counter()
    outcome = work()
    return time.perf_counter() - began, outcome


def available_memory() -> int | None:
    """Return how many bytes of memory a new process may use; None where that cannot be told."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        sizes = [1024 * int(line.split()[1]) for line in lines if line.startswith("MemAvailable:")]
    except (OSError, ValueError):
        return None
    for limit in map(Path, _LIMITS):
        if limit.exists() and (text := limit.read_text().strip()).isdigit():
            sizes.append(int(text))
    return min(sizes, default=None)
