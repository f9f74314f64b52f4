"""The command line. Exit status 0: done, 1: the answer is no, 2: bad usage or input."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

app = typer.Typer(
    help="Private averages without a server: n parties learn the mean of their values and nobody learns a value.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"inca {version('inca')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def main() -> None:
    """Run the command line; input errors become one sentence on stderr and status 2."""
    from inca.cli import average  # noqa: F401  # registers its command
    from inca.validation import InputError

    try:
        app()
    except InputError as error:
        print(f"inca: {error}", file=sys.stderr)
        raise SystemExit(2) from None
    except KeyboardInterrupt:
        print("inca: stopped", file=sys.stderr)
        raise SystemExit(130) from None
