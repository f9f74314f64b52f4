"""Sessions of many parties in one process: the real state machines on a simulated network, with some of them leaving.

    python benchmarks/large_sessions.py [--parties 100 300 1000] [--dimension 1] [--leaving 0.05] [--lost 0.001]
                                        [--delay 0.02] [--seed 1] [--max-steps N]

A session is planned, for epsilon 1, a tenth colluding and a tenth leaving: rounds, receivers and noise are the plan's.
A share of the parties leaves in mid-session, half of them without a word (their process ends), half on request; a share
of all messages is lost, each with its connection, of which both ends learn. Everything else is a session as parties on
machines of their own hold it: rounds, digests, two decisions with the signatures of a quorum, sealed final messages,
keys, the result.
Signatures are short hashes, as a thousand parties in one process would verify millions; 48 bytes are added for each.

`result`: whether all who stayed have the same one, and it is to the last unit the sum of what the cohort put in;
`checks`: how often the ledgers of all parties were added up, after every write, with balances and what is on its way
equal to what was injected. Either is checked, and a violation ends the benchmark.
"""

from __future__ import annotations

import argparse
import random
import resource
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.network_faults import PERIOD, Faults
from helpers.planned_sessions import planned_session
from helpers.simulated_network import SimulatedNetwork
from inca.network.protocol.messages import Items, Message

SIGNATURE_BYTES = 64 - 16  # that an Ed25519 signature has more than a simulated one
SHOWN_EVERY_S = 20.0


class LargeSession(SimulatedNetwork):
    """Counts messages and bytes, and has some parties leave."""

    def __init__(self, parties: int, options: argparse.Namespace) -> None:
        rng = random.Random(options.seed)
        # A quarter suffices, as far fewer than are planned for may be left when messages are lost, too.
        planned = planned_session(parties, options.seed, options.dimension, 0.1 * PERIOD)
        session = replace(planned, min_participants=parties // 4)
        self.sent: Counter[int] = Counter()  # bytes, by party
        self.received: Counter[int] = Counter()
        self.by_kind: Counter[str] = Counter()
        self.messages = self.checks = 0
        self._shown = time.monotonic()
        super().__init__(
            options.seed, faults=Faults(delay=options.delay, loss=options.lost, comeback=0.0), session=session
        )
        leavers = rng.sample(range(parties), round(options.leaving * parties))
        self.leavers = set(leavers)
        for place, i in enumerate(leavers):
            when = session.start + rng.uniform(0.0, 0.1 * session.rounds * PERIOD)
            self._at(when, self._crash if place % 2 else self._depart, i)

    def check(self) -> None:
        super().check()
        self.checks += 1

    def _post(self, i: int, j: int, message: Message) -> None:
        size = len(self._frames.frame(message).content)
        kind = type(message).__name__
        if isinstance(message, Items):
            size += SIGNATURE_BYTES * len(message.items)
            kind = f"Items: {message.items[0].kind}"
        self.messages += 1
        self.sent[i] += size
        self.received[j] += size
        self.by_kind[kind] += size
        super()._post(i, j, message)

    def step(self) -> None:
        super().step()
        if time.monotonic() > self._shown + SHOWN_EVERY_S:
            self._shown = time.monotonic()
            stages = Counter(machine.party.stage for machine in self.machines if machine.party)
            where = ", ".join(f"{count} {stage}" for stage, count in stages.most_common())
            print(f"    {self.now:.2f} s of the session, {self.steps:,} steps: {where}", file=sys.stderr)


def simulate(parties: int, options: argparse.Namespace) -> None:
    began = time.process_time()
    network = LargeSession(parties, options)
    network.run(options.max_steps)
    network.check_end()
    if network.difference().any():
        raise AssertionError("the ledgers do not add up at the end")
    seconds, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    stayed = [i for i in range(parties) if i not in network.leavers]
    results = {i: result for i, result in network.results.items() if i in stayed}
    published = {len(result.realized.cohort) for result in results.values()}
    exact = bool(results) and all(result.exact for result in results.values())
    received, most = sum(network.received.values()) / parties, max(network.sent.values())
    print(
        f"{parties:7,d} {network.session.rounds:6d} {len(stayed):7,d} {len(results):7,d} "
        f"{max(published, default=0):7,d} {'exact' if exact else 'NOT':>6s} {network.checks:9,d} "
        f"{network.now - network.session.start:8.2f} {network.steps / parties:7.0f} {network.messages / parties:9.0f} "
        f"{received / 1e3:8.0f} kB {most / 1e6:6.1f} MB {seconds:6.0f} s {memory:6.2f} GiB",
        flush=True,
    )
    reasons = Counter(machine.party.reason for i in stayed if (machine := network.machines[i]).party)
    for reason, count in reasons.most_common(4):
        if reason:
            print(f"        {count} of those who stayed: {reason}")
    if options.kinds:
        for kind, size in network.by_kind.most_common(12):
            print(f"        {kind:16s} {size / parties / 1e3:8.1f} kB a party")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, nargs="+", default=[100, 300, 1000])
    parser.add_argument("--dimension", type=int, default=1)
    parser.add_argument("--leaving", type=float, default=0.05, help="share of the parties")
    parser.add_argument("--lost", type=float, default=0.001, help="share of the messages")
    parser.add_argument("--delay", type=float, default=0.02, help="one way, in periods, on average")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--max-steps", type=int, default=None)
    parser.add_argument("--kinds", action="store_true", help="bytes by kind of message, too")
    options = parser.parse_args()
    lost = f"{options.leaving:.0%} of the parties leave, {options.lost:.1%} of the messages are lost"
    print(f"as planned, d = {options.dimension}, {lost}")
    names = (
        "parties",
        "rounds",
        "stayed",
        "have it",
        "in it",
        "result",
        "checks",
        "periods",
        "steps",
        "messages",
        "received",
    )
    print("{:>7s} {:>6s} {:>7s} {:>7s} {:>7s} {:>6s} {:>9s} {:>8s} {:>7s} {:>9s} {:>11s}".format(*names), end=" ")
    print("{:>9s} {:>8s} {:>10s}".format("most sent", "CPU", "memory"))
    for parties in options.parties:
        simulate(parties, options)
