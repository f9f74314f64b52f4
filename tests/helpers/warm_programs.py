"""`inca` and `python` for a shell, in forks of an interpreter that has loaded the library once.

A program of its own spends most of its time with loading. What it prints, how it ends and what it writes is the same
here, as it runs the same code with the same words, folder, environment and terminal; but what it would have to load
itself is there already. `make test-all` starts everything anew.
"""

from __future__ import annotations

import contextlib
import gc
import io
import json
import os
import runpy
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

# Started for every command: it loads no more than it needs, and hands over all that a program gets from its shell. What
# would stop the program is passed on; of a program that was killed, it has the end.
_CLIENT = """import json, os, signal, socket, sys

stopping = {{signal.SIGTERM, signal.SIGINT}}
signal.pthread_sigmask(signal.SIG_BLOCK, stopping)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as place:
    place.connect({address!r})
    task = {{"words": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(place, [json.dumps(task).encode()], [0, 1, 2])
    program = int(place.recv(32))
    for number in stopping:
        signal.signal(number, lambda which, _: os.kill(program, which))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, stopping)
    status = int(place.recv(32))
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""
_PROGRAM = """#!/bin/sh
exec {python} -IS {client} {name} "$@"
"""


@contextlib.contextmanager
def warm_programs() -> Iterator[Path]:
    """Hold a folder with the two programs, to be put in front of a shell's PATH; they load when first called."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(address)
            listening.listen(64)
            number = listening.fileno()
            server = subprocess.Popen(
                [sys.executable, "-P", __file__, str(number)],  # -P: modules of this folder are not to be found by name
                pass_fds=[number],
                env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},  # a fork has no threads but its own
                stdin=subprocess.PIPE,  # which ends when nobody holds the programs any longer, even if that was killed
                start_new_session=True,
            )
        programs, client = Path(folder) / "bin", Path(folder) / "client.py"
        client.write_text(_CLIENT.format(address=address))
        programs.mkdir()
        for name in ("inca", "python"):
            text = _PROGRAM.format(python=shlex.quote(sys.executable), client=shlex.quote(str(client)), name=name)
            (programs / name).write_text(text)
            (programs / name).chmod(0o700)
        try:
            yield programs
            server.communicate(timeout=60.0)
            assert server.returncode == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def serve(listening: socket.socket) -> None:
    """Do tasks, each in a fork, until the standard input ends and all are done."""
    running: dict[int, tuple[BaseProcess, socket.socket]] = {}
    more = True
    while more or running:
        for ready in wait([*running, *([listening, sys.stdin.fileno()] if more else [])]):
            if ready == sys.stdin.fileno():
                more = False
            elif isinstance(ready, int):
                process, place = running.pop(ready)
                process.join()
                _send(place, process.exitcode or 0)
                place.close()
            else:
                _load()
                begun = _begin(listening)
                running[begun[0].sentinel] = begun


def _begin(listening: socket.socket) -> tuple[BaseProcess, socket.socket]:
    """Begin the next task: return its process, and who waits for it."""
    place, _ = listening.accept()
    message, channels, _, _ = socket.recv_fds(place, 1 << 20, 3)
    task = json.loads(message)
    process = get_context("fork").Process(target=_become, args=(task, channels))
    process.start()
    for channel in channels:
        os.close(channel)
    _send(place, process.pid or 0)
    return process, place


def _send(place: socket.socket, number: int) -> None:
    with contextlib.suppress(BrokenPipeError):  # who asked for it was killed
        place.send(b"%d" % number)


@cache
def _load() -> None:
    """Load what most commands do, once: the names of the library, its kernels, and what reads options."""
    import inca
    from inca.network.node.warm_up import warm_up

    for module in ("networkx", "inca.learn", "inca.network.node.runner"):
        import_module(module)
    for name in inca.__all__:
        getattr(inca, name)
    warm_up()
    with contextlib.redirect_stderr(io.StringIO()), contextlib.suppress(SystemExit):
        _run(["inca", "node", "roster", "show", "nowhere.json"])
    gc.freeze()  # collecting what all forks share would copy it


def _become(task: dict[str, Any], channels: list[int]) -> None:
    """Be the program that was called."""
    for number, channel in enumerate(channels):
        os.dup2(channel, number)
        os.close(channel)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        by_line = name == "stderr" or os.isatty(number)
        stream = os.fdopen(number, "w" if number else "r", buffering=1 if by_line else -1, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.chdir(task["folder"])
    os.environ.clear()
    os.environ.update(task["environment"])
    _run(task["words"])


def _run(words: list[str]) -> None:
    """Run `python FILE ...` or `inca ...`."""
    if words[0] == "python":
        sys.argv = words[1:]
        sys.path.insert(0, "")
        runpy.run_path(words[1], run_name="__main__")
    else:
        from inca.cli import main

        sys.argv = words
        main()


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
