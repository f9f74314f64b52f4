"""`inca-certificate/2`: what one run has revealed to one adversary, and under which assumptions."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from inca.documents.document import Document, Part, about, infinite_if_none
from inca.documents.fields import (
    AdversaryFields,
    AgreedFields,
    Basis,
    Count,
    Fraction,
    NotNegative,
    PartyId,
    Rule,
    Settlement,
)
from inca.errors import InvalidInput

ASSUMPTIONS = (
    "All parties follow the protocol, and honest parties keep their values and noise to themselves.",
    "The adversary knows who sends to whom, who is present, and all noise levels; it sees the colluders' values, noise "
    "and messages, the eavesdropped messages, and the final messages of all parties present at the end.",
    "Noise is Gaussian with the stated levels, drawn anew for this execution; noise in floating point is not covered.",
    "Two inputs are neighbours if one party's value differs, by at most the sensitivity in Euclidean distance.",
    "Who is absent, and which shares arrive, does not depend on values or noise.",
)
SETTLED = "Final messages are settled, and published by the cohort alone, which was agreed before any of them was."


class WorstLoss(Part, frozen=True, kw_only=True):
    """The largest loss of an honest party; null is infinite, that is, no guarantee."""

    party: Annotated[PartyId, about("Whose it is.")]
    mu: Annotated[NotNegative | None, about("The Gaussian shift mu.")]
    epsilon: Annotated[NotNegative | None, about("Its epsilon at the certificate's delta.")]


class RankFields(Part, frozen=True, kw_only=True):
    """The rank of the hidden messages' edge vectors (Theorem 2)."""

    hidden: Annotated[Count, about("The rank.")]
    needed: Annotated[Count, about("The rank at which all honest parties hide one another.")]
    met: Annotated[bool, about("Whether the rank suffices.")]


class ConditionFields(Part, frozen=True, kw_only=True):
    """What one theorem of the paper says about the run."""

    name: Annotated[str, about("The theorem.")]
    holds: Annotated[bool, about("Whether its condition holds.")]
    why: Annotated[str, about("Why, in words.")]


class CertificateDocument(Document, frozen=True, kw_only=True):
    """The privacy loss of every honest party in one run, against one adversary.

    `inca audit --certificate`, `inca average --certificate` and every session write it; `inca audit --json` prints it.
    """

    kind: ClassVar[str] = "a certificate"
    absent: ClassVar[frozenset[str]] = frozenset({"conditions", "required"})

    format: Annotated[Literal["inca-certificate/2"], about("The format and its version.")] = "inca-certificate/2"
    inca: Annotated[str, about("The version of inca that wrote the file.")]
    execution: Annotated[
        str, about("`sha256:` and the hash of the audited execution with its noise and adversary, as canonical JSON.")
    ]
    parties: Annotated[int, about("Number of parties n.", "parties", ge=1)]
    rounds: Annotated[Count, about("Number of rounds T.", "rounds")]
    sigma_independent: Annotated[NotNegative, about("Standard deviation of the noise that stays.", "value")]
    sigma_cancelling: Annotated[NotNegative, about("Standard deviation of the noise that cancels.", "value")]
    sigma_topup: Annotated[
        NotNegative, about("Standard deviation of the noise that each party adds when it settles.", "value")
    ] = 0.0
    sensitivity: Annotated[
        NotNegative,
        about("How far one party's value can move, in Euclidean distance: two such inputs look alike.", "value"),
    ]
    settlement: Annotated[Settlement, about("Whether parties that stayed undid what they exchanged with leavers.")]
    settled: Annotated[Count, about("How many parties settled.", "parties")] = 0
    basis: Annotated[
        Basis, about("Whether the losses are exact, or bounds for the parties that settled, with leavers as colluders.")
    ]
    adversary: Annotated[AdversaryFields, about("The adversary; it also sees all final messages.")]
    notion: Annotated[str, about("Which of the paper's notions of privacy that is.")]
    rule: Annotated[
        Rule, about("How mu becomes epsilon: exactly, or by the paper's classic bound for epsilon below 1.")
    ]
    delta: Annotated[Fraction, about("The delta of every epsilon here.", "probability")]
    honest: Annotated[tuple[PartyId, ...], about("Ids of the honest parties, ascending.", min_length=1)]
    mu: Annotated[tuple[NotNegative | None, ...], about("Their losses mu, in that order; null is infinite.")]
    epsilon: Annotated[tuple[NotNegative | None, ...], about("Their losses epsilon, in that order; null is infinite.")]
    worst: Annotated[WorstLoss, about("The largest of these losses.")]
    full_attendance: Annotated[
        WorstLoss | None,
        about(
            "The largest loss had everyone been present and every offer arrived; null if so it was, or if some settled."
        ),
    ]
    rank: Annotated[RankFields, about("Whether hidden messages connect the honest parties.")]
    total_weight: Annotated[NotNegative, about("Sum of w_i over all parties.")]
    route: Annotated[str, about("The method that worked the losses out.")]
    agreed: Annotated[AgreedFields | None, about("What the parties agreed on; null if the run has no such agreement.")]
    required: Annotated[
        NotNegative | None, about("The epsilon that the audit was asked to check, against this adversary.")
    ] = None
    conditions: Annotated[
        tuple[ConditionFields, ...], about("The conditions of the theorems, where they were checked.")
    ] = ()
    assumptions: Annotated[tuple[str, ...], about("What all of it rests on, in sentences.")]

    @property
    def worst_epsilon(self) -> float:
        """The largest epsilon, in this run or at full attendance; infinite if nothing is guaranteed."""
        cases = [self.worst] if self.full_attendance is None else [self.worst, self.full_attendance]
        return max(infinite_if_none(case.epsilon) for case in cases)

    @property
    def is_bound(self) -> bool:
        """Whether the losses are upper bounds rather than exact."""
        return self.basis != "exact"

    def check(self) -> None:
        """Refuse lists that do not belong together and a worst loss that is not the largest."""
        if not len(self.honest) == len(self.mu) == len(self.epsilon):
            raise InvalidInput("honest, mu and epsilon: must be lists of one length")
        if tuple(sorted(set(self.honest))) != self.honest or self.honest[-1] >= self.parties:
            raise InvalidInput(f"honest: must be ascending ids below {self.parties}")
        if {*self.honest} & {*self.adversary.colluding}:
            raise InvalidInput("honest: must not name a colluding party")
        if self.worst.party not in self.honest:
            raise InvalidInput("worst: must be the loss of an honest party")
        for name in ("mu", "epsilon"):
            largest = max(infinite_if_none(loss) for loss in getattr(self, name))
            if infinite_if_none(getattr(self.worst, name)) != largest:
                raise InvalidInput(f"worst: {name} must be the largest in {name}")
        if self.is_bound and self.settlement == "none":
            raise InvalidInput("basis: must be exact where settlement is none")
