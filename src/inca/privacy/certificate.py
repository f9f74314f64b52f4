"""A certificate: what an execution has given away, to whom, under which assumptions. Anyone can compute it again.

It says something about one adversary and one realized execution. If someone was absent or a share did not arrive, it
also says what the same noise gives at full attendance with all shares delivered, since noise that leavers could not
cancel protects the others by accident (erratum E11). Where a cohort settled, full attendance means that nobody needed
to add top-up noise.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from inca._base.options import Rule
from inca._base.types import Array, Progress
from inca._base.validation import finite_float, instance, one_of, refuse
from inca._base.version import __version__
from inca.documents.certificate import ASSUMPTIONS, SETTLED, CertificateDocument, ConditionFields, RankFields, WorstLoss
from inca.documents.document import finite_or_none
from inca.documents.fields import AdversaryFields, Basis
from inca.privacy._device import Device
from inca.privacy.accountant import Losses, account
from inca.privacy.dp_event import gaussian_dp_event
from inca.privacy.theorems.hidden_messages import HiddenRank
from inca.privacy.theorems.preconditions import TheoremInputs
from inca.privacy.theorems.preconditions import conditions as theorem_checks
from inca.privacy.view import View
from inca.protocol.domain import falls_short
from inca.protocol.execution import Execution
from inca.protocol.execution_files import agreed_fields, digest
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.schedules import Schedule
from inca.protocol.transcript import AgreedGuarantee, Transcript

_ONLY_COHORT = "Parties outside the cohort are counted as colluders: nothing is said of their own losses."


@dataclass(frozen=True, eq=False)
class Certificate:
    """The exact losses of an execution's honest parties against one adversary, with what they rest on.

    Attributes:
        transcript: The execution, its noise levels and the adversary.
        losses: mu of every honest party.
        full_attendance: The losses if everyone had been present and all shares had arrived; None if that is what
            happened.
        sensitivity: How far one party's value can move, in Euclidean distance.
        delta: The delta at which epsilon is told.
        rule: How mu becomes epsilon: `analytic` or `classic`.
        theorem_inputs: What the theorems of `conditions` ask of the adversary's view.
        basis: Whether the losses are exact, or bounds that count leavers as colluders.
    """

    transcript: Transcript
    losses: Losses
    full_attendance: Losses | None
    sensitivity: float
    delta: float
    rule: Rule
    theorem_inputs: TheoremInputs
    basis: Basis = "exact"

    def __repr__(self) -> str:
        loss = f"epsilon={self.worst_epsilon:.6g}, delta={self.delta:g}"
        return f"Certificate({self.transcript.execution!r}, {self.transcript.known_adversary.notion}, {loss})"

    @property
    def rank(self) -> HiddenRank:
        """The rank of the hidden messages' edge vectors, and whether it suffices."""
        return self.theorem_inputs.hidden.rank

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the losses rest on, in sentences."""
        if self.transcript.execution.cohort is None:
            return ASSUMPTIONS
        return (*ASSUMPTIONS, SETTLED, *([_ONLY_COHORT] if self.basis != "exact" else []))

    @cached_property
    def epsilon(self) -> Array:
        """Every honest party's epsilon; infinity where there is no guarantee."""
        return self.losses.epsilon(self.delta, self.rule)

    @property
    def worst_epsilon(self) -> float:
        """The largest epsilon of an honest party, in this execution or at full attendance."""
        return max(float(case.epsilon(self.delta, self.rule).max()) for case in self._cases)

    @property
    def worst_mu(self) -> float:
        """The largest mu of an honest party, in this execution or at full attendance."""
        return max(case.max_mu for case in self._cases)

    @property
    def _cases(self) -> list[Losses]:
        return [self.losses] if self.full_attendance is None else [self.losses, self.full_attendance]

    def dp_event(self) -> Any:
        """Return the release as an event of the dp_accounting library, for an accountant of the user's own.

        It is the Gaussian mechanism with the largest loss of an honest party, in this execution or at full attendance;
        its neighbours are those of the certificate: one party's value is replaced. Compose it in an accountant with the
        default `neighboring_relation`; one for `REPLACE_ONE` may count twice the loss.

        Returns:
            A `GaussianDpEvent` with noise multiplier 1 / mu; a `NonPrivateDpEvent` if the loss is infinite.

        Raises:
            InvalidInput: If dp_accounting is not installed.

        Example:
            >>> import inca
            >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental_injection(10))
            >>> levels = {"sigma_independent": 1.0, "sigma_cancelling": 10.0, "sensitivity": 1.0}
            >>> certificate = certify(inca.Transcript(execution, **levels, adversary=inca.Adversary(range(5))))
            >>> certificate.dp_event().noise_multiplier == 1 / certificate.worst_mu
            True
        """
        return gaussian_dp_event(self.worst_mu)

    def document(
        self, agreed: AgreedGuarantee | None = None, required: float | None = None, *, conditions: bool = False
    ) -> CertificateDocument:
        """Return the certificate as a document.

        Args:
            agreed: What was agreed on; by default what the transcript says.
            required: The epsilon that is asked for against this adversary, if any.
            conditions: Whether to check the conditions of the theorems, which takes a while for many parties.

        Example:
            >>> import inca
            >>> execution = inca.Execution(inca.RandomReceivers(9, rounds=4, seed=1), inca.incremental_injection(4))
            >>> levels = {"sigma_independent": 1.0, "sigma_cancelling": 10.0, "sensitivity": 1.0}
            >>> certificate = certify(inca.Transcript(execution, **levels, adversary=inca.Adversary([0])))
            >>> certificate.document().worst_epsilon == certificate.worst_epsilon
            True
        """
        transcript, execution = self.transcript, self.transcript.execution
        adversary, agreed = transcript.known_adversary, agreed or transcript.agreed
        full = None
        if self.full_attendance is not None:
            full = _worst(self.full_attendance, self.full_attendance.epsilon(self.delta, self.rule))
        return CertificateDocument(
            inca=__version__,
            execution=f"sha256:{digest(transcript)}",
            parties=execution.parties,
            rounds=execution.rounds,
            sigma_independent=transcript.noise_levels.independent,
            sigma_cancelling=transcript.noise_levels.cancelling,
            sigma_topup=transcript.sigma_topup,
            sensitivity=self.sensitivity,
            settlement="none" if execution.cohort is None else "settled",
            settled=0 if execution.cohort is None else int(execution.cohort.sum()),
            basis=self.basis,
            adversary=AdversaryFields(colluding=adversary.colluding, eavesdropped=adversary.eavesdropped),
            notion=adversary.notion,
            rule=self.rule,
            delta=self.delta,
            honest=tuple(self.losses.honest.tolist()),
            mu=tuple(map(finite_or_none, self.losses.mu.tolist())),
            epsilon=tuple(map(finite_or_none, self.epsilon.tolist())),
            worst=_worst(self.losses, self.epsilon),
            full_attendance=full,
            rank=RankFields(hidden=self.rank.hidden, needed=self.rank.needed, met=self.rank.met),
            total_weight=float(execution.total_weights.sum()),
            route=self.losses.method,
            agreed=None if agreed is None else agreed_fields(agreed),
            required=required,
            conditions=tuple(
                ConditionFields(name=check.name, holds=check.holds, why=check.why)
                for check in (theorem_checks(self.theorem_inputs) if conditions else ())
            ),
            assumptions=self.assumptions,
        )

    def write(self, path: str | Path) -> None:
        """Write the certificate as JSON, completely or not at all.

        Args:
            path: The file.

        Raises:
            InvalidInput: If it cannot be written.
        """
        self.document().write(path)


