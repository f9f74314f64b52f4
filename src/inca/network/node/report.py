"""What a session leaves behind on a party's disk: the result, the execution and its certificate; nothing private.

The estimate is public to all parties. `ended.json` marks the session as held, so that it is never held again here.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from inca._base.files import null_for_infinity, write_json
from inca._base.version import __version__
from inca.errors import InvalidInput
from inca.network.node.node import SessionEnd
from inca.network.node.session_setup import SessionSetup
from inca.privacy.certificate import Certificate
from inca.protocol.execution import Execution
from inca.protocol.expected_error import expected_error
from inca.protocol.transcript import Transcript, digest, write_execution

FORMAT = "inca-result/1"


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
        "coalition": None if check is None else list(check.coalition),
        "coalitions": None if check is None else check.coalitions,
        "all_coalitions": None if check is None else check.complete,
    }
    if (result := end.result) is None:
        return dict(null_for_infinity(fields)), None
    realized = result.realized
    estimate = setup.estimate(result.total, result.weight)
    fields |= {
        "estimate": estimate.tolist() if terms.dimension > 1 else float(estimate[0]),
        "present": len(result.finals),
        "weight": realized.execution.weight,
        "standard_error": _standard_error(setup, realized.execution),
        "in_doubt": [[t, sender, receiver] for t, sender, _, receiver in realized.unresolved],
        "weight_in_doubt": realized.unresolved_weight,
        "exact": realized.exact and not realized.unresolved,
        "total": result.total.tolist(),
        "total_weight": result.weight,
        "granularity": setup.lattice.granularity,
        "execution": f"sha256:{digest(_transcript(setup, realized.execution))}",
    }
    certificate = None
    if end.loss_checker is not None and check is not None:
        certificate = end.loss_checker.certify(realized, check.coalition)
    return dict(null_for_infinity(fields)), certificate


def write_report(folder: Path, setup: SessionSetup, party: int, end: SessionEnd) -> dict[str, Any]:
    """Write result, execution and certificate, each whole or not at all, and mark the session as ended."""
    fields, certificate = report(setup, party, end)
    if end.result is not None:
        write_execution(folder / "execution.json", _transcript(setup, end.result.realized.execution))
    if certificate is not None:
        certificate.write(folder / "certificate.json")
    write_json(folder / "result.json", fields)
    ended = {"session": fields["session"], "ended": round(time.time(), 3), "reason": end.reason}
    write_json(folder / "ended.json", ended)
    return fields


def _transcript(setup: SessionSetup, execution: Execution) -> Transcript:
    """Return the realized execution and what was agreed, without an adversary: the same for all parties."""
    terms = setup.roster.terms
    return Transcript(
        execution,
        sigma_independent=terms.sigma_independent,
        sigma_cancelling=terms.sigma_cancelling,
        sensitivity=terms.sensitivity,
        agreed=terms.agreed,
    )


def _standard_error(setup: SessionSetup, execution: Execution) -> float | None:
    """Return the noise in each coordinate of the estimate; None if late or lost shares leave it unknown."""
    try:
        budget = expected_error(execution, setup.roster.terms.noise_levels)
    except InvalidInput:
        return None
    return math.sqrt(budget.noise)
