"""`inca compare`: all mechanisms on one setting, over dropout rates: one table and one plot."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from inca.cli.options import OPTIONS, ComparedConditions, ComparedPrivacy, JsonPlot, SampledViews, options
from inca.cli.printing import OutputFiles, print_json, print_next, print_table, print_text
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca import Requirements
    from inca.mechanisms.compare import ComparisonEntry

GUESS = "guessing the middle of the domain"


@options(OPTIONS)
class Simulation:
    """Whether mechanisms are simulated."""

    runs: int = 0
    """Also simulate each mechanism this many times, to check its expected error."""


def compare(
    *,
    privacy: ComparedPrivacy = ComparedPrivacy(),
    conditions: ComparedConditions = ComparedConditions(),
    sampled: SampledViews = SampledViews(),
    simulation: Simulation = Simulation(),
    output: JsonPlot = JsonPlot(),
) -> None:
    """Compare the expected error of all mechanisms at equal privacy, by one accounting rule, as parties leave.

    Every mechanism is calibrated to the same guarantee against the same adversary, and may balance its noise for the
    dropout rate. Errors are given as multiples of Central DP's with everyone present. Above the error of guessing the
    middle of the domain, a result says nothing. The defaults are the setting of the paper's Figure 4.

    Example:  inca compare --plot compare.png
    """
    import inca
    from inca.cli.plots import plot_mechanisms
    from inca.mechanisms.compare import compare as compare_mechanisms
    from inca.mechanisms.compare import guess_mse

    files = OutputFiles(plot=output.plot)
    rates = conditions.dropout
    requirements = inca.Requirements(**vars(privacy), **{**vars(conditions), "dropout": 0.0})
    with progress_bar("mechanism") as progress:
        entries = compare_mechanisms(requirements, rates, runs=simulation.runs, views=sampled.views, progress=progress)
    files.write("plot", lambda path: plot_mechanisms(requirements, entries, path))
    if output.json:
        guess = guess_mse(requirements)
        print_json(
            {
                "central_mse": requirements.central_mse,
                "guess": {"mse": guess, "relative": guess / requirements.central_mse},
                "entries": [asdict(entry) for entry in entries],
                "remarks": _remarks(requirements, entries),
            }
        )
    else:
        _show(requirements, entries)
    files.finish(announce=not output.json)
    if not output.json:
        print_next(
            f"inca plan --parties {privacy.parties} --epsilon {privacy.epsilon:g} --colluding {conditions.colluding:g} "
            "--out plan.json"
        )


def _show(requirements: Requirements, entries: list[ComparisonEntry]) -> None:
    from inca.mechanisms.compare import guess_mse

    rates = sorted({entry.dropout for entry in entries})
    names = list(dict.fromkeys(entry.mechanism for entry in entries))
    by_place = {(entry.mechanism, entry.dropout): entry for entry in entries}
    rows: list[tuple[str, list[str]]] = []
    notes = []
    for name in names:
        row = [by_place[name, rate] for rate in rates]
        weaker = next((entry.weaker for entry in row), False)
        rows.append((name + (" *" if weaker else ""), [*(_cell(entry) for entry in row), _sent(row)]))
        notes += [f"{name}: {entry.why_not}" for entry in row[:1] if entry.why_not]
    guess = guess_mse(requirements)
    rows.append((GUESS, [*(f"{guess / requirements.central_mse:.3g}" for _ in rates), "0"]))
    notes += _remarks(requirements, entries)
    print_table("error / Central DP's, at dropout", [*(f"{rate:g}" for rate in rates), "messages"], rows)
    print_text(f"Errors are mean squared; Central DP's with everyone present is {requirements.central_mse:.4g}.")
    if any(entry.weaker for entry in entries):
        print_text("* a weaker promise than inca's")
    for note in notes:
        print_text(note)


def _remarks(requirements: Requirements, entries: list[ComparisonEntry]) -> list[str]:
    """Return at which dropout rates a guess would do as well as inca's plan, a sentence each."""
    from inca.protocol.usefulness import remark_on_error

    return [
        f"At dropout {entry.dropout:g}, {entry.mechanism}: {remark}"
        for entry in entries
        if entry.mechanism == "inca, settled" and entry.mse is not None
        if (remark := remark_on_error(entry.mse, requirements.sensitivity))
    ]


def _sent(row: list[ComparisonEntry]) -> str:
    """Return how many messages a party sends: one number, or from the least to the most over dropout rates."""
    numbers = [entry.messages for entry in row if entry.messages is not None]
    if not numbers:
        return ""
    least, most = f"{min(numbers):.5g}", f"{max(numbers):.5g}"
    return least if least == most else f"{least}-{most}"


def _cell(entry: ComparisonEntry) -> str:
    if entry.relative is None:
        return "-"
    text = f"{entry.relative:.3g}"
    if entry.measured is not None:
        scale = entry.relative / entry.mse if entry.mse else 0.0
        text += f" ({entry.measured.mse * scale:.3g} +- {entry.measured.standard_error * scale:.2g})"
    return text
