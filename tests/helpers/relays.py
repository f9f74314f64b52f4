"""Relays in front of parties, as tunnels are: they take connections whether or not a party listens behind them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Literal

_CHUNK_BYTES = 1 << 14

Absence = Literal["closes", "resets", "says nothing"]


@asynccontextmanager
async def relay(port: int, behind: int, absence: Absence = "closes", rate: float | None = None) -> AsyncIterator[None]:
    """Relay from a port to one on the same machine, with so many bytes a second to it.

    Args:
        port: Where connections are taken.
        behind: Where they are passed on to.
        absence: What happens to a connection if nothing listens there.
        rate: Bytes a second on the way there; None for as many as there are.
    """
    writers: set[asyncio.StreamWriter] = set()
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.create_task(pass_on(reader, writer)))

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.add(writer)
        try:
            there, back = await asyncio.open_connection("127.0.0.1", behind)
        except OSError:
            if absence == "resets":
                writer.transport.abort()
            elif absence == "closes":
                writer.close()
            return
        writers.add(back)
        await asyncio.gather(_copy(reader, back, rate), _copy(there, writer, None))

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=_CHUNK_BYTES)
    try:
        yield
    finally:
        server.close()
        for writer in writers:
            writer.transport.abort()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, rate: float | None) -> None:
    with suppress(OSError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
            if rate is not None:
                await asyncio.sleep(len(chunk) / rate)
    writer.transport.abort()
