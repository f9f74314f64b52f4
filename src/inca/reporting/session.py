"""What a session's folder says: its result, certificate and execution together, and how often what was logged."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from typing import Any

from inca._base.types import Array
from inca.documents.certificate import CertificateDocument
from inca.documents.result import ResultDocument
from inca.protocol.execution_files import digest
from inca.protocol.transcript import Transcript
from inca.reporting.certificate import certificate_content
from inca.reporting.execution import execution_caveats, execution_rows, presence_figure
from inca.reporting.parts import Content, Sentence, Table
from inca.reporting.result import result_content


def session_content(
    result: ResultDocument,
    certificate: CertificateDocument | None = None,
    transcript: Transcript | None = None,
    log: bytes = b"",
    domain: tuple[float, float] | None = None,
    estimate: Array | None = None,
) -> Content:
    """Return the content of a session that has ended; `estimate` is what the archive of a long result has."""
    content = result_content(result, domain, estimate)
    content = replace(content, title=content.title.replace("Result of", "Session", 1) if result.name else "A session")
    if certificate is not None:
        content = _with_certificate(content, result, certificate)
    if transcript is not None:
        content = _with_execution(content, result, transcript)
    rows = tuple((name, f"{count:,}") for name, count in _events(log))
    return replace(content, tables=(*content.tables, Table("The log", ("event", "times"), rows))) if rows else content


def _with_certificate(content: Content, result: ResultDocument, certificate: CertificateDocument) -> Content:
    more = certificate_content(certificate)
    sentences = tuple(replace(sentence, badge=f"all: {sentence.badge}") for sentence in more.verdict[:2])
    another = result.coalition is not None and sorted(result.coalition) != sorted(certificate.adversary.colluding)
    if certificate.parties != result.parties or another:
        text = "The certificate in this folder is not of this result: other parties, or another coalition."
        sentences = (Sentence("bad", "other certificate", text),)
    caveat = f"The certificate is against the coalition that learns most of {result.party}, not of others."
    return replace(
        content,
        verdict=(*content.verdict, *sentences),
        rows=(*content.rows, *(replace(row, detail=True, group="The certificate") for row in more.rows)),
        caveats=(*content.caveats, caveat, *more.caveats),
        figures=(*content.figures, *more.figures),
        tables=(*content.tables, *more.tables),
        assumptions=more.assumptions,
    )


def _with_execution(content: Content, result: ResultDocument, transcript: Transcript) -> Content:
    sentences = content.verdict
    if result.execution and result.execution != f"sha256:{digest(transcript)}":
        text = "The execution in this folder is not the one that the result names."
        sentences = (*sentences, Sentence("bad", "other execution", text))
    return replace(
        content,
        verdict=sentences,
        rows=(*content.rows, *execution_rows(transcript)),
        caveats=tuple(dict.fromkeys((*content.caveats, *execution_caveats(transcript)))),
        figures=(*content.figures, presence_figure(transcript)),
    )


def unfinished_content(status: dict[str, Any], name: str) -> Content:
    """Return the content of a session that has not ended."""
    party, stage = str(status.get("party", "")), str(status.get("stage", ""))
    rounds = f"round {status.get('round', '?')} of {status.get('rounds', '?')}"
    text = f"There is no result yet: {party} was at stage {stage!r}, {rounds}, when it last wrote its status."
    return Content(
        title=f"Session {name}",
        about=f"as {party} has it",
        verdict=(Sentence("unknown", "not ended", text),),
        caveats=("What the session reveals is only known when it has ended.",),
    )


def _events(log: bytes) -> list[tuple[str, int]]:
    """Return how often each event is in a log, the most frequent first; lines that were cut short do not count."""
    counts: Counter[str] = Counter()
    for line in log.splitlines():
        try:
            counts[str(json.loads(line)["event"])] += 1
        except (ValueError, KeyError, TypeError):
            continue
    return counts.most_common()
