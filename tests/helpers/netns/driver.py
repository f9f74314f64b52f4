"""The first process in namespaces of its own: it starts others there, and all of them end with it.

It is run by `unshare`, and does what `helpers.netns.internet` asks, a line of JSON each; nothing but the standard
library is loaded. Where its input ends, it ends, and as it is the first process of its namespace, the kernel then kills
all others in it, and the network goes with them: whatever becomes of the test, nothing remains.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

# Each process has the names of its place alone: /etc/hosts is one of the mounts of a namespace.
_ENTER = 'mount --bind "$1" /etc/hosts && shift && exec "$@"'
_TICKS = os.sysconf("SC_CLK_TCK")


class Driver:
    """Runs commands, and keeps processes by their number."""

    def __init__(self) -> None:
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def begin(self) -> None:
        """Make room for the names of networks; no name is asked of a server."""
        subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
        Path("/run/netns").mkdir()
        servers = Path("/etc/resolv.conf").resolve()  # a link into /run, maybe
        if not servers.exists():
            servers.parent.mkdir(parents=True, exist_ok=True)
            servers.touch()
        Path("/run/resolv.conf").write_text("nameserver 127.0.0.1\n")  # where nothing listens
        subprocess.run(["mount", "--bind", "/run/resolv.conf", str(servers)], check=True)

    def run(self, words: list[str], place: str | None, text: str) -> dict[str, Any]:
        """Run a command to its end, in a place or outside all of them."""
        done = subprocess.run(_inside(place, words), input=text, capture_output=True, text=True, check=False)
        return {"status": done.returncode, "out": done.stdout, "err": done.stderr}

    def start(self, words: list[str], place: str, output: str, environment: dict[str, str]) -> int:
        """Start a process in a place; return its number."""
        with Path(output).open("ab") as file:
            process = subprocess.Popen(
                _inside(place, words), stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env=environment
            )
        self._processes[process.pid] = process
        return process.pid

    def look(self, pid: int) -> dict[str, Any]:
        """Return how a process ended, None if it runs, and what it has taken of the machine while it does."""
        seconds = peak = 0.0
        if (status := self._processes[pid].poll()) is None:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            seconds = (int(fields[11]) + int(fields[12])) / _TICKS
            words = Path(f"/proc/{pid}/status").read_text().partition("VmHWM:")[2].split()
            peak = int(words[0]) / 1024 if words else 0.0  # none if it has ended since
        return {"status": status, "cpu_seconds": seconds, "peak_mib": peak}

    def signal(self, pid: int, number: int) -> None:
        """Send a signal to a process that may have ended."""
        self._processes[pid].send_signal(number)


def _inside(place: str | None, words: list[str]) -> list[str]:
    if place is None:
        return words
    return [
        *("nsenter", f"--net=/run/netns/{place}"),
        *("unshare", "--mount", "sh", "-c", _ENTER, "sh", f"/run/hosts-{place}"),
        *words,
    ]


def main() -> None:
    """Do what is asked, until nothing is any more."""
    driver = Driver()
    for line in sys.stdin:
        verb, arguments = json.loads(line)
        try:
            answer: dict[str, Any] = {"answer": getattr(driver, verb)(**arguments)}
        except (OSError, subprocess.SubprocessError) as error:
            answer = {"error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