def _worst(losses: Losses, epsilon: Array) -> WorstLoss:
    return WorstLoss(
        party=losses.worst_party, mu=finite_or_none(losses.max_mu), epsilon=finite_or_none(float(epsilon.max()))
    )


def certify(
    transcript: Transcript,
    *,
    sensitivity: float | None = None,
    delta: float | None = None,
    rule: Rule = "analytic",
    intended: Schedule | None = None,
    basis: Basis = "exact",
    device: Device | None = None,
    progress: Progress | None = None,
) -> Certificate:
    """Account for an execution, its noise levels and its adversary.

    Args:
        transcript: All three.
        sensitivity: How far one party's value can move, in Euclidean distance; see `Domain.sensitivity`. Default: as
            the transcript says; never less.
        delta: The delta at which epsilon is told, from 0 to 1. Default: the agreed one of the transcript, else 1e-5.
        rule: How mu becomes epsilon: `analytic` or `classic`.
        intended: The schedule as it was meant, for the case of full attendance where nobody settled; by default that of
            the execution with the undelivered offers in their places.
        basis: `exact`, or `leavers counted as colluders`: where a cohort settled, a bound on the losses of its parties
            that needs to know nothing of what the others did among themselves, and says nothing of their losses.
        device: Where to account: `cpu`, `cuda` for a GPU, or None to choose; see `inca.account`.
        progress: Called with (rounds done, T+1) by each accounting.

    Returns:
        The certificate.

    Raises:
        InvalidInput: If a noise level, the sensitivity or the adversary is not known, a number is out of range, or
            double precision does not suffice.

    Example:
        >>> import inca
        >>> execution = inca.Execution(inca.RandomReceivers(50, rounds=10, seed=1), inca.incremental_injection(10))
        >>> adversary = inca.Adversary(colluding=range(5))
        >>> levels = {"sigma_independent": 1.0, "sigma_cancelling": 10.0}
        >>> certify(inca.Transcript(execution, **levels, adversary=adversary, sensitivity=1.0))
        Certificate(Execution(parties=50, rounds=10), Collusion DP, epsilon=0.554193, delta=1e-05)
    """
    instance("transcript", transcript, Transcript)
    delta = finite_float("delta", transcript.delta if delta is None else delta, 0.0, 1.0)
    sensitivity = _known_sensitivity(transcript, sensitivity)
    execution, adversary = transcript.execution, transcript.known_adversary
    size = (execution.parties, execution.rounds)
    if intended is not None and (meant := (intended.parties, intended.rounds)) != size:
        refuse("the (parties, rounds) of intended", meant, f"those of the execution, {size}")
    one_of("basis", basis, get_args(Basis))
    if basis != "exact" and execution.cohort is None:
        refuse("basis", basis, "exact, as nobody settles")
    view, levels = View(execution, adversary), transcript.noise_levels

    def losses_of(view: View, levels: NoiseLevels) -> Losses:
        losses = account(view, levels, sensitivity=sensitivity, device=device, progress=progress)
        return losses.in_whole_numbers(transcript.rounding)

    losses, full = losses_of(view if basis == "exact" else view.of_cohort(), levels), None
    # What leavers take along protects others by accident (erratum E11). Where those who stay settle, nothing is left of
    # it, and what an execution says of messages that absent parties never sent is not who would have sent to whom.
    disturbed = intended is not None or execution.undelivered or not execution.presence.all_present
    if execution.cohort is None and disturbed:
        attended = Execution(intended or execution.offered(), execution.injection)
        full = losses_of(View(attended, adversary), replace(levels, topup=0.0))
    return Certificate(transcript, losses, full, float(sensitivity), float(delta), rule, TheoremInputs(view), basis)


def _known_sensitivity(transcript: Transcript, stated: float | None) -> float:
    """Return the sensitivity that was stated, or else that of the transcript; refuse less than the latter."""
    if stated is None:
        if transcript.sensitivity is None:
            refuse("sensitivity", None, "known to account for an execution: how far one party's value can move")
        return transcript.sensitivity
    if falls_short(stated, least := transcript.sensitivity or 0.0):
        refuse("sensitivity", stated, f"at least {least:g}, as the execution says")
    return finite_float("sensitivity", stated, min=0.0)
