"""A session of real processes on this machine with some of them killed: what `inca demo` shows.

Every party is a clinic that holds the mean waiting time of its patients, and epsilon is what the session gives away
about any one of them: a clinic's mean moves little if one patient's time changes. To hide whole clinics, twelve are too
few: noise would drown their mean, even that of a trusted curator. The plan is one that `inca plan` makes: epsilon 1,
one colluder, a quarter leaving, or as many as are to be killed.
"""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inca.documents.certificate import CertificateDocument
from inca.network.membership.terms import Terms
from inca.network.protocol.stages import periods_after_rounds
from inca.network.testing.fork_server import measure_start_up
from inca.network.testing.local_cluster import LocalCluster
from inca.planning.plan import Plan, plan
from inca.planning.requirements import Requirements

_NAMES = ("Aachen", "Bergen", "Cork", "Delft", "Evora", "Faro", "Ghent", "Halle", "Ieper", "Jena", "Kiel", "Lyon")
_LOW, _HIGH = 0.0, 240.0  # minutes
_PATIENTS = 60  # of a clinic
_EPSILON, _DELTA, _LEAVING = 1.0, 1e-5, 0.25
_DISTANCE = (_HIGH - _LOW) / _PATIENTS  # by which a clinic's mean moves at most if one patient's time changes
_PERIOD_S = 4.0
_MIN_ROUND_S, _ROUNDS_S = 1.5, 6.0  # slow enough to watch, and for the killed to come back; all of them at most
_LEAD_S, _LEAD_START_UPS = 4.0, 8.0  # before the first round: so long, and so many times what starting takes
_RESTART_AFTER_S = 0.5
_POLL_S = 0.05


def planned(parties: int, leavers: int = 0) -> Plan:
    """Return the plan of a demo, for a quarter of leavers or for more."""
    requirements = Requirements(
        parties,
        _EPSILON,
        _DELTA,
        colluding=1.0 / parties,
        dropout=max(_LEAVING, leavers / parties),
        sensitivity=_DISTANCE,
    )
    return plan(requirements)


