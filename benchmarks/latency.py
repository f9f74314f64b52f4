"""How many one-way delays a session takes on a network that is slow and otherwise perfect.

    python benchmarks/latency.py [--parties 10] [--delay 0.1] [--period 10] [--seeds 5]

The parties are the real state machines, on a simulated network where every message takes exactly `--delay` seconds and
computing takes nothing: what is measured is waiting alone, the same on every machine. A stage *needs* the one-way
delays of its longest chain of messages: an offer and its answer in each round; a word that everyone must have (digest,
deposit, key) one; a decision a proposal, a vote, a lock, an acceptance and the decision itself. The ratio is what the
last party took until it had the result, by what is needed, in all and from the end of the last round on.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from helpers.network_faults import Faults
from helpers.planned_sessions import planned_session, planned_setup
from helpers.simulated_network import SimulatedNetwork
from inca.network.protocol.context import Effects

ROUND, WORD, DECISION = 2, 1, 5  # one-way delays
NEEDED = {"digests": WORD, "agreeing": 2 * DECISION + WORD, "opening": WORD}


class SlowNetwork(SimulatedNetwork):
    """Every message takes the same time; notes when stages begin."""

    def __init__(self, seed: int, options: argparse.Namespace) -> None:
        self.entered: dict[int, list[tuple[str, float]]] = {}
        session = replace(
            planned_session(options.parties, seed),
            period=options.period,
            min_participants=3,
        )
        super().__init__(seed, faults=Faults(delay=options.delay), session=session)

    def _lag(self) -> float:
        return self.faults.delay

    def _perform(self, i: int, effects: Effects) -> None:
        for event, fields in effects.log_events:
            if event in ("round", "stage"):
                name = "rounds" if event == "round" else str(fields["stage"])
                self.entered.setdefault(i, []).append((name, self.now))
        super()._perform(i, effects)

    def spent(self) -> dict[str, float]:
        """Return the seconds that the party which had the result last spent in each stage."""
        last = max(self.entered, key=lambda i: next(when for name, when in self.entered[i] if name == "serving"))
        moments, spent = self.entered[last], dict[str, float]()
        for (name, began), (_, ended) in pairwise(moments):
            spent[name] = spent.get(name, 0.0) + ended - began
            if name == "serving":
                break
        return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=10)
    parser.add_argument("--delay", type=float, default=0.1, help="one way, in seconds")
    parser.add_argument("--period", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    rounds = planned_setup(options.parties).session.rounds
    needed = {"rounds": ROUND * rounds, **NEEDED}
    total = sum(needed.values())
    print(f"n = {options.parties}, T = {rounds} as planned, {options.delay:g} s one way, period {options.period:g} s")
    for seed in range(options.seeds):
        network = SlowNetwork(seed, options)
        network.run()
        network.check_end()
        spent = network.spent()
        delays = {name: spent.get(name, 0.0) / options.delay for name in (*needed, "assessing")}
        stages = ", ".join(f"{name} {count:.1f} (needs {needed.get(name, 0)})" for name, count in delays.items())
        all_delays, end, least = sum(delays.values()), sum(delays.values()) - delays["rounds"], sum(NEEDED.values())
        print(
            f"  {all_delays:6.1f} delays, needs {total}: ratio {all_delays / total:.2f}; after the rounds {end:.1f}, "
            f"needs {least}: ratio {end / least:.2f}; {stages}"
        )


if __name__ == "__main__":
    main()
