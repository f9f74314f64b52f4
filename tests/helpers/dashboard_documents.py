"""Documents to open in a dashboard: of every kind, and with every verdict."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import inca
from helpers.ended_sessions import write_session
from inca.documents.certificate import CertificateDocument
from inca.documents.plan import PlanDocument
from inca.documents.result import ResultDocument

SESSION = "0123456789abcdef" * 4


def as_json(answer: object) -> Any:
    """Return what a page receives of an answer."""
    return msgspec.json.decode(msgspec.json.encode(answer))


def transcript(sigma_independent: float = 4.0, *, leaver: bool = False) -> inca.Transcript:
    """Return an execution of nine parties, one of which colludes and another may leave."""
    present = np.ones((9, 9), dtype=bool)
    present[5:, 7] = not leaver
    schedule = inca.PermutationReceivers(9, rounds=8, seed=3)
    execution = inca.Execution(schedule, inca.incremental_injection(8), inca.Presence.explicit(present))
    return inca.Transcript(
        execution.settled() if leaver else execution,
        sigma_independent=sigma_independent,
        sigma_cancelling=60.0,
        sensitivity=1.0,
        adversary=inca.Adversary([2]),
    )


@cache
def certificates() -> dict[str, CertificateDocument]:
    """Return certificates by the reason of their verdict."""
    exact = inca.certify(transcript(), delta=1e-5)
    bound = inca.certify(transcript(leaver=True), delta=1e-5, basis="leavers counted as colluders")
    loss = exact.worst_epsilon
    return {
        "within": exact.document(required=2.0 * loss),
        "above": exact.document(required=0.5 * loss),
        "nothing agreed": exact.document(),
        "infinite": inca.certify(transcript(0.0), delta=1e-5).document(required=1.0),
        "bound above": bound.document(required=0.5 * bound.worst_epsilon),
    }


def write_ended_session(state: Path, party: str = "anna") -> Path:
    """Write a session that has ended into a `--state` folder, and return its own folder."""
    place = state / SESSION[:16]
    write_session(place)
    status = {"session": SESSION, "party": party, "stage": "rounds", "round": 3, "rounds": 20, "attended": 3}
    status |= {"open_offers": 0, "connected": 4, "reason": "", "updated": 1.0, "process": 1}
    (place / "status.json").write_text(json.dumps(status))
    return place


def unbounded(result: ResultDocument) -> ResultDocument:
    """Return a result with an infinite loss instead of its own."""
    return msgspec.structs.replace(result, epsilon=None)


@cache
def proven_plan() -> PlanDocument:
    """Return a plan for 60 parties."""
    return inca.plan(inca.Requirements(60, 1.0, 1e-5, messages=24)).document()
