"""What a session's result says: the estimate and its interval, what is known of its error, and the party's loss."""

from __future__ import annotations

from collections.abc import Sequence

from inca.documents.certificate import ASSUMPTIONS, SETTLED
from inca.documents.result import ResultDocument, session_cost
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


def _interval(document: ResultDocument) -> str | None:
    if not document.ends:
        return None
    return f"{_intervals(document.ends)} for the mean of all, probability {document.confidence:.3g}"


def _intervals(ends: Sequence[tuple[float, float]]) -> str:
    lower, upper = [low for low, _ in ends], [high for _, high in ends]
    return intervals(lower[0], upper[0]) if len(ends) == 1 else intervals(lower, upper)


def _error(document: ResultDocument) -> str | None:
    if not document.estimates:
        return None
    return "unknown" if document.standard_error is None else f"{document.standard_error:.4g} standard error"


def _if_result(field: str) -> RowOf:
    names = {"weight": "Weight", "exact": "Adds up exactly", "execution": "Execution"}
    return RowOf(field, names[field], lambda document: plain(getattr(document, field)) if document.estimates else None)


def _estimate(document: ResultDocument) -> str | None:
    estimates = document.estimates
    return None if not estimates else numbers(estimates[0] if len(estimates) == 1 else estimates)


def _present(document: ResultDocument) -> str | None:
    return f"{document.present:,} of {document.parties:,} are in the result" if document.estimates else None


def _unconstrained(document: ResultDocument) -> str | None:
    return None if document.estimate is None else numbers(document.estimate)


def _agreed(document: ResultDocument) -> str:
    return f"{guarantee(document.agreed_epsilon, document.delta, document.failure)}, for every party"


ROWS = (
    RowOf("estimate", "Mean", _estimate),
    RowOf("interval", "Interval", _interval),
    RowOf("standard_error", "Noise", _error, detail=False),
    RowOf("present", "Parties", _present, detail=False),
    RowOf("agreed_epsilon", "Agreed", _agreed, detail=False),
    RowOf("party", "Party"),
    RowOf(
        "coalition",
        "Worst coalition",
        lambda document: None if document.coalition is None else some_ids(document.coalition),
    ),
    RowOf("constrained", "Unconstrained", _unconstrained),
    _if_result("weight"),
    RowOf("cohort", "Settled", lambda document: None if document.cohort is None else plain(document.cohort)),
    _if_result("exact"),
    RowOf("session", "Session"),
    _if_result("execution"),
    RowOf("inca", "Made by inca"),
)
"""Every field of a result that people read, in their order."""


def result_content(document: ResultDocument, domain: tuple[float, float] | None = None) -> Content:
    """Return the content of a result."""
    name = f"Result of \N{LEFT DOUBLE QUOTATION MARK}{document.name}\N{RIGHT DOUBLE QUOTATION MARK}"
    epsilon = session_cost(document, document.agreed_epsilon).epsilon  # never less than what the ledger books
    return Content(
        title=name if document.name else "Result of a session",
        about=f"as {document.party} has it; {document.parties:,} parties",
        verdict=(
            *_outcome(document),
            verdict(document).sentence,
            Sentence("plain", "what it means", meaning(mu_of(epsilon, document.delta))),
            *(Sentence("bad", "remark", remark) for remark in document.remarks),
        ),
        rows=rows_of(document, ROWS),
        caveats=_caveats(document),
        figures=_figures(document, domain),
        assumptions=(*ASSUMPTIONS, SETTLED),
    )


def _outcome(document: ResultDocument) -> tuple[Sentence, ...]:
    if not document.estimates:
        return (Sentence("bad", "no result", f"{capital(document.reason or 'the file gives no reason')}."),)
    apart = ", each coordinate on its own" * (len(document.estimates) > 1)
    covers = f" The mean of all values lies in {_intervals(document.ends)} with probability {document.confidence:.3g}"
    text = f"The estimated mean is {_estimate(document)}.{f'{covers} at least{apart}.' if document.ends else ''}"
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
    if document.estimates and not document.exact and not document.contradictions:
        caveats.append("The sums of this session do not add up exactly.")
    if document.estimates and document.present < document.parties:
        caveats.append(missing(document.parties - document.present, document.parties))
    if document.estimates and document.reason:
        caveats.append(f"{capital(document.reason)}.")
    caveats.append(
        f"The loss is that of {document.party} in this session; losses of sessions about the same datum add up."
    )
    return tuple(caveats)


def _figures(document: ResultDocument, domain: tuple[float, float] | None) -> tuple[Figure, ...]:
    estimates = document.estimates
    if not estimates or not (document.ends or domain):
        return ()
    ends: list[tuple[float | None, float | None]] = [*document.ends] or [(None, None)] * len(estimates)
    named = len(estimates) > 1
    rows = [
        (f"coordinate {index + 1}: {value:.6g}" if named else f"estimate {value:.6g}", value, *ends[index])
        for index, value in enumerate(estimates[:_MAX_COORDINATES])
    ]
    legend = [("a", "estimate")]
    if document.ends:
        legend.append(("line", f"interval, probability {document.confidence:g} at least"))
    where = "The axis shows the interval alone: the file does not say where values may lie."
    if domain is not None:
        legend.append(("domain", "the domain"))
        where = f"The domain is {domain[0]:g} to {domain[1]:g}, as the roster says."
    more = f" The first {len(rows)} of {len(estimates):,} coordinates." if len(estimates) > len(rows) else ""
    return (
        Figure(
            "The estimate and its interval",
            interval(rows, domain, "mean of all values"),
            tuple(legend),
            f"Noise: {_error(document)}; {document.present:,} of {document.parties:,} parties in it. {where}{more}",
        ),
    )
