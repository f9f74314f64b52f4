"""The report of an execution: what it gave away, worked out here as `inca audit` does, and who was present."""

from __future__ import annotations

import hashlib
import math
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from inca._base.types import Progress
from inca.cli.audit import GuaranteeCheck
from inca.cli.report.certificate_report import (
    CertificateFields,
    certificate_content,
    kept,
    some_ids,
    with_agreed_level,
)
from inca.cli.report.page import ParameterList, ReportContent, TitledPicture, VerdictSentence, counted
from inca.cli.report.pictures import MAX_GRID_PARTIES, MAX_GRID_ROUNDS, presence, shares
from inca.errors import InvalidInput
from inca.privacy.certificate import ASSUMPTIONS, SETTLED, Certificate, certify
from inca.privacy.gaussian import Rule
from inca.privacy.theorems.preconditions import conditions
from inca.protocol.execution_files import digest
from inca.protocol.expected_error import expected_error
from inca.protocol.transcript import Transcript

RULE: Rule = "analytic"


def execution_content(transcript: Transcript, progress: Progress | None = None) -> ReportContent:
    """Return what a report says of an execution; its losses are computed if all they depend on is known.

    Args:
        transcript: The execution.
        progress: Called with (rounds done, T+1) by each accounting.
    """
    pictures = (*_error_pictures(transcript), presence_picture(transcript))
    parameters = (execution_parameters(transcript),)
    accounted, drawn = _with_adversary(transcript)
    try:
        result = certify(accounted, rule=RULE, progress=progress)
        checks = conditions(result.theorem_inputs)
    except InvalidInput as error:
        return _unaccounted(transcript, str(error), pictures, parameters)
    fields = _fields(result, {"conditions": [{"name": c.name, "holds": c.holds, "why": c.why} for c in checks]})
    content = certificate_content(fields, _agreed(result))
    if transcript.agreed is not None:
        content = with_agreed_level(content, fields, transcript.agreed.epsilon)
    extra, verdict = [], list(content.verdict)
    if drawn:
        extra.append(
            "The file names no adversary: one of the agreed size was drawn at random here, always the same for this "
            "file. Others of that size may learn more."
        )
    if transcript.execution.cohort is not None and not transcript.execution.cohort.all():
        verdict.insert(2, _if_leavers_collude(accounted, progress))
    if transcript.agreed is not None and transcript.agreed.failure is None:
        extra.append("How likely the plan of the noise fails, which adds to delta, is not known.")
    return replace(
        content,
        title="What an execution gave away",
        verdict=tuple(verdict),
        caveats=(*extra, *execution_caveats(transcript), *content.caveats),
        pictures=(*content.pictures, *pictures),
        parameters=(*parameters, *content.parameters),
    )


def _fields(result: Certificate, more: dict[str, Any]) -> CertificateFields:
    fields = msgspec.convert(result.as_dict() | more, CertificateFields)
    fields.check()
    return fields


