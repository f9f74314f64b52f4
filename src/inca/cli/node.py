"""`inca node`: a real party on a real network. Here: its identity, and the roster that all parties share."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli import app as _root_app

if TYPE_CHECKING:
    from inca.network.membership.roster import Roster, Terms

app = typer.Typer(
    help="A real party on a real network: its identity, and the roster that all parties share.", no_args_is_help=True
)
_roster_app = typer.Typer(
    help="The roster: who takes part, and on which terms. All parties hold the same file; its hash names the session.",
    no_args_is_help=True,
)
_root_app.add_typer(app, name="node")
app.add_typer(_roster_app, name="roster")

_values = partial(typer.Option, rich_help_panel="Values")
_time = partial(typer.Option, rich_help_panel="Time")
_protocol = partial(typer.Option, rich_help_panel="Protocol (decided by --plan)")
_promise = partial(typer.Option, rich_help_panel="Guarantee (decided by --plan)")
_DEFAULTS: dict[str, Any] = {"receivers": 1, "schedule": "random", "quiet_rounds": 0}
_DEFAULTS |= {"delta": 1e-5, "rule": "exact", "colluding": 0.0}
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

File = Annotated[Path, typer.Argument(metavar="ROSTER", help="A roster: inca-roster/1, as `roster init` writes it.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel="Output")]


@app.callback()
def _node() -> None:
    check_network("inca node")


def check_network(command: str) -> None:
    """Refuse a command that needs what is not installed."""
    from importlib.util import find_spec

    from inca._base.validation import InputError

    if find_spec("cryptography") is None:
        raise InputError(f"{command} needs cryptography: pip install 'inca[network]'")


@app.command()
def keygen(
    name: Annotated[str, typer.Argument(help="What the others call this party.")],
    host: Annotated[str, typer.Option(help="Where the others reach it: a host name or an IP address.")],
    port: Annotated[int, typer.Option(help="The TCP port on which it will listen.")],
    out: Annotated[Path, typer.Option(help="The folder for both files; made if it is not there.")],
    as_json: AsJson = False,
) -> None:
    """Make a party's identity: a private key that stays on this machine, and a public card for the others.

    *identity.pem* is the key, readable by its owner alone; nothing is ever overwritten. *card.json* goes to whoever
    keeps the roster. Read the fingerprint to the others over a channel that you trust, such as the telephone: it is all
    that tells them that the card is yours.

    Example:  inca node keygen "St. Anna" --host anna.example.org --port 7001 --out anna
    """
    from inca.network.membership.identity import CARD_FILE, KEY_FILE, Identity, fingerprint

    identity = Identity.create(name)
    identity.write(out, host, port)
    report = {"name": name, "host": host, "port": port, "fingerprint": fingerprint(identity.certificate)}
    report |= {"identity": str(out / KEY_FILE), "card": str(out / CARD_FILE)}
    if as_json:
        typer.echo(json.dumps(report))
        return
    typer.echo(f"The key of {name} is in {out / KEY_FILE}: keep it here and to yourself.")
    typer.echo(f"Its card for the others is {out / CARD_FILE}.")
    typer.echo(f"Its fingerprint, to be compared by telephone: {report['fingerprint']}")


@_roster_app.command()
def init(
    name: Annotated[str, typer.Argument(help="What the run is called.")],
    out: Annotated[Path, typer.Option(help="The roster (JSON) to write; it must not be there yet.")],
    start: Annotated[str, _time(help="When the first round begins: 2030-01-15T08:00:00Z, or +10m from now.")],
    plan: Annotated[Path | None, typer.Option(help="Take protocol, noise and guarantee from this plan.")] = None,
    domain: Annotated[tuple[float, float] | None, _values(help="LOW HIGH: every coordinate lies between.")] = None,
    ball: Annotated[float | None, _values(help="RADIUS: every value has at most this length.")] = None,
    dimension: Annotated[int, _values(help="Coordinates of a value.")] = 1,
    distance: Annotated[
        float | None,
        _values(help="Protect values at most so far apart, such as sums that differ in one record. Default: any two."),
    ] = None,
    period: Annotated[str, _time(help="How long a round lasts at most: 10s, 500ms, 2m.")] = "10s",
    clock_bound: Annotated[
        str | None, _time(help="How wrong a party's clock may be. Default: a tenth of --period.")
    ] = None,
    pace: Annotated[
        str, _time(help="How long a round lasts at least, so that whoever crashes can come back in time: 1s.")
    ] = "0s",
    rounds: Annotated[int | None, _protocol(help="Rounds T.")] = None,
    receivers: Annotated[int | None, _protocol(help="Receivers k per round. Default: 1.")] = None,
    schedule: Annotated[str | None, _protocol(help="random (default), distinct or permutation.")] = None,
    quiet_rounds: Annotated[
        int | None, _protocol("--quiet-rounds", "--quiet", help="Last rounds without a share of the value.")
    ] = None,
    sigma_independent: Annotated[float | None, _protocol(help="Level of the noise that stays.")] = None,
    sigma_cancelling: Annotated[float | None, _protocol(help="Level of the noise that cancels.")] = None,
    epsilon: Annotated[float | None, _promise(help="The promised epsilon.")] = None,
    delta: Annotated[float | None, _promise(help="The promised delta. Default: 1e-5.")] = None,
    rule: Annotated[str | None, _promise(help="exact (default), or classic: the paper's constant.")] = None,
    colluding: Annotated[float | None, _promise(help="Fraction of parties that may collude. Default: 0.")] = None,
    coalitions: Annotated[int, typer.Option(help="Random coalitions of that size that every party checks.")] = 20,
    least_cohort: Annotated[
        int | None, typer.Option(help="Final messages that a result needs. Default: those that the plan expects.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option(help="Public seed (hexadecimal) of who sends to whom. Default: the parties toss it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a roster with the terms of a run, from a plan or by hand; parties come with `inca node roster add`.

    Example:  inca plan --parties 20 --epsilon 1 --colluding 0.1 --dropout 0.1 --out plan.json, then
    inca node roster init waiting-times --plan plan.json --domain 0 1 --start +30m --out roster.json

    By hand:  inca node roster init trial --rounds 10 --sigma-independent 3 --sigma-cancelling 30 --epsilon 1
    --least-cohort 4 --domain 0 1 --start 2030-01-15T08:00:00Z --period 5s --out roster.json
    """
    from inca._base.validation import InputError, refuse
    from inca.network.membership.roster import Roster

    if out.exists():
        raise refuse("--out", str(out), "a file that is not there yet")
    if (domain is None) == (ball is None):
        raise InputError("--domain LOW HIGH or --ball RADIUS is needed to say where values may lie, and only one")
    lasts = _seconds("--period", period)
    agreed: dict[str, Any] = {"dimension": dimension, "radius": ball, "coalitions": coalitions, "seed": seed}
    agreed["distance"] = distance
    agreed |= {"lower": None, "upper": None} if domain is None else {"lower": domain[0], "upper": domain[1]}
    agreed |= {"start": _moment(start), "period": lasts, "least_cohort": least_cohort}
    agreed["pace"] = _seconds("--pace", pace)
    agreed["clock_bound"] = lasts / 10.0 if clock_bound is None else _seconds("--clock-bound", clock_bound)
    protocol: dict[str, Any] = {"rounds": rounds, "receivers": receivers, "schedule": schedule}
    protocol |= {"quiet_rounds": quiet_rounds, "epsilon": epsilon, "delta": delta, "rule": rule, "colluding": colluding}
    protocol |= {"sigma_independent": sigma_independent, "sigma_cancelling": sigma_cancelling}
    made = Roster(name, _terms(plan, protocol, agreed))
    made.write(out)
    if as_json:
        typer.echo(json.dumps(_report(made)))
        return
    typer.echo(f"The roster {name} is in {out}, without parties so far. Its terms:")
    _show_terms(made.terms)
    typer.echo(f"Next: inca node roster add {out} CARD...")


