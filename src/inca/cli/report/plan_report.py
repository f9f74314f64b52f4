"""The report of a plan: what it promises, against whom, with which error, and how sure that is."""

from __future__ import annotations

import math

from inca.cli.report.page import ParameterList, ReportContent, RowList, TitledPicture, VerdictSentence
from inca.cli.report.pictures import ReferenceLevel, bars, shares, short
from inca.planning.plan import AlternativeDesign, Plan
from inca.planning.plan_summary import absences_in_words, adversary_in_words, level_in_words
from inca.privacy.certificate import ASSUMPTIONS, SETTLED
from inca.protocol.expected_error import ErrorBudget

_RANDOM = (
    "Who colludes, who leaves and who sends to whom is drawn at random, in the planned numbers, independently of all "
    "values and noise."
)


def plan_content(plan: Plan) -> ReportContent:
    """Return what a report says of a plan."""
    requirements = plan.requirements
    return ReportContent(
        title=f"Plan for {requirements.parties:,} parties",
        about=f"{plan.agreed} by the {requirements.rule} rule; {plan.design}",
        verdict=_verdict(plan),
        caveats=_caveats(plan),
        pictures=_pictures(plan),
        parameters=_parameters(plan),
        assumptions=(*ASSUMPTIONS, *([SETTLED] if plan.settlement == "settled" else []), _RANDOM),
    )


def _verdict(plan: Plan) -> tuple[VerdictSentence, ...]:
    requirements = plan.requirements
    promise = (
        f"A run promises {plan.agreed} to every honest party, against {adversary_in_words(requirements)}, in spite of "
        f"{absences_in_words(requirements)}."
    )
    error = (
        f"The estimate is expected to be off by {_root(plan.expected_mse)} (root mean square): a mean squared error of "
        f"{plan.expected_mse:.4g}, {plan.expected_mse / requirements.central_mse:.3g} x that of Central DP, with its "
        "trusted server."
    )
    sentences = [VerdictSentence("plain", "promises", promise)]
    if plan.remark:
        sentences.append(VerdictSentence("bad", "says nothing", plan.remark))
    return (*sentences, VerdictSentence("plain", "expected error", error))


def _caveats(plan: Plan) -> tuple[str, ...]:
    requirements, late = plan.requirements, plan.late_budget
    caveats = [
        f"The guarantee may fail for a party, with probability {plan.failure_probability:.2g}, which adds to delta: "
        f"{plan.failure_probability * requirements.honest:.2g} parties a run.",
        "A plan is a forecast: only the audit of a run (inca audit) says what that run gave away.",
    ]
    if late is not None:
        number = (
            "one late leaver, a party that settles and does"
            if plan.late <= 1
            else f"{plan.late} late leavers, parties that settle and do"
        )
        caveats.append(
            f"With {number} not publish, the error is expected to be {_root(late.total)}, or "
            f"{late.total / requirements.central_mse:.3g} x Central DP's mean squared error."
        )
    if requirements.colluding == 0.0:
        caveats.append(
            "Nobody is taken to collude: nothing is promised against parties that look at what they receive."
        )
    if requirements.rule == "classic":
        caveats.append("The classic rule turns losses into epsilon by a bound that holds for epsilon below 1 only.")
    if plan.factor >= requirements.honest > 1:
        caveats.append("So few messages hide so little that this is Local DP: more would help.")
    if plan.sampling.kind == "extrapolated":
        caveats.append("The level of the cancelling noise is extrapolated beyond what was sampled, not proven.")
    return tuple(caveats)


