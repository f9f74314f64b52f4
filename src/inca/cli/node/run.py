"""`inca node run`: taking part in a session."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from inca.cli.options import OPTIONS, Clip, JsonQuiet, PartyFolders, RosterFile, options, refuse_combination
from inca.cli.printing import print_content, print_json, print_next, print_text
from inca.cli.usage import NO_RESULT
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca._base.types import Array
    from inca.network.membership.terms import Terms


@options(OPTIONS)
class OwnValue(Clip):
    """A party's value."""

    value: Annotated[str | None, Parameter(metavar="FILE", allow_leading_hyphen=True)] = None
    """The value: numbers in a text or .npy file, or - for standard input."""
    value_command: Annotated[str | None, Parameter(metavar="COMMAND", allow_leading_hyphen=True)] = None
    """The value: numbers that this shell command prints."""
    datum: Annotated[str | None, Parameter(metavar="LABEL")] = None
    """What the value is about: `inca node ledger` adds up what the same datum has cost."""


@options(OPTIONS)
class SessionCourse:
    """How a session begins and ends."""

    first_start: bool = False
    """You vouch that this party never ran in this session before, on any machine, so that it can join late even if
    others that are late or absent do not answer."""
    serve: Annotated[str | None, Parameter(metavar="TIME")] = None
    """How long to serve others when the session has ended (10m), or again after it has: some may come back late and
    need the result. Default: three periods. It ends as soon as all have said that they have it."""
    shred: bool = False
    """Overwrite and remove the journal when the session has ended."""
    forget: bool = False
    """Give up a session that is unfinished, for good: the party erases its secrets, and takes no part any more."""


def run(
    roster: RosterFile,
    /,
    *,
    folders: PartyFolders,
    own: OwnValue = OwnValue(),
    course: SessionCourse = SessionCourse(),
    output: JsonQuiet = JsonQuiet(),
) -> None:
    """Take part in the session of a roster: from before its start until there is a result, or a reason why not.

    Start it on every party's machine before the agreed time. Should it stop or crash, start it again with the same
    options: it resumes from its journal. A session that has ended is not held again: its result is printed again.

    Status 0: there is a result. 1: it was stopped, is unfinished, or cannot go on now; start it again. 2: the options,
    the roster or the value were refused. 3: the session has ended without a result, and the reason is printed; starting
    it again will not help, and `inca node roster reschedule` prepares another try.

    A session is unfinished when this party has accepted to open the final messages, and others must come back before
    that can be done. It says how many, and goes on as soon as they do: leave it running, or start it again. Only if
    they never return, run it with *--forget*: that cannot be undone, and the others can then not open the messages with
    this party's key either. A value that was committed to may still be in a result of theirs.

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
    from inca.network.node.node import NodeOptions
    from inca.network.node.runner import forget_session, run_party
    from inca.network.node.session_setup import SessionSetup
    from inca.reporting.content import content

    refuse_combination("--value", "--value-command")
    setup = SessionSetup(read_roster(roster))
    folder, party = folders.state / setup.roster.session.hex()[:16], Identity.read(folders.identity)
    try:
        if own.datum is not None:
            label_datum(folder, own.datum)
        if course.forget:
            forget_session(setup, party, folder)
        report = run_party(
            setup,
            party,
            folder,
            lambda: _check_value(setup.roster.terms, _read_value(own.value, own.value_command), own.clip),
            NodeOptions(
                clip=own.clip,
                access=folders.access,
                first_start=course.first_start,
                serve_s=0.0 if course.serve is None else duration("--serve", course.serve),
            ),
            shred=course.shred,
            leave_on_sigterm=True,
            on_event=None
            if output.quiet or output.json
            else EventPrinter(setup.roster.names, party.name, setup.roster.terms.start),
        )
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be used: {error.strerror or error}") from None
    if report is None:
        print("stopped; start it again to go on", file=sys.stderr)
        raise SystemExit(1)
    unfinished = not (folder / "ended.json").exists()
    if output.json:
        print_json(report.as_fields())
    else:
        print_content(content(report), details=output.details)
        print_text(f"The result, and what belongs to it, is in {folder}.")
        if report.has_result:
            print_next(f"inca audit {folder / 'execution.json'}, and inca node ledger {folders.state}")
        elif not unfinished:
            print_next(f"inca node roster reschedule {roster} --start TIME, which says what another try costs")
    if not report.has_result:
        raise SystemExit(1 if unfinished else NO_RESULT)


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