@_roster_app.command()
def add(
    roster: File,
    cards: Annotated[list[Path], typer.Argument(metavar="CARD...", help="The card.json of one or more parties.")],
    as_json: AsJson = False,
) -> None:
    """Add parties to a roster by their cards, all of them or none.

    Names, keys and addresses must differ from those that are there. Every addition changes the session, so all parties
    need the final file; `inca node roster show` tells what to compare.

    Example:  inca node roster add roster.json anna/card.json bert/card.json cleo/card.json
    """
    from inca.network.membership.identity import read_card
    from inca.network.membership.roster import read_roster

    made = read_roster(roster).with_parties(*(read_card(path) for path in cards))
    made.write(roster)
    if as_json:
        typer.echo(json.dumps(_report(made)))
        return
    _show_parties(made, first=len(made.parties) - len(cards))
    _show_state(made)


@_roster_app.command()
def show(roster: File, as_json: AsJson = False) -> None:
    """Show who takes part and on which terms, the session's id, and what is missing (status 1 if anything is).

    The same id on all machines means that all have the same roster. Compare fingerprints with the parties themselves,
    over a channel that you trust: an id does not tell whether a card was swapped before the roster was made.

    Example:  inca node roster show roster.json
    """
    from inca.network.membership.roster import read_roster

    found = read_roster(roster)
    if as_json:
        typer.echo(json.dumps(_report(found)))
    else:
        typer.echo(f"Roster {found.name}: {len(found.parties)} parties")
        _show_parties(found)
        _show_terms(found.terms)
        _show_state(found)
    if found.missing:
        raise typer.Exit(1)


