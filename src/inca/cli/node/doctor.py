"""`inca node doctor`: what would keep a session from working, before it begins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inca.cli.options import OPTIONS, Json, PartyFolders, RosterFile, options
from inca.cli.printing import in_columns, print_json, print_text
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca.network.preflight.checks import Check
    from inca.network.preflight.doctor import Diagnosis


@options(OPTIONS)
class Patience:
    """How long to wait."""

    timeout: float = 5.0
    """Seconds that peers have to show up and answer."""


def doctor(
    roster: RosterFile, /, *, folders: PartyFolders, patience: Patience = Patience(), output: Json = Json()
) -> None:
    """Look for what would keep a session from working, and estimate what it will take, before it begins.

    It listens where the party will, shakes hands with every peer, compares clocks and measures how fast links are, so
    it finds most when the others run theirs at the same time or their nodes wait already. It tries the journal on the
    disk under --state, and works out the loss at full attendance, on a sample seed if the parties are still to draw
    theirs. It measures this machine on a sample of the session's work, and refuses too little disk or memory, and
    periods that are too short for this machine and the slowest link. Nothing of the value is needed or read.

    Each line says what was found and whose fault it looks like: ours, theirs, or the network's; of each peer how it was
    reached, directly or through which relay, and whether that is fast enough; and of each relay of this party whether
    the others can reach it there. A peer that is not there yet is a note, and so is one whose machine does not answer
    at all: it may not run yet, or a firewall is between. Run the doctors at the same time to tell these apart.

    Status 0: nothing is in the way; 1: something is, and it is named; 2: the roster, the identity or an option was
    refused.

    Example:  inca node doctor roster.json --identity anna --state sessions
    """
    import asyncio

    from inca._base.validation import positive
    from inca.network.membership.identity import Identity
    from inca.network.membership.roster import read_roster
    from inca.network.preflight.doctor import examine

    seconds = positive("--timeout", patience.timeout)
    members, party = read_roster(roster), Identity.read(folders.identity)
    examination = examine(members, party, folders.state, seconds=seconds, access=folders.access)
    try:
        diagnosis = asyncio.run(examination)
    except OSError as error:
        raise InvalidInput(f"{folders.state} cannot be used: {error.strerror or error}") from None
    if output.json:
        print_json(diagnosis.as_dict())
    else:
        _show(diagnosis)
    if diagnosis.problems:
        raise SystemExit(1)


def _show(diagnosis: Diagnosis) -> None:
    print_text(f"{diagnosis.party} in {diagnosis.roster.name}, session {diagnosis.roster.session.hex()}")
    _show_checks("this machine", diagnosis.checks)
    _show_checks("peers", diagnosis.peers)
    others, absent, apart = len(diagnosis.roster.parties) - 1, diagnosis.absent, diagnosis.apart
    if absent:
        print_text(f"{len(absent)} of {others} peers are not there yet.")
    if apart:
        print_text(f"{diagnosis.party} and {', '.join(apart)} do not reach each other.")
    if not diagnosis.problems:
        met = others - len(absent) - len(apart)
        seen = "of the session" if met == others else f"as far as {met} of {others} peers tell" if met else "here"
        print_text(f"Nothing is in the way {seen}." + ("" if met else " No peer was there to try the links with."))
        return
    print_text("The session would not work:")
    for check in diagnosis.problems:
        print_text(f"  {check.what}: {check.state or check.text} (it looks like {_whose(check.fault)})")


def _show_checks(title: str, checks: tuple[Check, ...]) -> None:
    if checks:
        print_text(title)
    for line in in_columns([(check.what, check.state or check.level, check.text) for check in checks]):
        print_text(f"  {line}")


def _whose(fault: str) -> str:
    return {"ours": "our fault", "theirs": "their fault"}.get(fault, f"{fault} fault")
