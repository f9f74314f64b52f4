"""Whole sessions on a simulated network under all faults at once, with the ledgers added up after every write.

    python benchmarks/conservation.py [--sessions 10000] [--first 0] [--workers N]
    python benchmarks/conservation.py --seed 7

A session is drawn from its seed: sizes, a circle or receivers that are drawn, 2 to 8 rounds as plans have, loss,
duplication, delay, partitions, false hints, clocks, crashes at journal writes, lost disks. `violations` counts the
sessions in which mass was lost or counted twice, results or decisions differed or were not the exact ones, a party said
two things of one cohort or showed a key before commit, keys of two cohorts were shown, an honest party was named, a
stated loss was below that of all that was really delivered, a session hung, or had no outcome though enough had stayed;
it must be 0, and the exit status is 1 otherwise. Enough have stayed after commit if as many trustees run as open
everything, and one party that has recorded it; before commit, if a quorum was there all the time. In some sessions
parties die for good right after commit, in some one party deals garbage.
`--seed` replays one session and prints what happened.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, fields
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.delivered_loss import worst_ratio
from helpers.simulated_network import SimulatedNetwork
from inca._base.threads import available_cores
from inca.network.protocol.context import Effects
from inca.network.protocol.records import Left

_TOLERANCE = 1e-6  # of losses that are worked out in two ways
_CHUNK = 25  # sessions that a worker takes at a time


@dataclass
class Tally:
    """What sessions have come to."""

    sessions: int = 0
    circles: int = 0
    rounds: Counter[int] = field(default_factory=Counter)
    steps: int = 0
    checks: int = 0
    writes: int = 0
    crashes: int = 0
    disks: int = 0
    with_result: int = 0
    survivors: int = 0
    with_the_result: int = 0
    shrunk: int = 0
    dealers: int = 0
    named: int = 0
    enough_after: int = 0
    enough_before: int = 0
    losses: int = 0
    seconds: float = 0.0
    without: Counter[str] = field(default_factory=Counter)
    violations: dict[int, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        for column in fields(self):
            mine, theirs = getattr(self, column.name), getattr(other, column.name)
            if isinstance(mine, dict):
                mine.update(theirs)  # counters add up, violations are of different seeds
            else:
                setattr(self, column.name, mine + theirs)


class Watched(SimulatedNetwork):
    """A network that counts what it goes through, and prints it if asked."""

    verbose = False
    checks = writes = 0

    def check(self) -> None:
        super().check()
        self.checks += 1

    def _perform(self, i: int, effects: Effects) -> None:
        self.writes += bool(effects.records)
        if self.verbose:
            self._print(i, effects)
        super()._perform(i, effects)

    def _crash(self, i: int, *, for_good: bool = False) -> None:
        before = len(self.machines[i].lost_ledgers)
        super()._crash(i, for_good=for_good)
        if self.verbose:
            lost = ", and its disk is lost" if len(self.machines[i].lost_ledgers) > before else ""
            print(f"{self.now:9.4f}  party {i} dies{lost}")

    def _print(self, i: int, effects: Effects) -> None:
        for event, details in effects.log_events:
            print(f"{self.now:9.4f}  party {i}: {event} " + ", ".join(f"{k}={v}" for k, v in details.items()))
        for record in effects.records:
            print(f"{self.now:9.4f}  party {i} writes {type(record).__name__}")


REASONS = {  # by what parties say
    "must be there at the end": "no quorum at the end",
    "hand over": "too few deposits",
    "cannot be opened yet": "committed, too few trustees left",
    "does not know": "commit accepted, too few left to decide it",
    "has lied": "a liar, named with the proof",
    "go on without": "the others went on",
    "loss": "loss",
    "coin flip": "coin flip",
    "journal": "journal",
}


def reason_class(network: SimulatedNetwork) -> str:
    """Return why a session has no result, in a few words and without its numbers."""
    parties = network.survivors.values()
    if not parties:
        gone = [machine for machine in network.machines if machine.party is None]
        return "everyone is dead" if len(gone) == len(network.machines) else "everyone left or is dead"
    most, _ = Counter(party.reason for party in parties).most_common(1)[0]
    for words, reason in REASONS.items():
        if words in most:
            return reason
    return most or "no reason given"


def run_session(seed: int, verbose: bool = False) -> tuple[Tally, Watched]:
    """Run one session; violations are part of the tally."""
    began = time.perf_counter()
    network = Watched(seed)
    network.verbose = verbose
    tally = Tally(sessions=1)
    try:
        network.run()
        network.check_end()
        tally.losses, worst = worst_ratio(network)
        if worst > 1.0 + _TOLERANCE:
            tally.violations[seed] = f"a stated loss is 1 / {worst:.6g} of that of all that was delivered"
    except Exception as error:  # whatever goes wrong in a session is what is looked for
        tally.violations[seed] = f"{type(error).__name__}: {error}"
    tally.circles, tally.rounds[network.session.rounds] = network.session.schedule == "circle", 1
    tally.seconds = time.perf_counter() - began
    tally.steps, tally.crashes = network.steps, network.crashes
    tally.checks, tally.writes = network.checks, network.writes
    tally.disks = sum(len(machine.lost_ledgers) for machine in network.machines)
    tally.dealers = network.liar is not None
    tally.named = any(party.finalization.lie is not None for party in network.survivors.values())
    tally.enough_after, tally.enough_before = network.enough_committed, network.enough_before_commit
    results = network.results
    if results:
        tally.with_result, tally.survivors, tally.with_the_result = 1, len(network.survivors), len(results)
        chains = [ledger.decided for _, ledger in network.ledgers()]
        tally.shrunk = any(sum(d.proposal.step == "cohort" for d in chain) > 1 for chain in chains)
    else:
        tally.without[reason_class(network)] += 1
    return tally, network


def run_many(seeds: range) -> Tally:
    total = Tally()
    for seed in seeds:
        total.add(run_session(seed)[0])
    return total


def chunks(first: int, count: int) -> Iterator[range]:
    for begin in range(first, first + count, _CHUNK):
        yield range(begin, min(begin + _CHUNK, first + count))


def run_all(first: int, count: int, workers: int) -> Tally:
    total, began = Tally(), time.perf_counter()
    with ProcessPoolExecutor(workers) as pool:
        for part in pool.map(run_many, chunks(first, count)):
            total.add(part)
            rate = total.sessions / (time.perf_counter() - began)
            left = (count - total.sessions) / rate
            print(
                f"\r{total.sessions:,} of {count:,} sessions, {len(total.violations)} violations, {left:.0f} s left   ",
                end="",
                file=sys.stderr,
                flush=True,
            )
    print(file=sys.stderr)
    return total


def report(total: Tally) -> None:
    lines = {
        "sessions": f"{total.sessions:,}",
        "  on a circle": f"{total.circles:,}",
        "  of so many rounds": ", ".join(f"{rounds}: {count:,}" for rounds, count in sorted(total.rounds.items())),
        "steps": f"{total.steps:,}",
        "ledgers added up": f"{total.checks:,} times",
        "journal writes": f"{total.writes:,}",
        "crashes": f"{total.crashes:,}",
        "disks lost": f"{total.disks:,}",
        "sessions with a result": f"{total.with_result:,}",
        "  survivors with it": f"{total.with_the_result:,} of {total.survivors:,}",
        "  cohort shrunk before commit": f"{total.shrunk:,}",
        "enough stayed after commit": f"{total.enough_after:,}",
        "a quorum there all the time": f"{total.enough_before:,}",
        "with a dealer of garbage": f"{total.dealers:,}, of which it is named in {total.named:,}",
        "losses held against the delivered": f"{total.losses:,}",
        "sessions without a result": f"{total.without.total():,}",
        **{f"  {reason}": f"{count:,}" for reason, count in total.without.most_common()},
        "time per session": f"{1e3 * total.seconds / max(1, total.sessions):.1f} ms on one core",
        "violations": f"{len(total.violations)}",
    }
    for name, value in lines.items():
        print(f"{name:32s} {value}")
    for seed, what in sorted(total.violations.items()):
        print(f"  seed {seed}: {what}")


def replay_one(seed: int) -> Tally:
    tally, network = run_session(seed, verbose=True)
    print(network.session)
    print(network.faults)
    for i, machine in enumerate(network.machines):
        party = machine.party
        left = [record.reason for record in machine.journal if isinstance(record, Left)]
        if party is None:
            print(f"party {i} is dead" + (f", and had left: {left[0]}" if left else ""))
        else:
            outcome = (
                f"result of {sorted(party.result.realized.cohort)}" if party.result else f"no result: {party.reason}"
            )
            print(f"party {i} is {party.stage}, {outcome}")
    report(tally)
    return tally


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--workers", type=int, default=available_cores())
    parser.add_argument("--seed", type=int, default=None, help="replay this one session and print what happens")
    options = parser.parse_args()
    if options.seed is not None:
        total = replay_one(options.seed)
    else:
        total = run_all(options.first, options.sessions, options.workers)
        report(total)
    return 1 if total.violations else 0


if __name__ == "__main__":
    sys.exit(main())
