"""The report of a session's folder: its result, certificate and execution together, and how often what was logged."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from inca.cli.report.certificate_report import (
    CertificateFields,
    certificate_caveats,
    certificate_parameters,
    kept,
    loss_picture,
    worst_loss,
)
from inca.cli.report.execution_report import execution_caveats, execution_parameters, presence_picture
from inca.cli.report.page import ReportContent, RowList, VerdictSentence
from inca.cli.report.result_report import ResultFields, result_content
from inca.protocol.execution_files import digest
from inca.protocol.transcript import Transcript


def session_content(
    result: ResultFields,
    certificate: CertificateFields | None,
    transcript: Transcript | None,
    log: bytes | None,
    domain: tuple[float, float] | None = None,
) -> ReportContent:
    """Return what a report says of a session that has ended.

    Args:
        result: What came of it.
        certificate: What it gave away, if the party has worked it out.
        transcript: Who sent to whom, if there is a result.
        log: The party's log; only how often what happened is taken from it.
        domain: Where values may lie, if a roster says it.
    """
    content = result_content(result, domain)
    title = content.title.replace("Result of", "Session", 1) if result.name else "A session"
    content = replace(content, title=title)
    if certificate is not None:
        content = _with_certificate(content, result, certificate)
    if transcript is not None:
        content = _with_execution(content, result, transcript)
    events = [] if log is None else _events(log)
    if events:
        rows = tuple((name, f"{count:,}") for name, count in events)
        content = replace(content, parameters=(*content.parameters, RowList("The log", ("event", "times"), rows)))
    return content


def _with_certificate(content: ReportContent, result: ResultFields, certificate: CertificateFields) -> ReportContent:
    met = certificate.worst_epsilon <= result.agreed_epsilon
    whose = "every honest party that settled" if certificate.is_bound else "every honest party"
    sentence = kept(result.agreed_epsilon, certificate.delta, met, whose)
    sentence = replace(sentence, badge=f"{sentence.badge}, for all")
    colluding = sorted(result.coalition or [])
    if certificate.parties != result.parties or colluding != sorted(certificate.adversary.colluding):
        text = "The certificate in this folder is not of this result: other parties, or another coalition."
        sentence = VerdictSentence("bad", "other certificate", text)
    elif certificate.delta > result.delta:
        sentence = VerdictSentence("unknown", "not known", "The certificate is for a larger delta than was agreed.")
    caveat = (
        f"The certificate is against the coalition that learns most of {result.party}; of others, another may learn "
        "more."
    )
    return replace(
        content,
        verdict=(*content.verdict, worst_loss(certificate), sentence),
        caveats=(*content.caveats, caveat, *certificate_caveats(certificate)),
        pictures=(*content.pictures, loss_picture(certificate, result.agreed_epsilon)),
        parameters=(*content.parameters, *certificate_parameters(certificate)),
        assumptions=tuple(certificate.assumptions),
    )


def _with_execution(content: ReportContent, result: ResultFields, transcript: Transcript) -> ReportContent:
    verdict = content.verdict
    if result.execution and result.execution != f"sha256:{digest(transcript)}":
        text = "The execution in this folder is not the one that the result names."
        verdict = (*verdict, VerdictSentence("bad", "other execution", text))
    return replace(
        content,
        verdict=verdict,
        caveats=tuple(dict.fromkeys((*content.caveats, *execution_caveats(transcript)))),
        pictures=(*content.pictures, presence_picture(transcript)),
        parameters=(*content.parameters, execution_parameters(transcript)),
    )


def unfinished_content(status: dict[str, Any], folder: Path) -> ReportContent:
    """Return what a report says of a session that has not ended.

    Args:
        status: What its status file says.
        folder: Its folder.
    """
    party, stage = str(status.get("party", "")), str(status.get("stage", ""))
    rounds = f"round {status.get('round', '?')} of {status.get('rounds', '?')}"
    text = f"There is no result yet: {party} was at stage {stage!r}, {rounds}, when it last wrote down where it is."
    return ReportContent(
        title=f"Session {folder.name}",
        about=f"as {party} has it",
        verdict=(VerdictSentence("unknown", "not ended", text),),
        caveats=("What the session gives away is only known when it has ended.",),
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
