"""Sessions of real processes on this machine, over TLS on the loopback interface, with some of them killed.

    python benchmarks/network.py kill [--parties 100] [--dimension 1000] [--share 0.2] [--runs 1]
    python benchmarks/network.py compare [--parties 100] [--dimension 10000] [--share 0.1] [--against COMMIT] [--runs 1]
    python benchmarks/network.py profile [--parties 30] [--dimension 10000]
    python benchmarks/network.py vectors [--parties 12] [--dimension 1000000] [--rounds T] [--period 10] [--share 0]
    python benchmarks/network.py grow [--numbers 6 12 24 48] [--lengths 2 4 8 16] [--sizes 1 1000 10000 100000]

A session is planned, for epsilon 1, a tenth colluding and a tenth leaving, or the share that is killed if it is more:
the plan decides rounds, receivers and noise. With `--rounds T`, and for `--lengths`, it has T rounds of permutations,
and little noise.

`kill`: a share of the processes is killed (SIGKILL), each when its own log says that it has reached a round or a stage
of the end drawn at random; half of them are started again a second later. `compare`: some are killed in the middle and
stay away; with `--against` beside another commit of this repository, in turns, as ratios of CPU seconds and of the
time to the result: each plans by its own code, so that sessions of the same guarantee are compared, with the rounds
that either needs for it. `profile`: CPU seconds of a process, which a busy machine changes little, and where they go in
one of them. `grow`: time, CPU and memory of a session without faults, one size varied at a time. `vectors`: a session
of large vectors, of which a share is killed when the rounds are over, and started again; beside plain TLS copying of
the bytes that travel in it, and where PyTorch is there, beside an all-reduce of gloo.

A session's time runs from the agreed start to the end of the last process; starting the processes comes before, and the
start leaves time for it (`--starting`). Everything shares the cores of this machine; the first line tells how many.
"""

from __future__ import annotations

import argparse
import cProfile
import importlib.util
import json
import math
import os
import pstats
import random
import resource
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import numpy as np

import inca
from inca.network.membership.identity import Identity
from inca.network.membership.terms import Terms
from inca.network.membership.tls import client_context, server_context
from inca.network.testing.fork_server import start_fork_server
from inca.network.testing.local_cluster import LocalCluster, run_local_party

ENDING = ("digests", "agreeing", "assessing", "opening", "serving")
MOST = 14  # periods from the end of the last round to the end of everything, at the very most
TICK = os.sysconf("SC_CLK_TCK")


@dataclass
class Watch:
    """Follows a party's log, and knows how far the party is: its round, or beyond the last one, its stage."""

    path: Path
    rounds: int
    place: int = 0
    listens: float = 0.0
    known: float = 0.0  # when it had the result, and only others may still lack something
    ended: float = 0.0
    _read: int = 0

    def look(self) -> int:
        if not self.path.exists():
            return self.place
        with self.path.open("rb") as file:
            file.seek(self._read)
            lines = file.read().splitlines(keepends=True)
        for line in lines:
            if not line.endswith(b"\n"):
                break
            self._read += len(line)
            entry = json.loads(line)
            match entry["event"]:
                case "listens":
                    self.listens, self.ended = self.listens or entry["time"], 0.0
                case "round":
                    self.place = entry["round"]
                case "stage" if entry["stage"] in ENDING:
                    self.place = self.rounds + 1 + ENDING.index(entry["stage"])
                    self.known = entry["time"] if entry["stage"] == "serving" else 0.0
                case "ended":
                    self.ended = entry["time"]
        return self.place


