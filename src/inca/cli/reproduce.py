"""`inca reproduce`: the paper's figures anew, with data, pictures, and what agrees or differs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inca.cli.options import OUTPUT, Address, AsJson, EngineKind, Workers
from inca.cli.printing import print_json, print_text
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.reproduction.reproduce import Reproduction


def reproduce(
    figure: Annotated[str, typer.Argument(metavar="FIGURE", help="fig1, fig2, fig3, fig4, or all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and settings: all four in a minute.")] = False,
    seed: Annotated[int, typer.Option(help="Everything random follows from it.")] = 0,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Keep the reproduced data that are there; compute only what stands beside a figure."
        ),
    ] = False,
    engine: EngineKind = "processes",
    workers: Workers = None,
    address: Address = None,
    out: Annotated[
        Path,
        typer.Option(
            help="Folder for results, and for finished work that an interrupted run resumes from.",
            rich_help_panel=OUTPUT,
        ),
    ] = Path("reproduction"),
    as_json: AsJson = False,
) -> None:
    """Reproduce the figures of the paper's evaluation and check its claims against the data.

    - *fig1*: error without dropouts of inca, Central DP, Local DP and Muffliato
    - *fig2*: how often hidden messages suffice, for 1 to 5 receivers
    - *fig3*: rounds that never failed in 100,000 runs, and our closed form up to a billion parties
    - *fig4*: error under dropouts of inca, GOPA and CorDP-DME, and of planned designs; beside it, settled averages

    Each figure gets a folder with a page to read (.html), data (.csv, .json) and pictures (.png, .svg). Interrupted
    work resumes where it stopped when the command is given again. Neither the engine nor the number of workers changes
    a result. A claim that differs is a result, so the status is 0.

    Example:  inca reproduce fig3 --quick
    """
    from inca.jobs.engine import Engine
    from inca.reproduction.reproduce import figure_names
    from inca.reproduction.reproduce import reproduce as reproduce_figure

    names = figure_names(figure)
    reproductions = []
    with Engine(engine, workers, address) as started:
        for name in names:
            reproductions.append(
                reproduce_figure(name, out, quick=quick, seed=seed, keep=keep, engine=started, report=progress_bar)
            )
            if not as_json:
                _show(reproductions[-1])
    if as_json:
        print_json([_document(reproduction) for reproduction in reproductions])


def _document(reproduction: Reproduction) -> dict[str, object]:
    from inca.reproduction.reproduce import claim_row

    claims = [claim_row(claim) for claim in reproduction.results.claims]
    return {"figure": reproduction.name, "page": str(reproduction.page), "claims": claims}


def _show(reproduction: Reproduction) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False)
    for heading in (reproduction.name, "claim", "found"):
        table.add_column(heading)
    for claim in reproduction.results.claims:
        text = claim.evidence + (f". Why: {claim.why}" if claim.why else "")
        table.add_row(claim.verdict, claim.text, text)
    Console().print(table)
    print_text(f"Read {reproduction.page}; data and pictures are beside it.\n")
