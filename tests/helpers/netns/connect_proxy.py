"""An HTTP proxy as institutions have it: `CONNECT` to port 443 only, for those with a password; a program of its own.

    python connect_proxy.py PORT USER:PASSWORD

A line is printed for each request: the method, where to, and the status of the answer.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import sys

_ALLOWED_PORT = "443"
_PIECE_BYTES = 1 << 16
_REASONS = {200: "Connection established", 403: "Forbidden", 407: "Proxy Authentication Required", 502: "Bad Gateway"}


class Proxy:
    """Passes bytes on between those who ask and where they want to go, if that is allowed."""

    def __init__(self, credentials: str) -> None:
        self._password = "basic " + base64.b64encode(credentials.encode()).decode()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer a request, and pass on what follows."""
        with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            fields = {name.lower(): text.strip() for name, _, text in (line.partition(":") for line in head[1:])}
            status = self._status(method, target, fields.get("proxy-authorization", ""))
            there = None
            if status == 200:
                host, _, port = target.rpartition(":")
                try:
                    there = await asyncio.open_connection(host.strip("[]"), int(port))
                except OSError:
                    status = 502
            print(method, target, status, flush=True)
            more = 'Proxy-Authenticate: Basic realm="proxy"\r\n' if status == 407 else ""
            writer.write(f"HTTP/1.1 {status} {_REASONS[status]}\r\n{more}\r\n".encode())
            await writer.drain()
            if there is not None:
                await asyncio.gather(_copy(reader, there[1]), _copy(there[0], writer))
        writer.close()

    def _status(self, method: str, target: str, password: str) -> int:
        kind, _, secret = password.partition(" ")
        if f"{kind.lower()} {secret}" != self._password:
            return 407
        return 200 if method == "CONNECT" and target.rpartition(":")[2] == _ALLOWED_PORT else 403


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(_PIECE_BYTES):
            writer.write(piece)
            await writer.drain()
    writer.close()


async def main(port: int, credentials: str) -> None:
    """Serve until killed."""
    server = await asyncio.start_server(Proxy(credentials).serve, "0.0.0.0", port)
    print("listens", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
