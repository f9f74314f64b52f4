"""What a session's result says: the estimate and its interval, what is known of its error, and the party's loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from inca._base.types import Array
from inca.documents.certificate import ASSUMPTIONS, SETTLED
from inca.documents.document import infinite_if_none
from inca.documents.result import ResultDocument, session_cost
from inca.protocol.usefulness import CoordinateRule
from inca.reporting.parts import (
    Content,
    Figure,
    RowOf,
    Sentence,
    capital,
    intervals,
    missing,
    numbers,
    plain,
    rounded_up,
    rows_of,
    some_ids,
)
from inca.reporting.svg import interval
from inca.reporting.verdict import guarantee, meaning, mu_of, verdict

_MAX_COORDINATES = 12


@dataclass(frozen=True)
class _Coordinates:
    """What is shown of a result's coordinates: the first of them, none where the archive was not read."""

    count: int
    first: Sequence[float]
    unconstrained: Sequence[float]
    ends: Sequence[tuple[float, float]]
    around: str
    """The interval of each of many coordinates, in words."""


def _coordinates(document: ResultDocument, estimate: Array | None) -> _Coordinates:
    if (arrays := document.arrays) is None:
        raw = document.estimate
        unconstrained = raw if isinstance(raw, tuple) else () if raw is None else (raw,)
        return _Coordinates(len(document.estimates), document.estimates, unconstrained, document.ends, "")
    half_width = infinite_if_none(arrays.half_width)
    rule = CoordinateRule(arrays.low, arrays.high, arrays.scale, half_width)
    first = np.empty(0) if estimate is None else estimate[:_MAX_COORDINATES]
    lower, upper = rule.interval(first)
    around = f"within {half_width:.4g} of the unconstrained estimate and " * math.isfinite(half_width)
    return _Coordinates(
        arrays.coordinates,
        rule.constrained(first).tolist(),
        first.tolist(),
        tuple(zip(lower.tolist(), upper.tolist(), strict=True)),
        f"{around}from {arrays.low:g} to {arrays.high:g}",
    )


def _interval(document: ResultDocument, shown: _Coordinates) -> str | None:
    if not (shown.around or shown.ends):
        return None
    return f"{shown.around or _intervals(shown.ends)} for the mean of all, probability {document.confidence:.3g}"


def _intervals(ends: Sequence[tuple[float, float]]) -> str:
    lower, upper = [low for low, _ in ends], [high for _, high in ends]
    return intervals(lower[0], upper[0]) if len(ends) == 1 else intervals(lower, upper)


def _error(document: ResultDocument) -> str | None:
    if not document.has_result:
        return None
    return "unknown" if document.standard_error is None else f"{document.standard_error:.4g} standard error"


def _if_result(field: str) -> RowOf:
    names = {"weight": "Weight", "exact": "Adds up exactly", "execution": "Execution"}
    return RowOf(field, names[field], lambda document: plain(getattr(document, field)) if document.has_result else None)


def _numbers(values: Sequence[float], shown: _Coordinates) -> str | None:
    if not values:
        return f"{shown.count:,} numbers" if shown.count else None
    return numbers(values[0]) if shown.count == 1 else numbers(values, count=shown.count)


def _unconstrained(document: ResultDocument, shown: _Coordinates) -> str | None:
    text = _numbers(shown.unconstrained, shown)
    return text if document.arrays is None else f"{text}, in {document.arrays.file}"


def _present(document: ResultDocument) -> str | None:
    return f"{document.present:,} of {document.parties:,} are in the result" if document.has_result else None


def _agreed(document: ResultDocument) -> str:
    return f"{guarantee(document.agreed_epsilon, document.delta, document.failure)}, for every party"


def _rows(shown: _Coordinates) -> tuple[RowOf, ...]:
    """Return every field of a result that people read, in their order."""
    return (
        RowOf("estimate", "Mean", lambda document: _numbers(shown.first, shown)),
        RowOf("interval", "Interval", lambda document: _interval(document, shown)),
        RowOf("standard_error", "Noise", _error, detail=False),
        RowOf("present", "Parties", _present, detail=False),
        RowOf("agreed_epsilon", "Agreed", _agreed, detail=False),
        RowOf("party", "Party"),
        RowOf(
            "coalition",
            "Worst coalition",
            lambda document: None if document.coalition is None else some_ids(document.coalition),
        ),
        RowOf("constrained", "Unconstrained", lambda document: _unconstrained(document, shown)),
        _if_result("weight"),
        RowOf("cohort", "Settled", lambda document: None if document.cohort is None else plain(document.cohort)),
        _if_result("exact"),
        RowOf("session", "Session"),
        _if_result("execution"),
        RowOf(
            "arrays",
            "Vectors",
            lambda document: None if document.arrays is None else f"sha256:{document.arrays.sha256}",
        ),
        RowOf("inca", "Made by inca"),
    )


