"""`inca compare`: all mechanisms on one setting, over dropout rates: one table and one picture."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inca.cli import app
from inca.cli.progress import progress_bar
from inca.cli.wishes import (
    LIMITS,
    Colluding,
    Delta,
    Eavesdropped,
    Epsilon,
    Failure,
    Messages,
    Parties,
    Rule,
    Views,
    known_rule,
)

if TYPE_CHECKING:
    from inca import Wish
    from inca.mechanisms.compare import Entry

_OUTPUT = "Output"


@app.command()
def compare(
    parties: Parties = 200,
    epsilon: Epsilon = 0.2,
    delta: Delta = 1e-5,
    colluding: Colluding = 0.1,
    eavesdropped: Eavesdropped = 0.0,
    dropout: Annotated[
        list[float] | None,
        typer.Option(help="A dropout rate; may be repeated. Default: 0.05, 0.1, 0.2.", rich_help_panel=LIMITS),
    ] = None,
    messages: Messages = 20,
    failure: Failure = 1e-6,
    rule: Rule = "exact",
    views: Views = 300,
    runs: Annotated[int, typer.Option(help="Also simulate each mechanism so often.")] = 0,
    picture: Annotated[
        Path | None, typer.Option(help="Draw the errors: .png or .svg.", rich_help_panel=_OUTPUT)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=_OUTPUT)] = False,
) -> None:
    """Compare the expected error of all mechanisms at equal privacy, by one accounting rule, as parties leave.

    Every mechanism is calibrated to the same guarantee against the same adversary, and may balance its noise for the
    dropout rate. Errors are given as multiples of Central DP's with everyone present. The defaults are the setting of
    the paper's Figure 4.

    Example:  inca compare --picture compare.png
    """
    import inca
    from inca.cli.pictures import check_picture, draw_comparison
    from inca.mechanisms.compare import compare as compared

    if picture is not None:
        check_picture(picture)
    wish = inca.Wish(
        parties=parties,
        epsilon=epsilon,
        delta=delta,
        colluding=colluding,
        eavesdropped=eavesdropped,
        messages=messages,
        failure=failure,
        rule=known_rule(rule),
    )
    with progress_bar("mechanism", wanted=True) as progress:
        entries = compared(wish, dropout or [0.05, 0.1, 0.2], runs=runs, views=views, progress=progress)
    if picture is not None:
        draw_comparison(wish, entries, picture)
    if as_json:
        typer.echo(json.dumps({"central_mse": wish.central_mse, "entries": [asdict(each) for each in entries]}))
        return
    _show(wish, entries)
    if picture is not None:
        typer.echo(f"The picture is in {picture}.")


def _show(wish: Wish, entries: list[Entry]) -> None:
    from rich.console import Console
    from rich.table import Table

    rates = sorted({each.dropout for each in entries})
    names = list(dict.fromkeys(each.mechanism for each in entries))
    by_place = {(each.mechanism, each.dropout): each for each in entries}
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("mean squared error / Central DP at dropout")
    for rate in rates:
        table.add_column(f"{rate:g}", justify="right")
    table.add_column("messages", justify="right")
    notes = []
    for name in names:
        row = [by_place[name, rate] for rate in rates]
        weaker = next((each.weaker for each in row), False)
        sent = next((f"{each.messages:.5g}" for each in row if each.messages is not None), "")
        table.add_row(name + (" *" if weaker else ""), *(_cell(each) for each in row), sent)
        notes += [f"{name}: {each.why_not}" for each in row[:1] if each.why_not]
    Console().print(table)
    typer.echo(f"Central DP with everyone present: {wish.central_mse:.4g}.   * a weaker promise than inca's")
    for note in notes:
        typer.echo(note)


def _cell(entry: Entry) -> str:
    if entry.relative is None:
        return "-"
    shown = f"{entry.relative:.3g}"
    if entry.measured is not None:
        scale = entry.relative / entry.mse if entry.mse else 0.0
        shown += f" ({entry.measured.mse * scale:.3g} +- {entry.measured.standard_error * scale:.2g})"
    return shown
