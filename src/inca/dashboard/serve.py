"""Serving the application on this machine."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from inca._base.extras import importing
from inca._base.validation import integer, refuse
from inca.dashboard.api import DashboardApi
from inca.dashboard.app import application
from inca.errors import InvalidInput

with importing("inca.dashboard", extra="dashboard"):
    import uvicorn

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    files: Sequence[Path],
    sessions: Sequence[Path],
    host: str,
    port: int,
    *,
    echo: Callable[[str], None],
    browser: bool = False,
) -> None:
    """Listen, say where, and answer until interrupted."""
    for folder in sessions:
        if not folder.is_dir():
            refuse("--sessions", str(folder), "an existing folder")
    api = DashboardApi(sessions, files)
    listening = listen(host, integer("--port", port, 0, 65535))
    bound_port = listening.getsockname()[1]
    app = application(api, host_names(host, bound_port))
    address = f"http://{_bracketed(host)}:{bound_port}/"
    echo(f"inca's dashboard is at {address} (Ctrl-C stops it)")
    if host not in LOOPBACK:
        echo(f"Anyone who can reach {host} can see all of it; {LOOPBACK[0]} keeps it to this machine.")
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=1,
        lifespan="off",  # there is nothing to begin or to end, and a second Ctrl-C would be told as its failure
    )
    with suppress(KeyboardInterrupt):  # Ctrl-C is how it is meant to end, and the server passes it on when it has ended
        if browser:
            webbrowser.open(address + ("sessions" if sessions else ""))
        uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InvalidInput(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def host_names(host: str, port: int) -> list[str]:
    """Return what browsers may call this server: the host as given and, on this machine, its usual names.

    Example:
        >>> host_names("127.0.0.1", 8765)
        ['127.0.0.1:8765', 'localhost:8765', '[::1]:8765']
    """
    names = LOOPBACK if host in LOOPBACK else (host,)
    return [f"{_bracketed(name)}:{port}" for name in names]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
