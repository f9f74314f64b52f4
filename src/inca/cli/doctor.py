"""`inca node doctor`: what would keep a session from working, before it begins."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from inca.cli.node import AsJson, File
from inca.cli.node import app as _node_app
from inca.cli.party import Keys, State, address

if TYPE_CHECKING:
    from inca.network.preflight.checks import Finding
    from inca.network.preflight.doctor import Diagnosis


@_node_app.command()
def doctor(
    roster: File,
    identity: Keys,
    state: State,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen here instead of at the address in the roster.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long peers have to show up and answer.")] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Look for what would keep a session from working, before it begins: roster, network, clocks, disk, time, loss.

    It listens where the party will, shakes hands with every peer and compares clocks, so it finds most when the
    others run theirs at the same time or their nodes wait already. It tries the journal on the disk under --state, and
    works out the loss at full attendance if the roster has a seed. Nothing of the value is needed or read.

    Each line says what was found and whose fault it looks like: ours, theirs, or the network's. A peer that is not
    there yet is a note. Status 0: nothing is in the way; 1: something is, and it is named.

    Example:  inca node doctor roster.json --identity anna --state sessions
    """
    import asyncio

    from inca._base.validation import InputError
    from inca.network.membership.identity import Identity
    from inca.network.membership.roster import read_roster
    from inca.network.preflight.doctor import examine

    place = None if listen is None else address(listen)
    work = examine(read_roster(roster), Identity.read(identity), state, seconds=seconds, listen=place)
    try:
        found = asyncio.run(work)
    except OSError as error:
        raise InputError(f"{state} cannot be used: {error.strerror or error}") from None
    if as_json:
        from inca._base.files import null_for_infinity

        typer.echo(json.dumps(null_for_infinity(found.as_dict()), allow_nan=False))
    else:
        _show(found)
    if found.problems:
        raise typer.Exit(1)


def _show(found: Diagnosis) -> None:
    typer.echo(f"{found.party} in {found.roster.name}, session {found.roster.session.hex()}")
    _show_table("this machine", found.checks)
    _show_table("peers", found.peers)
    absent = sum(each.state == "not there" for each in found.peers)
    if absent:
        typer.echo(f"{absent} of {len(found.roster.parties) - 1} peers are not there yet.")
    if not found.problems:
        typer.echo("Nothing is in the way of the session.")
        return
    typer.echo("The session would not work:")
    for each in found.problems:
        typer.echo(f"  {each.what}: {each.state or each.text} (it looks like {_whose(each.fault)})")


def _show_table(title: str, findings: tuple[Finding, ...]) -> None:
    """Print a line for each finding, in columns."""
    if not findings:
        return
    typer.echo(title)
    rows = [(each.what, each.state or each.level, each.text) for each in findings]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    for name, state, text in rows:
        typer.echo(f"  {name.ljust(widths[0])}  {state.ljust(widths[1])}  {text}")


def _whose(fault: str) -> str:
    """Say whose fault something is."""
    return {"ours": "our fault", "theirs": "their fault"}.get(fault, f"{fault} fault")
