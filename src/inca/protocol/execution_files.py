"""Reading and writing executions as files that any implementation can read: `inca-execution/1` and `/2`.

JSON, or the same fields in a NumPy .npz archive for large runs; docs/format.md describes the fields. Files are
written whole or not at all, in the first version that can say all of it, so that what came from a file of version 1
has the digest of that file.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from inca._base.files import write_whole
from inca._base.kernels import Flags
from inca._base.validation import integer, refuse
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

FORMATS = ("inca-execution/1", "inca-execution/2")


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
    place = Path(path)
    try:
        fields = _read_npz(place) if place.suffix == ".npz" else msgspec.json.decode(place.read_bytes())
        document = msgspec.convert(fields, _ExecutionDocument)
        return _transcript(document)
    except InvalidInput as error:
        raise InvalidInput(f"{place} is not a valid inca-execution file: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{place} is not a valid inca-execution file: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{place} cannot be read: {error.strerror or error}") from None


def write_execution(path: str | Path, transcript: Transcript) -> None:
    """Write an execution, completely or not at all; see `read_execution` for an example.

    Args:
        path: The file; a NumPy archive if its name ends in .npz, else JSON.
        transcript: What to write.

    Raises:
        InvalidInput: If the file cannot be written.
    """
    place = Path(path)
    fields = _fields(transcript)
    if place.suffix == ".npz":
        packed = {name: _packed(value) for name, value in fields.items()}
        write_whole(place, lambda file: np.savez_compressed(file, **packed))
    else:
        write_whole(place, lambda file: file.write(msgspec.json.encode(_plain(fields)) + b"\n"))


def digest(transcript: Transcript) -> str:
    """Return the SHA-256 of a transcript's fields as canonical JSON: the same for JSON and .npz files.

    >>> import inca
    >>> run = inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental_injection(2))
    >>> digest(Transcript(run))[:16] == digest(Transcript(run, sigma_cancelling=1.0))[:16]
    False
    """
    return hashlib.sha256(msgspec.json.encode(_plain(_fields(transcript)), order="sorted")).hexdigest()


class _InjectionFields(msgspec.Struct, forbid_unknown_fields=True):
    kind: str | None = None
    quiet: int | None = None
    value: list[float] | None = None
    noise: list[list[float]] | None = None


class _AdversaryFields(msgspec.Struct, forbid_unknown_fields=True):
    colluding: list[int] = []
    eavesdropped: list[tuple[int, int]] = []


class _AgreedFields(msgspec.Struct, forbid_unknown_fields=True):
    epsilon: float
    delta: float
    colluding: float = 0.0
    eavesdropped: float = 0.0
    failure: float | None = None


class _RoundingFields(msgspec.Struct, forbid_unknown_fields=True):
    excess: float
    mu_added: float


class _ExecutionDocument(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the file; arrays are lists or, from .npz, NumPy arrays, and are checked by the library."""

    format: str
    parties: int
    rounds: int
    receivers: Any
    injection: _InjectionFields
    share: float | None = None
    weights: Any = None
    present: Any = None
    published: Any = None
    undelivered: Any = None
    adversary: _AdversaryFields | None = None
    sigma_independent: float | None = None
    sigma_cancelling: float | None = None
    sensitivity: float | None = None
    agreed: _AgreedFields | None = None
    rounding: _RoundingFields | None = None
    settlement: Literal["none", "settled"] = "none"
    cohort: list[int] | None = None
    undone: list[tuple[int, int, int]] | None = None
    sigma_topup: float = 0.0

    @property
    def first_format(self) -> str:
        """The first version of the format that knows all of the fields."""
        later = (self.sensitivity, self.agreed, self.rounding, self.injection.quiet, self.cohort, self.undone)
        settles = self.settlement != "none" or self.sigma_topup > 0.0
        return FORMATS[settles or any(part is not None for part in later)]


def _transcript(document: _ExecutionDocument) -> Transcript:
    if document.format not in FORMATS:
        refuse("format", document.format, " or ".join(FORMATS))
    if FORMATS.index(document.format) < FORMATS.index(document.first_format):
        fields = "sensitivity, agreed, rounding, injection.quiet or a settlement"
        refuse("format", document.format, f"{document.first_format} with {fields}")
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
    document: _ExecutionDocument, presence: Presence | None, schedule: ExplicitSchedule
) -> tuple[Flags | None, list[tuple[int, int, int, int]]]:
    """Return who settles, and the offers that only settlement undoes: (round, sender, receiver, back never)."""
    if document.settlement == "none":
        for name, stated in (("cohort", document.cohort), ("undone", document.undone)):
            if stated is not None:
                raise InvalidInput(f"{name} must be combined with settlement settled")
        return None, []
    everyone = presence or Presence.everyone(schedule.parties, schedule.rounds)
    cohort = everyone.row(schedule.rounds)
    if document.cohort is not None:
        members = [integer("a party of the cohort", who, 0, schedule.parties - 1) for who in document.cohort]
        cohort = np.isin(np.arange(schedule.parties), members)
    return cohort, [(*offer, 0) for offer in document.undone or ()]


