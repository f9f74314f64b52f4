"""Kinds of numbers and groups of fields that several formats share."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from inca.documents.document import Part, about

Count = Annotated[int, msgspec.Meta(ge=0)]
PartyId = Annotated[int, msgspec.Meta(ge=0)]
NotNegative = Annotated[float, msgspec.Meta(ge=0.0)]
Fraction = Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]
Rule = Literal["analytic", "classic"]
Settlement = Literal["none", "settled"]
Basis = Literal["exact", "leavers counted as colluders"]


class InjectionFields(Part, frozen=True, kw_only=True):
    """How values and noise enter a run: by name, or coefficient by coefficient."""

    kind: Annotated[Literal["incremental", "early"] | None, about("Equal shares in all rounds, or all at once.")] = None
    quiet: Annotated[Count | None, about("Last rounds in which no share of a value enters.", "rounds")] = None
    value: Annotated[tuple[float, ...] | None, about("c: the share of the value that enters at t = 0..T.")] = None
    noise: Annotated[
        tuple[tuple[float, ...], ...] | None, about("Z: row t gives the noise that enters at t = 0..T.")
    ] = None


class AdversaryFields(Part, frozen=True, kw_only=True):
    """Who pools what they know, and what they overhear. Two empty lists: only those who read final messages."""

    colluding: Annotated[tuple[PartyId, ...], about("Ids of the colluding parties.")] = ()
    eavesdropped: Annotated[
        tuple[tuple[Count, PartyId], ...],
        about("Messages [t, i] that are eavesdropped: y_i of time t, sent in round t + 1."),
    ] = ()


class AgreedFields(Part, frozen=True, kw_only=True):
    """The guarantee that the parties agreed on before a run, and the adversary that it is meant against."""

    epsilon: Annotated[NotNegative, about("The largest epsilon of an honest party.")]
    delta: Annotated[Fraction, about("Its delta.", "probability")]
    colluding: Annotated[Fraction, about("The fraction of the parties that may collude.")] = 0.0
    eavesdropped: Annotated[Fraction, about("The fraction of each round's messages that may be eavesdropped.")] = 0.0
    failure: Annotated[
        Fraction | None,
        about(
            "How likely it is, over random schedules, adversaries and leavers, that the loss of a party is larger. It "
            "adds to delta. Absent: unknown.",
            "probability",
        ),
    ] = None


class RoundingFields(Part, frozen=True, kw_only=True):
    """What computing in whole numbers does to a loss mu: it becomes mu / (1 + excess) + mu_added."""

    excess: Annotated[Fraction, about("By which fraction the drawn noise exceeds the stated levels.")]
    mu_added: Annotated[NotNegative, about("What rounding adds to every loss.", "mu")]


class ErrorParts(Part, frozen=True, kw_only=True):
    """The parts of an expected squared error, per coordinate; null is infinite."""

    independent: Annotated[NotNegative | None, about("From the noise that stays in the result.", "value^2")]
    cancelling: Annotated[NotNegative | None, about("From cancelling noise that leavers left behind.", "value^2")]
    data: Annotated[NotNegative | None, about("From the values of parties that left.", "value^2")]