def kill_rounds(victims: int, rounds: int) -> list[int]:
    """Return in which round each is killed: they are spread over all rounds, from the first one on.

    Example:
        >>> kill_rounds(2, rounds=3), kill_rounds(4, rounds=3), kill_rounds(1, rounds=7)
        ([1, 2], [1, 1, 2, 3], [1])
    """
    return [1 + place * rounds // victims for place in range(victims)]


class Demo:
    """The processes, their rounds and the result; to be used as a context, which cleans up."""

    def __init__(
        self, parties: int, *, kill: int, restart: int, relay: bool = False, keep: bool = False, seed: int | None = None
    ) -> None:
        self.relayed = relay
        self._rng = random.Random(seed)
        self._keep, self.folder = keep, Path(tempfile.mkdtemp(prefix="inca-demo-"))
        self.names = [*_NAMES, *(f"Party {i}" for i in range(len(_NAMES), parties))][:parties]
        usual = [self._rng.uniform(_LOW, _HIGH) for _ in range(parties)]
        times = [[self._rng.triangular(_LOW, _HIGH, mode) for _ in range(_PATIENTS)] for mode in usual]
        self.values = np.mean(times, axis=1)
        self.truth = float(self.values.mean())
        agreed_plan = planned(parties, kill)
        start_up_s = measure_start_up(parties)
        terms = Terms.from_plan(
            agreed_plan,
            dimension=1,
            lower=_LOW,
            upper=_HIGH,
            distance=_DISTANCE,
            min_participants=parties // 2 + 1,
            start=time.time() + _LEAD_S + _LEAD_START_UPS * start_up_s,
            period=_PERIOD_S,
            max_clock_skew=_PERIOD_S / 10.0,
            min_round_duration=min(_MIN_ROUND_S, _ROUNDS_S / agreed_plan.design.rounds),
        )
        self.rounds = terms.rounds
        self.cluster = LocalCluster(self.folder, self.values, self.names, terms, relay_count=int(relay))
        self._victims = self._rng.sample(range(parties), kill)
        self._returning = set(self._victims[:restart])
        self._counted = set(self._victims[max(restart, 1) :][-1:])  # dies right after commit: its value counts
        self._gone: dict[int, str] = {}

    def __enter__(self) -> Demo:
        """Start all processes."""
        for i in range(len(self.names)):
            self.cluster.start(i, dies_after_commit=i in self._counted)
        return self

    def __exit__(self, *error: object) -> None:
        """Leave no process behind, nor files unless they are to be kept."""
        self.cluster.stop()
        if not self._keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    def follow(self, *, pulse: bool = False) -> Iterator[str]:
        """Yield a line for everything that happens until all processes have ended; with `pulse` also empty ones."""
        terms, cluster = self.cluster.terms, self.cluster
        who = f"{len(self.names)} processes" + (" and a relay" if self.relayed else "")
        yield f"{who} start; the first round begins in {terms.start - time.time():.0f} s"
        victims = [i for i in self._victims if i not in self._counted]
        kills = dict(zip(victims, kill_rounds(len(victims), terms.rounds), strict=True))
        to_die = set(self._counted)
        restarts: dict[int, float] = {}
        began = 0.0  # the round
        announced, deadline = 0, terms.start + (terms.rounds + periods_after_rounds(len(kills))) * terms.period
        while (cluster.running() and time.time() < deadline) or restarts:
            latest = max((cluster.status(i).get("round", 0) for i in cluster.running()), default=0)
            if latest > announced:
                announced, began = latest, time.time()
                yield f"round {latest} of {terms.rounds}"
            halfway = time.time() >= began + terms.min_round_duration / 2.0
            for i, kill_round in list(kills.items()):
                if latest >= kill_round + (not halfway) and cluster.processes[i].is_alive():
                    cluster.kill(i)
                    del kills[i]
                    self._gone[i] = "killed"
                    yield f"{self.names[i]} is killed (SIGKILL) in round {latest}"
                    if i in self._returning:
                        restarts[i] = time.time() + _RESTART_AFTER_S
            for i in [i for i in to_die if not cluster.processes[i].is_alive()]:
                to_die.remove(i)
                self._gone[i] = "killed, counts"
                yield f"{self.names[i]} kills itself right after commit (SIGKILL): its sealed value still counts"
            for i, when in list(restarts.items()):
                if time.time() >= when:
                    del restarts[i]
                    cluster.start(i)
                    self._gone[i] = "killed, back"
                    yield f"{self.names[i]} is started again, with its journal"
            if pulse:
                yield ""
            time.sleep(_POLL_S)
        yield "all processes have ended" if not cluster.running() else "some processes did not end in time"

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each party: its process, the rounds it took part in, its stage."""
        rows = []
        for i, name in enumerate(self.names):
            status = self.cluster.status(i)
            process = self._gone.get(i, "")
            stage = "" if process in ("killed", "killed, counts") else status.get("stage", "starts")
            rounds = [entry["round"] for entry in self.cluster.log(i) if entry["event"] == "round"]
            presence = "".join("#" if t in rounds else "." for t in range(1, max([0, *rounds]) + 1))
            row = {"party": name, "process": process or "runs", "presence": presence.ljust(self.rounds)}
            rows.append(row | {"stage": stage, "open": status.get("open_offers", 0)})
        return rows

    def report(self) -> dict[str, Any]:
        """Return the common result beside the truth, the lattice result, and the certificate."""
        cluster = self.cluster
        results = {i: cluster.result(i) for i in range(len(self.names))}
        rows = [
            row
            | {"estimate": results[i].get("constrained"), "epsilon": results[i].get("epsilon")}
            | {"process": self._gone.get(i, "ended"), "presence": row["presence"].replace(" ", ".")}
            for i, row in enumerate(self.rows())
        ]
        holders = [i for i, result in results.items() if result.get("estimate") is not None]
        outcomes = {(results[i]["execution"], results[i]["estimate"]) for i in holders}
        reasons = sorted({result["reason"] for result in results.values() if result.get("reason")})
        fields: dict[str, Any] = {
            "parties": len(self.names),
            "rounds": self.rounds,
            "rows": rows,
            "truth": self.truth,
            "holders": len(holders),
            "agreed": len(outcomes) == 1,
            "reason": "; ".join(reasons) or "none",
            "folder": str(self.folder) if self._keep else "",
        }
        if len(outcomes) != 1:
            return fields
        first = results[holders[0]]
        shown = ("interval", "confidence", "remarks", "standard_error", "execution", "exact")
        fields |= {"estimate": first["constrained"]} | {name: first[name] for name in shown}
        ends = [entry["time"] for i in holders for entry in cluster.log(i) if entry["event"] == "ended"]
        return fields | {
            "stayed": float(np.mean([self.values[self.names.index(name)] for name in first["cohort"]])),
            "cohort": len(first["cohort"]),
            "sealed": [self.names[i] for i in sorted(self._counted) if self.names[i] in first["cohort"]],
            "seconds": max(ends) - cluster.terms.start,
            "lattice": self._lattice(holders[0]),
            "certificate": CertificateDocument.read(cluster.session_folder(holders[0]) / "certificate.json"),
        }

    def _lattice(self, holder: int) -> str:
        """Say whether the result is, to the last unit, what the journals of its parties give."""
        if self.cluster.expected_sum(holder) == self.cluster.sums(holder):
            return "equal, to the last unit, to what its parties have put in, with the noise they state"
        return "NOT what its parties have put in"