def _injection(fields: _InjectionFields, rounds: int) -> Injection:
    if fields.kind is not None and (fields.value is not None or fields.noise is not None):
        raise InvalidInput("injection.kind cannot be combined with injection.value or injection.noise")
    if fields.quiet is not None and fields.kind != "incremental":
        raise InvalidInput("injection.quiet must be combined with injection.kind incremental")
    if fields.kind == "incremental":
        return incremental_injection(rounds, quiet=fields.quiet or 0)
    if fields.kind == "early":
        return early_injection(rounds)
    if fields.kind is not None:
        refuse("injection.kind", fields.kind, "incremental or early")
    if fields.value is None or fields.noise is None:
        raise InvalidInput("injection must have a kind, or both value and noise")
    return Injection(fields.value, fields.noise)


def injection_fields(injection: Injection) -> dict[str, Any]:
    """Return an injection as the format writes it: its kind if it has a name, else value and noise.

    >>> injection_fields(incremental_injection(3))
    {'kind': 'incremental'}
    """
    for kind, make in (("incremental", incremental_injection), ("early", early_injection)):
        if injection == make(injection.rounds):
            return {"kind": kind}
    return {"value": injection.value.tolist(), "noise": injection.noise.tolist()}


def _fields(transcript: Transcript) -> dict[str, Any]:
    execution, adversary, agreed = transcript.execution, transcript.adversary, transcript.agreed
    steps = execution.intended()
    nobody = adversary is not None and not (adversary.colluding or adversary.eavesdropped)  # version 1 cannot say that
    further = (transcript.sensitivity, agreed, transcript.rounding, execution.cohort)
    later = nobody or any(part is not None for part in further)
    fields: dict[str, Any] = {"format": FORMATS[later], "parties": execution.parties, "rounds": execution.rounds}
    fields["receivers"] = np.stack([step.receivers for step in steps])
    if (share := common_share(steps)) is not None:
        fields["share"] = share
    else:
        fields["weights"] = np.stack([step.fractions for step in steps])
    if not execution.presence.all_present:
        rows = [execution.presence.row(t) for t in range(execution.rounds + 1)]
        fields["present"] = np.stack(rows).astype(np.uint8)
    fields |= _final_fields(execution)
    fields["injection"] = injection_fields(execution.injection)
    if adversary is not None:
        fields["adversary"] = {
            "colluding": list(adversary.colluding),
            "eavesdropped": list(adversary.eavesdropped),
        }
    for name in ("sigma_independent", "sigma_cancelling", "sensitivity"):
        if getattr(transcript, name) is not None:
            fields[name] = float(getattr(transcript, name))
    if transcript.sigma_topup > 0.0:
        fields["sigma_topup"] = float(transcript.sigma_topup)
    if agreed is not None:
        fields["agreed"] = {name: value for name, value in asdict(agreed).items() if value is not None}
    if transcript.rounding is not None:
        fields["rounding"] = asdict(transcript.rounding)
    return fields


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
            fields["cohort"] = np.flatnonzero(execution.cohort)
    if undone:
        fields["undone"] = np.array(undone, dtype=np.int64)[:, :3]
    if undelivered := [entry for entry in execution.undelivered if entry not in undone]:
        fields["undelivered"] = np.array(undelivered, dtype=np.int64)
    return fields


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def _nested_list(name: str, value: Any) -> ArrayLike:
    """Return nested lists or an array as they are; refuse what NumPy would turn into something else."""
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return value
    refuse(name, value, "a nested list of integers")


def _packed(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file):  # only archives: np.load takes other files, too
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                fields: dict[str, Any] = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise InvalidInput(f"the archive is damaged ({error})") from None
    for name, value in fields.items():
        if value.ndim == 0:
            fields[name] = value.item()
        if name in ("injection", "adversary", "agreed", "rounding"):
            fields[name] = msgspec.json.decode(fields[name])
        if name in ("cohort", "undone"):
            fields[name] = value.tolist()
    return fields