@dataclass
class Trial:
    """A session: its processes, whom to kill where, and what came of it."""

    cluster: LocalCluster
    began: float
    moments: dict[int, int] = field(default_factory=dict)
    returning: frozenset[int] = frozenset()
    measured: bool = False  # CPU of every process
    sampled: bool = False  # their memory too, which costs the kernel time and slows all of them
    killed: dict[int, int] = field(default_factory=dict)
    hanging: list[int] = field(default_factory=list)
    cpu: dict[int, float] = field(default_factory=dict)
    memory: dict[int, tuple[float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        rounds, parties = self.cluster.terms.rounds, range(len(self.cluster.names))
        self.watches = {i: Watch(self.cluster.session_folder(i) / "log.jsonl", rounds) for i in parties}

    def run(self) -> None:
        """Start everything, kill in time, and wait for the end."""
        cluster, terms = self.cluster, self.cluster.terms
        for i in self.watches:
            cluster.start(i)
        time.sleep(max(0.0, terms.start - 0.5 - time.time()))
        before = self._spent() if self.measured else {}
        deadline = terms.start + (terms.rounds + MOST) * terms.period
        waiting, restarts = dict(self.moments), dict[int, float]()
        spent, seen = dict(before), 0.0
        while time.time() < deadline:
            for i, moment in list(waiting.items()):
                if self.watches[i].look() >= moment:
                    del waiting[i]
                    self._kill(i, restarts)
            for i, when in list(restarts.items()):
                if time.time() >= when:
                    del restarts[i]
                    cluster.start(i)
            if self.measured:
                spent |= self._spent()  # the last time that each was seen
            if self.sampled and time.time() >= seen + 0.5:
                seen = time.time()
                self._sample()
            if not restarts and not cluster.running():
                break
            time.sleep(0.005 if waiting else 0.05)
        self.cpu = {i: spent[i] - before[i] for i in before}
        self.hanging = cluster.running()
        for watch in self.watches.values():
            watch.look()

    def _kill(self, i: int, restarts: dict[int, float]) -> None:
        if not self.cluster.processes[i].is_alive():
            return  # it was faster
        self.cluster.kill(i)
        self.killed[i] = self.watches[i].look()
        if i in self.returning:
            restarts[i] = time.time() + 1.0

    def _spent(self) -> dict[int, float]:
        seconds = ((i, cpu_seconds(process.pid)) for i, process in self.cluster.processes.items())
        return {i: spent for i, spent in seconds if spent is not None}

    def _sample(self) -> None:
        for i, process in self.cluster.processes.items():
            now, before = memory_of(process.pid), self.memory.get(i, (0.0, 0.0))
            self.memory[i] = max(now[0], before[0]), max(now[1], before[1])

    @property
    def ready(self) -> float:
        return max(watch.listens for watch in self.watches.values()) - self.began

    @property
    def late(self) -> int:
        """How many were not ready before the start."""
        start = self.cluster.terms.start
        return sum(not 0.0 < watch.listens < start - 1.0 for watch in self.watches.values())

    def seconds(self, parties: Iterable[int]) -> tuple[float, float]:
        """From the start until the last of these had the result, and until the last had ended."""
        watches, start = [self.watches[i] for i in parties], self.cluster.terms.start
        return max(watch.known for watch in watches) - start, max(watch.ended for watch in watches) - start

    @property
    def undisturbed(self) -> list[int]:
        return [i for i in self.watches if i not in self.killed]

    @property
    def expected(self) -> list[int]:
        """Who ran at the end, and should have the result."""
        return [i for i in self.watches if i not in self.killed or i in self.returning]

    def said(self, i: int) -> str:
        """Return the last words of a process."""
        words = (self.cluster.party_folder(i) / "output.txt").read_text().split("\n")
        return next((word for word in reversed(words) if word), "no report, no word")

    def results(self) -> dict[int, dict[str, Any]]:
        return {i: report for i in self.watches if (report := self.cluster.result(i))}


def has_result(report: dict[str, Any]) -> bool:
    """Whether a party's result.json is of a session that had a result."""
    return "total_weight" in report


def cpu_seconds(pid: int | None) -> float | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None  # it has ended
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_of(pid: int | None) -> tuple[float, float]:
    """Return what a process holds in MiB: its fair part of what is shared (PSS), and what is its own alone."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    except OSError:
        return 0.0, 0.0
    sizes = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in lines}
    return sizes.get("Pss", 0.0), sizes.get("Private_Clean", 0.0) + sizes.get("Private_Dirty", 0.0)


EPSILON, DELTA, LEAVING = 1.0, 1e-5, 0.1


def terms_of(options: argparse.Namespace, parties: int, dimension: int, rounds: int | None = None) -> Terms:
    """Return the terms of a session that begins at some time: as planned, or with so many rounds.

    It runs with the sources of other commits, too (`compare --against`), so it uses nothing that is new.
    """
    seed = np.random.default_rng(options.seed).bytes(16).hex()
    agreed: dict[str, Any] = {
        "radius": 1.0,
        "min_participants": max(
            parties - round(max(LEAVING, 1.5 * options.share) * parties), math.ceil(options.colluding * parties) + 2
        ),
        "start": time.time(),
        "period": options.period,
        "max_clock_skew": 0.4 * options.period,
    }
    rounds = rounds or options.rounds
    if rounds:
        return Terms(
            rounds=rounds,
            schedule="permutation",
            sigma_independent=0.5,
            sigma_cancelling=5.0,
            dimension=dimension,
            epsilon=100.0,
            delta=DELTA,
            rule="analytic",
            colluding=options.colluding,
            seed=seed,
            **({"quiet_rounds": 0} if "quiet_rounds" in Terms.__struct_fields__ else {}),
            **agreed,
        )
    leaving = max(LEAVING, options.share)
    plan = inca.plan(
        inca.Requirements(parties, EPSILON, DELTA, colluding=options.colluding, dropout=leaving, sensitivity=2.0)
    )
    return Terms.from_plan(plan, dimension=dimension, seed=None if plan.design.schedule == "circle" else seed, **agreed)


Held = TypeVar("Held", bound=Trial)


@contextmanager
def trial_as(form: type[Held], options: argparse.Namespace, parties: int, terms: Terms, **more: Any) -> Iterator[Held]:
    """Make identities, values and a roster, and leave no process behind."""
    rng = np.random.default_rng(options.seed)
    values = rng.standard_normal((parties, terms.dimension))
    values *= 0.9 / np.linalg.norm(values, axis=1, keepdims=True)
    start_fork_server()
    began = time.time()
    starting = options.starting * parties / (os.cpu_count() or 1) + 6.0
    kind = ProfiledCluster if options.run is profile else LocalCluster
    with tempfile.TemporaryDirectory(prefix="inca-benchmark-") as folder:
        names = [f"party {i}" for i in range(parties)]
        cluster = kind(Path(folder), values, names, msgspec.structs.replace(terms, start=began + starting))
        try:
            yield form(cluster, began, **more)
        finally:
            cluster.stop()


def trial(options: argparse.Namespace, parties: int, terms: Terms, **more: Any) -> AbstractContextManager[Trial]:
    """Return a session that is watched closely."""
    return trial_as(Trial, options, parties, terms, **more)


PARTS = {  # what a party's CPU time is spent on: the functions that stand for it, by file and name
    "TLS handshakes": ("do_handshake' of '_ssl",),
    "signatures verified": ("'verify' of 'cryptography",),
    "TLS, reading and writing": ("'read' of '_ssl", "'write' of '_ssl"),
    "journal (SQLite)": ("of 'sqlite3.Connection'",),
    "noise drawn": ("(discrete_gaussian)",),
}


class ProfiledCluster(LocalCluster):
    """Every party leaves a note of its CPU time; the first one a profile of it as well."""

    def main_of(self, i: int) -> Callable[..., None]:
        return partial(_run_profiled, i == 0)


def _run_profiled(profiled: bool, *arguments: Any) -> None:
    home = arguments[1]
    profiler = cProfile.Profile(time.thread_time)
    try:
        (profiler.runcall if profiled else lambda run, *rest: run(*rest))(run_local_party, *arguments)
    finally:
        usage = resource.getrusage(resource.RUSAGE_SELF)
        (home / "cpu.json").write_text(json.dumps([usage.ru_utime, usage.ru_stime, time.thread_time()]))
        if profiled:
            profiler.dump_stats(home / "profile.out")


def line(name: str, value: str) -> None:
    print(f"  {name:36s} {value}", flush=True)


def heading(options: argparse.Namespace, parties: int, terms: Terms) -> None:
    made = "given" if options.rounds else f"planned for epsilon {terms.epsilon:g}"
    print(
        f"n = {parties:,}, T = {terms.rounds} ({terms.schedule}, {made}), d = {terms.dimension:,}, one receiver, "
        f"period {options.period:g} s, {options.colluding:.0%} colluding, {os.cpu_count()} cores",
        flush=True,
    )


def outcome(held: Trial) -> None:
    """Print who has which result, and whether it is the exact one."""
    results, expected = held.results(), held.expected
    kinds = Counter(
        (report["execution"], np.array(held.cluster.sums(i)).tobytes())
        for i, report in results.items()
        if has_result(report)
    )
    holders = [i for i, report in results.items() if has_result(report)]
    line("all ready after", f"{held.ready:8.1f} s ({held.late} too late)")
    known, ended = held.seconds(held.undisturbed)
    line("session, until all have the result", f"{known:8.2f} s")
    line("session, until the last has ended", f"{ended:8.2f} s")
    if back := held.returning & set(held.killed):
        line("  of those that came back", f"{held.seconds(back)[1]:8.2f} s")
    same = max(kinds.values(), default=0)
    line("the same result", f"{same:8d} of {len(expected)} that ran at the end, {len(kinds)} different results")
    reasons = Counter(results[i]["reason"] if i in results else held.said(i) for i in expected if i not in holders)
    for reason, times in reasons.most_common(5):
        line("  without, since", f"{times:8d} {reason}")
    line("processes that hang", f"{len(held.hanging):8d}")
    if holders:
        report = results[holders[0]]
        same_sums = held.cluster.expected_sum(holders[0]) == held.cluster.sums(holders[0])
        comparison = "equal, to the last unit" if same_sums else "DIFFERENT"
        line("beside the journals of those who stayed", f"         {comparison}")
        line("settled", f"{len(report['cohort']):8d}")
        line("contradictions", f"{len(report['contradictions']):8d}")


def kill(options: argparse.Namespace) -> None:
    n, terms = options.parties, terms_of(options, options.parties, options.dimension)
    for run in range(options.runs):
        rng = random.Random(options.seed + run)
        victims = rng.sample(range(n), round(options.share * n))
        moments = {i: rng.randint(1, terms.rounds + len(ENDING) - 1) for i in victims}
        returning = frozenset(victims[: len(victims) // 2])
        heading(options, n, terms)
        with trial(options, n, terms, moments=moments, returning=returning) as held:
            held.run()
            middle = sum(place <= terms.rounds for place in held.killed.values())
            where = f"{middle} in rounds, {len(held.killed) - middle} after them"
            missed, back = len(victims) - len(held.killed), len(returning & set(held.killed))
            line("killed", f"{len(held.killed):8d} ({where}, {missed} missed); {back} started again a second later")
            outcome(held)


def compare(options: argparse.Namespace) -> None:
    if options.against:
        compare_commits(options)
        return
    n, terms = options.parties, terms_of(options, options.parties, options.dimension)
    rng = random.Random(options.seed)
    victims = rng.sample(range(n), round(options.share * n))
    moments = {i: rng.randint(max(1, terms.rounds // 4), max(1, 3 * terms.rounds // 4)) for i in victims}
    heading(options, n, terms)
    with trial(options, n, terms, moments=moments, measured=True) as held:
        held.run()
        line("killed in the middle, none back", f"{len(held.killed):8d}")
        outcome(held)
        known, ended = held.seconds(held.undisturbed)
        spent = float(np.mean([held.cpu[i] for i in held.undisturbed]))
        line("CPU of a party that stayed", f"{spent:8.2f} s")
        line("inca, no server, whole session", f"{known:8.2f} s until all have the result, {ended:.2f} s until all end")
    line("Flower SecAgg+, a server", "python benchmarks/flower_secagg.py runs it with the same sizes")
    if options.figures:
        Path(options.figures).write_text(json.dumps({"CPU of a party, s": spent, "time to the result, s": known}))


def compare_commits(options: argparse.Namespace) -> None:
    """Run this file with the sources of another commit and with those of now, in turns, and print the ratios."""
    root = Path(__file__).parents[1]
    figures: dict[str, list[dict[str, float]]] = {"before": [], "now": []}
    with tempfile.TemporaryDirectory(prefix="inca-before-") as folder:
        before = Path(folder) / "tree"
        git = ["git", "-C", str(root), "worktree"]
        subprocess.run([*git, "add", "--detach", str(before), options.against], check=True, capture_output=True)
        try:
            for _ in range(options.runs):
                for name, tree in (("before", before), ("now", root)):
                    print(f"{name}: {options.against if name == 'before' else 'this tree'}", flush=True)
                    figures[name].append(_figures_of(tree, Path(folder) / "figures.json"))
        finally:
            subprocess.run([*git, "remove", "--force", str(before)], check=True, capture_output=True)
    for what in figures["now"][0]:
        ours, theirs = (float(np.median([run[what] for run in figures[name]])) for name in ("now", "before"))
        line(what, f"{ours:8.2f}, before {theirs:.2f}: ratio {ours / theirs:.2f} (medians of {options.runs})")


def _figures_of(tree: Path, path: Path) -> dict[str, float]:
    kept = [word for word in sys.argv[1:] if word != "compare"]
    for option in ("--against", "--runs"):
        if option in kept:
            del kept[kept.index(option) : kept.index(option) + 2]
    command = [sys.executable, __file__, "compare", *kept, "--figures", str(path)]
    subprocess.run(command, check=True, env={**os.environ, "PYTHONPATH": str(tree / "src")})
    figures: dict[str, float] = json.loads(path.read_text())
    return figures


def profile(options: argparse.Namespace) -> None:
    n, terms = options.parties, terms_of(options, options.parties, options.dimension)
    heading(options, n, terms)
    with trial(options, n, terms) as held:
        held.run()
        outcome(held)
        homes = [held.cluster.party_folder(i) for i in range(n)]
        user, system, thread = np.array([json.loads((home / "cpu.json").read_text()) for home in homes[1:]]).mean(
            axis=0
        )
        line("CPU of a party, from fork to end", f"{user + system:8.2f} s ({user:.2f} user, {system:.2f} system)")
        line("  protocol, transport, journal", f"{thread:8.2f} s")
        line("  accounting and reports (threads)", f"{user + system - thread:8.2f} s")
        log = held.cluster.log(1)
        line("TLS connections of a party", f"{sum(entry['event'] == 'connected' for entry in log):8d} of {n - 1}")
        stats = pstats.Stats(str(homes[0] / "profile.out"))
    # The type stubs of pstats leave these two attributes out.
    entries = [(f"{file}:{at}({name})", row) for (file, at, name), row in stats.stats.items()]  # type: ignore[attr-defined]
    line("protocol of party 0, profiled", f"{stats.total_tt:8.2f} s")  # type: ignore[attr-defined]
    for part, words in PARTS.items():
        rows = [row for where, row in entries if any(word in where for word in words)]
        calls, own = sum(row[0] for row in rows), sum(row[2] for row in rows)
        line(f"  {part}", f"{own:8.3f} s in {calls:,} calls")
    stats.sort_stats("tottime").print_stats(options.lines)


def vectors(options: argparse.Namespace) -> None:
    n, terms = options.parties, terms_of(options, options.parties, options.dimension)
    heading(options, n, terms)
    travel = 8 * terms.dimension * n * (terms.rounds + n - 1)  # shares, and everyone's final message to all others
    victims = random.Random(options.seed).sample(range(n), round(options.share * n))
    moments, returning = dict.fromkeys(victims, terms.rounds + 1 + ENDING.index("agreeing")), frozenset(victims)
    with trial(options, n, terms, moments=moments, returning=returning, measured=True, sampled=True) as held:
        held.run()
        outcome(held)
        (known, _), cpu = held.seconds(held.undisturbed), [held.cpu[i] for i in held.undisturbed]
        line("CPU of a party", f"{np.mean(cpu):8.2f} s ({max(cpu):.2f} s of the one with most)")
        line("its own memory, at most", f"{max(held.memory[i][1] for i in held.undisturbed):8.0f} MiB")
        if held.killed:
            line("  of one that came back", f"{max(held.memory[i][1] for i in held.killed):8.0f} MiB")
        files = held.cluster.session_folder(0).iterdir()
        line("on its disk at the end", f"{sum(file.stat().st_size for file in files) / 2**20:8.0f} MiB")
        copied = tls_copy_seconds(held.cluster, travel)
    line("all its bytes over TLS, copied", f"{copied:8.2f} s of CPU for {travel / 2**30:.2f} GiB")
    line("  all parties together", f"{sum(cpu) / copied:8.1f} x")
    if (reduced := all_reduce_seconds(n, terms.dimension)) is None:
        line("all-reduce of gloo", "         not compared: PyTorch is not installed")
    else:
        line("all-reduce of gloo", f"{reduced:8.2f} s; the session takes {known / reduced:.0f} x")


def tls_copy_seconds(cluster: LocalCluster, size: int) -> float:
    """Return the CPU seconds of this process for sending and reading so many bytes over TLS on the loopback interface.

    At most 512 MiB are copied, and the rest counts in proportion.
    """
    ids = [Identity.read(cluster.party_folder(i)) for i in range(2)]
    sent, piece = min(size, 2**29), bytes(2**20)

    def receive(listening: socket.socket) -> None:
        taken, _ = listening.accept()
        with server_context(ids[0], cluster.roster).wrap_socket(taken, server_side=True) as stream:
            buffer = bytearray(len(piece))
            while stream.recv_into(buffer):
                pass

    with socket.create_server(("127.0.0.1", 0)) as listening:
        receiver = threading.Thread(target=receive, args=(listening,))
        receiver.start()
        began = time.process_time()
        raw = socket.create_connection(listening.getsockname())
        with client_context(ids[1], cluster.roster).wrap_socket(raw) as stream:
            for _ in range(sent // len(piece)):
                stream.sendall(piece)
        receiver.join()
        return (time.process_time() - began) * size / (sent // len(piece) * len(piece))


def all_reduce_seconds(parties: int, dimension: int) -> float | None:
    """Return how long processes of PyTorch take to add up vectors of doubles with gloo; None without PyTorch."""
    if importlib.util.find_spec("torch") is None:
        return None
    with tempfile.TemporaryDirectory() as folder:
        code = (
            "import sys, time, torch, torch.distributed as d\n"
            "rank, n, size, path = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]\n"
            "d.init_process_group('gloo', init_method='file://' + path, rank=rank, world_size=n)\n"
            "x = torch.ones(size, dtype=torch.float64)\n"
            "d.all_reduce(x)\n"
            "began = time.time()\n"
            "d.all_reduce(x)\n"
            "print(time.time() - began)\n"
        )
        command = [sys.executable, "-c", code]
        arguments = [str(parties), str(dimension), str(Path(folder) / "meeting")]
        processes = [
            subprocess.Popen([*command, str(rank), *arguments], stdout=subprocess.PIPE, text=True)
            for rank in range(parties)
        ]
        return max(float(process.communicate()[0]) for process in processes)


def grow(options: argparse.Namespace) -> None:
    n, dimension = options.parties, options.dimension
    base = terms_of(options, n, dimension)
    heading(options, n, base)
    cases = [(number, terms_of(options, number, dimension)) for number in options.numbers]
    cases += [(n, terms_of(options, n, dimension, rounds)) for rounds in options.lengths]
    cases += [(n, terms_of(options, n, size)) for size in options.sizes if size != dimension]
    names = ("n", "T", "d", "result", "end", "CPU / party", "PSS / party", "unique", "ready after", "same result")
    print("  {:>4s} {:>4s} {:>8s} {:>10s} {:>10s} {:>12s} {:>12s} {:>10s} {:>12s} {:>12s}".format(*names))
    for number, terms in cases:
        with trial(options, number, terms, measured=True, sampled=True) as held:
            held.run()
            results = [report for report in held.results().values() if has_result(report)]
            same = max(Counter(report["execution"] for report in results).values(), default=0)
            (known, ended), cpu = held.seconds(held.undisturbed), np.mean(list(held.cpu.values()))
            pss, unique = np.array(list(held.memory.values())).mean(axis=0)
            print(
                f"  {number:4d} {terms.rounds:4d} {terms.dimension:8,d} {known:8.2f} s {ended:8.2f} s {cpu:10.2f} s "
                f"{pss:8.1f} MiB {unique:6.1f} MiB {held.ready:10.1f} s {same:5d} of {number:3d}",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    verbs = {kill: (100, 1000), compare: (100, 10_000), profile: (30, 10_000), vectors: (12, 10**6), grow: (12, 1000)}
    for run, (parties, dimension) in verbs.items():
        command = commands.add_parser(run.__name__)
        command.set_defaults(run=run)
        command.add_argument("--parties", type=int, default=parties)
        command.add_argument("--dimension", type=int, default=dimension)
        command.add_argument("--rounds", type=int, default=0, help="by default as many as the plan says")
        command.add_argument("--period", type=float, default=4.0 if run is compare else 10.0)
        command.add_argument("--starting", type=float, default=1.0, help="seconds of a core to start a process")
        command.add_argument("--colluding", type=float, default=0.1)
        command.add_argument("--seed", type=int, default=1)
        command.set_defaults(share=0.0)
        if run is kill:
            command.add_argument("--share", type=float, default=0.2, help="of the parties, killed; half come back")
            command.add_argument("--runs", type=int, default=1)
        elif run is compare:
            command.add_argument("--share", type=float, default=0.1, help="of the parties, killed for good")
            command.add_argument("--against", metavar="COMMIT", help="another commit, to run in turns with this tree")
            command.add_argument("--runs", type=int, default=1, help="with --against")
            command.add_argument("--figures", help=argparse.SUPPRESS)
        elif run is vectors:
            command.add_argument("--share", type=float, default=0.0, help="of the parties, killed; they come back")
        elif run is profile:
            command.add_argument("--lines", type=int, default=25, help="functions to print, the dearest first")
        elif run is grow:
            command.add_argument("--numbers", type=int, nargs="*", default=[6, 12, 24, 48])
            command.add_argument("--lengths", type=int, nargs="*", default=[2, 4, 8, 16])
            command.add_argument("--sizes", type=int, nargs="*", default=[1, 1000, 10_000, 100_000])
    options = parser.parse_args()
    options.run(options)
