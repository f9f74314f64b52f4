"""Reading and writing `inca-execution/1`: an execution as a file that any implementation can read.

JSON, or the same fields in a NumPy .npz archive for large runs; docs/format.md describes the fields. Files are
written whole or not at all.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike

from inca._base.files import write_whole
from inca._base.validation import InputError, real, refuse, whole
from inca.protocol.execution import Execution, common_share
from inca.protocol.injection import Injection, early, incremental
from inca.protocol.presence import Presence
from inca.protocol.schedules import ExplicitSchedule

FORMAT = "inca-execution/1"


@dataclass(frozen=True, eq=False)
class Transcript:
    """An execution with what is known of its noise levels and of an adversary.

    `eavesdropped` lists messages y_i^(t) as pairs (t, i), t = 0..T.
    """

    execution: Execution
    sigma_independent: float | None = None
    sigma_cancelling: float | None = None
    colluding: tuple[int, ...] = ()
    eavesdropped: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        """Refuse ids and levels out of range."""
        n, rounds = self.execution.parties, self.execution.rounds
        for party in self.colluding:
            whole("an id in adversary.colluding", party, 0, n - 1)
        if len(set(self.colluding)) < len(self.colluding):
            raise refuse("adversary.colluding", list(self.colluding), "every id at most once")
        for t, party in self.eavesdropped:
            whole("a round in adversary.eavesdropped", t, 0, rounds)
            whole("an id in adversary.eavesdropped", party, 0, n - 1)
        for name in ("sigma_independent", "sigma_cancelling"):
            if getattr(self, name) is not None:
                real(name, getattr(self, name), least=0.0)


def read_execution(path: str | Path) -> Transcript:
    """Read an `inca-execution/1` file, .npz by its ending and JSON otherwise.

    >>> import tempfile, inca
    >>> execution = inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental(2))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_execution(folder + "/run.json", Transcript(execution, sigma_independent=2.0, sigma_cancelling=3.0))
    ...     again = read_execution(folder + "/run.json")
    >>> again.sigma_cancelling, again.execution.injection == execution.injection
    (3.0, True)
    """
    place = Path(path)
    try:
        fields = _read_npz(place) if place.suffix == ".npz" else msgspec.json.decode(place.read_bytes())
        document = msgspec.convert(fields, _Document)
        return _transcript(document)
    except InputError as error:
        raise InputError(f"{place} is not a valid {FORMAT} file: {error}") from None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{place} is not a valid {FORMAT} file: {error}") from None
    except OSError as error:
        raise InputError(f"{place} cannot be read: {error.strerror or error}") from None


def write_execution(path: str | Path, transcript: Transcript) -> None:
    """Write an `inca-execution/1` file, .npz by its ending and JSON otherwise; see `read_execution` for an example."""
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
    >>> run = inca.Execution(inca.RandomReceivers(5, rounds=2, seed=1), inca.incremental(2))
    >>> digest(Transcript(run))[:16] == digest(Transcript(run, sigma_cancelling=1.0))[:16]
    False
    """
    return hashlib.sha256(msgspec.json.encode(_plain(_fields(transcript)), order="sorted")).hexdigest()


class _Injection(msgspec.Struct, forbid_unknown_fields=True):
    kind: str | None = None
    value: list[float] | None = None
    noise: list[list[float]] | None = None


class _Adversary(msgspec.Struct, forbid_unknown_fields=True):
    colluding: list[int] = []
    eavesdropped: list[tuple[int, int]] = []


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    """The fields of the file; arrays are lists or, from .npz, NumPy arrays, and are checked by the library."""

    format: str
    parties: int
    rounds: int
    receivers: Any
    injection: _Injection
    share: float | None = None
    weights: Any = None
    present: Any = None
    published: Any = None
    undelivered: Any = None
    adversary: _Adversary = msgspec.field(default_factory=_Adversary)
    sigma_independent: float | None = None
    sigma_cancelling: float | None = None


