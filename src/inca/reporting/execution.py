"""What an execution says: who was present, what went wrong, and, with a certificate, what it revealed."""

from __future__ import annotations

import math

import numpy as np

from inca.documents.certificate import ASSUMPTIONS, SETTLED, CertificateDocument
from inca.errors import InvalidInput
from inca.protocol.execution_files import execution_document
from inca.protocol.expected_error import expected_error
from inca.protocol.transcript import Transcript
from inca.reporting.certificate import agreed_words, certificate_content, loss_sentences
from inca.reporting.parts import Content, Figure, Row, RowOf, Sentence, counted, missing, plain, rows_of, some_ids
from inca.reporting.svg import MAX_GRID_PARTIES, MAX_GRID_ROUNDS, presence, shares
from inca.reporting.verdict import verdict

ROWS = (
    RowOf("parties", "Parties"),
    RowOf("rounds", "Rounds"),
    RowOf("sigma_independent", "Independent noise"),
    RowOf("sigma_cancelling", "Cancelling noise"),
    RowOf(
        "sigma_topup", "Top-up noise", lambda document: plain(document.sigma_topup) if document.sigma_topup else None
    ),
    RowOf("sensitivity", "Sensitivity"),
    RowOf(
        "adversary",
        "Adversary",
        lambda document: (
            "not in the file"
            if document.adversary is None
            else f"{some_ids(document.adversary.colluding)} colluding; "
            f"{len(document.adversary.eavesdropped):,} messages eavesdropped"
        ),
    ),
    RowOf("agreed", "Agreed", lambda document: agreed_words(document.agreed)),
    RowOf("settlement", "Settlement"),
    RowOf(
        "rounding", "Whole numbers", lambda document: None if document.rounding is None else plain(document.rounding)
    ),
)
"""The fields of an execution that are no arrays, in the order that people read them."""


def execution_content(
    transcript: Transcript,
    certificate: CertificateDocument | None = None,
    *,
    bound: CertificateDocument | None = None,
    unknown: str = "",
    drawn: bool = False,
) -> Content:
    """Return the content of an execution."""
    figures = (*_error_figures(transcript), presence_figure(transcript))
    rows, caveats = execution_rows(transcript), execution_caveats(transcript)
    if certificate is None:
        return _unaccounted(transcript, unknown, rows, figures)
    content = certificate_content(certificate)
    sentences = list(content.verdict)
    if drawn:
        caveats = (
            "The file names no adversary: one of the agreed size was drawn, always the same for this file. Others of "
            "that size may learn more.",
            *caveats,
        )
    if bound is not None:
        outcome = verdict(bound)
        said = loss_sentences(bound)[0].text if outcome.why == "nothing agreed" else outcome.text
        text = f"With leavers counted as colluders, {said[:1].lower()}{said[1:]}"
        sentences.insert(2, Sentence(outcome.sentence.standing, "if leavers collude", text))
    return Content(
        title="What an execution revealed",
        about=content.about,
        verdict=tuple(sentences),
        rows=(*content.rows, *rows),
        caveats=(*caveats, *content.caveats),
        figures=(*content.figures, *figures),
        tables=content.tables,
        assumptions=content.assumptions,
    )


def _unaccounted(transcript: Transcript, unknown: str, rows: tuple[Row, ...], figures: tuple[Figure, ...]) -> Content:
    agreed, execution = transcript.agreed, transcript.execution
    why = unknown or "its losses were not worked out here"
    promised = "The file does not say what was agreed." if agreed is None else f"The parties agreed on {agreed}."
    return Content(
        title="An execution",
        about=f"{execution.parties:,} parties, {execution.rounds:,} rounds",
        verdict=(
            Sentence("unknown", "not known", f"What it revealed is not known: {why}."),
            Sentence("plain", "agreed", promised),
        ),
        rows=rows,
        caveats=(
            *execution_caveats(transcript),
            "inca audit works the losses out, with options for what is not known.",
        ),
        figures=figures,
        assumptions=(*ASSUMPTIONS, *([SETTLED] if execution.cohort is not None else [])),
    )


def execution_rows(transcript: Transcript) -> tuple[Row, ...]:
    """Return the facts of an execution."""
    execution = transcript.execution
    further = (
        Row("Receivers", f"{execution.schedule.slots} per party and round"),
        Row("Published", f"{int(execution.published.sum()):,} final messages"),
        Row("Not delivered", f"{len(execution.undelivered):,} offers"),
        Row("Total weight", f"{execution.weight:.6g}"),
    )
    facts = (*rows_of(execution_document(transcript), ROWS), *further)
    return tuple(Row(row.name, row.value, row.hint, row.detail, "The execution") for row in facts)


def execution_caveats(transcript: Transcript) -> tuple[str, ...]:
    """Return what went otherwise than it was meant to."""
    execution, caveats = transcript.execution, []
    if count := execution.parties - int(execution.published.sum()):
        caveats.append(missing(count, execution.parties))
    if execution.cohort is not None and (silent := int((execution.cohort & ~execution.published).sum())):
        who = counted(silent, "final message", "final messages")
        caveats.append(f"{who} of settled parties missing, so noise of theirs is left in the result.")
    if execution.undelivered:
        caveats.append(f"{counted(len(execution.undelivered), 'offered share', 'offered shares')} did not arrive.")
    return tuple(caveats)


def presence_figure(transcript: Transcript) -> Figure:
    """Return who was present in which round as a figure."""
    execution = transcript.execution
    rows = [execution.presence.row(t) for t in range(execution.rounds + 1)]
    colluding = () if transcript.adversary is None else transcript.adversary.colluding
    present = sum(int(row.sum()) for row in rows) / (len(rows) * execution.parties)
    caption = (
        f"{execution.parties:,} parties, {execution.rounds:,} rounds; present in {present:.1%} of rounds on average; "
        f"{int(execution.published.sum()):,} published a final message."
    )
    if execution.parties > MAX_GRID_PARTIES or execution.rounds >= MAX_GRID_ROUNDS:
        legend = (("line", "parties present"),)
        return Figure("How many were present in each round", presence(rows), legend, caption)
    silent = np.flatnonzero(~execution.published).tolist()
    entries = [("a", "present"), ("gone", "absent")]
    entries += [("warn", "present, and colludes")] * bool(colluding)
    entries += [("silent", "published no final message")] * bool(silent)
    return Figure("Who was present in which round", presence(rows, colluding, silent), tuple(entries), caption)


def _error_figures(transcript: Transcript) -> tuple[Figure, ...]:
    try:
        budget = expected_error(transcript.execution, transcript.noise_levels)
    except InvalidInput:  # a noise level that is not known, or shares that came back late
        return ()
    if not 0.0 < budget.noise < math.inf:
        return ()
    parts = [("independent noise", budget.independent), ("cancelling noise that is left", budget.cancelling)]
    shown = ", ".join(f"{size / budget.noise:.1%} {name}" for name, size in parts)
    return (
        Figure(
            "Where the noise of the estimate comes from",
            shares([("noise in the estimate, squared", parts)]),
            (("a", "independent noise"), ("b", "cancelling noise that is left")),
            f"{shown}; standard error of the noise {math.sqrt(budget.noise):.4g} per coordinate. What lost values add "
            "is not in the file.",
        ),
    )
