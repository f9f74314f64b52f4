"""What a session leaves behind on a party's disk: the result, the execution and its certificate; nothing private.

The estimate is public to all parties. `ended.json` marks the session as held, so that it is never held again here.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from inca._base.files import write_json
from inca._base.types import Array
from inca._base.version import __version__
from inca.documents.document import finite_or_none
from inca.documents.result import MOST_IN_JSON, ResultArrays, ResultDocument
from inca.errors import InvalidInput
from inca.network.lattice import Numbers
from inca.network.node.node import SessionEnd
from inca.network.node.proof import proof_of
from inca.network.node.session_setup import SessionSetup
from inca.protocol.execution_files import digest, write_execution
from inca.protocol.expected_error import expected_error
from inca.protocol.usefulness import EstimateInDomain

_UNFINISHED = (
    "; so leave this party running, or start it again with the same options, until then (if they never return, "
    "`inca node run --forget` gives the session up)"
)


def report(setup: SessionSetup, party: int, end: SessionEnd, folder: Path) -> ResultDocument:
    """Return the result of a session that has ended, after writing its archive to the folder if it is a long vector."""
    terms, check, names = setup.roster.terms, end.loss_check, setup.roster.names
    common: dict[str, Any] = {
        "inca": __version__,
        "name": setup.roster.name,
        "session": setup.roster.session.hex(),
        "party": names[party],
        "parties": len(names),
        "reason": end.reason + (_UNFINISHED if end.unfinished else ""),
        "epsilon": None if check is None else finite_or_none(check.epsilon),
        "agreed_epsilon": terms.epsilon,
        "delta": terms.delta,
        "failure": terms.failure,
        "coalition": None if check is None else check.coalition,
        "coalitions": None if check is None else check.coalitions,
        "all_coalitions": None if check is None else check.complete,
    }
    if (result := end.result) is None:
        return ResultDocument(estimate=None, **common)
    realized = result.realized
    estimate = setup.estimate(result.total, result.weight)
    error = None
    if result.exact:  # else the worst case of lost values is unknown
        execution, levels = realized.execution, setup.noise_levels(realized.execution)
        error = expected_error(execution, levels, dimensions=terms.dimension, domain=terms.domain)
    shown = EstimateInDomain(estimate if terms.dimension > 1 else float(estimate[0]), terms.domain, error)
    return ResultDocument(
        **common,
        **_numbers(shown, result.total, folder),
        confidence=shown.confidence,
        remarks=shown.remarks,
        present=len(realized.cohort),
        cohort=tuple(names[member] for member in sorted(realized.cohort)),
        weight=realized.execution.weight,
        standard_error=None if error is None else finite_or_none(math.sqrt(error.noise / terms.dimension)),
        exact=result.exact,
        contradictions=tuple(
            (entry.round, names[entry.sender], names[entry.receiver], entry.claim) for entry in realized.contradictions
        ),
        total_weight=result.weight,
        granularity=setup.lattice.granularity,
        beacon=result.beacon.hex(),
        execution=f"sha256:{digest(setup.transcript(realized.execution))}",
    )


def _numbers(shown: EstimateInDomain, total: Numbers, folder: Path) -> dict[str, Any]:
    """Return the fields that hold the numbers of a result, or say where they are."""
    if shown.dimensions > MOST_IN_JSON:
        rule = asdict(shown.rule) | {"half_width": finite_or_none(shown.rule.half_width)}
        arrays = ResultArrays.write(folder, np.asarray(shown.unconstrained), total, **rule)
        return {"format": "inca-result/3", "arrays": arrays}
    low, high = shown.interval
    return {
        "estimate": _plain(shown.unconstrained),  # as all have agreed on it: sequences of sessions go on from it
        "constrained": _plain(shown.estimate),
        "interval": (_plain(low), _plain(high)),
        "total": tuple(total.tolist()),
    }


def write_report(folder: Path, setup: SessionSetup, party: int, end: SessionEnd) -> ResultDocument:
    """Write result, execution, proof and certificate, each whole or not at all, and mark the session as ended.

    The certificate takes longest to work out, and nobody waits for it: it comes last.
    """
    document = report(setup, party, end, folder)
    if end.lie is not None:
        proof_of(setup.roster, end.lie).write(folder / "proof.json")
    if end.result is not None:
        write_execution(folder / "execution.json", setup.transcript(end.result.realized.execution))
    document.write(folder / "result.json")
    if end.result is not None and end.loss_checker is not None and end.loss_check is not None:
        certificate = end.loss_checker.certify(end.result.realized, end.loss_check.coalition)
        certificate.document().write(folder / "certificate.json")
    if not end.unfinished:  # else it may be taken up again, and there may be a result
        mark_ended(folder, document)
    return document


def mark_ended(folder: Path, document: ResultDocument) -> None:
    """Say that a session was held here: it is never held again."""
    ended = {"session": document.session, "ended": round(time.time(), 3), "reason": document.reason}
    write_json(folder / "ended.json", ended)


def kept_result(folder: Path) -> ResultDocument | None:
    """Return the result that a session left in its folder; None if there is none that can be read.

    An archive beside it is not opened: what the session cost is known without it.
    """
    try:
        return ResultDocument.read(folder / "result.json")
    except InvalidInput:
        return None


def _plain(value: float | Array) -> float | tuple[float, ...]:
    return value if isinstance(value, float) else tuple(value.tolist())
