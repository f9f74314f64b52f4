"""Eight real processes whose links, all of them, can be cut: each is reached through a relay in the test's process."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from helpers.pace import allowance
from inca.network.membership.terms import Terms
from inca.network.node.transport_setup import NetworkAccess
from inca.network.testing.fork_server import measure_start_up
from inca.network.testing.local_cluster import LocalCluster, free_ports

N = 8
PERIOD_S = 3.0
LEAD_S, LEAD_START_UPS = 4.0, 8.0  # before the start: so long, and so many times what starting takes now
PATIENCE_PERIODS = 25  # after the rounds, to the end of everything
_POLL_S = 0.01


class Links:
    """Relays between the addresses of a roster and the ports where its parties listen."""

    def __init__(self, public: list[int], private: list[int]) -> None:
        self._ports = list(zip(public, private, strict=True))
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = True
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()

    async def _listen(self) -> None:
        self._servers = [await asyncio.start_server(self._relay(private), "127.0.0.1", p) for p, private in self._ports]

    def _relay(self, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
        async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if not self._open:
                writer.transport.abort()
                return
            try:
                there, back = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                writer.transport.abort()
                return
            self._writers |= {writer, back}
            await asyncio.gather(_copy(reader, back), _copy(there, writer))
            self._writers -= {writer, back}

        return relay

    def cut(self, seconds: float) -> None:
        """Reset all connections, and let nobody through for a while."""
        self._loop.call_soon_threadsafe(self._close)
        time.sleep(seconds)
        self._open = True

    def _close(self) -> None:
        self._open = False
        for writer in self._writers:
            writer.transport.abort()

    def stop(self) -> None:
        """Close everything."""

        async def close() -> None:
            self._close()
            for server in self._servers:
                server.close()
            relays = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for relay in relays:
                relay.cancel()
            await asyncio.gather(*relays, return_exceptions=True)
            await asyncio.sleep(0.05)

        asyncio.run_coroutine_threadsafe(close(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while chunk := await reader.read(1 << 16):
            writer.write(chunk)
            await writer.drain()
    writer.transport.abort()


class EightProcesses(LocalCluster):
    """Eight parties on the loopback interface, with relays between them."""

    @classmethod
    def agree(cls, folder: Path, **changes: Any) -> EightProcesses:
        """Write identities and a roster; the session begins as soon as all can be there."""
        fields: dict[str, Any] = {"rounds": 4, "schedule": "permutation"}
        fields |= {"sigma_independent": 0.5, "sigma_cancelling": 5.0, "dimension": 2, "lower": 0.0, "upper": 1.0}
        fields |= {"epsilon": 1000.0, "delta": 1e-5, "rule": "analytic", "colluding": 0.1}
        fields |= {"min_participants": 5, "period": allowance() * PERIOD_S, "max_clock_skew": 0.5, "seed": "ab" * 16}
        fields |= {"sigma_together": 1.32}  # seven of eight have as much, and fewer lack some
        start = time.time() + allowance() * (LEAD_S + LEAD_START_UPS * measure_start_up(N))
        values = np.random.default_rng(1).random((N, 2))
        return cls(folder, values, [f"party-{i}" for i in range(N)], Terms(**(fields | {"start": start} | changes)))

    def __post_init__(self) -> None:
        super().__post_init__()
        self._private = free_ports(len(self.names))
        self.links = Links([self.roster.addresses_of(i)[0].port for i in range(N)], self._private)

    def access(self, i: int) -> NetworkAccess:
        return NetworkAccess(listen=("127.0.0.1", self._private[i]))

    def start_all(self, parties: Iterable[int] = range(N)) -> None:
        for i in parties:
            self.start(i)

    def stop(self) -> None:
        super().stop()
        self.links.stop()

    def wait_for_stage(self, stage: str, parties: Iterable[int] = range(N), count: int = 1) -> None:
        """Wait until so many parties have logged a stage."""
        deadline, words = self.deadline, f'"stage": "{stage}"'
        while sum(words in self.log_text(i) for i in parties) < count:
            assert time.time() < deadline, [self.log_text(i)[-500:] for i in parties]
            time.sleep(_POLL_S)

    def log_text(self, i: int) -> str:
        """Return what a party has logged; the last line may be incomplete."""
        path = self.session_folder(i) / "log.jsonl"
        return path.read_text() if path.exists() else ""

    @property
    def deadline(self) -> float:
        return self.terms.start + (self.terms.rounds + PATIENCE_PERIODS) * self.terms.period

    def finish(self) -> list[int]:
        """Wait for the end of all processes; return the parties with a result, which must be one and exact."""
        assert self.wait(self.deadline) == [], [self.log_text(i)[-2000:] for i in self.running()]
        holders = [i for i in range(N) if self.result(i).get("estimate") is not None]
        for i in holders:
            shared = ("estimate", "execution", "total", "total_weight", "cohort", "exact", "beacon")
            assert all(self.result(i)[name] == self.result(holders[0])[name] for name in shared)
        return holders
