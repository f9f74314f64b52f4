"""`inca node run` and `inca node status`: taking part in a session, and looking at one that runs here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.node import AsJson, File
from inca.cli.node import app as _node_app

if TYPE_CHECKING:
    from inca._base.types import Array
    from inca.network.node.session_setup import Setting

Keys = Annotated[Path, typer.Option("--identity", metavar="FOLDER", help="The folder that `keygen` made.")]
State = Annotated[
    Path, typer.Option("--state", metavar="FOLDER", help="Where journals, logs and results are kept, one folder each.")
]


@_node_app.command()
def run(
    roster: File,
    identity: Keys,
    state: State,
    value: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The value: numbers in a text or .npy file, or - for standard input."),
    ] = None,
    value_command: Annotated[
        str | None, typer.Option(metavar="COMMAND", help="The value: numbers that this shell command prints.")
    ] = None,
    clip: Annotated[bool, typer.Option(help="Clip a value that lies outside the agreed domain.")] = False,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen here instead of at the address in the roster.")
    ] = None,
    shred: Annotated[bool, typer.Option(help="Overwrite and remove the journal when the session has ended.")] = False,
    quiet: Annotated[bool, typer.Option(help="No lines about what happens.", rich_help_panel="Output")] = False,
    as_json: AsJson = False,
) -> None:
    """Take part in the session of a roster: from before its start until there is a result, or a reason why not.

    Start it on every party's machine before the agreed time. Should it stop or crash, start it again with the same
    options: it goes on from its journal. SIGTERM or Ctrl-C stop it cleanly. Status 0: there is a result; 1: there is
    none, and the reason is told.

    The value is never an argument, since other users of the machine could see it. It is read once: the journal keeps
    it only with its noise.

    Example:  inca node run roster.json --identity anna --state sessions --value waiting-time.txt
    """
    from inca._base.validation import InputError
    from inca.network.membership.identity import Identity
    from inca.network.membership.roster import read_roster
    from inca.network.node.runner import attend
    from inca.network.node.session_setup import Setting

    if value is not None and value_command is not None:
        raise InputError("--value and --value-command are both given, but only one was expected")
    setting = Setting(read_roster(roster))
    folder = state / setting.roster.session.hex()[:16]
    try:
        fields = attend(
            setting,
            Identity.read(identity),
            folder,
            lambda: _admissible(setting, _read_value(value, value_command), clip),
            clip=clip,
            listen=None if listen is None else address(listen),
            shred=shred,
            echo=None if quiet or as_json else _tell,
        )
    except OSError as error:
        raise InputError(f"{folder} cannot be used: {error.strerror or error}") from None
    if fields is None:
        typer.echo("stopped; start it again to go on", err=True)
        raise typer.Exit(1)
    if as_json:
        typer.echo(json.dumps(fields))
    else:
        _show(fields, folder)
    if fields["estimate"] is None:
        raise typer.Exit(1)


def _show(fields: dict[str, Any], folder: Path) -> None:
    if fields["estimate"] is None:
        typer.echo(f"no result: {fields['reason']}")
        return
    estimate = fields["estimate"]
    shown = f"{estimate:.6g}" if isinstance(estimate, float) else _short(estimate)
    typer.echo(f"estimate     {shown}")
    if fields["standard_error"] is not None:
        typer.echo(f"noise        {fields['standard_error']:.4g} (standard error of a coordinate)")
    typer.echo(f"parties      {fields['present']} of {fields['parties']} were there at the end")
    which = "all" if fields["all_coalitions"] else "random"
    typer.echo(
        f"own loss     epsilon {fields['epsilon']:.4g} of {fields['wanted']:g} at delta {fields['delta']:g}, "
        f"at worst over {fields['coalitions']} ({which}) coalitions"
    )
    if fields["in_doubt"]:
        typer.echo(
            f"in doubt     {len(fields['in_doubt'])} shares, of weight {fields['weight_in_doubt']:.3g}, offered to "
            "parties that left"
        )
    typer.echo(f"kept in      {folder} (result, execution, certificate)")


def _short(numbers: list[float]) -> str:
    shown = ", ".join(f"{number:.6g}" for number in numbers[:6])
    return f"[{shown}, ...] ({len(numbers):,} numbers)" if len(numbers) > 6 else f"[{shown}]"


@_node_app.command()
def status(
    state: Annotated[Path, typer.Argument(metavar="FOLDER", help="The --state folder of a node on this machine.")],
    as_json: AsJson = False,
) -> None:
    """Say where the sessions of this machine's nodes are; reads a small file and disturbs nobody.

    Example:  inca node status sessions
    """
    from inca._base.validation import InputError
    from inca.network.node.event_log import statuses

    found = statuses(state)
    if not found:
        raise InputError(f"FOLDER is {str(state)!r}, but there is no session in it")
    if as_json:
        typer.echo(json.dumps(found))
        return
    for each in found:
        running = "running" if each["running"] else "not running"
        typer.echo(f"{each['session'][:16]}  {each['party']}: {each['stage']}, {running}")
        typer.echo(
            f"  round {each['round']} of {each['rounds']}, {each['attended']} attended, {each['open_offers']} offers "
            f"open, {each['connected']} peers connected"
        )
        if each["reason"]:
            typer.echo(f"  {each['reason']}")


def address(text: str) -> tuple[str, int]:
    """Return the host and port that --listen names."""
    from inca._base.validation import refuse

    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise refuse("--listen", text, "HOST:PORT")
    return host.strip("[]"), int(port)


def _read_value(path: str | None, command: str | None) -> Array:
    """Return the numbers of a file, of standard input or of a command's output; errors do not show them."""
    import numpy as np

    from inca._base.validation import InputError

    if path not in (None, "-") and not Path(str(path)).is_file():
        raise InputError(f"--value is {path!r}, but there is no such file")
    if path is not None and path.endswith(".npy"):
        from inca.cli.values import load_values

        return load_values(Path(path)).reshape(-1)
    if command is not None:
        # It is the owner's own command, on the owner's own machine.
        done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
        if done.returncode:
            raise InputError(f"the command of --value-command failed with status {done.returncode}")
        text, source = done.stdout, "the output of --value-command"
    elif path == "-":
        text, source = sys.stdin.read(), "standard input"
    elif path is not None:
        try:
            text, source = Path(path).read_text(), path
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise InputError(f"{path} cannot be read: {reason}") from None
    else:
        raise InputError("the value is missing: --value FILE, --value - or --value-command COMMAND was expected")
    words = text.replace(",", " ").split()
    try:
        return np.array([float(word) for word in words], dtype=np.float64)
    except ValueError:
        raise InputError(f"{source} holds something that is not a number, but numbers were expected") from None


