"""What a plan says: what it promises, the error to expect, against whom, at which cost, and how that is known."""

from __future__ import annotations

import math

import msgspec

from inca._base.validation import whole_parties
from inca.documents.document import infinite_if_none
from inca.documents.fields import ErrorParts
from inca.documents.plan import AlternativeFields, PlanDocument
from inca.privacy.certificate import ASSUMPTIONS, SETTLED
from inca.protocol.usefulness import remark_on_error
from inca.reporting.parts import Content, Figure, RowOf, Sentence, Table, counted, plain, rounded_up, rows_of
from inca.reporting.svg import ReferenceLevel, bars, shares, short
from inca.reporting.verdict import meaning, mu_of, verdict

_RANDOM = (
    "Who colludes, who leaves and who sends to whom is drawn at random, in the planned numbers, independently of all "
    "values and noise."
)
_PARTS = (
    ("independent", "independent noise"),
    ("cancelling", "cancelling noise that is left"),
    ("data", "lost values"),
)


def _error(document: PlanDocument) -> str:
    within = f", known to within {document.standard_error:.2g}" if document.standard_error else ""
    mse = infinite_if_none(document.expected_mse)
    ratio = f"{mse / document.central_mse:.3g} times that of Central DP" if document.central_mse else ""
    return f"{_root(mse)} root mean square; mean squared {mse:.4g}, {ratio}{within}"


def _root(mse: float) -> str:
    return f"{math.sqrt(mse):.4g}" if math.isfinite(mse) else "unbounded"


def _others(document: PlanDocument) -> str:
    return f"{_root(document.central_mse)} with a trusted server, {_root(document.local_mse)} with every party alone"


def _against(document: PlanDocument) -> str:
    required = document.requirements
    colluders = whole_parties("colluding", required.colluding, required.parties)
    parts = [counted(colluders, "random colluding party", "random colluding parties")] if colluders else []
    if required.eavesdropped:
        parts.append(f"eavesdroppers on {required.eavesdropped:.3g} of all messages")
    return " and ".join(parts) or "only those who read the final messages"


def _dropouts(document: PlanDocument) -> str:
    required = document.requirements
    away = f", and each missing {required.away:.3g} of the rounds" if required.away else ""
    return f"up to {required.dropout:.3g} of the parties may leave{away}"


def _design(document: PlanDocument) -> str:
    last = f"{document.quiet_rounds} " if document.quiet_rounds > 1 else ""
    quiet = f", the last {last}quiet" if document.quiet_rounds else ""
    return (
        f"{document.rounds} rounds{quiet}, {counted(document.receivers, 'receiver', 'receivers')}, {document.schedule}"
    )


def _cost(document: PlanDocument) -> str:
    return f"{document.rounds * document.receivers + 1:,} messages a party, one of them final"


def _failure(document: PlanDocument) -> str:
    parties = document.requirements.parties - whole_parties(
        "colluding", document.requirements.colluding, document.requirements.parties
    )
    expected = rounded_up(document.failure_probability * parties, 2)
    probability = rounded_up(document.failure_probability, 2)
    return f"probability {probability} for a party; {expected} parties of a run on average"


def _level(document: PlanDocument) -> str:
    sampling = document.sampling
    if sampling.source == "proven":
        return "proven for any number of parties, whoever sends to whom"
    if sampling.known is not None:
        how = "drawn" if sampling.source == "drawn" else "extrapolated beyond what was drawn"
        return f"{how}, confidence {sampling.confidence:g}: {sampling.views:,} views of {sampling.parties:,} parties"
    some = " (sub-populations)" if sampling.parties < document.requirements.parties else ""
    rates = ", ".join(f"{rate:.3g}" for rate in sampling.dropouts)
    checked = f", checked on {sampling.checked} more" if sampling.checked else ""
    return (
        f"extrapolated, confidence {sampling.confidence:g}: {sampling.views:,} views of {sampling.parties:,} parties"
        f"{some} at each dropout rate ({rates}){checked}"
    )


def _required(document: PlanDocument) -> str:
    required = document.requirements
    named = {field: plain(entry) for field, entry in msgspec.structs.asdict(required).items() if entry is not None}
    named.setdefault("variance", "of uniform values")
    return ", ".join(f"{name} {entry}" for name, entry in named.items())


def _structure(document: PlanDocument) -> str:
    return f"with probability at most {rounded_up(document.structure_bound, 2)}"


