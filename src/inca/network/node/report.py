"""What a session leaves behind on a party's disk: the result, the execution and its certificate; nothing private.

The estimate is public to all parties. `ended.json` marks the session as held, so that it is never held again here.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from inca._base.files import null_for_infinity, write_json
from inca._base.types import Array
from inca._base.version import __version__
from inca.network.node.node import SessionEnd
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.finalization import Result
from inca.network.protocol.session import WEIGHT
from inca.privacy.certificate import Certificate
from inca.protocol.execution_files import digest, write_execution
from inca.protocol.expected_error import ErrorBudget, expected_error
from inca.protocol.usefulness import EstimateInDomain

FORMAT = "inca-result/2"


def report(setup: SessionSetup, party: int, end: SessionEnd) -> tuple[dict[str, Any], Certificate | None]:
    """Return what to tell of a session that has ended, and its certificate if there is a result."""
    terms, check = setup.roster.terms, end.loss_check
    fields: dict[str, Any] = {
        "format": FORMAT,
        "inca": __version__,
        "name": setup.roster.name,
        "session": setup.roster.session.hex(),
        "party": setup.roster.names[party],
        "parties": len(setup.roster.parties),
        "estimate": None,
        "reason": end.reason,
        "epsilon": None if check is None else check.epsilon,
        "wanted": terms.epsilon,
        "delta": terms.delta,
        "failure": terms.failure,
        "coalition": None if check is None else list(check.coalition),
        "coalitions": None if check is None else check.coalitions,
        "all_coalitions": None if check is None else check.complete,
    }
    if (result := end.result) is None:
        return dict(null_for_infinity(fields)), None
    realized = result.realized
    estimate = setup.estimate(result.total, result.weight)
    unconstrained = estimate if terms.dimension > 1 else float(estimate[0])
    error, names = _error(setup, result), setup.roster.names
    shown = EstimateInDomain(unconstrained, terms.domain, error)
    fields |= {
        "estimate": _plain(unconstrained),  # as all parties have agreed on it: sequences of sessions go on from it
        "constrained": _plain(shown.estimate),
        "interval": [_plain(end) for end in shown.interval],
        "confidence": shown.confidence,
        "remarks": list(shown.remarks),
        "present": len(result.published),
        "cohort": [names[member] for member in sorted(realized.cohort)],
        "late": [names[member] for member in sorted(result.late)],
        "weight": realized.execution.weight if not result.late else result.weight / WEIGHT,
        "standard_error": None if error is None else math.sqrt(error.noise / terms.dimension),  # of a coordinate
        "exact": result.exact,
        "contradictions": [
            [entry.round, names[entry.sender], names[entry.receiver], entry.claim] for entry in realized.contradictions
        ],
        "total": result.total.tolist(),
        "total_weight": result.weight,
        "granularity": setup.lattice.granularity,
        "beacon": result.beacon.hex(),
        "execution": f"sha256:{digest(setup.transcript(realized.execution))}",
    }
    certificate = None
    if end.loss_checker is not None and check is not None:
        certificate = end.loss_checker.certify(realized, check.coalition)
    return dict(null_for_infinity(fields)), certificate


def write_report(folder: Path, setup: SessionSetup, party: int, end: SessionEnd) -> dict[str, Any]:
    """Write result, execution and certificate, each whole or not at all, and mark the session as ended."""
    fields, certificate = report(setup, party, end)
    if end.result is not None:
        write_execution(folder / "execution.json", setup.transcript(end.result.realized.execution))
    if certificate is not None:
        certificate.write(folder / "certificate.json")
    write_json(folder / "result.json", fields)
    ended = {"session": fields["session"], "ended": round(time.time(), 3), "reason": end.reason}
    write_json(folder / "ended.json", ended)
    return fields


def _error(setup: SessionSetup, result: Result) -> ErrorBudget | None:
    """Return the expected squared error with the worst case of lost values; None if it is unknown.

    Late leavers leave parts of what the cohort exchanged with those who left before, which nobody can tell.
    """
    terms, execution = setup.roster.terms, result.realized.execution
    assert execution.cohort is not None
    if not result.exact or (result.late and not execution.cohort.all()):
        return None
    levels = setup.noise_levels(execution)
    return expected_error(execution, levels, dimensions=terms.dimension, domain=terms.domain)


def _plain(value: float | Array) -> Any:
    return value if isinstance(value, float) else value.tolist()