def _terms(plan: Path | None, protocol: dict[str, Any], agreed: dict[str, Any]) -> Terms:
    """Return the terms that the options name, by a plan or by hand."""
    from inca._base.validation import InputError, refuse
    from inca.network.membership.roster import Terms

    given = {name: value for name, value in protocol.items() if value is not None}
    if plan is not None:
        from inca.planning.plan import read_plan

        for name, value in given.items():
            raise refuse(f"--{name.replace('_', '-')}", value, "nothing, as the plan decides it,")
        made = read_plan(plan)
        if agreed["least_cohort"] is None:
            agreed["least_cohort"] = made.wish.survivors
        return Terms.from_plan(made, **agreed)
    needed = ("rounds", "sigma_independent", "sigma_cancelling", "epsilon", "least_cohort")
    lacking = [f"--{name.replace('_', '-')}" for name in needed if (protocol | agreed)[name] is None]
    if lacking:
        raise InputError(f"--plan is not given, so {', '.join(lacking)} must be")
    return Terms(**(_DEFAULTS | given | agreed))


def _seconds(name: str, text: str) -> float:
    """Return a length of time in seconds."""
    import re

    from inca._base.validation import refuse

    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*(ms|s|m|h|d|)", text.strip())
    if found is None:
        raise refuse(name, text, "a length of time such as 10s, 500ms, 2m, 1h or 1d")
    return float(found[1]) * _UNITS[found[2] or "s"]


def _moment(text: str) -> float:
    """Return the Unix time that --start names; it must be to come."""
    import math
    import time
    from datetime import datetime

    from inca._base.validation import refuse

    now, expected = time.time(), "a time to come such as 2030-01-15T08:00:00Z, or +10m"
    if text.startswith("+"):
        return float(math.ceil(now + _seconds("--start", text[1:])))
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise refuse("--start", text, expected) from None
    if moment.tzinfo is None or moment.timestamp() <= now:
        raise refuse("--start", text, expected + (" (with a Z for UTC)" if moment.tzinfo is None else ""))
    return moment.timestamp()


def _report(roster: Roster) -> dict[str, Any]:
    parties = [
        {"name": card.name, "host": card.host, "port": card.port, "fingerprint": card.fingerprint}
        for card in roster.parties
    ]
    report = {"name": roster.name, "session": roster.session.hex(), "complete": not roster.missing}
    return report | {"missing": roster.missing, "terms": roster.as_dict()["terms"], "parties": parties}


def _show_parties(roster: Roster, first: int = 0) -> None:
    shown = [(str(party), card.name, card.address, card.fingerprint) for party, card in enumerate(roster.parties)]
    rows = [("id", "party", "address", "fingerprint"), *shown[first:]]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    for row in rows if shown else ():
        typer.echo("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _show_terms(terms: Terms) -> None:
    """Say the terms in words."""
    from inca.network.membership.roster import to_utc

    where = f"of length at most {terms.radius:g}" if terms.radius is not None else f"each in {terms.domain}"
    values = f"one number in {terms.domain}" if terms.dimension == 1 else f"{terms.dimension:,} numbers, {where}"
    alike = (
        "two values of a party differ by at most" if terms.distance is None else "protected if they differ by at most"
    )
    plural = "" if terms.receivers == 1 else "s"
    quiet = f", the last {terms.quiet_rounds} without a share of the value" if terms.quiet_rounds else ""
    share = f"{terms.colluding:.3g} of the parties" if terms.colluding > 0.0 else "nobody"
    for name, text in (
        ("values", f"{values}; {alike} {terms.sensitivity:.6g}"),
        ("protocol", f"{terms.rounds} rounds, {terms.receivers} receiver{plural} each ({terms.schedule}){quiet}"),
        ("noise", f"sigma_independent {terms.sigma_independent:.6g}, sigma_cancelling {terms.sigma_cancelling:.6g}"),
        ("guarantee", f"({terms.epsilon:g}, {terms.delta:g})-DP by the {terms.rule} rule"),
        ("against", f"{share} colluding; every party checks {terms.coalitions} random coalitions"),
        ("result", f"from the final messages of {terms.least_cohort} parties or more"),
        ("time", f"from {to_utc(terms.start)}, rounds of {_rounds(terms)}: {_length(terms.rounds * terms.period)}"),
        ("clocks", f"wrong by at most {terms.clock_bound:g} s"),
        ("seed", "tossed by the parties" if terms.seed is None else terms.seed),
    ):
        typer.echo(f"  {name:10} {text}")


def _show_state(roster: Roster) -> None:
    note = "   (every further card changes it)" if roster.missing else ""
    typer.echo(f"Session {roster.session.hex()}{note}")
    typer.echo("Complete." if not roster.missing else "Not complete:")
    for sentence in roster.missing:
        typer.echo(f"  {sentence}")


def _length(seconds: float) -> str:
    hours, rest = divmod(seconds, 3600.0)
    minutes, rest = divmod(rest, 60.0)
    parts = [f"{hours:g} h" * (hours > 0), f"{minutes:g} min" * (minutes > 0), f"{rest:.3g} s" * (rest > 0)]
    return " ".join(part for part in parts if part) + " in all at most"


def _rounds(terms: Terms) -> str:
    least = f"{terms.pace:g} to " if terms.pace else "at most "
    return f"{least}{terms.period:g} s"
