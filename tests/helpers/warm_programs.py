"""`inca` and `python` for a shell, in forks of an interpreter that has loaded the library once.

A program of its own spends most of its time with loading. What it prints, how it ends and what it writes is the same
here, as it runs the same code with the same words, folder, environment and terminal; but what it would have to load
itself is there already. The slow suite starts everything anew.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

# Started for every command: it loads no more than it needs, and hands over all that a program gets from its shell.
_CLIENT = """#!{python} -IS
import json, os, socket, sys

with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as place:
    place.connect({address!r})
    task = {{"words": sys.argv, "folder": os.getcwd(), "environment": dict(os.environ)}}
    socket.send_fds(place, [json.dumps(task).encode()], [0, 1, 2])
    sys.exit(int(place.recv(8) or b"70"))
"""


@contextlib.contextmanager
def warm_programs() -> Iterator[Path]:
    """Hold a folder with the two programs, to be put in front of a shell's PATH."""
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
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        programs = Path(folder) / "bin"
        programs.mkdir()
        for name in ("inca", "python"):
            (programs / name).write_text(_CLIENT.format(python=sys.executable, address=address))
            (programs / name).chmod(0o700)
        try:
            yield programs
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as place:
                place.connect(address)
                place.send(b"{}")
            assert server.wait(60.0) == 0
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(server.pid, signal.SIGKILL)
            server.wait()


def serve(listening: socket.socket) -> None:
    """Do tasks, each in a fork, until there comes one without words."""
    _load()
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        place, _ = listening.accept()
        message, channels, _, _ = socket.recv_fds(place, 1 << 20, 3)
        task = json.loads(message)
        if not task:
            break
        if os.fork() == 0:
            listening.close()
            _do(task, channels, place)
        for channel in channels:
            os.close(channel)
        place.close()
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _load() -> None:
    """Load what most commands do: the names of the library, its kernels, and what reads options."""
    import networkx  # noqa: F401

    import inca
    import inca.learn
    import inca.network.membership.roster
    from inca.network.node.warm_up import warm_up

    for name in inca.__all__:
        getattr(inca, name)
    warm_up()
    with contextlib.redirect_stderr(io.StringIO()):
        _status(["inca", "node", "roster", "show", "nowhere.json"])


def _do(task: dict[str, Any], channels: list[int], place: socket.socket) -> NoReturn:
    """Be the program that was called, and tell the status with which it ends."""
    status = 70
    try:
        for number, channel in enumerate(channels):
            os.dup2(channel, number)
            os.close(channel)
        sys.stdin = sys.__stdin__ = open(0, closefd=False)  # noqa: SIM115
        for name, number in (("stdout", 1), ("stderr", 2)):
            stream = open(number, "w", buffering=1 if os.isatty(number) else -1, closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        os.chdir(task["folder"])
        os.environ.clear()
        os.environ.update(task["environment"])
        status = _status(task["words"])
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        place.send(b"%d" % status)
        os._exit(status)


def _status(words: list[str]) -> int:
    try:
        if Path(words[0]).name == "python":
            sys.argv = words[1:]
            sys.path.insert(0, "")
            runpy.run_path(words[1], run_name="__main__")
        else:
            from inca.cli import main

            sys.argv = words
            main()
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
