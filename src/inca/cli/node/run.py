"""`inca node run`: taking part in a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.options import (
    AsJson,
    IdentityFolder,
    Listen,
    Quiet,
    RosterFile,
    StateFolder,
    listen_address,
    refuse_combination,
)
from inca.cli.printing import intervals, numbers, print_json, print_next, print_text
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca._base.types import Array
    from inca.network.membership.terms import Terms

NO_RESULT = 3
"""The status of a session that has ended without a result: there is no use in starting the party again."""


def run(
    context: typer.Context,
    roster: RosterFile,
    identity: IdentityFolder,
    state: StateFolder,
    value: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The value: numbers in a text or .npy file, or - for standard input."),
    ] = None,
    value_command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="The value: numbers that this shell command prints.")
    ] = None,
    clip: Annotated[
        bool, typer.Option(help="Move a value outside the agreed domain to its border; else it is refused.")
    ] = False,
    listen: Listen = None,
    first_start: Annotated[
        bool,
        typer.Option(
            "--first-start",
            help="You vouch that this party never ran in this session before, on any machine, so that it can join late "
            "even if others that are late or absent do not answer.",
        ),
    ] = False,
    serve: Annotated[
        str | None,
        typer.Option(
            help="For how long to serve others when the session has ended (10m), or again after it has: some may come "
            "back late and lack the result. Default: three periods. It ends as soon as all have said that they have it."
        ),
    ] = None,
    datum: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL", help="What the value is about: `inca node ledger` adds up what the same datum has cost."
        ),
    ] = None,
    shred: Annotated[bool, typer.Option(help="Overwrite and remove the journal when the session has ended.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Take part in the session of a roster: from before its start until there is a result, or a reason why not.

    Start it on every party's machine before the agreed time. Should it stop or crash, start it again with the same
    options: it resumes from its journal. Status 0: there is a result; 1: there is none, and the reason is printed. A
    session that has ended is not held again: its result is printed again.

    Whoever was away when the others ended gets the result from one of them that is still there: with *--serve*, also
    one that had ended before and is started again, if it still has its journal.

    Ctrl-C (SIGINT) stops it so that it can be started again. SIGTERM lets it leave for good once rounds have begun: it
    finishes its round and tells the others, who go on without waiting for it; when the rounds are over it stays to the
    end, which is near. Before the first round, and the second time, SIGTERM stops it as Ctrl-C does.

    A party that starts late, without a journal, must first hear from everyone who would know that they have seen
    nothing of it: had it lost its journal, it would release its value a second time. If some of them are late, too, or
    absent, it cannot join, unless you vouch with *--first-start* that it never ran in this session before. Never put
    that into a unit or a script that starts the party again: were its disk lost, only a party that has seen it and can
    be reached would keep it from a second release.

    The value is never an argument, since other users of the machine could see it. It is read once: the journal keeps
    it only with its noise.

    Example:  inca node run roster.json --identity anna --state sessions --value waiting-time.txt
    """
    from inca.cli.node.events import EventPrinter
    from inca.cli.times import duration
    from inca.network.membership.identity import Identity
    from inca.network.membership.roster import read_roster
    from inca.network.node.booked_losses import label_datum
    from inca.network.node.runner import run_party
    from inca.network.node.session_setup import SessionSetup

    refuse_combination(context, "value", "value_command")
    setup = SessionSetup(read_roster(roster))
    folder, party, names = state / setup.roster.session.hex()[:16], Identity.read(identity), setup.roster.names
    try:
        if datum is not None:
            label_datum(folder, datum)
        report = run_party(
            setup,
            party,
            folder,
            lambda: _check_value(setup.roster.terms, _read_value(value, value_command), clip),
            clip=clip,
            listen=listen_address(listen),
            first_start=first_start,
            shred=shred,
            serve_s=0.0 if serve is None else duration("--serve", serve),
            leave_on_sigterm=True,
            on_event=None if quiet or as_json else EventPrinter(names, party.name, setup.roster.terms.start),
        )
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be used: {error.strerror or error}") from None
    if report is None:
        typer.echo("stopped; start it again to go on", err=True)
        raise typer.Exit(1)
    if as_json:
        print_json(report)
    else:
        _show(report, folder)
        if report["estimate"] is not None:
            print_next(f"inca audit {folder / 'execution.json'}, and inca node ledger {state}")
        else:
            print_next(f"inca node roster reschedule {roster} --start TIME, which says what another try costs")
    if report["estimate"] is None:
        raise typer.Exit(NO_RESULT)


