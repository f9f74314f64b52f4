"""`inca-result/2` and `/3`: what came of a session, as one of its parties has it, and what that has cost the party.

Version 3 is for long vectors: they are in an archive beside the JSON, which names it by its SHA-256.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from inca._base.array_files import read_vector, write_vectors
from inca._base.types import Array
from inca.documents.document import Document, Part, about, infinite_if_none
from inca.documents.fields import Count, Fraction, NotNegative, PartyId
from inca.errors import InvalidInput

Numbers = float | tuple[float, ...]

MOST_IN_JSON = 1_000
"""Vectors of more coordinates are in an archive beside the JSON."""

_IN_JSON = ("estimate", "constrained", "interval", "total")
_VECTORS = {"estimate": "<f8", "total": "<i8"}
"""What the archive has, and of which type; the rest follows from these."""


class ResultArrays(Part, frozen=True, kw_only=True):
    """Where the numbers of a long result are, and what follows from them, for each coordinate on its own.

    The archive has `estimate` (float64) and `total` (int64), as the fields of these names; all parties have the same.
    """

    file: Annotated[Literal["result.npz"], about("A NumPy archive in the same folder.")] = "result.npz"
    sha256: Annotated[str, about("The hash of the archive, in hexadecimal digits.")]
    coordinates: Annotated[int, about("How many numbers each of its vectors has.", ge=1, le=10_000_000)]
    low: Annotated[float, about("The least value of a coordinate in the domain.", "value")]
    high: Annotated[float, about("The largest value of a coordinate in the domain.", "value")]
    scale: Annotated[
        Fraction, about("`constrained` is scale * `estimate`, cut off at low and high; below 1 it is back in a ball.")
    ]
    half_width: Annotated[
        NotNegative | None,
        about(
            "`interval` is `estimate`, cut off at low and high, -/+ half_width, cut off again; and widened to hold "
            "`constrained`. null: infinite.",
            "value",
        ),
    ]

    @classmethod
    def write(cls, folder: Path, estimate: Array, total: NDArray[np.int64], **rule: Any) -> ResultArrays:
        """Write the archive, whole or not at all, before any JSON that names it."""
        vectors = {"estimate": estimate, "total": total}
        typed = {name: vectors[name].astype(kind, copy=False) for name, kind in _VECTORS.items()}
        sha256 = write_vectors(folder / "result.npz", typed)
        return cls(sha256=sha256, coordinates=estimate.size, **rule)

    def read(self, folder: Path, name: Literal["estimate", "total"]) -> NDArray[Any]:
        """Return one of the vectors; an archive that is not the one named is refused."""
        try:
            return read_vector(
                folder / self.file, name, _VECTORS[name], self.coordinates, self.sha256, members=len(_VECTORS)
            )
        except InvalidInput as error:
            raise InvalidInput(f"{error}. Copy result.json and {self.file} together from one party's folder") from None


class ResultDocument(Document, frozen=True, kw_only=True):
    """The result of a session at one party, or why there is none. Nothing private is in it.

    Fields from `constrained` on are left out where there is no result. Where `arrays` says that they are in an
    archive, `estimate`, `constrained`, `interval` and `total` are left out.
    """

    kind: ClassVar[str] = "a result"
    format: Annotated[
        Literal["inca-result/2", "inca-result/3"], about("The format and its version: 3 if there are `arrays`.")
    ] = "inca-result/2"
    inca: Annotated[str, about("The version of inca that wrote the file.")]
    name: Annotated[str, about("What the roster calls the session.")]
    session: Annotated[str, about("The session's id, in hexadecimal digits: the hash of its roster.")]
    party: Annotated[str, about("The name of the party whose file this is.")]
    parties: Annotated[int, about("How many parties the roster has.", "parties", ge=1)]
    estimate: Annotated[
        Numbers | None,
        about("The mean as the noise leaves it, perhaps outside the domain; null: see `reason`.", "value"),
    ] = None
    reason: Annotated[str, about("Why there is no estimate, or what else must be known about the end.")] = ""
    epsilon: Annotated[
        NotNegative | None,
        about(
            "The party's own loss against the worst of the coalitions considered, or a bound on it where `coalition` "
            "is null; null: infinite, or not worked out."
        ),
    ] = None
    agreed_epsilon: Annotated[NotNegative, about("The epsilon that was agreed on.")] = msgspec.field(name="wanted")
    delta: Annotated[Fraction, about("The delta of both.", "probability")]
    failure: Annotated[
        Fraction | None,
        about("How likely the plan of the noise fails for a party; it adds to delta; null: unknown.", "probability"),
    ] = None
    coalition: Annotated[
        tuple[PartyId, ...] | None,
        about("The worst coalition; null: no loss was worked out, or a bound against all of them."),
    ] = None
    coalitions: Annotated[Count | None, about("How many coalitions were considered; null: none.")] = None
    all_coalitions: Annotated[bool | None, about("Whether these were all of the agreed size.")] = None
    constrained: Annotated[
        Numbers | None, about("The estimate moved to the nearest point of the domain: what people are shown.", "value")
    ] = None
    interval: Annotated[
        tuple[Numbers, Numbers] | None,
        about("[low, high] for the mean of all parties' values, in the domain, each coordinate on its own.", "value"),
    ] = None
    confidence: Annotated[
        Fraction, about("The probability with which an interval covers its mean, at least.", "probability")
    ] = 0.95
    remarks: Annotated[tuple[str, ...], about("Sentences that belong to the estimate.")] = ()
    present: Annotated[Count, about("How many final messages are in the result.", "parties")] = 0
    cohort: Annotated[tuple[str, ...] | None, about("The parties that settled, whose mean this is.")] = None
    weight: Annotated[float | None, about("How many values' weight is in the result.", "values")] = None
    standard_error: Annotated[
        NotNegative | None,
        about("Standard deviation of the noise in each coordinate; null: unknown, or no result.", "value"),
    ] = None
    exact: Annotated[bool, about("Whether all accounts of the session add up.")] = False
    contradictions: Annotated[
        tuple[tuple[int, str, str, str], ...],
        about("[round, sender, receiver, claim]: the sender says so of that transfer, the receiver the opposite."),
    ] = ()
    total: Annotated[tuple[int, ...], about("The sum of the settled messages on the lattice.", "steps")] = ()
    total_weight: Annotated[int, about("The sum of their weights; a whole value weighs 2^40.")] = 0
    granularity: Annotated[NotNegative | None, about("The step of the lattice.", "value")] = None
    beacon: Annotated[
        str,
        about("32 random bytes, hexadecimal, that no party could choose or know in advance: a seed for what follows."),
    ] = ""
    execution: Annotated[str, about("`sha256:` and the hash of the realized execution, the same for all parties.")] = ""

    arrays: Annotated[
        ResultArrays | None,
        about(f"Version 3. Where vectors of more than {MOST_IN_JSON:,} coordinates are, instead of in these fields."),
    ] = None

    @property
    def has_result(self) -> bool:
        """Whether there is a result, be it here or in the archive."""
        return self.estimate is not None or self.arrays is not None

    def vector(self, folder: Path, name: Literal["estimate", "total"]) -> NDArray[Any]:
        """Return estimate or total with one number for each coordinate, wherever it is.

        Args:
            folder: That of the file.
            name: Which of them.

        Raises:
            InvalidInput: If the archive is missing, or not the one that this file names.
        """
        if self.arrays is not None:
            return self.arrays.read(folder, name)
        return np.atleast_1d(np.array(self.estimate if name == "estimate" else self.total, dtype=_VECTORS[name]))

    @property
    def estimates(self) -> tuple[float, ...]:
        """The estimate as people are shown it, one number for each coordinate; empty if it is not in the JSON."""
        shown = self.estimate if self.constrained is None else self.constrained
        return () if shown is None or self.estimate is None else shown if isinstance(shown, tuple) else (shown,)

    @property
    def ends(self) -> tuple[tuple[float, float], ...]:
        """The ends of the interval of each coordinate; empty if they are not known."""
        if self.interval is None or not self.estimates:
            return ()
        lower, upper = (end if isinstance(end, tuple) else (end,) for end in self.interval)
        return tuple(zip(lower, upper, strict=False))

    @property
    def loss(self) -> float | None:
        """The party's own loss epsilon; None if it was not worked out."""
        return None if self.coalitions is None else infinite_if_none(self.epsilon)

    def as_fields(self) -> dict[str, Any]:
        """Return the fields as the file has them: without a result, none of those about one."""
        fields, names = super().as_fields(), [field.encode_name for field in msgspec.structs.fields(self)]
        absent = set(_IN_JSON) if self.arrays is not None else {"arrays"}
        if not self.has_result:
            absent |= set(names[names.index("constrained") :])
        return {name: entry for name, entry in fields.items() if name not in absent}

    def check(self) -> None:
        """Refuse an interval that does not fit the estimate, and vectors in two places."""
        if (self.format == "inca-result/3") is (self.arrays is None):
            raise InvalidInput("format: must be inca-result/3 with arrays, and inca-result/2 without")
        if self.arrays is not None and any(getattr(self, name) not in (None, ()) for name in _IN_JSON):
            raise InvalidInput(f"arrays: cannot be combined with {', '.join(_IN_JSON)}")
        if self.arrays is not None and not self.arrays.low < self.arrays.high:
            raise InvalidInput("arrays: high must be above low")
        if self.interval is None:
            return
        lengths = {len(end) if isinstance(end, tuple) else 1 for end in self.interval}
        if lengths != {len(self.estimates)}:
            raise InvalidInput("interval: must be two numbers, or two lists as long as the estimate")
        if any(not low <= number <= high for number, (low, high) in zip(self.estimates, self.ends, strict=True)):
            raise InvalidInput("interval: must hold the estimate")


