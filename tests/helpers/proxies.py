"""HTTP proxies as companies have them, which connect to what they allow."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

VARIABLES = [f"{scheme}_proxy" for scheme in ("https", "http", "wss", "ws", "socks", "all", "no")]


class Proxy:
    """A proxy that answers CONNECT; `connected` are the places that it was asked for and connected to."""

    def __init__(self, credentials: str = "", status: int = 0, silent: bool = False) -> None:
        self._credentials, self._status, self._silent = credentials, status, silent
        self.port = 0
        self.connected: list[str] = []
        self._writers: set[asyncio.StreamWriter] = set()

    @property
    def url(self) -> str:
        return f"http://{self._credentials}{'@' if self._credentials else ''}127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        with suppress(OSError, asyncio.IncompleteReadError):
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            if self._silent:
                return
            place = request.split()[1]
            expected = base64.b64encode(self._credentials.encode()).decode()
            status = self._status
            if self._credentials and f"Proxy-Authorization: Basic {expected}" not in request:
                status = 407
            if request.split()[0] != "CONNECT":
                status = 405
            if status:
                writer.write(f"HTTP/1.1 {status} no\r\nContent-Length: 0\r\n\r\n".encode())
                writer.close()
                return
            host, _, port = place.rpartition(":")
            try:
                there, back = await asyncio.open_connection(host, int(port))
            except OSError:
                writer.write(b"HTTP/1.1 502 nothing there\r\nContent-Length: 0\r\n\r\n")
                writer.close()
                return
            self.connected.append(place)
            self._writers.add(back)
            writer.write(b"HTTP/1.1 200 connected\r\n\r\n")
            await asyncio.gather(self._copy(reader, back), self._copy(there, writer))

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(1 << 16):
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()

    def cut(self) -> None:
        """End all connections."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def proxy(credentials: str = "", status: int = 0, silent: bool = False) -> AsyncIterator[Proxy]:
    """Run a proxy: with `credentials` (name:password), or one that answers `status`, or nothing at all."""
    running = Proxy(credentials, status, silent)
    server = await asyncio.start_server(running.serve, "127.0.0.1", 0)
    running.port = server.sockets[0].getsockname()[1]
    try:
        yield running
    finally:
        server.close()
        running.cut()
        await asyncio.sleep(0.02)