def _read_value(path: str | None, command: str | None) -> Array:
    """Return the numbers of a file, of standard input or of a command's output; errors do not show them."""
    import numpy as np

    from inca._base.validation import refuse

    if path is None and command is None:
        raise InvalidInput("--value FILE, --value - or --value-command COMMAND must say where the value is, got none")
    if path not in (None, "-") and not _is_file(Path(str(path))):
        refuse("--value", path, "an existing file")
    if path is not None and path.endswith(".npy"):
        from inca.cli.input_files import read_numpy

        return read_numpy(Path(path)).reshape(-1)
    source, text = _read_text(path, command)
    words = text.replace(",", " ").split()
    try:
        return np.array([float(word) for word in words], dtype=np.float64)
    except ValueError:
        raise InvalidInput(f"{source} must hold numbers, got something that is not a number") from None


def _is_file(path: Path) -> bool:
    """Say so if the folder of the file may not be looked into: the file may be there."""
    try:
        return path.is_file()
    except PermissionError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None


def _read_text(path: str | None, command: str | None) -> tuple[str, str]:
    """Return what the text of the value comes from, and the text."""
    if command is not None:
        # It is the owner's own command, on the owner's own machine.
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InvalidInput(f"the command of --value-command failed with status {done.returncode}")
        return "the output of --value-command", done.stdout
    if path == "-":
        return "standard input", sys.stdin.read()
    try:
        return str(path), Path(str(path)).read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InvalidInput(f"{path} cannot be read: {reason}") from None


def _check_value(terms: Terms, value: Array, clip: bool) -> Array:
    """Refuse a value that is not as agreed, without a word of what it is: errors end up in the logs of machines."""
    import numpy as np

    from inca._base.validation import refuse

    if value.size != terms.dimension:
        refuse("the number of coordinates of the value", value.size, f"{terms.dimension}, as agreed")
    if not np.isfinite(value).all():
        raise InvalidInput("every coordinate of the value must be a finite number, got one that is not")
    try:
        terms.domain.validate(value[np.newaxis, :], clip=clip)
    except InvalidInput:
        sentence = f"the value lies outside the agreed domain, {terms.domain}: correct it, or give --clip"
        raise InvalidInput(sentence) from None
    return value


def _show(report: dict[str, Any], folder: Path) -> None:
    from inca.protocol.transcript import AgreedGuarantee

    if report["estimate"] is None:
        print_text(f"no result: {report['reason']}")
        return
    print_text(f"estimate     {numbers(report.get('constrained', report['estimate']))}")
    if "interval" in report:  # not in `inca-result/1`, nor all that has a default below
        confidence = f"of the exact mean, with a probability of {report['confidence']:.0%}"
        print_text(f"interval     {intervals(*report['interval'])}   {confidence}")
    if report["standard_error"] is not None:
        print_text(f"noise        {report['standard_error']:.4g} (standard error of a coordinate)")
    print_text(f"parties      {report['present']} of {report['parties']} were there at the end")
    print_text(f"own loss     {_own_loss(report)}")
    agreed = AgreedGuarantee(report["wanted"], report["delta"], failure=report.get("failure"))
    print_text(f"agreed       {agreed} for every party, over random schedules, coalitions and leavers")
    if report.get("late"):
        print_text(f"late         {', '.join(report['late'])} settled and did not publish: their noise is left in it")
    for t, sender, receiver, claim in report.get("contradictions", []):
        print_text(f"not exact    {sender} says that round {t} was {claim} by {receiver}, who says the opposite")
    for sentence in report.get("remarks", []):
        print_text(f"note         {sentence}")
    print_text(f"kept in      {folder} (result, execution, certificate)")


def _own_loss(report: dict[str, Any]) -> str:
    """Say what the session gave away of this party's value, as far as it knows."""
    if report["coalitions"] is None:
        return f"not worked out: {report['reason'] or 'this party is not in the result'}"
    which = "all" if report["all_coalitions"] else "random"
    epsilon = "unbounded" if report["epsilon"] is None else f"{report['epsilon']:.4g}"
    at_worst = f"at worst over {report['coalitions']} ({which}) coalitions"
    return f"epsilon {epsilon} of {report['wanted']:g} at delta {report['delta']:g}, {at_worst}"
