"""Write the golden vectors: executions with fixed noise, every message they lead to, and what an adversary learns.

    python tools/golden_vectors.py [FOLDER]

Messages and losses are computed by the plain loops of tests/helpers/reference.py in exact rational arithmetic and
rounded once, to the nearest double; nothing of the library takes part in that.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "golden"
sys.path.insert(0, str(ROOT / "tests"))

from helpers import reference  # noqa: E402

Row = list[Any]


def chain(rounds: int) -> list[Row]:
    """Z of incremental injection (Example 2)."""
    return [[1 if k == t else -1 if k == t - 1 else 0 for k in range(rounds)] for t in range(rounds + 1)]


def case(name: str, n: int, rounds: int, k: int, **more: Any) -> None:
    """Write `name.json`, an inca-execution/1 file, and `name.expected.json`."""
    rng = random.Random(name)
    others = [[j for j in range(n) if j != i] for i in range(n)]
    receivers = [[rng.sample(others[i], k) for i in range(n)] for _ in range(rounds)]
    fractions = [[[Fraction(1, k + 1)] * k for _ in range(n)] for _ in range(rounds)]
    execution: dict[str, Any] = {
        "format": "inca-execution/1",
        "parties": n,
        "rounds": rounds,
        "receivers": receivers,
    }
    if "share" in more:
        fractions = [[[more["share"]] * k for _ in range(n)] for _ in range(rounds)]
        execution["share"] = float(more["share"])
    if more.get("weighted"):
        fractions = [[[Fraction(rng.randint(0, 8), 8 * k) for _ in range(k)] for _ in range(n)] for _ in range(rounds)]
        receivers[0][0][0], fractions[0][0][0] = -1, Fraction(0)
        execution["weights"] = [[[float(f) for f in row] for row in step] for step in fractions]
    c = more.get("value", [Fraction(1, rounds + 1)] * (rounds + 1))
    z = more.get("noise", chain(rounds))
    execution["injection"] = more.get("injection", {"kind": "incremental"})
    present = [[True] * n for _ in range(rounds + 1)]
    if "absence" in more:
        present[1:] = [[rng.random() >= more["absence"] for _ in range(n)] for _ in range(rounds)]
        execution["present"] = [[int(there) for there in row] for row in present]
    published = list(present[-1])
    if more.get("lost"):
        published[published.index(True)] = False
        execution["published"] = [int(there) for there in published]
    execution |= {"sigma_independent": 2.0, "sigma_cancelling": 16.0}

    values = [Fraction(rng.randint(0, 64), 64) for _ in range(n)]
    independent = [Fraction(round(rng.gauss(0, 2) * 64), 64) for _ in range(n)]
    cancelling = [[Fraction(round(rng.gauss(0, 16) * 64), 64) for _ in range(rounds)] for _ in range(n)]
    weights = [reference.intended_weights(receivers[t], fractions[t]) for t in range(rounds)]
    messages, beside = reference.run(weights, present, c, z, values, independent, cancelling)
    total = sum(m for m, there in zip(messages[-1], published, strict=True) if there)
    weight = sum(w for w, there in zip(beside[-1], published, strict=True) if there)
    expected = {
        "execution": f"{name}.json",
        "values": floats(values),
        "independent_noise": floats(independent),
        "cancelling_noise": [floats(row) for row in cancelling],
        "messages": [floats(row) for row in messages],
        "message_weights": [floats(row) for row in beside],
        "weight": float(weight),
        "estimate": float(total / weight) if weight else None,
    }
    colluding = sorted(rng.sample(range(n), more.get("colluding", 1)))
    tapped = [(t, i) for t in range(rounds + 1) for i in range(n) if rng.random() < 0.1]
    execution["adversary"] = {"colluding": colluding, "eavesdropped": [list(message) for message in tapped]}
    honest = [i for i in range(n) if i not in colluding]
    seen = reference.observed(receivers, present, colluding, tapped)
    squares = reference.losses(weights, present, c, z, seen, honest, Fraction(4), Fraction(256))
    expected |= {"honest": honest, "observed": [list(message) for message in seen], "mu_squared": floats(squares)}
    for file, document in ((f"{name}.json", execution), (f"{name}.expected.json", expected)):
        (FOLDER / file).write_text(json.dumps(document, indent=None, separators=(",", ":")) + "\n")


def floats(row: Row) -> list[float]:
    """Round every number to the nearest double."""
    return [float(x) for x in row]


def early_injection(rounds: int) -> dict[str, Any]:
    """Early injection (Example 1)."""
    noise = [[1] * rounds] + [[-int(k == t) for k in range(rounds)] for t in range(rounds)]
    return {"value": [1] + [0] * rounds, "noise": noise, "injection": {"kind": "early"}}


def quiet(rounds: int, last: int) -> dict[str, Any]:
    """Incremental injection with quiet last rounds and unequal scales."""
    value = [Fraction(1, rounds + 1 - last)] * (rounds + 1 - last) + [Fraction(0)] * last
    noise = [[(k + 1) * x for k, x in enumerate(row)] for row in chain(rounds)]
    return {"value": value, "noise": noise, "injection": {"value": floats(value), "noise": noise}}


def schedules() -> None:
    """Write schedules of public seeds, by the library; its tests hold them against plain Python."""
    import inca

    documents = []
    for kind, n, rounds, k in (
        ("random", 9, 3, 1),
        ("random", 8, 2, 3),
        ("distinct", 9, 4, 2),
        ("permutation", 7, 3, 1),
    ):
        seed = f"inca golden {kind} {k}".encode()
        schedule = inca.random_schedule(kind, n, rounds, k, seed=inca.PublicSeed(seed))
        receivers = [schedule.round(t).receivers.tolist() for t in range(1, rounds + 1)]
        documents.append({"kind": kind, "seed_hex": seed.hex(), "parties": n, "rounds": rounds, "receivers": receivers})
    (FOLDER / "schedules.json").write_text(json.dumps(documents, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    schedules()
    make: Callable[..., None] = case
    make("everyone", n=6, rounds=4, k=1)
    make("absences", n=7, rounds=6, k=1, absence=0.3)
    make("two-receivers", n=6, rounds=5, k=2, absence=0.25)
    make("share", n=5, rounds=4, k=2, share=Fraction(1, 8))
    make("early", n=5, rounds=4, k=1, absence=0.2, **early_injection(4))
    make("quiet", n=6, rounds=5, k=1, absence=0.2, **quiet(5, 2))
    make("weights", n=5, rounds=4, k=3, weighted=True, absence=0.2)
    make("lost-message", n=6, rounds=4, k=1, absence=0.2, lost=True)
    make("nobody-left", n=4, rounds=3, k=1, absence=1.0)
    make("alone", n=4, rounds=3, k=1, colluding=3)
