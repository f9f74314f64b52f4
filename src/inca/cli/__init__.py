"""The command line. Exit status 0: done, 1: the answer is no, 2: bad usage or input."""

from __future__ import annotations

import sys
from typing import Annotated, Any, NoReturn, cast

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


_UsageError = cast(type[Exception], typer.BadParameter.__base__)  # the base of all that the option parser refuses


def main() -> None:
    """Run the command line; what is refused becomes one sentence on stderr and status 2."""
    from inca._base.validation import InputError
    from inca.cli import (  # noqa: F401  # register their commands
        attack,
        audit,
        average,
        compare,
        dashboard,
        demo,
        doctor,
        learn,
        node,
        party,
        plan,
        reproduce,
        study,
    )

    try:
        status = app(standalone_mode=False)
    except InputError as error:
        _stop(str(error), error.status)
    except (KeyboardInterrupt, typer.Abort):
        _stop("stopped", 130)
    except _UsageError as error:
        # Without a message it was a call without arguments, and the help has been printed.
        _stop(" ".join(cast(Any, error).format_message().split()), 2)
    else:
        raise SystemExit(status if isinstance(status, int) else 0)


def _stop(sentence: str, status: int) -> NoReturn:
    if sentence:
        print(f"inca: {sentence}", file=sys.stderr)
    raise SystemExit(status)