def _with_adversary(transcript: Transcript) -> tuple[Transcript, bool]:
    """Return the transcript with an adversary, and whether it was drawn; one execution always has the same drawn."""
    if transcript.adversary is not None or transcript.agreed is None:
        return transcript, False
    seed = hashlib.sha256(f"inca-report/1 {digest(transcript)}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(seed, "big"))
    execution = transcript.execution
    adversary = transcript.agreed.adversary.draw(execution.parties, execution.rounds, rng)
    return replace(transcript, adversary=adversary), True


def _agreed(result: Certificate) -> VerdictSentence:
    check = GuaranteeCheck.of(result, None, result.transcript.agreed)
    if check is None:
        text = "The file does not say what was agreed: compare the worst loss with what you were promised."
        return VerdictSentence("unknown", "not known", text)
    return kept(check.epsilon, check.delta, check.met, check.whose)


def _if_leavers_collude(transcript: Transcript, progress: Progress | None) -> VerdictSentence:
    bound = certify(transcript, rule=RULE, basis="leavers counted as colluders", progress=progress)
    check = GuaranteeCheck.of(bound, None, transcript.agreed)
    epsilon = "unbounded" if math.isinf(bound.worst_epsilon) else f"at most epsilon {bound.worst_epsilon:.6g}"
    text = f"With leavers counted as colluders, whatever they did, the loss of every party that settled is {epsilon}."
    if check is None or check.met is None:
        return VerdictSentence("plain", "if leavers collude", text)
    kept_too = "within" if check.met else "NOT within"
    text += f" That is {kept_too} the agreed epsilon {check.epsilon:g}."
    return VerdictSentence("good" if check.met else "bad", "if leavers collude", text)


def _unaccounted(
    transcript: Transcript, why: str, pictures: tuple[TitledPicture, ...], parameters: tuple[ParameterList, ...]
) -> ReportContent:
    execution = transcript.execution
    text = f"What this execution gave away cannot be worked out from the file alone: {why}."
    agreed = transcript.agreed
    promise = (
        "The file does not say what was agreed."
        if agreed is None
        else f"Agreed was {agreed}; whether it holds is not known."
    )
    return ReportContent(
        title="An execution",
        about=f"{execution.parties:,} parties, {execution.rounds:,} rounds",
        verdict=(VerdictSentence("unknown", "not known", text), VerdictSentence("plain", "agreed", promise)),
        caveats=(*execution_caveats(transcript), "inca audit tells the losses, with options for what is not known."),
        pictures=pictures,
        parameters=parameters,
        assumptions=(*ASSUMPTIONS, *([SETTLED] if execution.cohort is not None else [])),
    )


def execution_caveats(transcript: Transcript) -> tuple[str, ...]:
    """Return what went otherwise than it was meant to."""
    execution, caveats = transcript.execution, []
    if count := execution.parties - int(execution.published.sum()):
        caveats.append(f"{count:,} of {execution.parties:,} parties published no final message.")
    if execution.cohort is not None and (late := int((execution.cohort & ~execution.published).sum())):
        caveats.append(f"Late leavers: {late:,} settled and did not publish; noise of theirs is left in the result.")
    if execution.undelivered:
        caveats.append(f"{counted(len(execution.undelivered), 'offered share', 'offered shares')} did not arrive.")
    return tuple(caveats)


def presence_picture(transcript: Transcript) -> TitledPicture:
    """Return who was present in which round, as a picture."""
    execution = transcript.execution
    rows = [execution.presence.row(t) for t in range(execution.rounds + 1)]
    colluding = () if transcript.adversary is None else transcript.adversary.colluding
    present = sum(int(row.sum()) for row in rows) / (len(rows) * execution.parties)
    caption = (
        f"{execution.parties:,} parties, {execution.rounds:,} rounds; present in {present:.1%} of rounds on average; "
        f"{int(execution.published.sum()):,} published a final message."
    )
    if execution.parties > MAX_GRID_PARTIES or execution.rounds >= MAX_GRID_ROUNDS:
        return TitledPicture(
            "How many were present in each round", presence(rows), (("line", "parties that were present"),), caption
        )
    silent = np.flatnonzero(~execution.published).tolist()
    legend = [("a", "present"), ("gone", "absent")]
    legend += [("warn", "present, and colludes")] * bool(colluding)
    legend += [("silent", "published no final message")] * bool(silent)
    picture = presence(rows, colluding, silent)
    return TitledPicture("Who was present in which round", picture, tuple(legend), caption)


def _error_pictures(transcript: Transcript) -> tuple[TitledPicture, ...]:
    try:
        budget = expected_error(transcript.execution, transcript.noise_levels)
    except InvalidInput:  # a noise level that is not known, or shares that came back late
        return ()
    if not 0.0 < budget.noise < math.inf:
        return ()
    parts = [("independent noise", budget.independent), ("cancelling noise that is left", budget.cancelling)]
    shown = ", ".join(f"{size / budget.noise:.1%} {name}" for name, size in parts)
    return (
        TitledPicture(
            "Where the noise of the estimate comes from",
            shares([("noise in the estimate, squared", parts)]),
            (("a", "independent noise"), ("b", "cancelling noise that is left")),
            f"{shown}; standard error of the noise {math.sqrt(budget.noise):.4g} per coordinate. What lost values add "
            "is not in the file.",
        ),
    )


def execution_parameters(transcript: Transcript) -> ParameterList:
    """Return what an execution's file says, in words."""
    execution, agreed = transcript.execution, transcript.agreed
    rows = [
        ("parties, rounds", f"{execution.parties:,}, {execution.rounds:,}"),
        ("receivers", f"{execution.schedule.slots} per party and round"),
        ("independent noise", _level(transcript.sigma_independent)),
        ("cancelling noise", _level(transcript.sigma_cancelling)),
        ("sensitivity", _level(transcript.sensitivity)),
        ("adversary", _adversary(transcript)),
        ("published", f"{int(execution.published.sum()):,} final messages"),
        ("not delivered", f"{len(execution.undelivered):,} offers"),
        ("total weight", f"{execution.weight:.6g}"),
    ]
    if execution.cohort is not None:
        rows.append(("settled", f"{int(execution.cohort.sum()):,} parties; top-up noise {transcript.sigma_topup:.6g}"))
    if agreed is not None:
        size = f"{agreed.colluding:.3g} of the parties colluding, {agreed.eavesdropped:.3g} of messages eavesdropped on"
        rows.append(("agreed", f"{agreed}, against {size}"))
    if transcript.rounding is not None:
        rows.append(("whole numbers", f"add {transcript.rounding.mu_added:.3g} to mu"))
    return ParameterList("The execution", tuple(rows))


def _level(number: float | None) -> str:
    return "not in the file" if number is None else f"{number:.6g}"


def _adversary(transcript: Transcript) -> str:
    if transcript.adversary is None:
        return "not in the file"
    messages = len(transcript.adversary.eavesdropped)
    return f"{some_ids(list(transcript.adversary.colluding))} colluding; {messages:,} messages eavesdropped on"