def _transcript(document: _Document) -> Transcript:
    if document.format != FORMAT:
        raise refuse("format", document.format, FORMAT)
    schedule = ExplicitSchedule(_numbers("receivers", document.receivers), document.share, document.weights)
    for name, stated, found in (
        ("parties", document.parties, schedule.parties),
        ("rounds", document.rounds, schedule.rounds),
    ):
        if stated != found:
            raise refuse(name, stated, f"the number that receivers has ({found})")
    presence = None if document.present is None else Presence.explicit(_numbers("present", document.present))
    published = None
    if document.published is not None:
        published = np.asarray(document.published)
        if published.dtype.kind not in "iub" or not np.isin(published, (0, 1)).all():
            raise InputError("published has an entry that is not 0 or 1, but only 0 and 1 were expected")
        published = published.astype(bool)
    undelivered: Any = () if document.undelivered is None else _numbers("undelivered", document.undelivered)
    injection = _injection(document.injection, schedule.rounds)
    execution = Execution(schedule, injection, presence, published, undelivered)
    return Transcript(
        execution,
        document.sigma_independent,
        document.sigma_cancelling,
        tuple(document.adversary.colluding),
        tuple(document.adversary.eavesdropped),
    )


def _injection(given: _Injection, rounds: int) -> Injection:
    if given.kind is not None and (given.value is not None or given.noise is not None):
        raise refuse("injection.kind", given.kind, "a kind, or value and noise, but not both")
    if given.kind == "incremental":
        return incremental(rounds)
    if given.kind == "early":
        return early(rounds)
    if given.kind is not None:
        raise refuse("injection.kind", given.kind, "incremental or early")
    if given.value is None or given.noise is None:
        raise InputError("injection has neither a kind nor both value and noise, of which one was expected")
    return Injection(given.value, given.noise)


def injection_fields(injection: Injection) -> dict[str, Any]:
    """Return an injection as the format writes it: its kind if it has a name, else value and noise.

    >>> injection_fields(incremental(3))
    {'kind': 'incremental'}
    """
    for kind, make in (("incremental", incremental), ("early", early)):
        if injection == make(injection.rounds):
            return {"kind": kind}
    return {"value": injection.value.tolist(), "noise": injection.noise.tolist()}


def _fields(transcript: Transcript) -> dict[str, Any]:
    execution = transcript.execution
    steps = execution.intended()
    fields: dict[str, Any] = {"format": FORMAT, "parties": execution.parties, "rounds": execution.rounds}
    fields["receivers"] = np.stack([step.receivers for step in steps])
    if (share := common_share(steps)) is not None:
        fields["share"] = share
    else:
        fields["weights"] = np.stack([step.fractions for step in steps])
    if not execution.presence.nobody_absent:
        rows = [execution.presence.row(t) for t in range(execution.rounds + 1)]
        fields["present"] = np.stack(rows).astype(np.uint8)
    if not np.array_equal(execution.published, execution.presence.row(execution.rounds)):
        fields["published"] = execution.published.astype(np.uint8)
    if execution.undelivered:
        fields["undelivered"] = np.array(execution.undelivered, dtype=np.int64)
    fields["injection"] = injection_fields(execution.injection)
    if transcript.colluding or transcript.eavesdropped:
        fields["adversary"] = {
            "colluding": list(transcript.colluding),
            "eavesdropped": list(transcript.eavesdropped),
        }
    for name in ("sigma_independent", "sigma_cancelling"):
        if getattr(transcript, name) is not None:
            fields[name] = float(getattr(transcript, name))
    return fields


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


def _numbers(name: str, value: Any) -> ArrayLike:
    """Return nested lists or an array as they are; refuse what NumPy would turn into something else."""
    if isinstance(value, np.ndarray) or (isinstance(value, Sequence) and not isinstance(value, str)):
        return value
    raise refuse(name, value, "a nested list of whole numbers")


def _packed(value: Any) -> Any:
    return msgspec.json.encode(value).decode() if isinstance(value, dict) else value


def _read_npz(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file):  # only archives: np.load takes other files, too
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                fields: dict[str, Any] = {name: archive[name] for name in archive.files}
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise InputError(f"the archive is damaged ({error})") from None
    for name, value in fields.items():
        if value.ndim == 0:
            fields[name] = value.item()
        if name in ("injection", "adversary"):
            fields[name] = msgspec.json.decode(fields[name])
    return fields
