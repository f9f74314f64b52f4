"""`inca-plan/2`: the parameters of a run for a required guarantee, and the error to expect."""

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
    messages: Annotated[int | None, about("Messages that a party may send; null: any number.", "messages")] = None
    failure: Annotated[Fraction, about("Allowed probability of failure for a party.", "probability")]
    variance: Annotated[NotNegative | None, about("Variance of the values; null: uniform.", "value^2")] = None


class SamplingFields(Part, frozen=True, kw_only=True):
    """What was sampled for a plan that is not proven."""

    views: Annotated[Count, about("Random views that were sampled for each dropout rate.")]
    dropouts: Annotated[tuple[Fraction, ...], about("The dropout rates.")]


class PlanDocument(Document, frozen=True, kw_only=True):
    """A plan. `inca plan --out` writes it; `inca average --plan`, `inca audit --plan` and rosters follow it."""

    kind: ClassVar[str] = "a plan"
    indent: ClassVar[int | None] = 1

    format: Annotated[Literal["inca-plan/2"], about("The format and its version.")] = "inca-plan/2"
    inca: Annotated[str, about("The version of inca that wrote the file.")] = ""
    requirements: Annotated[RequirementFields, about("What the plan was made for.")] = msgspec.field(name="wish")
    recipe: Annotated[
        Literal["best", "paper"], about("`best`: settled, with noise that is proven. `paper`: as the paper calibrates.")
    ]
    settlement: Annotated[Settlement, about("Whether parties that stay undo what they exchanged with leavers.")]
    rounds: Annotated[Count, about("Number of rounds T.", "rounds")]
    receivers: Annotated[int, about("Receivers of a party in a round, k.", ge=1)]
    schedule: Annotated[str, about("Who sends to whom: `circle`, `permutation` or `random`.")]
    injection: Annotated[InjectionFields, about("How values and noise enter.")]
    sigma_independent: Annotated[NotNegative, about("Standard deviation of the noise that stays.", "value")]
    sigma_cancelling: Annotated[NotNegative, about("Standard deviation of the noise that cancels.", "value")]
    sigma_together: Annotated[
        NotNegative,
        about("What the independent noise of a cohort's honest parties needs together; 0: no top-up.", "value"),
    ] = 0.0
    spare: Annotated[Count, about("Honest parties that stay and that a party need not be joined with.")] = 0
    expected_mse: Annotated[
        NotNegative | None,
        about("Expected squared error of a coordinate at the required dropout; null: infinite.", "value^2"),
    ]
    error: Annotated[ErrorParts, about("Its parts.")]
    standard_error: Annotated[NotNegative, about("Standard error of the expected error from sampling.", "value^2")]
    central_mse: Annotated[NotNegative, about("The same of Central DP, a trusted server.", "value^2")]
    local_mse: Annotated[NotNegative, about("The same of Local DP, every party alone.", "value^2")]
    failure_probability: Annotated[
        Fraction,
        about("Probability that the guarantee fails for a party; 0: certain. It adds to delta.", "probability"),
    ]
    sampled: Annotated[SamplingFields | None, about("What was sampled; null: the noise is proven to suffice.")] = None
