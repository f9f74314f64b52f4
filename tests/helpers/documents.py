"""Documents of every kind, small ones, and what people read of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import inca
from inca.documents.certificate import CertificateDocument
from inca.documents.document import Document
from inca.documents.fields import AgreedFields, Basis
from inca.documents.result import ResultDocument
from inca.protocol.transcript import Transcript
from inca.reporting import terminal
from inca.reporting.content import content
from inca.reporting.verdict import Documented

AGREED = AgreedFields(epsilon=2.0, delta=1e-5, colluding=0.1, failure=1e-6)


def words(about: Document | Documented | Transcript) -> str:
    """Return all that the terminal shows of a document, every entry on a line of its own."""
    return terminal.text(content(about), 10_000, details=True)


def transcript(**changes: Any) -> inca.Transcript:
    """Return a settled run of ten parties, of which one left in round 3."""
    present = np.ones((7, 10), dtype=bool)
    present[3:, 9] = False
    execution = inca.Execution(
        inca.RandomReceivers(10, 6, seed=2), inca.incremental_injection(6), inca.Presence.explicit(present)
    )
    fields: dict[str, Any] = {
        "sigma_independent": 1.0,
        "sigma_cancelling": 10.0,
        "sensitivity": 1.0,
        "adversary": inca.Adversary([0]),
    }
    return inca.Transcript(execution.settled(), **fields | changes)


def certificate(**changes: Any) -> CertificateDocument:
    """Return the certificate of that run; `basis` and `agreed` may be changed, and any field of the document."""
    return CertificateDocument.of_fields(_certified(changes.pop("basis", "exact")).as_fields() | changes)


@cache
def _certified(basis: Basis) -> CertificateDocument:
    return inca.certify(transcript(), basis=basis).document()


def unbounded_certificate(**changes: Any) -> CertificateDocument:
    """Return the certificate of that run with no noise that cancels and none that stays."""
    document = inca.certify(transcript(sigma_independent=0.0, sigma_cancelling=0.0)).document()
    return CertificateDocument.of_fields(document.as_fields() | changes)


def result(**changes: Any) -> ResultDocument:
    """Return a result of ten parties; without an interval if there is no estimate."""
    if "estimate" in changes and changes["estimate"] is None:
        changes = {"constrained": None, "interval": None} | changes
    fields: dict[str, Any] = {
        "format": "inca-result/2",
        "inca": "0.1.0",
        "name": "trial",
        "session": "ab" * 32,
        "party": "anna",
        "parties": 10,
        "estimate": 1.5,
        "reason": "",
        "epsilon": 0.5,
        "wanted": 1.0,
        "delta": 1e-5,
        "failure": 1e-6,
        "coalition": [3],
        "coalitions": 9,
        "all_coalitions": True,
        "constrained": 1.0,
        "interval": [0.5, 1.0],
        "confidence": 0.95,
        "remarks": [],
        "present": 10,
        "cohort": ["anna", *(f"p{i}" for i in range(9))],
        "weight": 10.0,
        "standard_error": 0.25,
        "exact": True,
        "contradictions": [],
        "total": [15],
        "total_weight": 10,
        "granularity": 0.1,
        "beacon": "00" * 32,
        "execution": "sha256:" + "0" * 64,
    }
    return ResultDocument.of_fields(fields | changes)
