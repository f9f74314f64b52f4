"""`inca-execution/1` and `/2`: everything public about a run, and no value or noise."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

import msgspec
import numpy as np

from inca._base.files import write_whole
from inca.documents.document import Document, about, canonical_digest
from inca.documents.fields import (
    AdversaryFields,
    AgreedFields,
    Count,
    Fraction,
    InjectionFields,
    NotNegative,
    PartyId,
    RoundingFields,
    Settlement,
)
from inca.errors import InvalidInput

VERSIONS = ("inca-execution/1", "inca-execution/2")


class ExecutionDocument(Document, frozen=True, kw_only=True):
    """Who sent to whom, who was present, and how much noise there was. JSON, or the same fields in a .npz archive.

    Arrays are nested lists or, in an archive, arrays; `protocol` checks them. Files are written in the first version
    that has all of their fields. What is absent is unknown, and never assumed.
    """

    kind: ClassVar[str] = "an execution"

    format: Annotated[Literal["inca-execution/1", "inca-execution/2"], about("The format and its version.")]
    parties: Annotated[int, about("Number of parties n.", "parties", ge=1)]
    rounds: Annotated[Count, about("Number of rounds T.", "rounds")]
    receivers: Annotated[Any, about("T x n x k party ids, round 1 first; -1 is nobody.")]
    share: Annotated[Fraction | None, about("Fraction sent to each receiver. Absent, without weights: 1/(k+1).")] = None
    weights: Annotated[Any, about("T x n x k fractions, one per receiver; instead of share.")] = None
    present: Annotated[Any, about("(T+1) x n of 0 and 1, row 0 all 1. Absent: everyone, always.")] = None
    published: Annotated[
        Any, about("n of 0 and 1: whose final message arrived. Absent: the cohort, else who is present in round T.")
    ] = None
    undelivered: Annotated[
        Any,
        about(
            "[t, sender, receiver, back]: offers of round t that were not credited; the share was with its sender "
            "again in round back = t..T, or never (0). The receiver is -1 in receivers."
        ),
    ] = None
    injection: Annotated[InjectionFields, about("How values and noise enter.")]
    adversary: Annotated[AdversaryFields | None, about("The adversary. Absent: unknown.")] = None
    sigma_independent: Annotated[
        NotNegative | None, about("Standard deviation of the noise that stays. Absent: unknown.", "value")
    ] = None
    sigma_cancelling: Annotated[
        NotNegative | None, about("Standard deviation of the noise that cancels. Absent: unknown.", "value")
    ] = None
    sensitivity: Annotated[
        NotNegative | None, about("Version 2. How far one party's value can move, in Euclidean distance.", "value")
    ] = None
    agreed: Annotated[AgreedFields | None, about("Version 2. What the parties agreed on. Absent: unknown.")] = None
    rounding: Annotated[
        RoundingFields | None, about("Version 2. What whole numbers did to the losses. Absent: real numbers.")
    ] = None
    settlement: Annotated[
        Settlement, about("Version 2. `settled`: the cohort undoes what it exchanged with others.")
    ] = "none"
    cohort: Annotated[
        tuple[PartyId, ...] | None, about("Version 2. Who settles and publishes. Absent: everyone present in round T.")
    ] = None
    undone: Annotated[
        tuple[tuple[Count, PartyId, PartyId], ...] | None,
        about("Version 2. [t, sender, receiver]: offers that the sender takes back when it settles."),
    ] = None
    sigma_topup: Annotated[
        NotNegative, about("Version 2. Standard deviation of what each party adds when it settles.", "value")
    ] = 0.0

    @property
    def first_format(self) -> str:
        """The first version of the format that knows all of the fields."""
        later = (self.sensitivity, self.agreed, self.rounding, self.injection.quiet, self.cohort, self.undone)
        settles = self.settlement != "none" or self.sigma_topup > 0.0
        return VERSIONS[settles or any(part is not None for part in later)]

    def check(self) -> None:
        """Refuse fields that the stated version does not have, and fields that exclude each other."""
        if VERSIONS.index(self.format) < VERSIONS.index(self.first_format):
            raise InvalidInput(
                f"format: must be {self.first_format} with sensitivity, agreed, rounding, injection.quiet or a "
                f"settlement, got {self.format}"
            )
        if self.settlement == "none":
            for name in ("cohort", "undone"):
                if getattr(self, name) is not None:
                    raise InvalidInput(f"{name}: needs settlement settled")
        kind, quiet = self.injection.kind, self.injection.quiet
        by_numbers = (self.injection.value, self.injection.noise)
        if kind is not None and by_numbers != (None, None):
            raise InvalidInput("injection: kind cannot be combined with value or noise")
        if kind is None and None in by_numbers:
            raise InvalidInput("injection: needs a kind, or both value and noise")
        if quiet is not None and kind != "incremental":
            raise InvalidInput("injection: quiet needs kind incremental")

    def as_fields(self) -> dict[str, Any]:
        """Return the fields that say something; arrays become lists."""
        return {name: entry.tolist() if isinstance(entry, np.ndarray) else entry for name, entry in self._known()}

    def _known(self) -> list[tuple[str, Any]]:
        """Return names and values of the fields that say something, groups without what they leave open."""
        silent = {"settlement": "none", "sigma_topup": 0.0}
        known = []
        for name in self.__struct_fields__:
            entry = getattr(self, name)
            if isinstance(entry, msgspec.Struct):
                entry = {key: value for key, value in msgspec.to_builtins(entry).items() if value is not None}
            if entry is not None and not (name in silent and entry == silent[name]):
                known.append((name, entry))
        return known

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Return the document in a file: a NumPy archive if its name ends in .npz, else JSON."""
        if Path(path).suffix != ".npz":
            return super().read(path)
        try:
            return cls.of_fields(_archived(Path(path)))
        except (InvalidInput, msgspec.DecodeError) as error:
            raise InvalidInput(f"{path} cannot be read as {cls.kind}: {error}") from None

    def write(self, path: str | Path) -> None:
        """Write the document, whole or not at all: a NumPy archive if the name ends in .npz, else JSON."""
        place = Path(path)
        if place.suffix == ".npz":
            packed = {name: _packed(entry) for name, entry in self._known()}
            write_whole(place, lambda file: np.savez_compressed(file, **packed))
        else:
            write_whole(place, lambda file: file.write(msgspec.json.encode(self.as_fields()) + b"\n"))

    def digest(self) -> str:
        """Return the SHA-256 of the fields as canonical JSON, the same for archives and JSON."""
        return canonical_digest(self.as_fields())


def _packed(entry: Any) -> Any:
    return msgspec.json.encode(entry).decode() if isinstance(entry, dict) else entry


def _archived(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file, zipfile.ZipFile(file):  # only archives: np.load takes other files, too
            file.seek(0)
            with np.load(file, allow_pickle=False) as archive:
                fields: dict[str, Any] = {name: archive[name] for name in archive.files}
    except OSError as error:
        raise InvalidInput(error.strerror or str(error)) from None
    except (zipfile.BadZipFile, ValueError, EOFError, KeyError) as error:
        raise InvalidInput(f"the archive is damaged ({error})") from None
    for name, entry in fields.items():
        if entry.ndim == 0:
            fields[name] = entry.item()
        if name in ("injection", "adversary", "agreed", "rounding"):
            fields[name] = msgspec.json.decode(fields[name])
        if name in ("cohort", "undone"):
            fields[name] = entry.tolist()
    return fields
