"""`inca reproduce`: the paper's figures anew, with data, pictures, and what agrees or differs."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inca.cli import app
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.reproduction.reproduce import Reproduction

_WHERE, _OUTPUT = "Where it runs", "Output"


@app.command()
def reproduce(
    figure: Annotated[str, typer.Argument(help="fig1, fig2, fig3, fig4, or all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and settings: all four in a minute.")] = False,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    engine: Annotated[
        str, typer.Option(help="processes, serial (one process), or dask (a cluster).", rich_help_panel=_WHERE)
    ] = "processes",
    workers: Annotated[
        int | None, typer.Option(help="Processes. Default: one per core.", rich_help_panel=_WHERE)
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            help="Of a dask scheduler, tcp://host:8786. Default: one on this machine.", rich_help_panel=_WHERE
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for results, and for finished work to go on from.", rich_help_panel=_OUTPUT)
    ] = Path("reproduction"),
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts as JSON.", rich_help_panel=_OUTPUT)
    ] = False,
) -> None:
    """Reproduce the figures of the paper's evaluation and hold its claims against the data.

    - *fig1*: error without dropouts of inca, Central DP, Local DP and Muffliato
    - *fig2*: how often hidden messages suffice, for 1 to 5 receivers
    - *fig3*: rounds that never failed in 100,000 runs, and our closed form up to a billion parties
    - *fig4*: error under dropouts of inca, GOPA and CorDP-DME, and of planned designs

    Each figure gets a folder with a page to read (.html), data (.csv, .json) and pictures (.png, .svg). Interrupted
    work goes on where it stopped when the command is given again. Neither the engine nor the number of workers changes
    a result. A claim that differs is a result, so the status is 0.

    Example:  inca reproduce fig3 --quick
    """
    from inca.reproduction.engine import Engine
    from inca.reproduction.reproduce import reproduce as reproduced
    from inca.reproduction.reproduce import study_names

    names = study_names(figure)
    made = []
    with Engine(engine, workers, address) as started:
        for name in names:
            report = partial(progress_bar, wanted=True, lines=True)
            made.append(reproduced(name, out, quick=quick, seed=seed, engine=started, report=report))
            if not as_json:
                _show(made[-1])
    if as_json:
        typer.echo(json.dumps([_document(each) for each in made]))


def _document(made: Reproduction) -> dict[str, object]:
    from inca.reproduction.reproduce import claim_row

    return {"figure": made.name, "page": str(made.page), "claims": [claim_row(each) for each in made.findings.claims]}


def _show(made: Reproduction) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for name in (made.name, "claim", "found"):
        table.add_column(name)
    for claim in made.findings.claims:
        told = claim.found + (f". Why: {claim.why}" if claim.why else "")
        table.add_row(claim.verdict, claim.text, told)
    Console().print(table)
    typer.echo(f"Read {made.page}; data and pictures are beside it.\n")
