"""The report of a certificate: the worst loss, whether what was agreed holds, against whom, and what it rests on."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np

from inca.cli.report.page import ParameterList, ReportContent, RowList, TitledPicture, VerdictSentence, counted
from inca.cli.report.pictures import MAX_BARS, MAX_POINTS, ReferenceLevel, losses, short
from inca.errors import InvalidInput
from inca.privacy.certificate import FORMAT, in_words
from inca.privacy.gaussian import epsilon_for, rule_from_file

NOT_COVERED = (
    "Not covered: adversaries other than this one, parties that deviate from the protocol, other releases of the same "
    "values, and what the result itself reveals."
)
_MAX_IDS = 40
_ROUNDING = 1e-6  # of a loss: numbers of a file that differ by less agree


class WorstLoss(msgspec.Struct):
    """The largest loss in a certificate; None is infinite."""

    party: int
    mu: float | None
    epsilon: float | None


class _CertifiedAdversary(msgspec.Struct):
    colluding: list[int]
    eavesdropped: list[list[int]]


class _RankFields(msgspec.Struct):
    hidden: int
    needed: int
    met: bool


class _RequiredFields(msgspec.Struct):
    epsilon: float
    met: bool | None


class _ConditionFields(msgspec.Struct):
    name: str
    holds: bool
    why: str


class CertificateFields(msgspec.Struct, kw_only=True):
    """A certificate as its file has it, with what `inca audit --json` adds."""

    format: str
    inca: str
    execution: str
    parties: int
    rounds: int
    sigma_independent: float
    sigma_cancelling: float
    sensitivity: float
    notion: str
    adversary: _CertifiedAdversary
    rule: str
    delta: float
    honest: list[int]
    mu: list[float | None]
    epsilon: list[float | None]
    worst: WorstLoss
    full_attendance: WorstLoss | None
    rank: _RankFields
    total_weight: float
    route: str
    assumptions: list[str]
    settlement: str = "none"
    basis: str = "exact"
    sigma_topup: float = 0.0
    conditions: list[_ConditionFields] = []
    required: _RequiredFields | None = msgspec.field(name="wanted", default=None)

    @property
    def worst_epsilon(self) -> float:
        """The largest epsilon, in this execution or at full attendance."""
        cases = [self.worst] if self.full_attendance is None else [self.worst, self.full_attendance]
        return max(math.inf if case.epsilon is None else case.epsilon for case in cases)

    @property
    def is_bound(self) -> bool:
        """Whether the losses are bounds that count leavers as colluders."""
        return self.basis != "exact"

    def check(self) -> None:
        """Refuse numbers that contradict each other: a report must not look better than the losses behind it."""
        if self.format != FORMAT:
            raise InvalidInput(f"format must be {FORMAT}, got {self.format!r}")
        if not self.honest or not len(self.honest) == len(self.mu) == len(self.epsilon):
            raise InvalidInput("honest, mu and epsilon must be lists of one length, of at least one party")
        stated = _numbers(self.epsilon)
        implied = epsilon_for(_numbers(self.mu), self.delta, rule_from_file(self.rule))
        if not np.allclose(stated, implied, rtol=_ROUNDING, atol=1e-9):
            raise InvalidInput("epsilon must follow from mu, delta and the rule, got other numbers")
        if (full := self.full_attendance) is not None:
            implied = epsilon_for(_numbers([full.mu]), self.delta, rule_from_file(self.rule))
            if not np.allclose(_numbers([full.epsilon]), implied, rtol=_ROUNDING, atol=1e-9):
                raise InvalidInput("epsilon of full_attendance must follow from its mu, got another number")
        worst = math.inf if self.worst.epsilon is None else self.worst.epsilon
        if not np.isclose(worst, stated.max(), rtol=_ROUNDING, atol=1e-9):
            raise InvalidInput("worst must be the largest of the losses, got another number")


def _numbers(values: list[float | None]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    return np.array([math.inf if number is None else number for number in values], dtype=np.float64)


def read_certificate(path: Path, content: bytes) -> CertificateFields:
    """Return the fields of a certificate's file.

    Raises:
        InvalidInput: If it is not one, or its numbers contradict each other.
    """
    try:
        fields = msgspec.json.decode(content, type=CertificateFields)
        fields.check()
    except (msgspec.DecodeError, InvalidInput) as error:
        raise InvalidInput(f"{path} cannot be read as a certificate: {error}") from None
    return fields


def certificate_content(fields: CertificateFields, agreed: VerdictSentence | None = None) -> ReportContent:
    """Return what a report says of a certificate.

    Args:
        fields: The certificate.
        agreed: Whether what was agreed holds, if something but the certificate says it.
    """
    return ReportContent(
        title="Certificate of privacy",
        about=f"{fields.parties:,} parties, {fields.rounds:,} rounds, {fields.notion}",
        verdict=(worst_loss(fields), agreed or _required(fields), *_meaning(fields)),
        caveats=certificate_caveats(fields),
        pictures=(loss_picture(fields, None if fields.required is None else fields.required.epsilon),),
        parameters=certificate_parameters(fields),
        assumptions=tuple(fields.assumptions),
    )


def worst_loss(fields: CertificateFields) -> VerdictSentence:
    """Return the largest loss, in words."""
    full, worst = fields.full_attendance, fields.worst
    if math.isinf(fields.worst_epsilon):
        count = sum(loss is None for loss in fields.epsilon)
        text = f"Nothing is guaranteed: {count:,} of {len(fields.honest):,} honest parties have an infinite loss."
        if not count:
            text = "Nothing is guaranteed: had nobody been absent, the loss of an honest party would be infinite."
        return VerdictSentence("bad", "no guarantee", text)
    kind = "at most " if fields.is_bound else ""
    text = f"Worst loss: epsilon {kind}{in_words(worst.epsilon)} at delta {fields.delta:g}, of party {worst.party}."
    if full is not None:
        text += (
            f" Had nobody been absent and every share arrived, it would be {in_words(full.epsilon)}, of party "
            f"{full.party}; the larger of the two, {in_words(fields.worst_epsilon)}, is what counts."
        )
    return VerdictSentence("plain", "worst loss", text)


def _required(fields: CertificateFields) -> VerdictSentence:
    if fields.required is None:
        text = "The certificate does not say what was agreed: compare its worst loss with what you were promised."
        return VerdictSentence("unknown", "not known", text)
    return kept(fields.required.epsilon, fields.delta, fields.required.met)


def kept(epsilon: float, delta: float, met: bool | None, whose: str = "every honest party") -> VerdictSentence:
    """Return whether a guarantee holds, in words; None if the adversary is smaller than agreed."""
    guarantee = f"({epsilon:g}, {delta:g})-DP"
    if met is None:
        text = f"Whether the agreed guarantee {guarantee} holds is not known: this adversary is smaller than agreed."
        return VerdictSentence("unknown", "not known", text)
    if met:
        return VerdictSentence("good", "holds", f"{guarantee} holds for {whose}, against this adversary.")
    return VerdictSentence("bad", "fails", f"{guarantee} does NOT hold for {whose}, against this adversary.")


def _meaning(fields: CertificateFields) -> tuple[VerdictSentence, ...]:
    epsilon = fields.worst_epsilon
    if math.isinf(epsilon):
        text = "At least one value can be computed exactly, or nothing hides it."
        return (VerdictSentence("bad", "what it means", text),)
    strength = next(
        words
        for most, words in ((0.5, "strong"), (2.0, "fair"), (5.0, "weak"), (math.inf, "hardly any"))
        if epsilon <= most
    )
    factor = f"a factor of at most {math.exp(epsilon):.4g}" if epsilon < 50 else "any factor that matters"
    text = (
        f"Whatever this adversary believed about a party before, seeing the run changes the odds by {factor}, "
        f"except with probability {fields.delta:g}: {strength} protection."
    )
    return (VerdictSentence("bad" if epsilon > 5.0 else "plain", "what it means", text),)


def certificate_caveats(fields: CertificateFields) -> tuple[str, ...]:
    """Return what keeps a certificate from being better than it is."""
    caveats = []
    if fields.is_bound:
        caveats.append(
            "Losses are bounds: leavers are counted as colluders. Nothing is said of the losses of leavers themselves."
        )
    if not fields.rank.met:
        caveats.append(
            f"Hidden messages connect too few honest parties: rank {fields.rank.hidden} of {fields.rank.needed} "
            "needed, NOT met."
        )
    if fields.rule == "classic":
        caveats.append("The classic rule turns losses into epsilon by a bound that holds for epsilon below 1 only.")
    if not fields.adversary.colluding and not fields.adversary.eavesdropped:
        caveats.append(
            "Nobody colludes or eavesdrops in this adversary: nothing is said about parties that look at what they "
            "receive."
        )
    caveats += [f"Fails: {check.name}, since {check.why}" for check in fields.conditions if not check.holds]
    return (*caveats, NOT_COVERED)


def loss_picture(fields: CertificateFields, agreed: float | None) -> TitledPicture:
    """Return the losses of all honest parties, with what was agreed and the worst at full attendance marked."""
    levels, legend = [], [("a", "epsilon of an honest party")]
    full = fields.full_attendance
    if any(loss is None for loss in fields.epsilon):
        legend.append(("warn", "no guarantee: the loss is infinite"))
    if agreed is not None:
        levels.append(ReferenceLevel("agreed", agreed))
        legend.append(("level", f"agreed: {short(agreed)}"))
    if full is not None and full.epsilon is not None:
        legend.append((f"level level{len(levels)}", f"worst, had nobody been absent: {short(full.epsilon)}"))
        levels.append(ReferenceLevel("worst, had nobody been absent", full.epsilon))
    honest = len(fields.honest)
    shown = "" if honest <= MAX_POINTS else f"; {MAX_POINTS} of them are drawn, the ends included"
    order = "" if honest <= MAX_BARS else " Point at a dot for its party."
    return TitledPicture(
        "What the adversary learns of every honest party",
        losses(fields.honest, fields.epsilon, levels, fields.delta),
        tuple(legend),
        f"{honest:,} honest of {fields.parties:,} parties{shown}; delta {fields.delta:g}; {_adversary(fields)}; "
        f"{'bounds: leavers counted as colluders' if fields.is_bound else 'exact losses'}.{order}",
    )


def _adversary(fields: CertificateFields) -> str:
    who = f"{len(fields.adversary.colluding):,} of {fields.parties:,} parties collude"
    if messages := len(fields.adversary.eavesdropped):
        return f"{who}, {counted(messages, 'message is', 'messages are')} eavesdropped on"
    return f"{who}, no message is eavesdropped on"


def certificate_parameters(fields: CertificateFields) -> tuple[ParameterList | RowList, ...]:
    """Return everything else that a certificate says."""
    finite = sorted(_numbers(fields.epsilon).tolist())
    middle = float(np.median(finite)) if math.isfinite(finite[-1]) else finite[len(finite) // 2]
    median = ", ".join(map(in_words, (finite[0], middle, finite[-1])))
    noise = f"independent {in_words(fields.sigma_independent)}, cancelling {in_words(fields.sigma_cancelling)}"
    noise += f", top-up {in_words(fields.sigma_topup)}" if fields.sigma_topup else ""
    rows = [
        ("parties, rounds", f"{fields.parties:,}, {fields.rounds:,}"),
        ("adversary", f"{_adversary(fields)} ({fields.notion}); it also sees all final messages"),
        ("colluding", some_ids(fields.adversary.colluding)),
        (
            "noise, standard deviations",
            noise,
        ),
        ("sensitivity", f"one value can move by {in_words(fields.sensitivity)}"),
        ("rule", "classic" if fields.rule == "classic" else "analytic"),
        ("delta", f"{fields.delta:g}"),
        ("epsilon: least, median, largest", median),
        ("mu of the worst loss", in_words(fields.worst.mu)),
        (
            "hidden messages",
            f"rank {fields.rank.hidden:,} of {fields.rank.needed:,} needed: {'met' if fields.rank.met else 'NOT met'}",
        ),
        (
            "settlement",
            f"settled; losses are {'bounds' if fields.is_bound else 'exact'}"
            if fields.settlement == "settled"
            else "none",
        ),
        ("total weight", in_words(fields.total_weight)),
        ("execution", fields.execution),
        ("certificate made by", f"inca {fields.inca}"),
    ]
    parts: list[ParameterList | RowList] = [ParameterList("The certificate", tuple(rows))]
    if fields.conditions:
        checks = tuple((check.name, "holds" if check.holds else "fails", check.why) for check in fields.conditions)
        parts.append(RowList("Conditions of the theorems", ("theorem", "condition", "why"), checks))
    return tuple(parts)


def some_ids(ids: list[int]) -> str:
    """Return the ids of parties, if they are not too many.

    >>> some_ids([3, 11]), some_ids([])
    ('3, 11', 'nobody')
    """
    if len(ids) > _MAX_IDS:
        return f"{', '.join(map(str, ids[:_MAX_IDS]))}, ... ({len(ids):,} parties)"
    return ", ".join(map(str, ids)) or "nobody"


def with_agreed_level(content: ReportContent, fields: CertificateFields, agreed: float) -> ReportContent:
    """Return the content with what was agreed marked in its picture of losses."""
    return replace(content, pictures=(loss_picture(fields, agreed), *content.pictures[1:]))
