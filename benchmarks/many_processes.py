"""One session of hundreds of real processes on this machine, some of them killed: what it takes, and what limits it.

    python benchmarks/many_processes.py [--parties 300] [--dimension 10] [--killed 3] [--period 60]

The session is planned as those of `benchmarks/network.py` are: for a tenth colluding and a tenth leaving.
Every party is a process with keys, a journal (SQLite, written before anything is sent) and TLS connections of its own,
forked from one that has loaded the program. Some are killed (SIGKILL) in the middle of the rounds and stay away. A
line every twenty seconds says how far the others are. Everything shares the cores of this machine, so the period is
long: it is how long a party waits for one that is silent, and on a busy core a party that is there may be silent long.

A session's time runs from the agreed start to the end of the last process; starting the processes comes before, and the
start leaves time for it (`--starting`, seconds of a core for each).
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.network import (
    MOST,
    Trial,
    cpu_seconds,
    has_result,
    heading,
    line,
    memory_of,
    outcome,
    terms_of,
    trial_as,
)

from inca.documents.result import ResultDocument

SHOWN_EVERY_S = 20.0
LOOK_EVERY_S = 0.1  # at those who are to be killed; a round may take no longer than a second
SAMPLE = 10  # processes whose memory is looked at


@dataclass
class Peak:
    """The most that was seen at once, in a sample of the processes: to look at the pages of one takes long."""

    pss: float = 0.0  # MiB, of all processes: their own pages, and those that they share
    own: float = 0.0  # MiB, that one process shares with nobody
    files: int = 0  # open, of one process
    cpu: dict[int, float] = field(default_factory=dict)  # seconds of each process, when it was seen last

    def look(self, pids: dict[int, int]) -> None:
        self.files = max([self.files, *(open_files(pid) for pid in pids.values())])
        self.cpu |= {i: spent for i, pid in pids.items() if (spent := cpu_seconds(pid)) is not None}
        sample = random.sample(sorted(pids.values()), min(SAMPLE, len(pids)))
        memory = [held for pid in sample if (held := memory_of(pid))[0] > 0.0]
        if memory:
            self.pss = max(self.pss, sum(pss for pss, _ in memory) / len(memory) * len(pids))
            self.own = max([self.own, *(own for _, own in memory)])


def open_files(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return 0  # it has ended


class Crowd(Trial):
    """A session that is looked at seldom: hundreds of processes need the cores themselves."""

    def run(self) -> None:
        """Start everything, kill in time, and wait for the end."""
        cluster, terms, self.peak = self.cluster, self.cluster.terms, Peak()
        for i in self.watches:
            cluster.start(i)
        print(f"  {time.time() - self.began:6.0f} s  all processes are started; {terms.start - time.time():.0f} s left")
        deadline = terms.start + (terms.rounds + MOST) * terms.period
        shown, waiting = 0.0, dict(self.moments)
        while (running := cluster.running()) and time.time() < deadline:
            for i, moment in list(waiting.items()):
                if self.watches[i].look() >= moment:
                    del waiting[i]
                    self._kill(i, {})
            if time.time() >= shown + SHOWN_EVERY_S:
                shown = time.time()
                self.peak.look({i: pid for i in running if (pid := cluster.processes[i].pid) is not None})
                self._show(running)
            time.sleep(LOOK_EVERY_S if waiting else 1.0)
        self.hanging = cluster.running()
        for watch in self.watches.values():
            watch.look()

    def _show(self, running: list[int]) -> None:
        stages = Counter(str(self.cluster.status(i).get("stage", "starts")) for i in running)
        where = ", ".join(f"{count} {stage}" for stage, count in stages.most_common())
        print(
            f"  {time.time() - self.began:6.0f} s  {len(running)} run: {where}; "
            f"{self.peak.pss / len(self.cluster.names):.0f} MiB and "
            f"{np.mean(list(self.peak.cpu.values())):.2f} s of CPU a party",
            flush=True,
        )

    def entered(self) -> dict[str, list[float]]:
        """Return when parties entered each stage of the end, in seconds after the start, in order."""
        moments: dict[str, list[float]] = {}
        for i in self.undisturbed:
            for entry in self.cluster.log(i):
                if entry["event"] == "stage":
                    moments.setdefault(entry["stage"], []).append(entry["time"] - self.cluster.terms.start)
        return {stage: sorted(times) for stage, times in moments.items()}


def many(options: argparse.Namespace) -> None:
    n, terms = options.parties, terms_of(options, options.parties, options.dimension)
    rng = random.Random(options.seed)
    victims = rng.sample(range(n), options.killed)
    moments = {i: rng.randint(max(1, terms.rounds // 4), max(1, 3 * terms.rounds // 4)) for i in victims}
    heading(options, n, terms)
    with trial_as(Crowd, options, n, terms, moments=moments) as held:
        held.run()
        line("killed in the rounds", f"{len(held.killed):8d}")
        outcome(held)
        holders = [i for i in held.expected if has_result(held.cluster.result(i))]
        if holders:
            folder = held.cluster.session_folder(holders[0])
            result = ResultDocument.read(folder / "result.json")
            there = [held.cluster.names.index(name) for name in result.cohort or ()]
            error = result.vector(folder, "estimate") - held.cluster.values[there].mean(axis=0)
            line("distance to the mean of those who stayed", f"{np.linalg.norm(error):8.4f}")
        for stage, times in held.entered().items():
            line(f"  {stage}", f"{times[0]:8.1f} s first, {np.median(times):.1f} s median, {times[-1]:.1f} s last")
        line("CPU of a party, from fork to end", f"{np.mean(list(held.peak.cpu.values())):8.2f} s")
        line("memory of all at once (PSS)", f"{held.peak.pss / 1024:8.2f} GiB, {held.peak.pss / n:.1f} MiB a party")
        line("  of one, its own alone, at most", f"{held.peak.own:8.1f} MiB")
        line("open files of one, at most", f"{held.peak.files:8d}")
        events = Counter(entry["event"] for i in held.undisturbed for entry in held.cluster.log(i))
        for event in ("connected", "lost", "down", "violation", "refused", "throttled", "accepting failed"):
            line(f"  {event}", f"{events[event] / n:8.1f} a party")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=0, help="by default as many as the plan says")
    parser.add_argument("--dimension", type=int, default=10)
    parser.add_argument("--killed", type=int, default=3)
    parser.add_argument("--period", type=float, default=60.0)
    parser.add_argument("--starting", type=float, default=1.0, help="seconds of a core to start a process")
    parser.add_argument("--colluding", type=float, default=0.1)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    options.run, options.share = many, options.killed / options.parties
    options.run(options)
