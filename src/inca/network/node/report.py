"""What a session leaves behind on a party's disk: the result, the execution and its certificate; nothing private.

The estimate is public to all parties. `ended.json` marks the session as held, so that it is never held again here.
"""

from __future__ import annotations

import math
import time
from pathlib import Path
from typing import Any

from inca._base.files import null_for_infinity, write_json
from inca._base.validation import InputError
from inca._base.version import __version__
from inca.network.node.node import Ended
from inca.network.node.session_setup import Setting
from inca.privacy.certificate import Certificate
from inca.protocol.expected_error import expected_error
from inca.protocol.transcript import Transcript, digest, write_execution

FORMAT = "inca-result/1"


def report(setting: Setting, party: int, ended: Ended) -> tuple[dict[str, Any], Certificate | None]:
    """Return what to tell of a session that has ended, and its certificate if there is a result."""
    terms, verdict = setting.roster.terms, ended.verdict
    fields: dict[str, Any] = {
        "format": FORMAT,
        "inca": __version__,
        "name": setting.roster.name,
        "session": setting.roster.session.hex(),
        "party": setting.roster.names[party],
        "parties": len(setting.roster.parties),
        "estimate": None,
        "reason": ended.reason,
        "epsilon": None if verdict is None else verdict.epsilon,
        "wanted": terms.epsilon,
        "delta": terms.delta,
        "coalition": None if verdict is None else list(verdict.coalition),
        "coalitions": None if verdict is None else verdict.coalitions,
        "all_coalitions": None if verdict is None else verdict.complete,
    }
    if (result := ended.result) is None:
        return dict(null_for_infinity(fields)), None
    realised = result.realised
    estimate = setting.estimate(result.total, result.weight)
    fields |= {
        "estimate": estimate.tolist() if terms.dimension > 1 else float(estimate[0]),
        "present": len(result.finals),
        "weight": realised.execution.weight,
        "standard_error": _standard_error(setting, ended),
        "in_doubt": [[t, sender, receiver] for t, sender, _, receiver in realised.doubts],
        "weight_in_doubt": realised.doubtful_weight,
        "exact": realised.exact and not realised.doubts,
        "total": result.total.tolist(),
        "total_weight": result.weight,
        "granularity": setting.lattice.granularity,
        "execution": f"sha256:{digest(_transcript(setting, ended))}",
    }
    certificate = None
    if ended.judge is not None and verdict is not None:
        certificate = ended.judge.certify(realised, verdict.coalition)
    return dict(null_for_infinity(fields)), certificate


def write_report(folder: Path, setting: Setting, party: int, ended: Ended) -> dict[str, Any]:
    """Write result, execution and certificate, each whole or not at all, and mark the session as ended."""
    fields, certificate = report(setting, party, ended)
    if ended.result is not None:
        write_execution(folder / "execution.json", _transcript(setting, ended))
    if certificate is not None:
        certificate.write(folder / "certificate.json")
    write_json(folder / "result.json", fields)
    marks = {"session": fields["session"], "ended": round(time.time(), 3), "reason": ended.reason}
    write_json(folder / "ended.json", marks)
    return fields


def _transcript(setting: Setting, ended: Ended) -> Transcript:
    """Return the realised execution with its noise levels, without an adversary: the same for all parties."""
    if ended.result is None:
        raise RuntimeError("there is no execution without a result")
    terms = setting.roster.terms
    return Transcript(ended.result.realised.execution, terms.sigma_independent, terms.sigma_cancelling)


def _standard_error(setting: Setting, ended: Ended) -> float | None:
    """Return the noise in each coordinate of the estimate; None if late or lost shares leave it unknown."""
    terms = setting.roster.terms
    try:
        execution = _transcript(setting, ended).execution
        budget = expected_error(execution, terms.sigma_independent, terms.sigma_cancelling)
    except InputError:
        return None
    return math.sqrt(budget.noise)