def result_content(
    document: ResultDocument, domain: tuple[float, float] | None = None, estimate: Array | None = None
) -> Content:
    """Return the content of a result.

    Args:
        document: The result.
        domain: Where coordinates of values may lie, for figures; None: not known.
        estimate: What the archive of a long result has; None: it was not read, and no coordinate is shown.
    """
    shown = _coordinates(document, estimate)
    name = f"Result of \N{LEFT DOUBLE QUOTATION MARK}{document.name}\N{RIGHT DOUBLE QUOTATION MARK}"
    epsilon = session_cost(document, document.agreed_epsilon).epsilon  # never less than what the ledger books
    return Content(
        title=name if document.name else "Result of a session",
        about=f"as {document.party} has it; {document.parties:,} parties",
        verdict=(
            *_outcome(document, shown),
            verdict(document).sentence,
            Sentence("plain", "what it means", meaning(mu_of(epsilon, document.delta))),
            *(Sentence("bad", "remark", remark) for remark in document.remarks),
        ),
        rows=rows_of(document, _rows(shown)),
        caveats=_caveats(document),
        figures=_figures(document, domain, shown),
        assumptions=(*ASSUMPTIONS, SETTLED),
    )


def _outcome(document: ResultDocument, shown: _Coordinates) -> tuple[Sentence, ...]:
    if not document.has_result:
        return (Sentence("bad", "no result", f"{capital(document.reason or 'the file gives no reason')}."),)
    apart = ", each coordinate on its own" * (shown.count > 1)
    lies = f"lies {shown.around}" if shown.around else f"lies in {_intervals(shown.ends)}" if shown.ends else ""
    covers = f" The mean of all values {lies} with probability {document.confidence:.3g} at least{apart}." * bool(lies)
    mean = f"is {_numbers(shown.first, shown)}"
    if document.arrays is not None and not shown.first:
        mean = f"has {shown.count:,} coordinates; unconstrained, they are in {document.arrays.file}"
    text = f"The estimated mean {mean}.{covers}"
    if document.standard_error is None:
        error = "The error is unknown: contradictions left noise of unknown size."
        return (Sentence("plain", "mean", text), Sentence("bad", "error unknown", error))
    if document.exact:
        return (Sentence("plain", "mean", text),)
    return (
        Sentence("plain", "mean", text),
        Sentence("bad", "not exact", "Accounts of the parties do not add up; the error assumes that they do."),
    )


def _caveats(document: ResultDocument) -> tuple[str, ...]:
    caveats = []
    if document.failure is None:
        caveats.append("How likely the plan of the noise fails is not known; it adds to delta.")
    else:
        caveats.append(
            f"The plan of the noise fails with probability {rounded_up(document.failure, 2)}, which adds to delta."
        )
    if document.coalitions is not None and not document.all_coalitions:
        caveats.append("Only some coalitions were checked, drawn at random: another of that size may learn more.")
    caveats += [
        f"Not exact: {sender} says that round {t} was {claim} by {receiver}, who says the opposite."
        for t, sender, receiver, claim in document.contradictions
    ]
    if document.has_result and not document.exact and not document.contradictions:
        caveats.append("The sums of this session do not add up exactly.")
    if document.has_result and document.present < document.parties:
        caveats.append(missing(document.parties - document.present, document.parties))
    if document.has_result and document.reason:
        caveats.append(f"{capital(document.reason)}.")
    caveats.append(
        f"The loss is that of {document.party} in this session; losses of sessions about the same datum add up."
    )
    return tuple(caveats)


def _figures(document: ResultDocument, domain: tuple[float, float] | None, shown: _Coordinates) -> tuple[Figure, ...]:
    if not shown.first or not (shown.ends or domain):
        return ()
    ends: list[tuple[float | None, float | None]] = [*shown.ends] or [(None, None)] * len(shown.first)
    named = shown.count > 1
    rows = [
        (f"coordinate {index + 1}: {value:.6g}" if named else f"estimate {value:.6g}", value, *ends[index])
        for index, value in enumerate(shown.first[:_MAX_COORDINATES])
    ]
    legend = [("a", "estimate")]
    if shown.ends:
        legend.append(("line", f"interval, probability {document.confidence:g} at least"))
    where = "The axis shows the interval alone: the file does not say where values may lie."
    if domain is not None:
        legend.append(("domain", "the domain"))
        where = f"The domain is {domain[0]:g} to {domain[1]:g}, as the roster says."
    more = f" The first {len(rows)} of {shown.count:,} coordinates." if shown.count > len(rows) else ""
    return (
        Figure(
            "The estimate and its interval",
            interval(rows, domain, "mean of all values"),
            tuple(legend),
            f"Noise: {_error(document)}; {document.present:,} of {document.parties:,} parties in it. {where}{more}",
        ),
    )
