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
from inca.network.node.event_log import fields_of
from inca.privacy.gaussian import epsilon_for, mu_for

UNNAMED = "unnamed"
_DATUM_FILE = "datum.json"
_MAX_LABEL = 64
_ROUNDED_UP = 1.0 + 1e-9  # as `mu_for` rounds down


@dataclass(frozen=True)
class BookedLoss:
    """What one session has cost a party's value.

    Args:
        session: The session's id, in hexadecimal digits.
        name: What its roster is called; empty if that is not known.
        party: The name of the party.
        datum: What the value was about, as its owner has labelled it.
        ended: When it ended, as Unix time; None if it has not.
        epsilon: What it cost; 0 if its first round never began.
        delta: At this delta; None if that is not known.
        failure: The probability that the plan failed, which adds to delta.
        basis: Why so much.
    """

    session: str
    name: str
    party: str
    datum: str
    ended: float | None
    epsilon: float
    delta: float | None
    failure: float
    basis: str


def label_datum(folder: Path, label: str) -> None:
    """Keep what the value of a session is about in the session's folder, before anything is sent.

    Raises:
        InvalidInput: The label is not 1 to 64 printable characters, or another one was kept.
    """
    if not (label.strip() == label and label.isprintable() and 1 <= len(label) <= _MAX_LABEL):
        refuse("the label of a datum", label, f"1 to {_MAX_LABEL} printable characters without spaces around them")
    before = fields_of(folder / _DATUM_FILE).get("datum")
    if before is not None and before != label:
        refuse("the label of a datum", label, f"what it was before in this session, {before!r}")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_json(folder / _DATUM_FILE, {"datum": label})


def booked_losses(state: Path) -> list[BookedLoss]:
    """Return what each session under a `--state` folder has cost, those first that ended first.

    Args:
        state: The folder where a node keeps its sessions.

    Returns:
        One entry for each session that has begun or ended there.
    """
    folders = sorted({path.parent for name in ("status.json", "result.json") for path in state.glob(f"*/{name}")})
    losses = [_booked(folder) for folder in folders]
    return sorted(losses, key=lambda loss: math.inf if loss.ended is None else loss.ended)


def _booked(folder: Path) -> BookedLoss:
    status, result = fields_of(folder / "status.json"), fields_of(folder / "result.json")
    ended = fields_of(folder / "ended.json").get("ended")
    began, agreed, delta = _logged(folder / "log.jsonl")
    if result.get("wanted") is not None:
        agreed, delta = result["wanted"], result["delta"]
    if ended is not None and not began and status.get("round") == 0:
        epsilon, basis = 0.0, "its first round never began"
    else:
        epsilon, basis = _cost(result, math.inf if agreed is None else float(agreed))
    return BookedLoss(
        session=str(result.get("session") or status.get("session") or folder.name),
        name=str(result.get("name", "")),
        party=str(result.get("party") or status.get("party") or ""),
        datum=str(fields_of(folder / _DATUM_FILE).get("datum", UNNAMED)),
        ended=None if ended is None else float(ended),
        epsilon=epsilon,
        delta=None if delta is None else float(delta),
        failure=float(result.get("failure") or 0.0),
        basis=basis,
    )


def _cost(result: dict[str, Any], agreed: float) -> tuple[float, str]:
    """Return what a session that has begun has cost, and why so much."""
    if result.get("coalitions") is None:
        return agreed, "as agreed"
    own = math.inf if result["epsilon"] is None else float(result["epsilon"])
    if own > agreed:
        return own, "own loss, more than agreed"
    if result.get("all_coalitions"):
        return own, "own loss, against all coalitions"
    return agreed, "as agreed, since not all coalitions were checked"


def _logged(path: Path) -> tuple[bool, float | None, float | None]:
    """Return whether a round has begun, as far as the log of a node knows, and the agreed epsilon and delta."""
    events: list[dict[str, Any]] = []
    with suppress(OSError):
        for line in path.read_text().splitlines():
            with suppress(ValueError):  # the last line of a node that was killed
                events.append(json.loads(line))
    planned = [event for event in events if event.get("event") == "planned loss"][-1:] or [{}]
    return any(event.get("event") == "round" for event in events), planned[0].get("allowed"), planned[0].get("delta")


def together(losses: Iterable[BookedLoss], delta: float) -> tuple[float, float]:
    """Return what sessions about one datum have cost together.

    Args:
        losses: Their losses; each is that of a Gaussian mechanism, so the squares of their mu add up.
        delta: At which delta to say it.

    Returns:
        Epsilon, and delta with all probabilities of failure added. Epsilon is infinite if a loss is not known.

    Example:
        >>> once = BookedLoss("ab", "trial", "anna", "", 1.0, 1.0, 1e-5, 1e-6, "as agreed")
        >>> [f"{number:.3g}" for times in (1, 2) for number in together([once] * times, 1e-5)]
        ['1', '1.1e-05', '1.47', '1.2e-05']
    """
    charged = [loss for loss in losses if loss.epsilon > 0.0]
    known = all(loss.delta is not None for loss in charged)
    mus = [mu_for(loss.epsilon, loss.delta or 0.0) * _ROUNDED_UP if known else math.inf for loss in charged]
    epsilon = float(epsilon_for(np.array([math.hypot(*mus)]), delta)[0])
    return epsilon, min(1.0, delta + sum(loss.failure for loss in charged))
