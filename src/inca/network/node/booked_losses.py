"""What the sessions of a machine have cost the values that took part: read from what nodes leave behind.

A session costs its agreed epsilon as soon as it has begun, whatever came of it. It costs the party's own loss instead
if that is larger, or if it was worked out against all coalitions of the agreed size. Sessions about the same datum add
up; people say which are, by a label.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.files import write_json
from inca._base.validation import refuse
from inca.documents.result import session_cost
from inca.network.node.event_log import fields_of
from inca.network.node.report import kept_result
from inca.privacy.gaussian import epsilon_for, mu_for

UNNAMED = "unnamed"
_DATUM_FILE = "datum.json"
_MAX_LABEL = 64
_ROUNDED_UP = 1.0 + 1e-9  # as `mu_for` rounds down


@dataclass(frozen=True)
class BookedLoss:
    """What one session has cost a party's value."""

    session: str
    name: str
    party: str
    datum: str
    ended: float | None
    epsilon: float
    delta: float | None
    failure: float | None
    basis: str


def label_datum(folder: Path, label: str) -> None:
    """Keep what the value of a session is about in the session's folder, before anything is sent."""
    if not (label.strip() == label and label.isprintable() and 1 <= len(label) <= _MAX_LABEL):
        refuse("the label of a datum", label, f"1 to {_MAX_LABEL} printable characters without spaces around them")
    before = fields_of(folder / _DATUM_FILE).get("datum")
    if before is not None and before != label:
        refuse("the label of a datum", label, f"what it was before in this session, {before!r}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_json(folder / _DATUM_FILE, {"datum": label})


def booked_losses(state: Path) -> list[BookedLoss]:
    """Return what each session under a `--state` folder has cost, those first that ended first."""
    folders = sorted({path.parent for name in ("status.json", "result.json") for path in state.glob(f"*/{name}")})
    losses = [_booked(folder) for folder in folders]
    return sorted(losses, key=lambda loss: math.inf if loss.ended is None else loss.ended)


def _booked(folder: Path) -> BookedLoss:
    status, result = fields_of(folder / "status.json"), kept_result(folder)
    ended = fields_of(folder / "ended.json").get("ended")
    began, agreed, delta = _logged(folder / "log.jsonl")
    if result is not None:
        agreed, delta = result.agreed_epsilon, result.delta
    began = not (ended is not None and not began and status.get("round") == 0)
    cost = session_cost(result, math.inf if agreed is None else float(agreed), began=began)
    return BookedLoss(
        session=str(status.get("session", folder.name) if result is None else result.session),
        name="" if result is None else result.name,
        party=str(status.get("party", "") if result is None else result.party),
        datum=str(fields_of(folder / _DATUM_FILE).get("datum", UNNAMED)),
        ended=None if ended is None else float(ended),
        epsilon=cost.epsilon,
        delta=None if delta is None else float(delta),
        failure=None if result is None else result.failure,
        basis=_WHY[cost.why],
    )


_WHY = {
    "not begun": "its first round never began",
    "agreed": "as agreed",
    "own loss above agreed": "own loss, more than agreed",
    "own loss": "own loss, against all coalitions",
    "not all coalitions": "as agreed, since not all coalitions were checked",
    "not in the result": "as agreed, since the value is not in the result",
}


def _logged(path: Path) -> tuple[bool, float | None, float | None]:
    """Return whether a round has begun, as far as the log of a node knows, and the agreed epsilon and delta."""
    events: list[dict[str, Any]] = []
    with suppress(OSError):
        for line in path.read_text().splitlines():
            with suppress(ValueError):  # the last line of a node that was killed
                events.append(json.loads(line))
    last = {event.get("event"): event for event in events}
    planned = last.get("planned loss", {})
    return "round" in last, planned.get("allowed"), planned.get("delta")


def together(losses: Iterable[BookedLoss], delta: float) -> tuple[float, float | None]:
    """Return what sessions about one datum have cost together.

    Example:
        >>> once = BookedLoss("ab", "trial", "anna", "", 1.0, 1.0, 1e-5, 1e-6, "as agreed")
        >>> [f"{number:.3g}" for times in (1, 2) for number in together([once] * times, 1e-5)]
        ['1', '1.1e-05', '1.47', '1.2e-05']
    """
    charged = [loss for loss in losses if loss.epsilon > 0.0]
    if len(charged) == 1 and charged[0].delta == delta:
        epsilon = charged[0].epsilon
    else:
        known = all(loss.delta is not None for loss in charged)
        mus = [mu_for(loss.epsilon, loss.delta or 0.0) * _ROUNDED_UP if known else math.inf for loss in charged]
        epsilon = float(epsilon_for(np.array([math.hypot(*mus)]), delta)[0])
    failures = [loss.failure for loss in charged if loss.failure is not None]
    return epsilon, min(1.0, delta + math.fsum(failures)) if len(failures) == len(charged) else None
