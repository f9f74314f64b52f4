"""Sessions through a relay, of parties at sites behind NAT, beside the same sessions run directly.

    python benchmarks/reach.py links [--parties 5] [--dimension 1000000] [--megabits 100] [--runs 3]
    python benchmarks/reach.py many [--parties 30] [--dimension 1000]

Networks are made of namespaces, without root: Linux with `unshare`, `ip`, `nft` and `tc`. Parties and the relay are
real processes of the command line on this machine, and share its cores; the first line tells how many.

`links`: each party's link carries so many megabits a second in either direction, the relay's as many as there are. In
turns, sessions are run directly (each router passes connections on to its party) and through one relay. A session's
time runs from the agreed start until the last party has the result. The relay's CPU seconds are divided by the
gigabytes that it has sent.

`many`: one session of many parties, all through one relay.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.netns.internet import Internet, why_not
from helpers.netns.parties import Parties, Seat, hidden_seat, open_seat
from helpers.netns.relays import Relay

LARGEST_RATIO, MOST_CPU_SECONDS = 1.1, 5.0


@dataclass(frozen=True)
class Held:
    """A session: seconds until all had the result, and what the relay took, if there was one."""

    seconds: float
    cpu_seconds: float = 0.0
    gigabytes: float = 0.0
    peak_mib: float = 0.0

    @property
    def cpu_per_gigabyte(self) -> float:
        return self.cpu_seconds / self.gigabytes


def hold(options: argparse.Namespace, *, relayed: bool) -> Held:
    """Hold a session on a network of its own; all must have the one exact result."""
    with Internet() as net, tempfile.TemporaryDirectory(prefix="inca-reach-") as name:
        folder = Path(name)
        if not relayed:
            return Held(
                seconds_of(
                    options, folder, [open_seat(net, i, megabits=options.megabits) for i in range(options.parties)]
                )
            )
        relay = Relay(net, 1, folder)
        running = relay.start()
        before = running.cpu_seconds
        seats = [hidden_seat(net, i, [relay], megabits=options.megabits) for i in range(options.parties)]
        seconds = seconds_of(options, folder, seats)
        sent, _ = net.carried(relay.place)
        return Held(seconds, running.cpu_seconds - before, sent / 1e9, running.peak_mib)


def seconds_of(options: argparse.Namespace, folder: Path, seats: Sequence[Seat]) -> float:
    """Hold the session at these seats; return its time."""
    changes = {"dimension": options.dimension, "period": options.period, "min_round_duration": 0.0, "distance": 1.0}
    parties = Parties.agree(folder, seats, **changes, max_clock_skew=options.period / 10.0)
    parties.launch()
    parties.finish()
    ends = [
        max(entry["time"] for entry in parties.log(i) if entry.get("stage") == "serving") for i in range(len(seats))
    ]
    return float(max(ends)) - parties.terms.start


def heading(options: argparse.Namespace) -> None:
    speed = f"{options.megabits:g} Mbit/s" if options.megabits else "links as fast as they are"
    print(
        f"n = {options.parties}, d = {options.dimension:,}, 3 rounds, {speed}, "
        f"period {options.period:g} s, {os.cpu_count()} cores",
        flush=True,
    )


def line(name: str, figures: str) -> None:
    print(f"  {name:42s} {figures}", flush=True)


def links(options: argparse.Namespace) -> None:
    heading(options)
    direct, relayed = [], []
    for run in range(options.runs):
        direct.append(hold(options, relayed=False))
        relayed.append(hold(options, relayed=True))
        line(f"run {run + 1}: direct, relayed", f"{direct[-1].seconds:8.2f} s, {relayed[-1].seconds:.2f} s")
    ratio = float(np.median([held.seconds for held in relayed]) / np.median([held.seconds for held in direct]))
    line("through the relay over direct", f"{ratio:8.2f} (medians of {options.runs}; goal: at most {LARGEST_RATIO})")
    cpu = float(np.median([held.cpu_per_gigabyte for held in relayed]))
    line("the relay's CPU seconds a gigabyte", f"{cpu:8.2f} (goal: at most {MOST_CPU_SECONDS:g})")
    line("the relay's memory, at most", f"{max(held.peak_mib for held in relayed):8.0f} MiB")


def many(options: argparse.Namespace) -> None:
    heading(options)
    held = hold(options, relayed=True)
    line("session, until all have the result", f"{held.seconds:8.2f} s")
    line("the relay's CPU", f"{held.cpu_seconds:8.2f} s for {1e3 * held.gigabytes:.1f} MB")
    line("the relay's memory, at most", f"{held.peak_mib:8.0f} MiB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    for verb, parties, dimension, period in ((links, 5, 10**6, 60.0), (many, 30, 1000, 20.0)):
        command = commands.add_parser(verb.__name__)
        command.set_defaults(verb=verb, megabits=None)
        command.add_argument("--parties", type=int, default=parties)
        command.add_argument("--dimension", type=int, default=dimension)
        command.add_argument("--period", type=float, default=period, help="of the session, in seconds")
        if verb is links:
            command.add_argument("--megabits", type=float, default=100.0, help="a second, of each party's link")
            command.add_argument("--runs", type=int, default=3)
    chosen = parser.parse_args()
    if reason := why_not():
        sys.exit(f"namespaces cannot be made here: {reason}")
    chosen.verb(chosen)
