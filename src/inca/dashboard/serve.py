"""Serving the application on this machine."""

from __future__ import annotations

import socket
import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn

from inca._base.validation import InputError, whole
from inca.dashboard.app import Answers, application

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def serve(
    files: Sequence[Path],
    sessions: Sequence[Path],
    host: str,
    port: int,
    *,
    tell: Callable[[str], None],
    browser: bool = False,
) -> None:
    """Listen, say where, and answer until interrupted."""
    for folder in sessions:
        if not folder.is_dir():
            raise InputError(f"--sessions is {str(folder)!r}, but there is no such folder")
    answers = Answers(sessions, files)
    listening = listen(host, whole("--port", port, 0, 65535))
    bound = listening.getsockname()[1]
    app = application(answers, names(host, bound))
    start = f"http://{_bracketed(host)}:{bound}/"
    tell(f"inca's dashboard is at {start} (Ctrl-C stops it)")
    if host not in LOOPBACK:
        tell(f"Anyone who can reach {host} can look on; {LOOPBACK[0]} keeps it to this machine.")
    if browser:
        webbrowser.open(start)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[listening])


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, or refuse in a sentence."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise InputError(f"cannot listen on {host}:{port}: {error.strerror or error}") from None


def names(host: str, port: int) -> list[str]:
    """Return what browsers may call this server: the host as given and, on this machine, its usual names.

    >>> names("127.0.0.1", 8765)
    ['127.0.0.1:8765', 'localhost:8765', '[::1]:8765']
    """
    called = LOOPBACK if host in LOOPBACK else (host,)
    return [f"{_bracketed(each)}:{port}" for each in called]


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host
