"""Transcripts of a shell in the docs: taken from a page, run in an empty folder on a terminal of 80 columns, compared.

A section of a page is one visit to a shell. Blocks of ```console hold commands behind "$ ", which may go on behind
"> ", and what they print; a block of ```py whose first line is a comment with a file name is that file. Behind
`<!-- slow -->` comes what takes longer.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

SLOW = "<!-- slow -->"
COLUMNS = 80
PATIENCE_S = 600.0  # a busy machine takes longer, a command that hangs for ever
_BLOCK = re.compile(rf"{SLOW}|```(console|py)\n(.*?)```", re.DOTALL)
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_FILE = re.compile(r"# (\S+\.py)\n")


@dataclass(frozen=True)
class Step:
    """One thing that a reader does: a command that prints something, or a file that it writes.

    Args:
        command: What is typed; nothing for a file.
        printed: What it prints, or the contents of the file.
        file: The name of the file; nothing for a command.
        slow: Whether it comes behind the mark.
    """

    command: str
    printed: str
    file: str = ""
    slow: bool = False


def sections(page: str) -> dict[str, list[Step]]:
    """Return the steps of every section that has some, by its heading."""
    parts = re.split(r"^## (.+)$", page, flags=re.MULTILINE)[1:]
    found = {heading: _steps(text) for heading, text in zip(parts[::2], parts[1::2], strict=True)}
    return {heading: steps for heading, steps in found.items() if steps}


def _steps(text: str) -> list[Step]:
    steps, slow = [], False
    for match in _BLOCK.finditer(text):
        kind, block = match.groups()
        if kind is None:
            slow = True
        elif kind == "py":
            name = _FILE.match(block)
            assert name is not None, "a file begins with its name"
            steps.append(Step("", block, file=name[1], slow=slow))
        else:
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, output = _command(part)
                steps.append(Step(command, output, slow=slow))
    return steps


def _command(part: str) -> tuple[str, str]:
    """Return a command, which may go on in lines behind "> ", and what it prints."""
    first, *lines = part.splitlines()
    more = list(takewhile(lambda line: line.startswith("> "), lines))
    return "\n".join([first, *(line[2:] for line in more)]), "\n".join(lines[len(more) :])


def take(step: Step, folder: Path, programs: Path | None = None) -> str:
    """Do one step in a folder, and return what the terminal shows: results, then the sentence of a refusal.

    Args:
        step: What to do.
        folder: Where.
        programs: A folder with other programs than those that are installed, such as `helpers.warm_programs`.
    """
    if step.file:
        (folder / step.file).write_text(step.printed)
        return step.printed
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, COLUMNS, 0, 0))
    shown = bytearray()
    reader = threading.Thread(target=_read, args=(master, shown))
    with tempfile.TemporaryFile("w+") as errors:  # progress, which depends on the machine, and refusals
        process = subprocess.Popen(
            ["bash", "-c", step.command],
            cwd=folder,
            env=_environment(programs),
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=errors,
            start_new_session=True,
        )
        os.close(slave)
        reader.start()
        try:
            process.wait(PATIENCE_S)
        finally:
            _end(process)
            reader.join()
            os.close(master)
        errors.seek(0)
        refusals = [line for line in errors.read().splitlines() if line.startswith(("inca: ", "Traceback"))]
    text = _ESCAPES.sub("", shown.decode().replace("\r\n", "\n"))
    return "\n".join([*text.splitlines(), *refusals])


def _environment(programs: Path | None) -> dict[str, str]:
    """Return the environment of a reader who has installed inca, without colours."""
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES", "FORCE_COLOR")}
    folders = [str(programs)] * (programs is not None) + [str(Path(sys.executable).parent), os.environ["PATH"]]
    return kept | {"PATH": os.pathsep.join(folders), "TERM": "dumb", "OPENBLAS_NUM_THREADS": "1"}


def _read(master: int, shown: bytearray) -> None:
    while True:
        try:
            part = os.read(master, 1 << 16)
        except OSError:  # the last process that could write has ended
            return
        if not part:
            return
        shown += part


def _end(process: subprocess.Popen[bytes]) -> None:
    """End what a command has left behind."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def agrees(shown: str, printed: str) -> bool:
    """Whether what was shown is what a page says: `...` stands for a part of a line, alone on a line for some lines.

    >>> agrees("a 12 s\\nb\\nc\\n", "a ... s\\n...\\nc"), agrees("a\\nb", "a"), agrees("ab", "a.")
    (True, False, False)
    """
    lines = []
    for line in printed.splitlines():
        if line.strip() == "...":
            lines.append(r"(?:[^\n]*\n)*?")
        else:
            lines.append(r"[^\n]*?".join(map(re.escape, line.rstrip().split("..."))) + "\n")
    text = "".join(line.rstrip() + "\n" for line in shown.splitlines())
    return re.fullmatch("".join(lines), text) is not None