ROWS = (
    RowOf("expected_mse", "Error", _error, detail=False),
    RowOf("central_mse", "Compare", _others, detail=False),
    RowOf("requirements", "Against", _against, detail=False),
    RowOf("requirements", "Dropouts", _dropouts, detail=False),
    RowOf("rounds", "Cost", _cost, detail=False),
    RowOf("failure_probability", "Failure", _failure, detail=False),
    RowOf("sampling", "Noise level", _level, detail=False),
    RowOf("requirements", "Required", _required, group="Design"),
    RowOf("schedule", "Design", _design, group="Design"),
    RowOf(
        "injection", "Values enter", lambda document: document.injection.kind or "as listed in the file", group="Design"
    ),
    RowOf("recipe", "Recipe", group="Design"),
    RowOf("settlement", "Settlement", group="Design"),
    RowOf("sigma_independent", "Independent noise", group="Design"),
    RowOf("factor", "Noise factor", lambda document: f"{document.factor:.3g} times the least variance", group="Design"),
    RowOf("sigma_cancelling", "Cancelling noise", group="Design"),
    RowOf(
        "sigma_topup",
        "Top-up noise",
        lambda document: (
            f"{document.sigma_topup[-1]:.6g} if {len(document.sigma_topup) - 1:,} leave"
            if len(document.sigma_topup) > 1
            else None
        ),
        group="Design",
    ),
    RowOf("error", "Error is made of", lambda document: _percentages(_parts(document.error)), group="What to expect"),
    RowOf("structure_bound", "Too little hidden", _structure, group="What to expect"),
    RowOf("inca", "Made by inca"),
)
"""Every field of a plan, in the order that people read it."""


def plan_content(document: PlanDocument) -> Content:
    """Return the content of a plan."""
    required = document.requirements
    remark = _remark(document)
    return Content(
        title=f"Plan for {required.parties:,} parties",
        about=_design(document),
        verdict=(
            verdict(document).sentence,
            *((Sentence("bad", "uninformative", remark),) if remark else ()),
            Sentence("plain", "what it means", meaning(mu_of(required.epsilon, required.delta))),
        ),
        rows=rows_of(document, ROWS),
        caveats=_caveats(document),
        figures=_figures(document),
        tables=tuple(
            _alternatives(heading, others)
            for heading, others in (
                ("Other designs, squared error of this plan = 1", document.considered),
                ("Other numbers of messages, squared error of this plan = 1", document.further),
            )
            if others
        ),
        assumptions=(*ASSUMPTIONS, *([SETTLED] if document.settlement == "settled" else []), _RANDOM),
    )


def _remark(document: PlanDocument) -> str:
    return remark_on_error(infinite_if_none(document.expected_mse), document.requirements.sensitivity)


def _caveats(document: PlanDocument) -> tuple[str, ...]:
    required = document.requirements
    honest = required.parties - whole_parties("colluding", required.colluding, required.parties)
    caveats = ["A plan is a forecast: the audit of a run (inca audit) says what that run revealed."]
    if required.colluding == 0.0:
        caveats.append(
            "No party is assumed to collude: nothing is promised against parties that look at what they get."
        )
    if required.rule == "classic":
        caveats.append("The classic rule turns mu into epsilon by a bound that holds for epsilon below 1 only.")
    if document.factor >= honest > 1:
        caveats.append("So few messages hide so little that this is Local DP: more messages would help.")
    if document.sampling.source == "extrapolated":
        caveats.append("The level of the cancelling noise is extrapolated beyond what was sampled, not proven.")
    return tuple(caveats)


def _figures(document: PlanDocument) -> tuple[Figure, ...]:
    required = document.requirements
    setting = (
        f"{required.parties:,} parties, epsilon {required.epsilon:g} at delta {required.delta:g}; "
        f"{required.colluding:.3g} of them colluding, {required.dropout:.3g} leaving; values differ by at most "
        f"{required.sensitivity:g}"
    )
    mse = infinite_if_none(document.expected_mse)
    rows = [
        ("Central DP, with a trusted server", math.sqrt(document.central_mse), "c"),
        ("this plan", math.sqrt(mse), "a"),
    ]
    legend = [("a", "this plan"), ("c", "Central DP"), ("b", "Local DP")]
    rows.append(("Local DP, every party alone", math.sqrt(document.local_mse), "b"))
    guess = ReferenceLevel("guessing the middle would do as well", required.sensitivity / 4.0)
    legend.append(("level", f"from {short(guess.level)} on, {guess.name}"))
    error = bars(rows, [guess], "root mean squared error of the estimate")
    caption = f"{setting}. Central and Local DP with everyone present."
    figures = [Figure("Expected error beside other mechanisms", error, tuple(legend), caption)]
    if parts := _parts(document.error):
        shown = f"this plan: {_percentages(parts)}"
        colours = tuple(zip("abc", (name for _, name in _PARTS), strict=True))
        figures.append(
            Figure("Where the error comes from", shares([("this plan", parts)]), colours, f"{shown}. {setting}.")
        )
    return tuple(figures)


def _parts(error: ErrorParts) -> list[tuple[str, float]]:
    """Return the parts of an error by name; none if it is zero or infinite."""
    parts = [(name, infinite_if_none(getattr(error, field))) for field, name in _PARTS]
    return parts if 0.0 < sum(size for _, size in parts) < math.inf else []


def _percentages(parts: list[tuple[str, float]]) -> str | None:
    total = sum(size for _, size in parts)
    return ", ".join(f"{size / total:.1%} {name}" for name, size in parts) or None


def _alternatives(heading: str, others: tuple[AlternativeFields, ...]) -> Table:
    rows = tuple((f"{infinite_if_none(o.relative_mse):.3g}", str(o.messages), o.design) for o in others)
    return Table(heading, ("error", "messages", "design"), rows)
