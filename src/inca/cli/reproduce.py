"""`inca reproduce`: the paper's figures anew, with data, pictures, and what agrees or differs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from inca.cli.options import OPTIONS, OUTPUT, JsonOut, RunSeed, Workers, options
from inca.cli.printing import print_json, print_text
from inca.cli.progress import progress_bar

if TYPE_CHECKING:
    from inca.reproduction.reproduce import Reproduction


@options(OPTIONS)
class Extent(RunSeed):
    """How much is computed."""

    quick: bool = False
    """Fewer runs and settings: all four in a minute."""
    keep: bool = False
    """Keep the reproduced data that are there; compute only what stands beside a figure."""
    seed: int = 0


@options(OUTPUT)
class Reproduced(JsonOut):
    """Where results go, and finished work that an interrupted run resumes from."""

    out: Path = Path("reproduction")


def reproduce(
    figure: Annotated[str, Parameter(help="fig1, fig2, fig3, fig4, or all.")],
    /,
    *,
    extent: Extent = Extent(),
    workers: Workers = Workers(),
    output: Reproduced = Reproduced(),
) -> None:
    """Reproduce the figures of the paper's evaluation and check its claims against the data.

    - *fig1*: error without dropouts of inca, Central DP, Local DP and Muffliato
    - *fig2*: how often hidden messages suffice, for 1 to 5 receivers
    - *fig3*: rounds that never failed in 100,000 runs, and our closed form up to a billion parties
    - *fig4*: error under dropouts of inca, GOPA and CorDP-DME; beside it, plans over messages and dropout rates

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
    with Engine(workers.engine, workers.workers, workers.address) as started:
        for name in names:
            reproductions.append(
                reproduce_figure(name, output.out, **vars(extent), engine=started, report=progress_bar)
            )
            if not output.json:
                _show(reproductions[-1])
    if output.json:
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
