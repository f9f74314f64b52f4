"""What a certificate says: the verdict, the worst loss, against whom, and what it rests on."""

from __future__ import annotations

import math

import numpy as np

from inca.documents.certificate import CertificateDocument
from inca.documents.document import infinite_if_none
from inca.documents.fields import AgreedFields
from inca.reporting.parts import Content, Figure, RowOf, Sentence, Table, counted, plain, rounded_up, rows_of, some_ids
from inca.reporting.svg import MAX_BARS, MAX_POINTS, ReferenceLevel, losses, short
from inca.reporting.verdict import guarantee, meaning, verdict

NOT_COVERED = (
    "Not covered: adversaries other than this one, parties that deviate from the protocol, other releases of the same "
    "values, and what the result itself reveals."
)


def _adversary(document: CertificateDocument) -> str:
    colluding, messages = len(document.adversary.colluding), len(document.adversary.eavesdropped)
    heard = counted(messages, "message eavesdropped", "messages eavesdropped")
    collude = "colludes" if colluding == 1 else "collude"
    return f"{colluding:,} of {document.parties:,} parties {collude}{f', {heard}' if messages else ''}"


def _spread(document: CertificateDocument) -> str:
    finite = sorted(infinite_if_none(loss) for loss in document.epsilon)
    middle = float(np.median(finite)) if math.isfinite(finite[-1]) else finite[len(finite) // 2]
    least, median, most = map(rounded_up, (finite[0], middle, finite[-1]))
    return f"epsilon min {least}, median {median}, max {most}"


def _noise(document: CertificateDocument) -> str:
    topup = f", top-up {document.sigma_topup:.6g}" if document.sigma_topup else ""
    return f"independent {document.sigma_independent:.6g}, cancelling {document.sigma_cancelling:.6g}{topup}"


def _settlement(document: CertificateDocument) -> str:
    settled = f"{document.settled:,} of {document.parties:,} parties settled"
    return settled if document.settlement == "settled" else "none"


def _rank(document: CertificateDocument) -> str:
    met = "met" if document.rank.met else "NOT met"
    return f"rank {document.rank.hidden:,} of {document.rank.needed:,} needed: {met}"


def agreed_words(agreed: AgreedFields | None) -> str:
    """Return what was agreed on, and against whom."""
    if agreed is None:
        return "nothing"
    against = f"{agreed.colluding:.3g} of the parties colluding, {agreed.eavesdropped:.3g} of the messages eavesdropped"
    return f"{guarantee(agreed.epsilon, agreed.delta, agreed.failure)}, with {against}"


def _full(document: CertificateDocument) -> str | None:
    full = document.full_attendance
    return None if full is None else f"epsilon {rounded_up(full.epsilon)}, of party {full.party}"


ROWS = (
    RowOf("adversary", "Against", _adversary, detail=False),
    RowOf("epsilon", "Losses", _spread, detail=False),
    RowOf("full_attendance", "At full attendance", _full),
    RowOf("agreed", "Agreed", lambda document: agreed_words(document.agreed)),
    RowOf("required", "Required", lambda document: None if document.required is None else plain(document.required)),
    RowOf("parties", "Parties"),
    RowOf("rounds", "Rounds"),
    RowOf("notion", "Notion of privacy"),
    RowOf("adversary", "Colluding", lambda document: some_ids(document.adversary.colluding)),
    RowOf("sigma_independent", "Noise", _noise),
    RowOf("sensitivity", "Sensitivity"),
    RowOf("rule", "Rule"),
    RowOf("delta", "Delta"),
    RowOf("worst", "Largest mu", lambda document: rounded_up(document.worst.mu)),
    RowOf("rank", "Hidden messages", _rank),
    RowOf("settlement", "Settlement", _settlement),
    RowOf("basis", "Basis of losses"),
    RowOf("total_weight", "Total weight"),
    RowOf("route", "Method"),
    RowOf("execution", "Execution"),
    RowOf("inca", "Made by inca"),
)
"""Every field of a certificate, in the order that people read it."""


def certificate_content(document: CertificateDocument) -> Content:
    """Return the content of a certificate."""
    return Content(
        title="Certificate of privacy",
        about=f"{document.parties:,} parties, {document.rounds:,} rounds",
        verdict=(verdict(document).sentence, *loss_sentences(document)),
        rows=rows_of(document, ROWS),
        caveats=certificate_caveats(document),
        figures=(loss_figure(document),),
        tables=_conditions(document),
        assumptions=document.assumptions,
    )


def loss_sentences(document: CertificateDocument) -> tuple[Sentence, ...]:
    """Return the largest loss and what it means; the verdict has said it if there is no guarantee."""
    if math.isinf(document.worst_epsilon):
        text = "At least one value can be computed exactly, or nothing hides it."
        return (Sentence("bad", "what it means", text),)
    worst, full = document.worst, document.full_attendance
    at_most = "at most " if document.is_bound else ""
    lost = f"epsilon {at_most}{rounded_up(worst.epsilon)} at delta {document.delta:g}"
    text = f"Party {worst.party} loses most: {lost}."
    if full is not None:
        text += (
            f" Had everyone been present and every share arrived, party {full.party} would lose most: "
            f"{rounded_up(full.epsilon)}. The larger loss, {rounded_up(document.worst_epsilon)}, counts."
        )
    mu = max(infinite_if_none(case.mu) for case in (worst, full) if case is not None)
    return (
        Sentence("plain", "worst loss", text),
        Sentence("bad" if document.worst_epsilon > 5.0 else "plain", "what it means", meaning(mu)),
    )


def certificate_caveats(document: CertificateDocument) -> tuple[str, ...]:
    """Return what keeps a certificate from being better than it is."""
    caveats = []
    if document.is_bound:
        caveats.append("Losses are bounds, with leavers counted as colluders. They say nothing of leavers' own losses.")
    if document.agreed is not None and document.agreed.failure is None:
        caveats.append("How likely the plan of the noise fails is not known; it adds to delta.")
    if not document.rank.met:
        caveats.append(
            f"Too few messages are hidden: rank {document.rank.hidden:,} of {document.rank.needed:,} needed. Larger "
            "cancelling noise cannot make up for it."
        )
    if document.rule == "classic":
        caveats.append("The classic rule turns mu into epsilon by a bound that holds for epsilon below 1 only.")
    if not document.adversary.colluding and not document.adversary.eavesdropped:
        caveats.append("No party colludes here: nothing is said about parties that look at what they receive.")
    caveats += [f"{check.name} does not apply: {check.why}." for check in document.conditions if not check.holds]
    return (*caveats, NOT_COVERED)


def loss_figure(document: CertificateDocument) -> Figure:
    """Return the losses of all honest parties as a figure, with what was agreed or asked for as a level."""
    levels = []
    if document.required is not None:
        levels.append(ReferenceLevel("required", document.required))
    elif document.agreed is not None:
        levels.append(ReferenceLevel("agreed", document.agreed.epsilon))
    full = document.full_attendance
    if full is not None and full.epsilon is not None:
        levels.append(ReferenceLevel("worst loss at full attendance", full.epsilon))
    shown = len(document.honest)
    order = "" if shown <= MAX_BARS else " Sorted by loss."
    some = f" Of {shown:,} losses, {MAX_POINTS} are drawn." if shown > MAX_POINTS else ""
    legend = [("a", "an honest party")]
    if None in document.epsilon:
        legend.append(("warn", "infinite: no guarantee"))
    legend += [
        (f"level level{index}" if index else "level", f"{level.name}, {short(level.level)}")
        for index, level in enumerate(levels)
    ]
    kind = "upper bounds" if document.is_bound else "exact losses"
    return Figure(
        "The loss of every honest party",
        losses(document.honest, document.epsilon, levels, document.delta),
        tuple(legend),
        f"Epsilon at delta {document.delta:g}, {kind}; {_adversary(document)}; noise {_noise(document)}; sensitivity "
        f"{document.sensitivity:.6g}.{order}{some}",
    )


def _conditions(document: CertificateDocument) -> tuple[Table, ...]:
    checks = tuple((check.name, "holds" if check.holds else "fails", check.why) for check in document.conditions)
    return (Table("Conditions of the theorems", ("theorem", "condition", "why"), checks),) if checks else ()
