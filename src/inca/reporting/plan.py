"""What a plan says: what it promises, the error to expect, against whom, at which cost, and how that is known."""

from __future__ import annotations

import math

import msgspec

from inca._base.validation import whole_parties
from inca.documents.certificate import ASSUMPTIONS, SETTLED
from inca.documents.document import infinite_if_none
from inca.documents.fields import ErrorParts
from inca.documents.plan import PlanDocument
from inca.protocol.usefulness import remark_on_error
from inca.reporting.parts import Content, Figure, RowOf, Sentence, counted, plain, rounded_up, rows_of
from inca.reporting.svg import ReferenceLevel, bars, shares, short
from inca.reporting.verdict import guarantee, meaning, mu_of

_RANDOM = (
    "Who colludes, who leaves and who sends to whom is drawn at random, in the planned numbers, independently of all "
    "values and noise."
)
_PARTS = (
    ("independent", "independent noise"),
    ("cancelling", "cancelling noise that is left"),
    ("data", "lost values"),
)


def _off_by(document: PlanDocument) -> str:
    apart = f"values differ by at most {document.requirements.sensitivity:g}"
    return f"the mean will be off by about {_root(infinite_if_none(document.expected_mse))} ({apart})"


def _root(mse: float) -> str:
    return f"{math.sqrt(mse):.2g}" if math.isfinite(mse) else "any amount"


def _others(document: PlanDocument) -> str:
    return f"a trusted server: {_root(document.central_mse)}; everyone alone: {_root(document.local_mse)}"


def _privacy(document: PlanDocument) -> str:
    required = document.requirements
    promised = guarantee(required.epsilon, required.delta, document.failure_probability)
    return f"{promised}, for each party; {_how_known(document)}"


def _how_known(document: PlanDocument) -> str:
    if (sampled := document.sampled) is not None:
        rates = ", ".join(f"{rate:.3g}" for rate in sampled.dropouts)
        return f"sampled: the most that a party needed in {sampled.views:,} views at each dropout rate ({rates})"
    return "proven" if document.failure_probability else "proven, certain"


def _colluders(document: PlanDocument) -> int:
    required = document.requirements
    return whole_parties("colluding", required.colluding, required.parties)


def _against(document: PlanDocument) -> str:
    required, colluders = document.requirements, _colluders(document)
    which = "any" if document.schedule == "circle" else "random"
    parts = [f"{which} {colluders:,} of the {required.parties:,} pooling what they see"] if colluders else []
    if required.eavesdropped:
        parts.append(f"eavesdroppers on {required.eavesdropped:.3g} of all messages")
    return " and ".join(parts) or "only those who read the final messages"


def _dropouts(document: PlanDocument) -> str:
    required = document.requirements
    leavers = whole_parties("dropout", required.dropout, required.parties)
    away = f", and each may miss {required.away:.3g} of the rounds" if required.away else ""
    return (f"up to {leavers:,} may leave, at any time" if leavers else "nobody may leave") + away


def _design(document: PlanDocument) -> str:
    return f"{document.rounds} rounds, {counted(document.receivers, 'receiver', 'receivers')}, {document.schedule}"


def _cost(document: PlanDocument) -> str:
    rounds = counted(document.rounds, "round", "rounds")
    return f"{rounds}, {document.rounds * document.receivers + 1:,} messages a party"


def _failure(document: PlanDocument) -> str:
    if not document.failure_probability:
        return "none: it holds against every coalition of that size"
    honest = document.requirements.parties - _colluders(document)
    expected = rounded_up(document.failure_probability * honest, 2)
    probability = rounded_up(document.failure_probability, 2)
    return f"probability {probability} for a party; {expected} parties of a run on average"


def _error(document: PlanDocument) -> str:
    within = f", known to within {document.standard_error:.2g}" if document.standard_error else ""
    mse = infinite_if_none(document.expected_mse)
    ratio = f", {mse / document.central_mse:.3g} times that of Central DP" if document.central_mse else ""
    return f"{mse:.4g}{ratio}{within}"


def _required(document: PlanDocument) -> str:
    required = document.requirements
    named = {field: plain(entry) for field, entry in msgspec.structs.asdict(required).items() if entry is not None}
    named.setdefault("variance", "of uniform values")
    return ", ".join(f"{name} {entry}" for name, entry in named.items())


ROWS = (
    RowOf("central_mse", "Compare", _others, detail=False),
    RowOf("requirements", "Privacy", _privacy, detail=False),
    RowOf("requirements", "Against", _against, detail=False),
    RowOf("requirements", "Dropouts", _dropouts, detail=False),
    RowOf("rounds", "Cost", _cost, detail=False),
    RowOf("requirements", "Required", _required, group="Design"),
    RowOf("schedule", "Design", _design, group="Design"),
    RowOf(
        "injection", "Values enter", lambda document: document.injection.kind or "as listed in the file", group="Design"
    ),
    RowOf("recipe", "Recipe", group="Design"),
    RowOf("settlement", "Settlement", group="Design"),
    RowOf("sigma_independent", "Independent noise", group="Design"),
    RowOf("sigma_cancelling", "Cancelling noise", group="Design"),
    RowOf(
        "sigma_together",
        "Needed together",
        lambda document: (
            f"{document.sigma_together:.6g}: who settles adds what lacks" if document.settlement == "settled" else None
        ),
        group="Design",
    ),
    RowOf(
        "spare",
        "Need not be joined",
        lambda document: counted(document.spare, "party", "parties") if document.spare else None,
        group="Design",
    ),
    RowOf(
        "requirements",
        "What is lost",
        lambda document: meaning(mu_of(document.requirements.epsilon, document.requirements.delta)),
        group="What to expect",
    ),
    RowOf("expected_mse", "Squared error", _error, group="What to expect"),
    RowOf("error", "Error is made of", lambda document: _percentages(_parts(document.error)), group="What to expect"),
    RowOf("failure_probability", "Failure", _failure, group="What to expect"),
    RowOf("sampled", "Noise level", _how_known, group="What to expect"),
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
        verdict=(Sentence("bad", "uninformative", remark) if remark else Sentence("good", "OK", _off_by(document)),),
        rows=rows_of(document, ROWS),
        caveats=_caveats(document),
        figures=_figures(document),
        assumptions=(
            *ASSUMPTIONS,
            *([SETTLED] if document.settlement == "settled" else []),
            *([_RANDOM] if document.failure_probability else []),
        ),
    )


def _remark(document: PlanDocument) -> str:
    return remark_on_error(infinite_if_none(document.expected_mse), document.requirements.sensitivity)


def _caveats(document: PlanDocument) -> tuple[str, ...]:
    required = document.requirements
    caveats = ["A plan is a forecast: the audit of a run (inca audit) says what that run revealed."]
    if required.colluding == 0.0:
        caveats.append(
            "No party is assumed to collude: nothing is promised against parties that look at what they get."
        )
    if required.rule == "classic":
        caveats.append("The classic rule turns mu into epsilon by a bound that holds for epsilon below 1 only.")
    if document.sampled is not None:
        caveats.append("The level of the cancelling noise is that of sampled views: nothing is proven of others.")
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
