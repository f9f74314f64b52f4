"""A certificate: what an execution has given away, to whom, under which assumptions. Anyone can compute it again.

It says something about one adversary and one realized execution. If someone was absent or a share did not arrive, it
also says what the same noise gives at full attendance with all shares delivered, since noise that leavers could not
cancel protects the others by accident (erratum E11). Where a cohort settled, full attendance means that nobody needed
to add top-up noise.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from textwrap import fill
from typing import Any, Literal, get_args

import numpy as np

from inca._base.files import null_for_infinity, write_json
from inca._base.types import Array, Progress
from inca._base.validation import finite_float, refuse
from inca._base.version import __version__
from inca.privacy._device import Device
from inca.privacy.accountant import Losses, account
from inca.privacy.dp_event import gaussian_dp_event
from inca.privacy.gaussian import Rule, rule_to_file
from inca.privacy.theorems.hidden_messages import HiddenRank
from inca.privacy.theorems.preconditions import TheoremInputs
from inca.privacy.view import View
from inca.protocol.domain import falls_short
from inca.protocol.execution import Execution
from inca.protocol.execution_files import digest
from inca.protocol.noise_levels import NoiseLevels
from inca.protocol.schedules import Schedule
from inca.protocol.transcript import Transcript

FORMAT = "inca-certificate/1"

Basis = Literal["exact", "leavers counted as colluders"]

ASSUMPTIONS = (
    "All parties follow the protocol, and honest parties keep their values and noise to themselves.",
    "The adversary knows who sends to whom, who is present, and all noise levels; it sees the colluders' values, noise "
    "and messages, the eavesdropped messages, and the final messages of all parties present at the end.",
    "Noise is Gaussian with the stated levels, drawn anew for this execution; noise in floating point is not covered.",
    "Two inputs are neighbours if one party's value differs, by at most the sensitivity in Euclidean distance.",
    "Who is absent, and which shares arrive, does not depend on values or noise.",
)


SETTLED = "Final messages are settled, and published by the cohort alone, which was agreed before any of them was."
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

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON; null stands for an infinite loss, that is, for no guarantee."""
        transcript, execution = self.transcript, self.transcript.execution
        party, mu = self.losses.worst_party, self.losses.max_mu
        fields: dict[str, Any] = {
            "format": FORMAT,
            "inca": __version__,
            "execution": f"sha256:{digest(transcript)}",
            "parties": execution.parties,
            "rounds": execution.rounds,
            "sigma_independent": transcript.sigma_independent,
            "sigma_cancelling": transcript.sigma_cancelling,
            "sensitivity": self.sensitivity,
            "notion": transcript.known_adversary.notion,
            "adversary": {
                "colluding": list(transcript.known_adversary.colluding),
                "eavesdropped": [list(message) for message in transcript.known_adversary.eavesdropped],
            },
            "rule": rule_to_file(self.rule),
            "delta": self.delta,
            "honest": self.losses.honest.tolist(),
            "mu": self.losses.mu.tolist(),
            "epsilon": self.epsilon.tolist(),
            "worst": {"party": party, "mu": mu, "epsilon": float(self.epsilon.max())},
            "full_attendance": None,
            "rank": {"hidden": self.rank.hidden, "needed": self.rank.needed, "met": self.rank.met},
            "total_weight": float(execution.total_weights.sum()),
            "route": self.losses.method,
            "assumptions": list(self.assumptions),
        }
        if execution.cohort is not None:
            fields |= {"settlement": "settled", "basis": self.basis, "sigma_topup": transcript.sigma_topup}
        if self.full_attendance is not None:
            party, mu = self.full_attendance.worst_party, self.full_attendance.max_mu
            largest = float(self.full_attendance.epsilon(self.delta, self.rule).max())
            fields["full_attendance"] = {"party": party, "mu": mu, "epsilon": largest}
        return dict(null_for_infinity(fields))

    def write(self, path: str | Path) -> None:
        """Write the certificate as JSON, completely or not at all.

        Args:
            path: The file.

        Raises:
            InvalidInput: If it cannot be written.
        """
        write_json(path, self.as_dict())

    def __str__(self) -> str:
        return self.text()

    def text(self, width: int = 100) -> str:
        """Return the certificate for people.

        Args:
            width: How long lines of the assumptions may be.

        Returns:
            Several lines.
        """
        fields, execution = self.as_dict(), self.transcript.execution
        worst, full = fields["worst"], fields["full_attendance"]
        least, median, most = (float(of(self.epsilon)) for of in (np.min, np.median, np.max))
        seen = f"{len(fields['adversary']['colluding'])} of {execution.parties} parties collude"
        if count := len(fields["adversary"]["eavesdropped"]):
            seen += f", {count} messages are eavesdropped on"
        topup = f", sigma_topup {in_words(self.transcript.sigma_topup)}" if self.transcript.sigma_topup > 0.0 else ""
        lines = [
            f"Certificate of privacy ({FORMAT})",
            f"  execution          {fields['execution'][:23]}...  "
            f"{execution.parties} parties, {execution.rounds} rounds",
            f"  adversary          {seen}  ({fields['notion']})",
            f"  noise              sigma_independent {in_words(fields['sigma_independent'])}, "
            f"sigma_cancelling {in_words(fields['sigma_cancelling'])}{topup}; sensitivity {in_words(self.sensitivity)}",
            f"  worst loss         epsilon {in_words(worst['epsilon'])} at delta {self.delta:g} ({self.rule} rule), "
            f"mu {in_words(worst['mu'])}, party {worst['party']}",
            f"  all honest         epsilon from {in_words(least)} over {in_words(median)} (median) to {in_words(most)}",
        ]
        if execution.cohort is not None:
            members = int(execution.cohort.sum())
            rests = "losses are exact" if self.basis == "exact" else "losses are bounds: leavers counted as colluders"
            lines.insert(2, f"  settlement         {members} parties settled; {rests}")
        if full is not None:
            more = " and all shares arrived" if execution.undelivered else ""
            largest = f"epsilon {in_words(full['epsilon'])} at worst, had nobody been absent{more}"
            lines.append(f"  full attendance    {largest}")
        met = "met" if self.rank.met else "NOT met"
        lines += [
            f"  hidden messages    rank {self.rank.hidden} of {self.rank.needed} needed: {met} ({self.rank.how})",
            "  assumptions",
            *(fill(text, width, initial_indent="    - ", subsequent_indent="      ") for text in self.assumptions),
        ]
        return "\n".join(lines)


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
        intended: The schedule as it was meant, for the case of full attendance; by default that of the execution with
            the undelivered offers in their places.
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
    delta = finite_float("delta", transcript.delta if delta is None else delta, 0.0, 1.0)
    sensitivity = _known_sensitivity(transcript, sensitivity)
    execution, adversary = transcript.execution, transcript.known_adversary
    size = (execution.parties, execution.rounds)
    if intended is not None and (meant := (intended.parties, intended.rounds)) != size:
        refuse("the (parties, rounds) of intended", meant, f"those of the execution, {size}")
    if basis not in get_args(Basis):
        refuse("basis", basis, " or ".join(get_args(Basis)))
    if basis != "exact" and execution.cohort is None:
        refuse("basis", basis, "exact, as nobody settles")
    view, levels = View(execution, adversary), transcript.noise_levels

    def losses_of(view: View, levels: NoiseLevels) -> Losses:
        losses = account(view, levels, sensitivity=sensitivity, device=device, progress=progress)
        return losses.in_whole_numbers(transcript.rounding)

    losses, full = losses_of(view if basis == "exact" else view.of_cohort(), levels), None
    if intended is not None or execution.undelivered or not _everyone_at_the_end(execution):
        attended = Execution(intended or execution.offered(), execution.injection)
        full = losses_of(View(attended, adversary), replace(levels, topup=0.0))
    return Certificate(transcript, losses, full, float(sensitivity), float(delta), rule, TheoremInputs(view), basis)


def _everyone_at_the_end(execution: Execution) -> bool:
    """Return whether all were always there, and, if some settled, all did."""
    return execution.presence.all_present and (execution.cohort is None or bool(execution.cohort.all()))


def _known_sensitivity(transcript: Transcript, stated: float | None) -> float:
    """Return the sensitivity that was stated, or else that of the transcript; refuse less than the latter."""
    if stated is None:
        if transcript.sensitivity is None:
            refuse("sensitivity", None, "known to account for an execution: how far one party's value can move")
        return transcript.sensitivity
    if falls_short(stated, least := transcript.sensitivity or 0.0):
        refuse("sensitivity", stated, f"at least {least:g}, as the execution says")
    return finite_float("sensitivity", stated, min=0.0)


def in_words(value: float | None) -> str:
    """Write a loss for people; null and infinity are "infinite"."""
    return "infinite" if value is None or math.isinf(value) else f"{value:.6g}"