def _pictures(plan: Plan) -> tuple[TitledPicture, ...]:
    requirements, late = plan.requirements, plan.late_budget
    setting = (
        f"{requirements.parties:,} parties; {plan.agreed}; {requirements.colluding:.3g} of them colluding, "
        f"{requirements.dropout:.3g} leaving; values differ by at most {requirements.sensitivity:g}"
    )
    rows = [("Central DP, with a trusted server", math.sqrt(requirements.central_mse), "c")]
    rows.append(("this plan", math.sqrt(plan.expected_mse), "a"))
    if late is not None:
        rows.append((f"this plan, {max(1, plan.late)} late leaver{'s' * (plan.late > 1)}", math.sqrt(late.total), "d"))
    rows.append(("Local DP, everyone alone", math.sqrt(requirements.local_mse), "b"))
    guess = ReferenceLevel("guessing the middle would do as well from here on", requirements.sensitivity / 4.0)
    legend = [
        ("a", "this plan"),
        ("c", "Central DP"),
        ("b", "Local DP"),
        ("level", f"from {short(guess.level)} on, guessing the middle would do as well"),
    ]
    if late is not None:
        legend.insert(1, ("d", "with late leavers"))
    pictures = [
        TitledPicture(
            "Expected error beside other mechanisms",
            bars(rows, [guess], "root mean squared error of the estimate"),
            tuple(legend),
            f"{setting}. Central and Local DP with everyone present.",
        )
    ]
    budgets = [("this plan", plan.budget), *([("with late leavers", late)] if late is not None else [])]
    known = [(name, _parts(budget)) for name, budget in budgets if 0.0 < budget.total < math.inf]
    if known:
        pictures.append(
            TitledPicture(
                "Where the error comes from",
                shares(known),
                (("a", "independent noise"), ("b", "cancelling noise that is left"), ("c", "lost values")),
                f"{'; '.join(f'{name}: {_percentages(parts)}' for name, parts in known)}. {setting}.",
            )
        )
    if plan.further:
        others = sorted(
            [*((other.messages, other.relative_mse) for other in plan.further), (plan.design.messages, 1.0)]
        )
        sized = [
            (f"{messages} messages{' (this plan)' * (relative == 1.0)}", relative, "a" if relative == 1.0 else "d")
            for messages, relative in others
        ]
        pictures.append(
            TitledPicture(
                "What other numbers of messages would bring",
                bars(sized, [], "mean squared error, that of this plan = 1"),
                (("a", "this plan"), ("d", "other numbers of messages of a party")),
                setting + ".",
            )
        )
    return tuple(pictures)


def _parts(budget: ErrorBudget) -> list[tuple[str, float]]:
    return [
        ("independent noise", budget.independent),
        ("cancelling noise that is left", budget.cancelling),
        ("lost values", budget.data),
    ]


def _percentages(parts: list[tuple[str, float]]) -> str:
    total = sum(size for _, size in parts)
    return ", ".join(f"{size / total:.1%} {name}" for name, size in parts)


def _parameters(plan: Plan) -> tuple[ParameterList | RowList, ...]:
    requirements, design = plan.requirements, plan.design
    required = (
        ("parties", f"{requirements.parties:,}"),
        ("epsilon, delta", f"{requirements.epsilon:g}, {requirements.delta:g} ({requirements.rule} rule)"),
        ("failure allowed", f"{requirements.failure:.2g}, which adds to delta"),
        ("sensitivity", f"values differ by at most {requirements.sensitivity:g}"),
        ("colluding", f"{requirements.colluding:.3g} of the parties"),
        ("eavesdropped", f"{requirements.eavesdropped:.3g} of each round's messages"),
        ("leaving", f"up to {requirements.dropout:.3g} of the parties"),
        ("away", f"{requirements.away:.3g} of the rounds, each party"),
        ("messages of a party", f"at most {requirements.messages}"),
    )
    chosen = [
        ("design", str(design)),
        ("quiet rounds", str(design.quiet)),
        ("recipe", plan.recipe),
        (
            "settlement",
            "settled: who stays undoes what it exchanged with leavers" if plan.settlement == "settled" else "none",
        ),
        ("independent noise", f"{plan.noise_levels.independent:.6g}, factor {plan.factor:.3g} (standard deviation)"),
        ("cancelling noise", f"{plan.noise_levels.cancelling:.6g} (standard deviation)"),
    ]
    if plan.settlement == "settled" and requirements.leavers:
        chosen.append(
            ("top-up noise", f"{plan.sigma_topup(requirements.leavers):.6g} if {requirements.leavers:,} leave")
        )
    within = f", known to within {plan.standard_error:.2g}" if plan.standard_error else ""
    structure = f"with probability {plan.structure_bound:.2g}, a proven bound"
    expected = (
        ("mean squared error", f"{plan.expected_mse:.4g}{within}"),
        ("Central DP", f"{requirements.central_mse:.4g}"),
        ("Local DP", f"{requirements.local_mse:.4g}"),
        ("may fail", f"with probability {plan.failure_probability:.2g} for a party"),
        *(() if plan.sampling.looked_up else (("messages hide too little", structure),)),
        ("level of the noise", " ".join(level_in_words(plan).split())),
    )
    parts: list[ParameterList | RowList] = [
        ParameterList("Requirements", required),
        ParameterList("Design", tuple(chosen)),
        ParameterList("What to expect", expected),
    ]
    for heading, others in (("Other designs", plan.considered), ("Other numbers of messages", plan.further)):
        if others:
            parts.append(_alternatives(heading, others))
    return tuple(parts)


def _alternatives(heading: str, others: tuple[AlternativeDesign, ...]) -> RowList:
    rows = tuple((other.design, str(other.messages), f"{other.relative_mse:.3g}") for other in others)
    return RowList(heading, ("design", "messages of a party", "mean squared error, this plan = 1"), rows)


def _root(mse: float) -> str:
    return f"{math.sqrt(mse):.4g}" if math.isfinite(mse) else "an unbounded amount"