@dataclass(frozen=True)
class SessionCost:
    """What a session has cost a party's value.

    Args:
        epsilon: At the session's delta; infinite if that much is not known.
        why: Which of the rules below decided.
    """

    epsilon: float
    why: Literal["not begun", "agreed", "own loss above agreed", "own loss", "not all coalitions", "not in the result"]


def session_cost(result: ResultDocument | None, agreed: float, *, began: bool = True) -> SessionCost:
    """Return what a session has cost: the only place that decides it.

    A session costs what was agreed as soon as its first round has begun, whatever comes of it. It costs the party's own
    loss if that is larger; or if it is smaller, and was worked out against all coalitions, on the execution that the
    result is of.

    Example:
        >>> session_cost(None, 1.0), session_cost(None, 1.0, began=False).epsilon
        (SessionCost(epsilon=1.0, why='agreed'), 0.0)
    """
    if not began:
        return SessionCost(0.0, "not begun")
    if result is None or (own := result.loss) is None:
        return SessionCost(agreed, "agreed")
    if own > agreed or math.isinf(own):
        return SessionCost(own, "own loss above agreed")
    if not result.has_result or result.party not in (result.cohort or ()):
        return SessionCost(agreed, "not in the result")
    return SessionCost(own, "own loss") if result.all_coalitions else SessionCost(agreed, "not all coalitions")
