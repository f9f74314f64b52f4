"""A session of real processes on this machine with some of them killed: what `inca demo` shows.

The noise levels are those of a plan: `inca plan --parties 12 --epsilon 8 --delta 1e-5 --colluding 0.08 --dropout 0.2
--messages 20 --sensitivity 240`. Twelve parties are few, so a small epsilon would drown their mean in noise.
Fewer still share the same protection among themselves, and need more of both kinds.
"""

from __future__ import annotations

import math
import random
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from inca.network.membership.roster import Terms
from inca.network.testing.local_cluster import Consortium, load
from inca.privacy.certificate import Certificate, certify
from inca.protocol.transcript import Transcript, read_execution

_NAMES = ("Aachen", "Bergen", "Cork", "Delft", "Evora", "Faro", "Ghent", "Halle", "Ieper", "Jena", "Kiel", "Lyon")
_LOW, _HIGH = 0.0, 240.0  # minutes
_SIGMAS = (51.62, 177.6)
_PACE, _PERIOD = 0.4, 4.0  # seconds; slow enough to watch, and for the killed to come back
_STARTING = 0.4  # seconds that a process takes to start, with room for a busy machine
_FIRST_KILL = 4  # round


def levels(parties: int) -> tuple[float, float]:
    """Return the levels of independent and cancelling noise: those of the plan, or more where fewer take part.

    >>> levels(12), levels(6)[0] > 80.0
    ((51.62, 177.6), True)
    """
    # The noise of n - 1 honest parties adds up in the mean; a quarter more, for those who leave.
    scale = 1.0 if parties >= len(_NAMES) else 1.25 * math.sqrt((len(_NAMES) - 1) / (parties - 1))
    return _SIGMAS[0] * scale, _SIGMAS[1] * scale


