"""Byte streams over TCP: dialled at an address, and listened for at one."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket

from inca.network.addresses import Address

_BACKLOG = 1024  # connections that the kernel keeps until they are accepted


async def dial(protocol: asyncio.BaseProtocol, address: Address) -> None:
    """Attach a protocol to a connection to this address, or raise what speaks most clearly of why not."""
    errors: list[OSError] = []
    for host in await _resolve(address):
        try:
            await asyncio.get_running_loop().create_connection(lambda: protocol, host, address.port)
            return
        except OSError as error:
            errors.append(error)
    raise min(errors, key=lambda error: error.errno != errno.ECONNREFUSED)


async def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there."""
    loop = asyncio.get_running_loop()
    infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    listening = socket.create_server(infos[0][4][:2], family=infos[0][0], backlog=_BACKLOG)
    listening.setblocking(False)
    return listening


async def _resolve(address: Address) -> list[str]:
    with contextlib.suppress(ValueError):
        return [str(ipaddress.ip_address(address.host))]
    infos = await asyncio.get_running_loop().getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    return [str(info[4][0]) for info in infos]
