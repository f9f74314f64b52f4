"""`inca-average/1`: the private mean of one simulated run, as `inca average --json` prints it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from inca.documents.document import Document, Part, about
from inca.documents.fields import AgreedFields, Count, Fraction, NotNegative
from inca.documents.plan import PlanDocument
from inca.documents.result import Numbers


class NoiseParts(Part, frozen=True, kw_only=True):
    """The variance of the noise in the estimate, summed over coordinates."""

    independent: Annotated[NotNegative, about("Of the noise that stays.", "value^2")]
    cancelling: Annotated[NotNegative, about("Of cancelling noise that leavers left behind.", "value^2")]


class AverageDocument(Document, frozen=True, kw_only=True):
    """A private mean, its error, and what it cost."""

    kind: ClassVar[str] = "an average"
    absent: ClassVar[frozenset[str]] = frozenset({"mean", "plan"})

    format: Annotated[Literal["inca-average/1"], about("The format and its version.")] = "inca-average/1"
    inca: Annotated[str, about("The version of inca that wrote it.")]
    columns: Annotated[tuple[str, ...] | None, about("Names of the coordinates; null: none.")] = None
    estimate: Annotated[Numbers | None, about("The private mean, in the domain; null: withheld.", "value")]
    withheld: Annotated[str, about("Why there is no estimate.")] = ""
    unconstrained: Annotated[Numbers | None, about("The estimate as the noise left it; it is unbiased.", "value")] = (
        None
    )
    interval: Annotated[
        tuple[Numbers, Numbers] | None,
        about("[low, high] for the mean of all parties' values, each coordinate on its own.", "value"),
    ] = None
    confidence: Annotated[
        Fraction, about("The probability with which an interval covers its mean, at least.", "probability")
    ]
    says_nothing: Annotated[bool, about("Whether guessing the middle of the domain would do as well.")]
    remarks: Annotated[tuple[str, ...], about("Sentences that belong to the estimate.")] = ()
    parties: Annotated[int, about("Number of parties.", "parties", ge=1)]
    present: Annotated[Count, about("How many final messages are in the estimate.", "parties")]
    weight: Annotated[NotNegative, about("How many values' weight is in the estimate.", "values")]
    epsilon: Annotated[NotNegative | None, about("The audited loss; null: not audited, or infinite.")] = None
    delta: Annotated[Fraction | None, about("Its delta; null: no guarantee was asked for.", "probability")] = None
    audited: Annotated[bool, about("Whether the run was audited.")] = False
    agreed: Annotated[AgreedFields | None, about("The guarantee that the run was planned for; null: none.")] = None
    met: Annotated[bool | None, about("Whether the guarantee holds in this run; null: not known.")] = None
    colluding: Annotated[Count, about("How many parties collude in the audit.", "parties")] = 0
    eavesdropped: Annotated[Count, about("How many messages are eavesdropped in the audit.", "messages")] = 0
    standard_error: Annotated[
        NotNegative | None, about("Standard deviation of the noise in each coordinate, exact; null: infinite.", "value")
    ]
    worst_case_error: Annotated[
        NotNegative | None,
        about("Root of the expected squared error with the worst values lost; null: infinite.", "value"),
    ]
    variance: Annotated[NoiseParts | None, about("The parts of the noise; null: infinite.")] = None
    mean: Annotated[Numbers | None, about("The exact mean, if asked for: NOT private.", "value")] = None
    plan: Annotated[PlanDocument | None, about("The plan that was followed.")] = None
