"""The `inca` command: its verbs, and what it exits with.

Modules of verbs import nothing heavy before they are called, so that `inca --help` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from copy import copy
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from inca._base.extras import require_extra
from inca.cli import attack, audit, average, compare, dashboard, demo, plan, reproduce
from inca.cli.learn import agree, party
from inca.cli.learn import compare as learn_compare
from inca.cli.node import card, doctor, keygen, ledger, reschedule, roster, run, status
from inca.cli.options import usage_sentence
from inca.cli.printing import print_error
from inca.cli.report import report
from inca.cli.stats import histogram, moments, quantiles, regression
from inca.errors import IncaError, InvalidInput

UsageError = cast(type[Exception], typer.BadParameter.__base__)
"""What the option parser raises: an unknown option, a missing argument, a word where a number must be."""

EXIT_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (InvalidInput, 2),
    (UsageError, 2),
    (IncaError, 1),
    (typer.Abort, 130),
    (KeyboardInterrupt, 130),
)
"""What the command exits with after an error: the first row that applies. Without one it is 0, or what a verb says."""

STATUS_MEANING = {
    0: "done",
    1: "the answer is no: there is no result, or a required guarantee does not hold",
    2: "the options or the input were refused",
    run.NO_RESULT: "a session has ended without a result, and starting the party again changes nothing",
    130: "stopped by Ctrl-C",
}

NEEDED_EXTRA = {
    "inca reproduce": "reproduce",
    "inca demo": "network",
    "inca dashboard": "dashboard",
    "inca node": "network",
    "inca learn compare": "learn",
    "inca learn agree": "network",
    "inca learn party": "network",
}
"""The extra that a command, or all commands of a group, cannot do without; others need one for some options only."""


def _with_plain_flags(parameters: list[Any]) -> list[Any]:
    """Let flags look like flags in a command's help: they take no value, so none is shown behind them."""
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments."""
        return _with_plain_flags(super().get_params(ctx))

    def invoke(self, ctx: Any) -> Any:
        """Run the command, or refuse it where its extra is missing: here, so that its help is there without it."""
        for start, extra in NEEDED_EXTRA.items():
            if f"{ctx.command_path} ".startswith(f"{start} "):
                require_extra(ctx.command_path, extra)
        return super().invoke(ctx)


class _Group(TyperGroup):
    def get_params(self, ctx: Any) -> list[Any]:
        """Return the options and arguments."""
        return _with_plain_flags(super().get_params(ctx))


app = typer.Typer(
    cls=_Group,
    help="Private averages without a server: n parties learn the mean of their values and nobody learns a value.",
    epilog="Exit status: " + "; ".join(f"{number} {meaning}" for number, meaning in STATUS_MEANING.items()) + ".",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
node_app = typer.Typer(
    cls=_Group,
    help="A real party on a real network: its identity, the roster that all parties share, and its sessions.",
    no_args_is_help=True,
)
roster_app = typer.Typer(
    cls=_Group,
    help="The roster: who takes part, and on which terms. All parties hold the same file; its hash names the session.",
    no_args_is_help=True,
)
learn_app = typer.Typer(cls=_Group, help="Statistics and models made of private averages.", no_args_is_help=True)
stats_app = typer.Typer(
    cls=_Group,
    help="Statistics of a file of records, each from one private average for a wanted epsilon, with intervals.",
    no_args_is_help=True,
)

app.command()(plan.plan)
app.command()(average.average)
app.command()(audit.audit)
app.command()(attack.attack)
app.command()(report.report)
app.command()(compare.compare)
app.command()(reproduce.reproduce)
app.command()(demo.demo)
app.command()(dashboard.dashboard)
app.add_typer(node_app, name="node")
app.add_typer(stats_app, name="stats")
app.add_typer(learn_app, name="learn")

node_app.command()(keygen.keygen)
node_app.command()(card.card)
node_app.add_typer(roster_app, name="roster")
node_app.command()(doctor.doctor)
node_app.command()(run.run)
node_app.command()(status.status)
node_app.command()(ledger.ledger)

roster_app.command()(roster.init)
roster_app.command()(roster.add)
roster_app.command()(roster.show)
roster_app.command()(reschedule.reschedule)

stats_app.command()(moments.mean)
stats_app.command()(moments.variance)
stats_app.command()(histogram.histogram)
stats_app.command()(quantiles.quantiles)
stats_app.command()(regression.regression)

learn_app.command()(learn_compare.compare)
learn_app.command()(agree.agree)
learn_app.command()(party.party)


def _commands(group: typer.Typer) -> Iterator[Any]:
    yield from group.registered_commands
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from _commands(inner.typer_instance)


for _registered in _commands(app):
    _registered.cls = _Command


def _print_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"inca {version('inca')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version


def _name(entry: Any) -> str:
    """Return what is typed for a command or a group."""
    return str(entry.name or entry.callback.__name__)


def called_path(words: list[str]) -> tuple[str, ...]:
    """Return the groups and the command that are called, as far as there are such.

    >>> called_path(["node", "roster", "show", "roster.json"]), called_path(["node", "dance"]), called_path(["--help"])
    (('node', 'roster', 'show'), ('node',), ())
    """
    path: tuple[str, ...] = ()
    group: Any = app
    for word in words:
        if group is None or not (entries := [entry for entry in _entries(group) if _name(entry) == word]):
            break
        path = (*path, word)
        group = getattr(entries[0], "typer_instance", None)
    return path


def _entries(group: typer.Typer) -> list[Any]:
    return [*group.registered_commands, *group.registered_groups]


def part_of(group: Any, path: tuple[str, ...]) -> Any:
    """Return a group with nothing beside what is called: reading all commands' signatures takes as long as loading it.

    Groups on the way are copied; what the path ends with is whole, so that its help lists all commands below it.
    """
    if not path:
        return group
    part = copy(group)
    part.registered_commands = [entry for entry in group.registered_commands if _name(entry) == path[0]]
    part.registered_groups = [copy(entry) for entry in group.registered_groups if _name(entry) == path[0]]
    for entry in part.registered_groups:
        entry.typer_instance = part_of(entry.typer_instance, path[1:])
    return part


def main() -> None:
    """Run the command line: an error becomes one sentence on stderr and a status of `EXIT_STATUS`."""
    called = part_of(app, called_path(sys.argv[1:]))
    try:
        code = called(prog_name="inca", standalone_mode=False)
    except tuple(kind for kind, _ in EXIT_STATUS) as error:
        if sentence := _sentence(error):
            print_error(f"inca: {sentence}")
        raise SystemExit(exit_status(error)) from None
    if code == exit_status(KeyboardInterrupt()):  # the option parser has caught it
        print("inca: stopped", file=sys.stderr)
    raise SystemExit(code if isinstance(code, int) else 0)


def exit_status(error: BaseException) -> int:
    """Return what the command line exits with after an error.

    >>> exit_status(InvalidInput("rounds must be at least 1, got 0"))
    2
    """
    return next(number for kind, number in EXIT_STATUS if isinstance(error, kind))


def _sentence(error: BaseException) -> str:
    if isinstance(error, IncaError):
        return str(error)
    if isinstance(error, UsageError):  # without a message it was a call without arguments: the help has been printed
        return usage_sentence(error)
    return "stopped"
