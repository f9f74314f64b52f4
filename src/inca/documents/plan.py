"""`inca-plan/1`: the parameters of a run for a required guarantee, and the error to expect."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

import msgspec

from inca.documents.document import Document, Part, about
from inca.documents.fields import Count, ErrorParts, Fraction, InjectionFields, NotNegative, Settlement


class RequirementFields(Part, frozen=True, kw_only=True):
    """What the plan was made for."""

    parties: Annotated[int, about("Number of parties n.", "parties", ge=2)]
    epsilon: Annotated[NotNegative, about("Required epsilon of every honest party.")]
    delta: Annotated[Fraction, about("Required delta.", "probability")]
    rule: Annotated[
        Literal["exact", "classic"], about("How noise becomes epsilon: `exact` is the analytic rule; or the paper's.")
    ] = "exact"
    sensitivity: Annotated[NotNegative, about("Largest distance of two values.", "value")]
    colluding: Annotated[Fraction, about("Fraction of the parties that may collude.")]
    eavesdropped: Annotated[Fraction, about("Fraction of each round's messages that may be eavesdropped.")]
    dropout: Annotated[Fraction, about("Fraction of the parties that may leave for good.")]
    away: Annotated[Fraction, about("Probability with which a party misses a round and comes back.")] = 0.0
    messages: Annotated[int, about("Messages that a party may send.", "messages", ge=1)]
    failure: Annotated[Fraction, about("Allowed probability of failure for a party.", "probability")]
    variance: Annotated[NotNegative | None, about("Variance of the values; null: uniform.", "value^2")] = None


class SamplingFields(Part, frozen=True, kw_only=True):
    """How the level of the cancelling noise is known."""

    views: Annotated[Count, about("Random views that were sampled for each dropout rate.")]
    parties: Annotated[Count, about("Parties of a view.", "parties")]
    dropouts: Annotated[tuple[Fraction, ...], about("The dropout rates.")]
    confidence: Annotated[Fraction, about("Confidence in the level.", "probability")]
    checked: Annotated[Count, about("Whole views on which the level was checked exactly.")]
    source: Annotated[
        Literal["proven", "drawn", "extrapolated"], about("Whether the level is proven, counted, or extrapolated.")
    ] = msgspec.field(name="kind", default="extrapolated")
    known: Annotated[
        Fraction | None, about("Fraction of parties that collude or leave in the table; null: not from a table.")
    ] = None


class AlternativeFields(Part, frozen=True, kw_only=True):
    """A design that was not chosen."""

    design: Annotated[str, about("The design, in words.")]
    messages: Annotated[Count, about("Messages of a party.", "messages")]
    relative_mse: Annotated[NotNegative | None, about("Its squared error over that of the plan; null is infinite.")]


class PlanDocument(Document, frozen=True, kw_only=True):
    """A plan. `inca plan --out` writes it; `inca average --plan`, `inca audit --plan` and rosters follow it."""

    kind: ClassVar[str] = "a plan"
    indent: ClassVar[int | None] = 1
    absent: ClassVar[frozenset[str]] = frozenset({"settlement", "sigma_topup"})

    format: Annotated[Literal["inca-plan/1"], about("The format and its version.")] = "inca-plan/1"
    inca: Annotated[str, about("The version of inca that wrote the file.")] = ""
    requirements: Annotated[RequirementFields, about("What the plan was made for.")] = msgspec.field(name="wish")
    recipe: Annotated[Literal["best", "paper"], about("How it was chosen.")]
    rounds: Annotated[Count, about("Number of rounds T.", "rounds")]
    receivers: Annotated[int, about("Receivers of a party in a round, k.", ge=1)]
    schedule: Annotated[str, about("Who sends to whom: `random`, `distinct`, `permutation` or `circle`.")]
    quiet_rounds: Annotated[Count, about("Last rounds in which no share of a value enters.", "rounds")]
    injection: Annotated[InjectionFields, about("How values and noise enter.")]
    factor: Annotated[NotNegative, about("Variance of the independent noise over its least value s^2 / (mu^2 n_H).")]
    sigma_independent: Annotated[NotNegative, about("Standard deviation of the noise that stays.", "value")]
    sigma_cancelling: Annotated[NotNegative, about("Standard deviation of the noise that cancels.", "value")]
    expected_mse: Annotated[
        NotNegative | None,
        about("Expected squared error of a coordinate at the required dropout; null: infinite.", "value^2"),
    ]
    error: Annotated[ErrorParts, about("Its parts.")]
    standard_error: Annotated[NotNegative, about("Standard error of the expected error from sampling.", "value^2")]
    central_mse: Annotated[NotNegative, about("The same of Central DP, a trusted server.", "value^2")]
    local_mse: Annotated[NotNegative, about("The same of Local DP, every party alone.", "value^2")]
    failure_probability: Annotated[
        Fraction, about("Probability that the guarantee fails for a party; it adds to delta.", "probability")
    ]
    structure_bound: Annotated[Fraction, about("The part of it that is a proven bound.", "probability")]
    sampling: Annotated[SamplingFields, about("How the level of the cancelling noise is known.")]
    considered: Annotated[tuple[AlternativeFields, ...], about("Other designs.")] = ()
    further: Annotated[tuple[AlternativeFields, ...], about("Other numbers of messages.")] = ()
    settlement: Annotated[Settlement, about("Whether parties that stay undo what they exchanged with leavers.")] = (
        "none"
    )
    sigma_topup: Annotated[
        tuple[NotNegative, ...],
        about("Standard deviation of what each party adds when it settles, by leavers, 0 first.", "value"),
    ] = ()
