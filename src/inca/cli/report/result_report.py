"""The report of a party's result: the estimate and its interval, what is known of its error, and the party's loss."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from inca.cli.printing import intervals, numbers
from inca.cli.report.certificate_report import some_ids
from inca.cli.report.page import ParameterList, ReportContent, TitledPicture, VerdictSentence, counted
from inca.cli.report.pictures import interval
from inca.errors import InvalidInput
from inca.privacy.certificate import ASSUMPTIONS, SETTLED
from inca.protocol.transcript import AgreedGuarantee

FORMATS = ("inca-result/1", "inca-result/2")
_MAX_COORDINATES = 12


class ResultFields(msgspec.Struct, kw_only=True):
    """A result as its file has it, of both versions."""

    format: str
    session: str
    party: str
    parties: int
    delta: float
    agreed_epsilon: float = msgspec.field(name="wanted")
    inca: str = ""
    name: str = ""
    estimate: float | list[float] | None = None
    constrained: float | list[float] | None = None
    interval: tuple[Any, Any] | None = None
    confidence: float = 0.95
    remarks: list[str] = []
    reason: str = ""
    epsilon: float | None = None
    failure: float | None = None
    coalition: list[int] | None = None
    coalitions: int | None = None
    all_coalitions: bool | None = None
    present: int = 0
    weight: float | None = None
    standard_error: float | None = None
    exact: bool = False
    cohort: list[str] | None = None
    late: list[str] = []
    contradictions: list[tuple[int, str, str, str]] = []
    in_doubt: list[tuple[int, int, int]] = []
    weight_in_doubt: float = 0.0
    execution: str = ""

    @property
    def estimates(self) -> list[float]:
        """The estimate as people are told it, one number for each coordinate; none if there is no result."""
        told = self.estimate if self.constrained is None else self.constrained
        return [] if told is None or self.estimate is None else told if isinstance(told, list) else [told]

    @property
    def ends(self) -> list[tuple[float, float]]:
        """The ends of the interval of each coordinate; none if they are not known."""
        if self.interval is None or not self.estimates:
            return []
        lower, upper = (end if isinstance(end, list) else [end] for end in self.interval)
        return list(zip(lower, upper, strict=True))

    def check(self) -> None:
        """Refuse what contradicts itself."""
        if self.format not in FORMATS:
            raise InvalidInput(f"format must be {' or '.join(FORMATS)}, got {self.format!r}")
        try:
            ends = [(float(low), float(high)) for low, high in self.ends]
        except (TypeError, ValueError):
            raise InvalidInput(
                "interval must be two numbers, or two lists of as many numbers as the estimate"
            ) from None
        if ends and len(ends) != len(self.estimates):
            raise InvalidInput("interval must be two numbers, or two lists of as many numbers as the estimate")
        if any(not low <= value <= high for value, (low, high) in zip(self.estimates, ends, strict=False)):
            raise InvalidInput("the interval must hold the estimate, got one that does not")


def read_result(path: Path, content: bytes) -> ResultFields:
    """Return the fields of a result's file.

    Raises:
        InvalidInput: If it is not one, or contradicts itself.
    """
    try:
        fields = msgspec.json.decode(content, type=ResultFields)
        fields.check()
    except (msgspec.DecodeError, InvalidInput) as error:
        raise InvalidInput(f"{path} cannot be read as a result: {error}") from None
    return fields


def result_content(fields: ResultFields, domain: tuple[float, float] | None = None) -> ReportContent:
    """Return what a report says of a result.

    Args:
        fields: The result.
        domain: Where coordinates of values may lie, if a roster says it.
    """
    settled = fields.format != FORMATS[0]
    return ReportContent(
        title=f"Result of \N{LEFT DOUBLE QUOTATION MARK}{fields.name}\N{RIGHT DOUBLE QUOTATION MARK}"
        if fields.name
        else "Result of a session",
        about=f"as {fields.party} has it; {fields.parties:,} parties",
        verdict=(*_estimate(fields), _own_loss(fields)),
        caveats=_caveats(fields),
        pictures=_pictures(fields, domain),
        parameters=(_parameters(fields),),
        assumptions=(*ASSUMPTIONS, *([SETTLED] if settled else [])),
    )


def _estimate(fields: ResultFields) -> tuple[VerdictSentence, ...]:
    if not fields.estimates:
        reason = fields.reason or "the file gives no reason"
        return (VerdictSentence("bad", "no result", f"There is no result: {reason}."),)
    text = f"The estimated mean is {_numbers(fields.estimates)}."
    if fields.ends:
        lower, upper = [low for low, _ in fields.ends], [high for _, high in fields.ends]
        text += (
            f" The {fields.confidence:.3g} interval is {_intervals(lower, upper)}: the mean of all values is in it "
            f"with at least that probability{', each coordinate on its own' * (len(lower) > 1)}."
        )
    else:
        text += " The file has no interval for it."
    sentences = [VerdictSentence("bad" if fields.remarks else "plain", "estimate", text)]
    if fields.standard_error is None:
        error = "How large its error is cannot be known: late leavers or contradictions leave noise of unknown size."
        sentences.append(VerdictSentence("bad", "error unknown", error))
    else:
        error = f"The noise has a standard error of {fields.standard_error:.6g}. How far off it is, nobody can know."
        if not fields.exact:
            error += " That counts on accounts of the parties that do not add up."
        sentences.append(VerdictSentence("plain" if fields.exact else "bad", "error", error))
    return (*sentences, *(VerdictSentence("bad", "remark", remark) for remark in fields.remarks))


def _numbers(values: Sequence[float]) -> str:
    return numbers(values[0] if len(values) == 1 else values)


def _intervals(lower: Sequence[float], upper: Sequence[float]) -> str:
    return intervals(lower[0], upper[0]) if len(lower) == 1 else intervals(lower, upper)


def _own_loss(fields: ResultFields) -> VerdictSentence:
    if fields.coalitions is None:
        why = fields.reason or "this party is not in the result"
        return VerdictSentence("unknown", "loss not known", f"The loss of {fields.party} was not worked out: {why}.")
    which = "all there are" if fields.all_coalitions else "drawn at random"
    over = f"at worst over {fields.coalitions:,} coalitions ({which}), at delta {fields.delta:g}"
    agreed = f"epsilon {fields.agreed_epsilon:g} was agreed"
    if fields.epsilon is None:
        return VerdictSentence("bad", "no guarantee", f"The loss of {fields.party} is unbounded {over}; {agreed}.")
    if fields.epsilon > fields.agreed_epsilon:
        text = f"The loss of {fields.party} exceeds what was agreed: epsilon {fields.epsilon:.6g} {over}; {agreed}."
        return VerdictSentence("bad", "fails", text)
    text = f"The loss of {fields.party} is within what was agreed: epsilon {fields.epsilon:.6g} {over}; {agreed}."
    return VerdictSentence("good", "holds", text)


def _caveats(fields: ResultFields) -> tuple[str, ...]:
    caveats = []
    if fields.failure is None:
        caveats.append("How likely the plan of the noise fails, which adds to delta, is not known.")
    else:
        caveats.append(f"The plan of the noise fails with probability {fields.failure:.2g}, which adds to delta.")
    if fields.coalitions is not None and not fields.all_coalitions:
        caveats.append("Only some coalitions were checked, drawn at random: another of that size may learn more.")
    if fields.late:
        late = ", ".join(fields.late)
        caveats.append(f"Late leavers: {late} settled and did not publish; noise of theirs is left in the result.")
    caveats += [
        f"Not exact: {sender} says that round {t} was {claim} by {receiver}, who says the opposite."
        for t, sender, receiver, claim in fields.contradictions
    ]
    if fields.in_doubt:
        caveats.append(
            f"Whether {counted(len(fields.in_doubt), 'offer', 'offers')} arrived nobody can tell, of a weight of "
            f"{fields.weight_in_doubt:.4g}."
        )
    if fields.estimates and not fields.exact and not fields.contradictions and not fields.in_doubt:
        caveats.append("The sums of this session do not add up exactly.")
    if fields.estimates and fields.present < fields.parties:
        lost = fields.parties - fields.present
        caveats.append(f"{lost:,} of {fields.parties:,} parties published no final message.")
    if fields.estimates and fields.reason:
        caveats.append(f"{fields.reason[:1].upper()}{fields.reason[1:]}.")
    caveats.append(
        f"The loss is that of {fields.party}, for this one session: losses of several about the same datum add up."
    )
    return tuple(caveats)


def _pictures(fields: ResultFields, domain: tuple[float, float] | None) -> tuple[TitledPicture, ...]:
    if not fields.estimates or not (fields.ends or domain):
        return ()
    named = len(fields.estimates) > 1
    ends: list[tuple[float | None, float | None]] = [*fields.ends] or [(None, None)] * len(fields.estimates)
    rows = [
        (f"coordinate {index + 1}: {value:.6g}" if named else f"estimate {value:.6g}", value, *ends[index])
        for index, value in enumerate(fields.estimates[:_MAX_COORDINATES])
    ]
    legend = [("a", "estimate")]
    if fields.ends:
        legend.append(("line", f"interval, probability {fields.confidence:g} at least"))
    where = "The files do not say where values may lie: the axis shows the interval alone."
    if domain is not None:
        legend.append(("domain", "the domain"))
        where = f"The domain is {domain[0]:g} to {domain[1]:g}, as the roster says."
    present = f"{fields.present:,} of {fields.parties:,} parties in it"
    error = "unknown" if fields.standard_error is None else f"{fields.standard_error:.4g}"
    more = (
        f" The first {len(rows)} of {len(fields.estimates):,} coordinates." if len(fields.estimates) > len(rows) else ""
    )
    return (
        TitledPicture(
            "The estimate and its interval",
            interval(rows, domain, "mean of all values"),
            tuple(legend),
            f"Standard error of the noise: {error}; {present}. {where}{more}",
        ),
    )


def _parameters(fields: ResultFields) -> ParameterList:
    agreed = AgreedGuarantee(fields.agreed_epsilon, fields.delta, failure=fields.failure)
    rows = [("party", fields.party), ("parties", f"{fields.parties:,}"), ("agreed", f"{agreed} for every party")]
    if fields.coalition is not None:
        rows.append(("worst coalition", some_ids(fields.coalition)))
    if fields.estimates:
        unconstrained = fields.estimate if isinstance(fields.estimate, list) else [fields.estimate or 0.0]
        rows += [
            ("estimate", _numbers(fields.estimates)),
            ("as the noise leaves it", _numbers(unconstrained)),
            ("final messages in it", f"{fields.present:,}"),
            ("weight", "unknown" if fields.weight is None else f"{fields.weight:.6g}"),
            ("adds up exactly", "yes" if fields.exact else "NO"),
        ]
        if fields.cohort is not None:
            rows += [
                ("settled", ", ".join(fields.cohort)),
                ("settled, did not publish", ", ".join(fields.late) or "nobody"),
            ]
    rows.append(("session", fields.session))
    if fields.execution:
        rows.append(("execution", fields.execution))
    return ParameterList("The result", (*rows, ("result made by", f"inca {fields.inca}")))
