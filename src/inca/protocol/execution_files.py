"""Executions as documents that any implementation can read, and back: `inca-execution/1` and `/2`.

What came from a file of version 1 is written in version 1, so that it keeps the digest of that file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from inca._base.kernels import Flags
from inca._base.validation import file_path, instance, integer, refuse
from inca.documents.execution import ExecutionDocument
from inca.documents.fields import AdversaryFields, AgreedFields, InjectionFields, RoundingFields
from inca.errors import InvalidInput
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.injection import Injection, early_injection, incremental_injection
from inca.protocol.presence import Presence
from inca.protocol.rounding import Rounding
from inca.protocol.schedules import ExplicitSchedule
from inca.protocol.schedules.base import common_share
from inca.protocol.transcript import AgreedGuarantee, Transcript
from inca.protocol.undelivered import Undelivered


def read_execution(path: str | Path) -> Transcript:
    """Read an execution: `inca-execution/1` or `inca-execution/2`.

    Args:
        path: The file; a NumPy archive if its name ends in .npz, else JSON.

    Returns:
        The execution with what the file says of noise levels, sensitivity, an adversary and an agreement.

    Raises:
        InvalidInput: If the file cannot be read or is not valid.

    Example:
        >>> import tempfile, inca
        >>> execution = inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental_injection(2))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_execution(folder + "/run.json", Transcript(execution, sigma_cancelling=3.0))
        ...     again = read_execution(folder + "/run.json")
        >>> again.sigma_cancelling, again.execution.injection == execution.injection
        (3.0, True)
    """
    document = ExecutionDocument.read(file_path("path", path))
    try:
        return transcript_of(document)
    except InvalidInput as error:
        raise InvalidInput(f"{path} cannot be read as {document.kind}: {error}") from None


def write_execution(path: str | Path, transcript: Transcript) -> None:
    """Write an execution, completely or not at all; see `read_execution` for an example.

    Args:
        path: The file; a NumPy archive if its name ends in .npz, else JSON.
        transcript: What to write.

    Raises:
        InvalidInput: If the file cannot be written.
    """
    execution_document(instance("transcript", transcript, Transcript)).write(file_path("path", path))


def digest(transcript: Transcript) -> str:
    """Return the SHA-256 of a transcript's fields as canonical JSON: the same for JSON and .npz files.

    >>> import inca
    >>> run = inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental_injection(2))
    >>> digest(Transcript(run))[:16] == digest(Transcript(run, sigma_cancelling=1.0))[:16]
    False
    """
    return execution_document(transcript).digest()


def transcript_of(document: ExecutionDocument) -> Transcript:
    """Return the execution of a document with all that the document says of it."""
    receivers = _nested_list("receivers", document.receivers)
    schedule = ExplicitSchedule(receivers, share=document.share, weights=document.weights)
    for name, stated, actual in (
        ("parties", document.parties, schedule.parties),
        ("rounds", document.rounds, schedule.rounds),
    ):
        if stated != actual:
            refuse(name, stated, f"{actual}, as receivers says")
    presence = None if document.present is None else Presence.explicit(_nested_list("present", document.present))
    published = None
    if document.published is not None:
        published = np.asarray(document.published)
        if published.dtype.kind not in "iub" or not np.isin(published, (0, 1)).all():
            refuse("published", document.published, "a list of 0 and 1")
        published = published.astype(bool)
    undelivered: Any = () if document.undelivered is None else _nested_list("undelivered", document.undelivered)
    cohort, undone = _cohort(document, presence, schedule)
    injection, named, agreed = _injection(document.injection, schedule.rounds), document.adversary, document.agreed
    rounding = document.rounding
    return Transcript(
        Execution(
            schedule, injection, presence, published=published, undelivered=[*undelivered, *undone], cohort=cohort
        ),
        sigma_independent=document.sigma_independent,
        sigma_cancelling=document.sigma_cancelling,
        sigma_topup=document.sigma_topup,
        adversary=None if named is None else Adversary(named.colluding, named.eavesdropped),
        sensitivity=document.sensitivity,
        agreed=None if agreed is None else AgreedGuarantee(**msgspec.structs.asdict(agreed)),
        rounding=None if rounding is None else Rounding(rounding.excess, rounding.mu_added),
    )


def _cohort(
    document: ExecutionDocument, presence: Presence | None, schedule: ExplicitSchedule
) -> tuple[Flags | None, list[tuple[int, int, int, int]]]:
    """Return who settles, and the offers that only settlement undoes: (round, sender, receiver, back never)."""
    if document.settlement == "none":
        return None, []
    everyone = presence or Presence.everyone(schedule.parties, schedule.rounds)
    cohort = everyone.row(schedule.rounds)
    if document.cohort is not None:
        members = [integer("a party of the cohort", who, 0, schedule.parties - 1) for who in document.cohort]
        cohort = np.isin(np.arange(schedule.parties), members)
    return cohort, [(*offer, 0) for offer in document.undone or ()]


def _injection(fields: InjectionFields, rounds: int) -> Injection:
    if fields.kind == "incremental":
        return incremental_injection(rounds, quiet=fields.quiet or 0)
    if fields.kind == "early":
        return early_injection(rounds)
    assert fields.value is not None and fields.noise is not None  # as the document has checked
    return Injection(fields.value, fields.noise)


def injection_fields(injection: Injection) -> InjectionFields:
    """Return an injection as documents hold it: its kind if it has a name, else value and noise.

    >>> injection_fields(incremental_injection(3)).kind
    'incremental'
    """
    if injection == incremental_injection(injection.rounds):
        return InjectionFields(kind="incremental")
    if injection == early_injection(injection.rounds):
        return InjectionFields(kind="early")
    noise = tuple(map(tuple, injection.noise.tolist()))
    return InjectionFields(value=tuple(injection.value.tolist()), noise=noise)


def execution_document(transcript: Transcript) -> ExecutionDocument:
    """Return the document of an execution, in the first version of the format that can say all of it."""
    execution, adversary, agreed = transcript.execution, transcript.adversary, transcript.agreed
    steps = execution.intended()
    nobody = adversary is not None and not (adversary.colluding or adversary.eavesdropped)  # version 1 cannot say that
    further = (transcript.sensitivity, agreed, transcript.rounding, execution.cohort)
    share, everyone = common_share(steps), execution.presence.all_present
    rows = [] if everyone else [execution.presence.row(t) for t in range(execution.rounds + 1)]
    return ExecutionDocument(
        format="inca-execution/2" if nobody or any(part is not None for part in further) else "inca-execution/1",
        parties=execution.parties,
        rounds=execution.rounds,
        receivers=np.stack([step.receivers for step in steps]),
        share=share,
        weights=np.stack([step.fractions for step in steps]) if share is None else None,
        present=None if everyone else np.stack(rows).astype(np.uint8),
        injection=injection_fields(execution.injection),
        adversary=None
        if adversary is None
        else AdversaryFields(colluding=adversary.colluding, eavesdropped=adversary.eavesdropped),
        sigma_independent=_number(transcript.sigma_independent),
        sigma_cancelling=_number(transcript.sigma_cancelling),
        sensitivity=_number(transcript.sensitivity),
        sigma_topup=float(transcript.sigma_topup),
        agreed=None if agreed is None else agreed_fields(agreed),
        rounding=None if transcript.rounding is None else RoundingFields(**asdict(transcript.rounding)),
        **_final_fields(execution),
    )


def agreed_fields(agreed: AgreedGuarantee) -> AgreedFields:
    """Return what was agreed as documents hold it."""
    return AgreedFields(**asdict(agreed))


def _number(level: float | None) -> float | None:
    return None if level is None else float(level)


def _final_fields(execution: Execution) -> dict[str, Any]:
    """Return what the format says of final messages, of who settles, and of shares that were not credited."""
    fields: dict[str, Any] = {}
    last = execution.presence.row(execution.rounds)
    if not np.array_equal(execution.published, last if execution.cohort is None else execution.cohort):
        fields["published"] = execution.published.astype(np.uint8)
    undone: list[Undelivered] = []
    if execution.cohort is not None:
        fields["settlement"], undone = "settled", [entry for entry in execution.undelivered if entry.late]
        if not np.array_equal(execution.cohort, last):
            fields["cohort"] = np.flatnonzero(execution.cohort).tolist()
    if undone:
        fields["undone"] = [tuple(entry)[:3] for entry in undone]
    if undelivered := [entry for entry in execution.undelivered if entry not in undone]:
        fields["undelivered"] = np.array(undelivered, dtype=np.int64)
    return fields


def _nested_list(name: str, value: Any) -> ArrayLike:
    """Return nested lists or an array as they are; refuse what NumPy would turn into something else."""
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return value
    refuse(name, value, "a nested list of integers")
