"""The door for those who connect: strangers are let in within limits, and refusals are logged once a second."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import Counter
from collections.abc import Awaitable, Callable

from inca.network.transport.events import Listener
from inca.network.transport.failures import blame, origin
from inca.network.transport.frames import Limits, Strikes


class Door:
    """Accepts connections; `admit` takes a socket, its address in words, and what counts as one address."""

    def __init__(
        self,
        limits: Limits,
        strikes: Strikes,
        listener: Listener,
        admit: Callable[[socket.socket, str, str], Awaitable[None]],
    ) -> None:
        """Prepare; `open` begins."""
        self._limits, self._strikes, self._listener, self._admit = limits, strikes, listener, admit
        self._unknown: Counter[str] = Counter()  # connections without hello by address
        self._refusals: Counter[str] = Counter()  # not yet noted

    async def open(self, listening: socket.socket) -> None:
        """Accept until cancelled."""
        turn = 0
        while True:
            turn += 1
            if turn % 16 == 0:
                await asyncio.sleep(0)  # many may be waiting, but so may be others
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError):
                await _readable(listening)
                continue
            except OSError as error:  # above all, no file descriptors left: others will be closed
                self._listener.note("accepting failed", reason=blame(error, "our own socket"))
                await asyncio.sleep(0.1)
                continue
            sock.setblocking(False)
            host = origin(address[0])
            if why := self._unwelcome(host):
                self.refuse(why)
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # leave no trace of it
                sock.close()
            else:
                self._unknown[host] += 1
                await self._admit(sock, f"{address[0]}:{address[1]}", host)

    def known(self, host: str) -> None:
        """Count one connection of this address no longer among those without hello."""
        self._unknown[host] -= 1
        if not self._unknown[host]:
            del self._unknown[host]

    def refuse(self, why: str) -> None:
        """Note a refusal, together with others: there may be thousands."""
        if not self._refusals:
            asyncio.get_running_loop().call_later(1.0, self.tell)
        self._refusals[why if len(self._refusals) < 64 else "others"] += 1

    def tell(self) -> None:
        """Note the refusals that have gathered."""
        refusals, self._refusals = self._refusals, Counter()
        for why, times in refusals.items():
            self._listener.note("refused", reason=why, times=times)

    def _unwelcome(self, host: str) -> str:
        if self._strikes.refused(host, asyncio.get_running_loop().time()) > 0:
            return f"{host} made too many errors"
        if self._unknown[host] >= self._limits.per_address:
            return f"too many connections of {host} without hello"
        return "too many connections without hello" if self._unknown.total() >= self._limits.unknown else ""


async def _readable(listening: socket.socket) -> None:
    # Not sock_accept, which loses a connection when it is cancelled at the wrong moment.
    ready, loop = asyncio.Event(), asyncio.get_running_loop()
    loop.add_reader(listening, ready.set)
    try:
        await ready.wait()
    finally:
        loop.remove_reader(listening)