def _admissible(setting: Setting, numbers: Array, clip: bool) -> Array:
    """Refuse a value that is not as agreed, without a word of what it is: errors end up in the logs of machines."""
    import numpy as np

    from inca._base.validation import InputError, refuse

    terms = setting.roster.terms
    if numbers.size != terms.dimension:
        raise refuse("the number of coordinates of the value", numbers.size, f"{terms.dimension}, as agreed,")
    if not np.isfinite(numbers).all():
        raise InputError("the value has a coordinate that is not finite, but numbers were expected")
    try:
        terms.domain.admit(numbers[np.newaxis, :], clip)
    except InputError:
        text = f"the value lies outside the agreed domain, {terms.domain}: correct it, or give --clip"
        raise InputError(text) from None
    return numbers


def _tell(entry: dict[str, Any]) -> None:
    """Say in a line what happens, if it is of interest to people."""
    match entry["event"]:
        case "round":
            print(f"round {entry['round']} of {entry['of']}", file=sys.stderr)
        case "stage":
            print(entry["stage"], file=sys.stderr)
        case "connected" | "lost" | "up":
            pass
        case event:
            rest = ", ".join(f"{name} {value}" for name, value in entry.items() if name not in ("time", "event"))
            print(f"{event}: {rest}" if rest else event, file=sys.stderr)
