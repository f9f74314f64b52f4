"""The `inca` command: its verbs, and what it exits with.

Modules of verbs import nothing heavy before they are called, so that `inca --help` answers at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from itertools import takewhile
from typing import Any

from cyclopts import App, Parameter
from cyclopts.exceptions import CycloptsError

from inca._base.extras import require_extra
from inca.cli.options import GROUPS, OPTIONS
from inca.cli.printing import print_error
from inca.cli.usage import NO_RESULT, TEMPORARY, refuse_fractions, usage_sentence
from inca.errors import IncaError, InvalidInput, TemporaryFault

EXIT_STATUS: tuple[tuple[type[BaseException], int], ...] = (
    (InvalidInput, 2),
    (CycloptsError, 2),
    (TemporaryFault, TEMPORARY),
    (IncaError, 1),
    (KeyboardInterrupt, 130),
)
"""What the command exits with after an error: the first row that applies. Without one it is 0, or what a verb says."""

STATUS_MEANING = {
    0: "done",
    1: "the answer is no: there is no result, or a required guarantee does not hold",
    2: "the options or the input were refused",
    NO_RESULT: "a session has ended without a result, and starting the party again changes nothing",
    TEMPORARY: "a temporary fault of this machine, such as a port in use: start it again",
    130: "stopped by Ctrl-C",
}

NEEDED_EXTRA = {
    "inca reproduce": "reproduce",
    "inca demo": "network",
    "inca dashboard": "dashboard",
    "inca node": "network",
    "inca relay": "network",
    "inca learn compare": "learn",
    "inca learn agree": "network",
    "inca learn party": "network",
}
"""The extra that a command, or all commands of a group, cannot do without; others need one for some options only."""

COMMANDS = {
    "plan": "plan:plan",
    "average": "average:average",
    "audit": "audit:audit",
    "attack": "attack:attack",
    "report": "report.report:report",
    "compare": "compare:compare",
    "reproduce": "reproduce:reproduce",
    "demo": "demo:demo",
    "dashboard": "dashboard:dashboard",
    "node keygen": "node.keygen:keygen",
    "node card": "node.card:card",
    "node roster init": "node.roster:init",
    "node roster add": "node.roster:add",
    "node roster show": "node.roster:show",
    "node roster reschedule": "node.reschedule:reschedule",
    "node doctor": "node.doctor:doctor",
    "node run": "node.run:run",
    "node status": "node.status:status",
    "node ledger": "node.ledger:ledger",
    "relay": "relay:relay",
    "stats mean": "stats.moments:mean",
    "stats variance": "stats.moments:variance",
    "stats histogram": "stats.histogram:histogram",
    "stats quantiles": "stats.quantiles:quantiles",
    "stats regression": "stats.regression:regression",
    "learn compare": "learn.compare:compare",
    "learn agree": "learn.agree:agree",
    "learn party": "learn.party:party",
}
"""All commands, and where they are: a module is imported when its command is called, or listed in help."""

TEXTS = {
    "": "Private averages without a server: n parties learn the mean of their values and nobody learns a value.",
    "node": "A real party on a real network: its identity, the roster that all parties share, and its sessions.",
    "node roster": "The roster: who takes part, and on which terms. All parties hold the same file; its hash names the "
    "session.",
    "stats": "Statistics of a file of records, each from one private average for a wanted epsilon, with intervals.",
    "learn": "Statistics and models made of private averages.",
}


def _version() -> str:
    from importlib.metadata import version

    return f"inca {version('inca')}"


def _default(value: Any) -> str | None:
    """Say a default as it would be typed; none is shown for a flag, nor for an option that may be repeated."""
    if value is None or isinstance(value, bool) or value == []:
        return None
    values = value if isinstance(value, list) else [value]
    return ", ".join(f"{number:g}" if isinstance(number, float) else str(number) for number in values)


def build(words: Sequence[str] = ()) -> App:
    """Return the command line; if the words that were typed name a group, its help describes all commands in it.

    Modules of other commands are imported when they are called.
    """
    called = " ".join(takewhile(lambda word: not word.startswith("-"), words))
    epilog = "Exit status: " + "; ".join(f"{number} {meaning}" for number, meaning in STATUS_MEANING.items()) + "."
    apps: dict[str, App] = {}
    for path, text in TEXTS.items():
        apps[path] = App(
            name=path.rpartition(" ")[2] or "inca",
            help=text,
            help_flags=["--help"],
            help_format="plaintext",  # loading Markdown takes long
            help_epilogue=None if path else epilog,
            version=None if path else _version,
            version_flags=[] if path else ["--version"],
            default_parameter=Parameter(negative=(), show_default=_default),
            group_parameters=GROUPS[OPTIONS],
            print_error=False,
            exit_on_error=False,
            suppress_keyboard_interrupt=False,
            result_action="return_value",
            config=refuse_fractions,
            sort_key=len(COMMANDS) + len(apps),
        )
        if path:
            apps[path.rpartition(" ")[0]].command(apps[path])
    for number, (path, place) in enumerate(COMMANDS.items()):
        group, _, name = path.rpartition(" ")
        more: dict[str, Any] = {"name": name, "sort_key": number, "help_format": "markdown"}
        module, _, function = place.partition(":")
        if group == called:
            apps[group].command(getattr(import_module(f"inca.cli.{module}"), function), **more)
        else:
            apps[group].command(f"inca.cli.{place}", **more)
    if not called:  # what installs completion takes long to import
        apps[""].register_install_completion_command()
    return apps[""]


def commands(group: App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, App]]:
    """Yield all commands below a group, by what is typed behind `inca`."""
    for name, command in group.resolved_commands().items():
        if command.default_command is not None and not name.startswith("-"):
            yield " ".join((*path, name)), command
        elif not name.startswith("-"):
            yield from commands(command, (*path, name))


def main() -> None:
    """Run the command line: an error becomes one sentence on stderr and a status of `EXIT_STATUS`."""
    try:
        status = _run(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # of a reader that has read enough, such as `head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except tuple(kind for kind, _ in EXIT_STATUS) as error:
        print_error(f"inca: {_sentence(error)}")
        raise SystemExit(exit_status(error)) from None
    raise SystemExit(status)


def _run(words: list[str]) -> int:
    app = build(words)
    command, bound, _ = app.parse_args(words)
    if not command.__module__.startswith("inca."):  # help, the version, or completion
        command(*bound.args, **bound.kwargs)
        return 0 if {"--help", "--version", "--install-completion", "__complete"} & set(words) else 2
    called = " ".join(("inca", *app.parse_commands(words)[0]))
    for start, extra in NEEDED_EXTRA.items():
        if f"{called} ".startswith(f"{start} "):
            require_extra(called, extra)
    command(*bound.args, **bound.kwargs)
    return 0


def exit_status(error: BaseException) -> int:
    """Return what the command line exits with after an error.

    >>> exit_status(InvalidInput("rounds must be at least 1, got 0"))
    2
    """
    return next(number for kind, number in EXIT_STATUS if isinstance(error, kind))


def _sentence(error: BaseException) -> str:
    if isinstance(error, CycloptsError):
        return usage_sentence(error)
    return str(error) if isinstance(error, IncaError) else "stopped"
