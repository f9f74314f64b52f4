"""`inca average`: a private mean of a file of values, all parties simulated on this machine."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from inca._base.options import ByHand, Guarantee, Messages, PlanOptions
from inca.cli.options import (
    CONDITIONS,
    OUTPUT,
    PLANNING,
    Absences,
    FileValues,
    JsonCertificate,
    NoiseByHand,
    PlanFile,
    RunSeed,
    WantedConditions,
    WantedPrivacy,
    domain_of,
    names,
    options,
    part_of,
    refuse_combination,
)
from inca.cli.printing import OutputFiles, print_content, print_json, print_next, print_text
from inca.cli.progress import phase_bar
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from inca import Plan, Presence, Requirements
    from inca._base.types import Progress

PHASES = {"plan": "planning: view", "run": "running: step", "audit": "auditing: round"}


@options(PLANNING)
class PlanChoice(PlanFile, PlanOptions):
    """A plan that was made before, or how one is made."""


@options(CONDITIONS)
class AverageConditions(Absences, WantedConditions):
    """What the run must withstand, and who is there."""


@options(OUTPUT)
class AverageOutput(JsonCertificate, RunSeed):
    """What is printed of the run, and what is kept."""

    transcript: Path | None = None
    """Write the execution: .json or .npz."""
    show_truth: bool = False
    """Print the exact mean beside the estimate."""


def average(
    values: Annotated[Path, Parameter(help="One row per party: CSV, Parquet (.parquet) or NumPy (.npy).")],
    /,
    *,
    privacy: WantedPrivacy = WantedPrivacy(),
    conditions: AverageConditions = AverageConditions(),
    plan: PlanChoice = PlanChoice(),
    by_hand: NoiseByHand = NoiseByHand(),
    where: FileValues = FileValues(),
    output: AverageOutput = AverageOutput(),
) -> None:
    """Average a file of per-party values by Algorithm 2, for a required guarantee or with noise levels by hand.

    Every party of the file is simulated on this machine: each injects its value bit by bit, hidden in noise that
    it cancels later, while messages mix by gossip. Those who stay settle: they undo what they exchanged with parties
    that left, and add the noise that is missing. What is left in the result is the independent noise.

    With --epsilon the run is planned for the least error, and with --plan it follows a plan. Then the realized
    execution is audited against a random adversary of the planned size: should the guarantee not hold there, the
    estimate is withheld (status 1). An estimate outside the domain is moved in, and a sentence says so; another says
    if guessing the middle of the domain would do as well.

    Example:  seq 21 220 > values.csv, then
    inca average values.csv --domain 0 240 --epsilon 0.5 --colluding 0.1 --dropout 0.1
    """
    import numpy as np

    import inca
    from inca._base.validation import integer
    from inca.cli.input_files import read_values
    from inca.private_mean import AUDIT_UP_TO

    _check_combinations(privacy, plan, by_hand)
    files = OutputFiles(execution=output.transcript, certificate=output.certificate)
    bounds, read = domain_of(where), read_values(values, where.column)
    table, seed = bounds.validate(read.values, clip=where.clip), output.seed
    if output.certificate is not None and len(table) > AUDIT_UP_TO:
        raise InvalidInput(f"--certificate needs a run of at most {AUDIT_UP_TO} parties, got {len(table)}")
    rng = None if seed is None else np.random.default_rng(integer("--seed", seed))

    def required(guarantee: Guarantee) -> Requirements:
        return inca.Requirements.of(guarantee, bounds, len(table), table[:1].size)

    with phase_bar(PHASES) as progress:
        noise = _noise(privacy, conditions, plan, by_hand, required, partial(progress, "plan"))
        mean = inca.average(
            table,
            bounds,
            noise,
            absences=_absences(conditions, rng),
            rng=rng,
            progress=progress,
        )
    files.write("execution", lambda path: inca.write_execution(path, mean.transcript))
    if mean.certificate is not None:
        files.write("certificate", mean.certificate.write)
    truth = table.mean(axis=0) if output.show_truth else None
    if output.json:
        print_json(mean.document(read.names, truth).as_fields())
    else:
        names_shown = read.names if where.column or len(read.names) > 1 else ()
        print_content(inca.content(mean.document(names_shown, truth)), details=output.details)
        if mean.estimate is not None and seed is not None:
            print_text("This run is repeatable from its seed and therefore not private.")
    files.finish(announce=not output.json)
    if not output.json and mean.estimate is not None:
        path = output.transcript
        print_next(f"inca audit {path}" if path else "add --transcript run.json, then inca audit run.json")
    if mean.estimate is None:
        raise SystemExit(1)


def _check_combinations(privacy: WantedPrivacy, plan: PlanChoice, by_hand: NoiseByHand) -> None:
    """Refuse options of several ways to choose the noise: --plan, --epsilon, or by hand."""
    for option in ("--absence", "--trace"):
        refuse_combination("--dropout", option)
    refuse_combination("--absence", "--trace")
    guarantee = [name for name in names(WantedPrivacy, WantedConditions) if name != "--dropout"]
    planning, hand = names(PlanOptions), names(NoiseByHand)
    refuse_combination("--plan", *guarantee, *planning, *hand)
    refuse_combination("--epsilon", *hand)
    if plan.plan is None and privacy.epsilon is None:
        if by_hand.sigma_independent is None or by_hand.sigma_cancelling is None:
            raise InvalidInput(
                "choose the noise with --epsilon, --plan, or both --sigma-independent and --sigma-cancelling"
            )
        planned = [name for name in planning if name not in names(Messages)]
        refuse_combination("--sigma-independent", *guarantee, *planned, "--certificate")


def _noise(
    privacy: WantedPrivacy,
    conditions: AverageConditions,
    choice: PlanChoice,
    by_hand: NoiseByHand,
    requirements: Callable[[Guarantee], Requirements],
    progress: Progress,
) -> Plan | ByHand:
    """Return the noise that options choose: of a plan, which is read or made, or by hand."""
    import inca

    if choice.plan is not None:
        return inca.read_plan(choice.plan)
    if privacy.epsilon is None:
        return part_of(ByHand, by_hand, choice)
    return inca.plan(
        requirements(part_of(Guarantee, privacy, conditions)), part_of(PlanOptions, choice), progress=progress
    )


def _absences(conditions: AverageConditions, rng: np.random.Generator | None) -> float | Callable[[int, int], Presence]:
    """Return who is there: the fraction that leaves, or a function of (parties, rounds)."""
    import numpy as np

    import inca

    if (trace := conditions.trace) is not None:
        return lambda parties, rounds: inca.Presence.from_csv(trace, parties, rounds)
    if (absence := conditions.absence) is not None:
        generator = np.random.default_rng() if rng is None else rng
        return lambda parties, rounds: inca.Presence.markov(parties, rounds, *absence, generator)
    return 0.0 if conditions.dropout is None else conditions.dropout
