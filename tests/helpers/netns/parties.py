"""Five parties on machines of a test's network, each by the command line, and what they must agree on."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from helpers.command_line import MAIN
from helpers.netns.internet import PATIENCE_S, PORT, Internet, Place, Process
from helpers.netns.relays import Relay
from helpers.pace import allowance
from helpers.session_processes import PARTY
from inca.network.membership.identity import read_card
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.testing.local_cluster import LocalCluster
from inca.network.testing.local_relays import LocalRelays

N = 5
PLAIN = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
"""What surrounds a program, without the proxies of this machine, and with one thread."""
PLAIN["OPENBLAS_NUM_THREADS"] = "1"
PERIOD_S, ROUND_S = 5.0, 1.0
_LEAD_S, _LEAD_START_UPS = 4.0, 2.0  # before the start, and so many times what starting all of them takes now
_POLL_S = 0.05
_SHARED = ("execution", "cohort", "exact", "beacon", "epsilon")


@dataclass(frozen=True)
class Seat:
    """Where a party runs and how the others reach it: options of `inca node keygen` and `inca node run`."""

    place: Place
    card: Sequence[object]
    options: Sequence[object] = ()
    environment: Mapping[str, str] = field(default_factory=dict)


def open_seat(net: Internet, number: int, relays: Sequence[Relay] = (), **more: Any) -> Seat:
    """Return a seat at a site whose router passes connections on to it; it reaches others through relays, too."""
    return _seat(net.site(number, forwarded=PORT, **more), relays, direct=True)


def mistaken_seat(net: Internet, number: int, relays: Sequence[Relay], **more: Any) -> Seat:
    """Return a seat whose card has a direct address before the relays, though its firewall drops what comes there."""
    return _seat(net.site(number, **more), relays, direct=True)


def hidden_seat(
    net: Internet, number: int, relays: Sequence[Relay], *, environment: Mapping[str, str] | None = None, **more: Any
) -> Seat:
    """Return a seat at a site that nobody can connect to, so that its card has relays only."""
    return _seat(net.site(number, **more), relays, environment=environment)


def _seat(
    place: Place, relays: Sequence[Relay], *, direct: bool = False, environment: Mapping[str, str] | None = None
) -> Seat:
    place.knows({relay.name: relay.place.address for relay in relays})
    card: list[object] = ["--host", place.address, "--port", PORT] if direct else []
    options: list[object] = ["--listen", f"0.0.0.0:{PORT}"] if direct else []
    card += [word for relay in relays for word in ("--relay", relay.url)]
    options += ["--relay-ca", relays[0].authority] if relays else []
    return Seat(place, card, options, environment or {})


@dataclass
class Parties(LocalCluster):
    """Parties with the files of a `LocalCluster`, and a seat each."""

    seats: Sequence[Seat] = ()
    runs: dict[int, Process] = field(default_factory=dict)

    @classmethod
    def agree(cls, folder: Path, seats: Sequence[Seat], *, lead: float | None = None, **changes: Any) -> Parties:
        """Write identities and a roster; the session begins as soon as all can be there, or in so many seconds."""
        parties = len(seats)
        fields: dict[str, Any] = {"rounds": 3, "receivers": 1, "schedule": "circle", "dimension": 2}
        fields |= {"sigma_independent": 0.5, "sigma_cancelling": 5.0, "lower": 0.0, "upper": 1.0}
        fields |= {"epsilon": 1000.0, "delta": 1e-5, "rule": "analytic", "colluding": 0.1}
        fields |= {"min_participants": parties - 1, "sigma_together": 0.499 * (parties - 1) ** 0.5}
        fields |= {"period": PERIOD_S, "max_clock_skew": 0.5, "min_round_duration": ROUND_S}
        fields |= changes
        for name in ("period", "min_round_duration"):
            fields[name] *= allowance()
        values, names = np.random.default_rng(1).random((parties, fields["dimension"])), party_names(parties)
        for name, seat in zip(names, seats, strict=True):
            inca("node", "keygen", name, *seat.card, "--out", folder / name)
        if lead is None:
            lead = allowance() * (_LEAD_S + _LEAD_START_UPS * start_up_seconds(parties))
        fields["start"] = time.time() + lead
        return cls(folder, values, names, Terms(**fields), seats=seats)

    def __post_init__(self) -> None:
        """Collect the cards that the parties have made, as the keeper of the roster does."""
        for i, value in enumerate(self.values):
            np.save(self.party_folder(i) / "value.npy", value)
        cards = tuple(read_card(self.party_folder(i) / "card.json") for i in range(len(self.names)))
        self.relays = LocalRelays(self.folder, ())  # they are elsewhere
        self.roster = Roster("across the internet", self.terms, cards)
        self.roster.write(self.folder / "roster.json")

    def party_folder(self, i: int) -> Path:
        """Return the folder of a party."""
        return self.folder / self.names[i]

    def command(self, i: int, verb: str, *options: object, output: str) -> Process:
        """Start a command of a party at its seat."""
        home, seat = self.party_folder(i), self.seats[i]
        words = [*MAIN, "node", verb, self.folder / "roster.json", "--identity", home, "--state", home / "sessions"]
        return seat.place.start([*words, *seat.options, *options], home / output, {**PLAIN, **seat.environment})

    def launch(self, *numbers: int) -> None:
        """Start parties, by default all."""
        for i in numbers or range(len(self.names)):
            value = self.party_folder(i) / "value.npy"
            self.runs[i] = self.command(i, "run", "--quiet", "--value", value, output="output.txt")

    def said(self) -> str:
        """Return what all have printed and logged last, to explain a failure."""
        return "\n".join(
            f"{name}: {self.runs[i].said[-2000:] if i in self.runs else 'not started'} {self.log(i)[-8:]}"
            for i, name in enumerate(self.names)
        )

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds."""
        deadline = max(time.time(), self.terms.start) + PATIENCE_S * allowance()
        while not holds():
            assert time.time() < deadline, self.said()
            time.sleep(_POLL_S)

    def in_round(self, number: int) -> bool:
        """Whether all parties are in this round, or beyond."""
        return all(
            any(entry["event"] == "round" and entry["round"] >= number for entry in self.log(i))
            for i in range(len(self.names))
        )

    def finish(self) -> dict[str, Any]:
        """Wait for the end of all; return the one result that they have: what they have put in, to the last unit."""
        self.wait_until(lambda: all(run.status is not None for run in self.runs.values()))
        assert [run.status for run in self.runs.values()] == [0] * len(self.names), self.said()
        first = self.result(0)
        for i in range(len(self.names)):
            assert {name: self.result(i)[name] for name in _SHARED} == {name: first[name] for name in _SHARED}
            assert self.sums(i) == self.sums(0)
        assert first["exact"] and not first["contradictions"]
        assert self.sums(0) == self.expected_sum(0)
        return first


def party_names(count: int) -> list[str]:
    """Return what so many parties are called."""
    return [f"party-{i}" for i in range(count)]


def inca(*words: object) -> str:
    """Run a command that needs no network; return what it prints."""
    done = subprocess.run([*MAIN, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start_up_seconds(count: int) -> float:
    """Return the seconds that so many parties take to load what they need, all at once, on this machine as it is.

    One starts before them: it may have to compile the kernels.
    """
    for number in (1, count):
        began = time.monotonic()
        processes = [subprocess.Popen([sys.executable, "-c", PARTY]) for _ in range(number)]
        assert [process.wait() for process in processes] == [0] * number
    return time.monotonic() - began
