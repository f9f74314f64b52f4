"""`inca-result/2`: what came of a session, as one of its parties has it; and what taking part has cost that party."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

import msgspec

from inca.documents.document import Document, about, infinite_if_none
from inca.documents.fields import Count, Fraction, NotNegative, PartyId
from inca.errors import InvalidInput

Numbers = float | tuple[float, ...]


class ResultDocument(Document, frozen=True, kw_only=True):
    """The result of a session at one party, or why there is none. Nothing private is in it.

    Fields from `constrained` on are left out where there is no result.
    """

    kind: ClassVar[str] = "a result"
    format: Annotated[Literal["inca-result/2"], about("The format and its version.")] = "inca-result/2"
    inca: Annotated[str, about("The version of inca that wrote the file.")]
    name: Annotated[str, about("What the roster calls the session.")]
    session: Annotated[str, about("The session's id, in hexadecimal digits: the hash of its roster.")]
    party: Annotated[str, about("The name of the party whose file this is.")]
    parties: Annotated[int, about("How many parties the roster has.", "parties", ge=1)]
    estimate: Annotated[
        Numbers | None,
        about("The mean as the noise leaves it, perhaps outside the domain; null: see `reason`.", "value"),
    ]
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

    @property
    def estimates(self) -> tuple[float, ...]:
        """The estimate as people are shown it, one number for each coordinate; empty if there is no result."""
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
        about_result = names[names.index("constrained") :] if self.estimate is None else []
        return {name: entry for name, entry in fields.items() if name not in about_result}

    def check(self) -> None:
        """Refuse an interval that does not fit the estimate."""
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
    if result.estimate is None or result.party not in (result.cohort or ()):
        return SessionCost(agreed, "not in the result")
    return SessionCost(own, "own loss") if result.all_coalitions else SessionCost(agreed, "not all coalitions")
