"""`inca compare`: all mechanisms on one setting, over dropout rates: one table and one plot."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING

from inca.cli.options import OPTIONS, ComparedConditions, ComparedPrivacy, JsonPlot, SampledViews, options
from inca.cli.printing import OutputFiles, print_json, print_next, print_table, print_text

if TYPE_CHECKING:
    from inca import Requirements
    from inca.mechanisms.compare import ComparisonEntry

GUESS = "guessing the middle of the domain"
_HEADING = "error / Central DP's, at dropout"
_NAME, _CELL, _MESSAGES = 34, 9, 11  # widths of columns that are printed before the next row is known


@options(OPTIONS)
class Simulation:
    """Whether mechanisms are simulated."""

    runs: int = 0
    """Also simulate each mechanism this many times, to check its expected error."""
    paper: bool = False
    """Also compare the paper's own recipe, which samples --views views for every dropout rate (minutes)."""


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
    from inca.mechanisms.compare import compare_one_by_one, guess_mse

    files = OutputFiles(plot=output.plot)
    requirements = inca.Requirements(**vars(privacy), **{**vars(conditions), "dropout": 0.0})
    rows = compare_one_by_one(requirements, conditions.dropout, **vars(simulation), views=sampled.views)
    entries = [
        entry for row in (rows if output.json else _shown(requirements, conditions.dropout, rows)) for entry in row
    ]
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
        _print_notes(requirements, entries)
    files.finish(announce=not output.json)
    if not output.json:
        print_next(
            f"inca plan --parties {privacy.parties} --epsilon {privacy.epsilon:g} --colluding {conditions.colluding:g} "
            "--out plan.json"
        )


def _shown(
    requirements: Requirements, rates: list[float], rows: Iterator[list[ComparisonEntry]]
) -> Iterator[list[ComparisonEntry]]:
    """Print rows as they come; all in the end where columns of a fixed width are too narrow, or the terminal is."""
    from inca.mechanisms.compare import guess_mse

    guess = f"{guess_mse(requirements) / requirements.central_mse:.3g}"
    at_once = _NAME + _CELL * len(rates) + _MESSAGES <= shutil.get_terminal_size().columns
    columns = [*(f"{rate:g}" for rate in rates), "messages"]
    lines: list[tuple[str, list[str]]] = []
    for row in rows:
        name = row[0].mechanism + (" *" if any(entry.weaker for entry in row) else "")
        line = (name, [*(_cell(entry) for entry in row), _sent(row)])
        at_once = at_once and not any(entry.measured for entry in row)
        if at_once and not lines:
            print_text(_aligned(_HEADING, columns))
        if at_once:
            print_text(_aligned(*line))
        lines.append(line)
        yield row
    last = (GUESS, [*(guess for _ in rates), "0"])
    if at_once:
        print_text(_aligned(*last))
    else:
        print_table(_HEADING, columns, [*lines, last])


def _aligned(name: str, cells: list[str]) -> str:
    *errors, messages = cells
    return name.ljust(_NAME) + "".join(cell.rjust(_CELL) for cell in errors) + messages.rjust(_MESSAGES)


def _print_notes(requirements: Requirements, entries: list[ComparisonEntry]) -> None:
    print_text(f"Errors are mean squared; Central DP's with everyone present is {requirements.central_mse:.4g}.")
    if any(entry.weaker for entry in entries):
        print_text("* a weaker promise than inca's")
    refused: dict[str, str] = {}
    for entry in entries:
        if entry.why_not:
            refused.setdefault(entry.mechanism, entry.why_not)
    for note in [*(f"{name}: {why}" for name, why in refused.items()), *_remarks(requirements, entries)]:
        print_text(note)


def _remarks(requirements: Requirements, entries: list[ComparisonEntry]) -> list[str]:
    """Return at which dropout rates a guess would do as well as inca's plan, a sentence each."""
    from inca.protocol.usefulness import remark_on_error

    return [
        f"At dropout {entry.dropout:g}, {entry.mechanism}: {remark}"
        for entry in entries
        if entry.mechanism == "inca" and entry.mse is not None
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