class Rehearsal:
    """The processes, their rounds and what came out; to be used as a context, which cleans up."""

    def __init__(self, parties: int, *, kill: int, back: int, keep: bool = False, seed: int | None = None) -> None:
        """Make identities, values and a roster."""
        self._rng = random.Random(seed)
        self._keep, self._folder = keep, Path(tempfile.mkdtemp(prefix="inca-demo-"))
        self.names = [*_NAMES, *(f"Party {i}" for i in range(len(_NAMES), parties))][:parties]
        values = np.array([self._rng.triangular(_LOW, _HIGH, 60.0) for _ in range(parties)])
        self.truth = float(values.mean())
        self.rounds = 20
        load()
        independent, cancelling = levels(parties)
        terms = Terms(
            rounds=self.rounds,
            receivers=1,
            schedule="permutation",
            quiet_rounds=4,
            sigma_independent=independent,
            sigma_cancelling=cancelling,
            dimension=1,
            lower=_LOW,
            upper=_HIGH,
            epsilon=8.0,
            delta=1e-5,
            rule="exact",
            colluding=1.0 / parties,
            coalitions=parties,
            least_cohort=parties // 2 + 1,
            start=time.time() + 4.0 + _STARTING * parties,
            period=_PERIOD,
            clock_bound=_PERIOD / 10.0,
            pace=_PACE,
        )
        self._consortium = Consortium(self._folder, values, self.names, terms)
        self._victims = self._rng.sample(range(parties), kill)
        self._returning = set(self._victims[:back])
        self._gone: dict[int, str] = {}

    def __enter__(self) -> Rehearsal:
        """Start all processes."""
        for i in range(len(self.names)):
            self._consortium.start(i)
        return self

    def __exit__(self, *error: object) -> None:
        """Leave no process behind, nor files unless they are to be kept."""
        self._consortium.stop()
        if not self._keep:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def session(self) -> str:
        """The session's id."""
        return self._consortium.roster.session.hex()

    def follow(self, *, pulse: bool = False) -> Iterator[str]:
        """Yield a line for everything that happens until all processes have ended; with `pulse` also empty ones."""
        terms, consortium = self._consortium.terms, self._consortium
        yield f"{len(self.names)} processes start; the first round begins in {terms.start - time.time():.0f} s"
        kills = {i: _FIRST_KILL + 3 * place for place, i in enumerate(self._victims)}
        restarts: dict[int, float] = {}
        told, deadline = 0, terms.start + (terms.rounds + 12) * terms.period
        while (consortium.running() and time.time() < deadline) or restarts:
            latest = max((consortium.status(i).get("round", 0) for i in consortium.running()), default=0)
            if latest > told:
                told = latest
                if latest in (1, terms.rounds) or latest % 5 == 0:
                    yield f"round {latest} of {terms.rounds}"
            for i, t in list(kills.items()):
                if latest >= t and consortium.processes[i].is_alive():
                    consortium.kill(i)
                    del kills[i]
                    self._gone[i] = "killed"
                    yield f"{self.names[i]} is killed (SIGKILL) in round {latest}"
                    if i in self._returning:
                        restarts[i] = time.time() + 0.5
            for i, when in list(restarts.items()):
                if time.time() >= when:
                    del restarts[i]
                    consortium.start(i)
                    self._gone[i] = "killed, back"
                    yield f"{self.names[i]} is started again, with its journal"
            if pulse:
                yield ""
            time.sleep(0.05)
        yield "all processes have ended" if not consortium.running() else "some processes did not end in time"

    def rows(self) -> list[dict[str, Any]]:
        """Return a line for each party: its process, the rounds it took part in, where it is."""
        found = []
        for i, name in enumerate(self.names):
            status = self._consortium.status(i)
            process = self._gone.get(i, "")
            stage = status.get("stage", "starts")
            if process == "killed":
                stage = ""
            rounds = [entry["round"] for entry in self._consortium.log(i) if entry["event"] == "round"]
            presence = "".join("#" if t in rounds else "." for t in range(1, max([0, *rounds]) + 1))
            found.append(
                {
                    "party": name,
                    "process": process or "runs",
                    "presence": presence.ljust(self.rounds),
                    "stage": stage,
                    "open": status.get("open_offers", 0),
                }
            )
        return found

    def report(self) -> dict[str, Any]:
        """Return what came out: the common result beside the truth, the lattice result, and the certificate."""
        consortium = self._consortium
        results = {i: consortium.result(i) for i in range(len(self.names))}
        rows = [
            row
            | {"estimate": results[i].get("estimate"), "epsilon": results[i].get("epsilon")}
            | {"process": self._gone.get(i, "ended"), "presence": row["presence"].replace(" ", ".")}
            for i, row in enumerate(self.rows())
        ]
        holders = [i for i, result in results.items() if result.get("estimate") is not None]
        kinds = {(results[i]["execution"], results[i]["estimate"]) for i in holders}
        reasons = sorted({result["reason"] for result in results.values() if result.get("reason")})
        fields: dict[str, Any] = {
            "parties": len(self.names),
            "rounds": self.rounds,
            "rows": rows,
            "truth": self.truth,
            "holders": len(holders),
            "agreed": len(kinds) == 1,
            "reason": "; ".join(reasons) or "none",
            "folder": str(self._folder) if self._keep else "",
        }
        if len(kinds) != 1:
            return fields
        first = results[holders[0]]
        fields |= {name: first[name] for name in ("estimate", "standard_error", "execution", "weight_in_doubt")}
        ends = [entry["time"] for i in holders for entry in consortium.log(i) if entry["event"] == "ended"]
        return fields | {
            "in_doubt": len(first["in_doubt"]),
            "seconds": max(ends) - consortium.terms.start,
            "lattice": self._lattice(holders[0], first),
            "certificate": str(self._certificate(holders[0], first)),
        }

    def _certificate(self, holder: int, result: dict[str, Any]) -> Certificate:
        terms = self._consortium.terms
        found = read_execution(self._consortium.session_folder(holder) / "execution.json")
        levels = (terms.sigma_independent, terms.sigma_cancelling)
        transcript = Transcript(found.execution, *levels, colluding=tuple(result["coalition"]))
        return certify(transcript, sensitivity=terms.sensitivity, delta=terms.delta, rule=terms.rule)

    def _lattice(self, holder: int, result: dict[str, Any]) -> str:
        """Say whether the result is, to the last unit, what the parties' journals give."""
        total = result["total"] + [result["total_weight"]]
        if self._consortium.replayed(holder) == total:
            return "equal, to the last unit, to what all journals and the realised execution give"
        if result["exact"]:
            return "NOT what all journals and the realised execution give"
        return "not comparable: shares are in doubt"
