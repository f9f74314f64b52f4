"""What a private average says: the mean, how sure it is, what it cost, and against whom."""

from __future__ import annotations

from inca.documents.average import AverageDocument
from inca.documents.certificate import ASSUMPTIONS, SETTLED
from inca.documents.document import infinite_if_none
from inca.reporting.parts import Content, RowOf, Sentence, capital, counted, intervals, numbers, rows_of
from inca.reporting.verdict import meaning, mu_of, verdict


def _mean(document: AverageDocument) -> str | None:
    return None if document.estimate is None else numbers(document.estimate, document.columns or ())


def _interval(document: AverageDocument) -> str | None:
    if document.interval is None:
        return None
    ends = intervals(*document.interval, document.columns or ())
    return f"{ends} for the exact mean, probability {document.confidence:.3g}"


def _truth(document: AverageDocument) -> str | None:
    if document.mean is None:
        return None
    return f"{numbers(document.mean, document.columns or ())}, shown on request: NOT private"


def _against(document: AverageDocument) -> str | None:
    if document.agreed is None:
        return None
    heard = f", {counted(document.eavesdropped, 'message', 'messages')} eavesdropped" if document.eavesdropped else ""
    collude = "colludes" if document.colluding == 1 else "collude"
    return f"{document.colluding:,} of {document.parties:,} parties {collude}, drawn at random{heard}"


def _error(name: str) -> RowOf:
    words = {
        "standard_error": ("Noise", "standard error, exact"),
        "worst_case_error": ("Worst case", "root mean square, with the worst values lost"),
    }
    label, what = words[name]

    def say(document: AverageDocument) -> str | None:
        error = getattr(document, name)
        return None if document.estimate is None else "infinite" if error is None else f"{error:.4g} {what}"

    return RowOf(name, label, say, detail=name != "standard_error")


ROWS = (
    RowOf("estimate", "Mean", _mean, detail=False),
    RowOf("mean", "Exact mean", _truth, detail=False),
    RowOf("interval", "Interval", _interval, detail=False),
    RowOf("agreed", "Against", _against, detail=False),
    RowOf("present", "Parties", lambda document: f"{document.present:,} of {document.parties:,} stayed", detail=False),
    _error("standard_error"),
    _error("worst_case_error"),
    RowOf("weight", "Weight", lambda document: f"{document.weight:.6g} values"),
    RowOf(
        "unconstrained",
        "Unconstrained",
        lambda document: None if document.unconstrained is None else numbers(document.unconstrained),
    ),
    RowOf("inca", "Made by inca"),
)
"""Every field of an average, in the order that people read it."""


def average_content(document: AverageDocument) -> Content:
    """Return the content of an average."""
    agreed, settled = document.agreed, document.plan is not None and document.plan.settlement == "settled"
    meant: tuple[Sentence, ...] = ()
    if agreed is not None:
        loss = max(agreed.epsilon, infinite_if_none(document.epsilon) if document.audited else 0.0)
        meant = (Sentence("plain", "what it means", meaning(mu_of(loss, agreed.delta))),)
    withheld = (
        () if document.estimate is not None else (Sentence("bad", "no estimate", f"{capital(document.withheld)}."),)
    )
    return Content(
        title="Private mean",
        about=f"{document.parties:,} parties",
        verdict=(
            *withheld,
            verdict(document).sentence,
            *meant,
            *(Sentence("bad", "remark", remark) for remark in document.remarks),
        ),
        rows=rows_of(document, ROWS),
        assumptions=(*ASSUMPTIONS, *([SETTLED] if settled else [])),
    )
