"""`inca node roster`: the file that all parties share, begun (`init`), completed (`add`) and compared (`show`)."""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.options import AsJson, BallRadius, DomainBounds, RosterFile, domain_of, refuse_combination, rule_named
from inca.cli.printing import in_columns, print_json, print_next, print_text
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca.network.membership.roster import Roster
    from inca.network.membership.terms import Terms
    from inca.planning.plan import Plan

_values = partial(typer.Option, rich_help_panel="Values")
_time = partial(typer.Option, rich_help_panel="Time")
_protocol = partial(typer.Option, rich_help_panel="Protocol (decided by --plan)")
_guarantee = partial(typer.Option, rich_help_panel="Guarantee (decided by --plan)")
DESIGN = ("rounds", "receivers", "schedule", "quiet_rounds", "sigma_independent", "sigma_cancelling")
PLANNED = (*DESIGN, "epsilon", "delta", "rule", "colluding")
NEEDED_BY_HAND = ("rounds", "sigma_independent", "sigma_cancelling", "epsilon", "min_participants")


def init(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What the run is called.")],
    out: Annotated[Path, typer.Option(help="The roster (JSON) to write; it must not exist yet.")],
    start: Annotated[str, _time(help="When the first round begins: 2030-01-15T08:00:00Z, or +10m from now.")],
    plan: Annotated[Path | None, typer.Option(help="Take protocol, noise and guarantee from this plan.")] = None,
    domain: DomainBounds = None,
    ball: BallRadius = None,
    dimensions: Annotated[int, _values(help="Coordinates of a value.")] = 1,
    distance: Annotated[
        float | None,
        _values(
            help="Protect values at most this far apart, such as sums that differ in one record. Default: any two."
        ),
    ] = None,
    period: Annotated[str, _time(help="How long a round lasts at most: 10s, 500ms, 2m.")] = "10s",
    min_round_duration: Annotated[
        str, _time(help="How long a round lasts at least, so that a crashed party can be back in time: 1s.")
    ] = "0s",
    max_clock_skew: Annotated[
        str | None, _time(help="How wrong a party's clock may be. Default: a tenth of --period.")
    ] = None,
    rounds: Annotated[int | None, _protocol(help="Rounds of gossip.")] = None,
    receivers: Annotated[int, _protocol(help="Receivers per party and round.")] = 1,
    schedule: Annotated[
        str, _protocol(help="Who sends to whom: random, distinct (to nobody twice) or permutation.")
    ] = "random",
    quiet_rounds: Annotated[int, _protocol(help="Last rounds in which no share of the value enters.")] = 0,
    sigma_independent: Annotated[
        float | None, _protocol(help="Standard deviation of the independent noise, which stays in the result.")
    ] = None,
    sigma_cancelling: Annotated[
        float | None, _protocol(help="Standard deviation of the cancelling noise, which is taken back.")
    ] = None,
    epsilon: Annotated[float | None, _guarantee(help="The promised epsilon, for every honest party.")] = None,
    delta: Annotated[float, _guarantee(help="The promised delta, between 0 and 1.")] = 1e-5,
    rule: Annotated[str, _guarantee(help="analytic (exact), or classic: the paper's constant.")] = "analytic",
    colluding: Annotated[float, _guarantee(help="Fraction of the parties that may collude.")] = 0.0,
    coalitions: Annotated[int, typer.Option(help="Random coalitions of that size that every party checks.")] = 20,
    min_participants: Annotated[
        int | None,
        typer.Option(help="Final messages that a result needs. Default: as many as the plan expects at the end."),
    ] = None,
    seed: Annotated[
        str | None,
        typer.Option(
            help="Public seed (hexadecimal) of who sends to whom. Default: the parties draw it by a coin flip."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Begin a roster with the terms of a run, from a plan or by hand; parties come with `inca node roster add`.

    Example:  inca plan --parties 20 --epsilon 1 --colluding 0.1 --dropout 0.1 --out plan.json, then
    inca node roster init waiting-times --plan plan.json --domain 0 1 --start +30m --out roster.json

    By hand:  inca node roster init trial --rounds 10 --sigma-independent 3 --sigma-cancelling 30 --epsilon 1
    --min-participants 4 --domain 0 1 --start 2030-01-15T08:00:00Z --period 5s --out roster.json
    """
    from inca._base.validation import refuse
    from inca.cli.times import duration, future_time
    from inca.network.membership.roster import Roster
    from inca.network.membership.terms import Terms

    refuse_combination(context, "plan", *PLANNED)
    if out.exists():
        refuse("--out", str(out), "a file that does not exist yet")
    domain_of(domain, ball)
    low, high = (None, None) if domain is None else domain
    round_s = duration("--period", period)
    agreed: dict[str, Any] = {
        "dimension": dimensions,
        "lower": low,
        "upper": high,
        "radius": ball,
        "distance": distance,
        "start": future_time("--start", start),
        "period": round_s,
        "min_round_duration": duration("--min-round-duration", min_round_duration),
        "max_clock_skew": round_s / 10.0 if max_clock_skew is None else duration("--max-clock-skew", max_clock_skew),
        "coalitions": coalitions,
        "min_participants": min_participants,
        "seed": seed,
    }
    planned = None
    if plan is not None:
        from inca.planning.plan import read_plan

        planned = read_plan(plan)
        if min_participants is None:
            agreed["min_participants"] = planned.requirements.survivors
        terms = Terms.from_plan(planned, **agreed)
    else:
        _require(context, *NEEDED_BY_HAND)
        by_hand = {name: context.params[name] for name in PLANNED} | {"rule": rule_named(rule)}
        terms = Terms(**by_hand, **agreed)
    roster = Roster(name, terms)
    roster.write(out)
    if as_json:
        print_json(report_on(roster, planned))
        return
    print_text(f"The roster {name} is in {out}, without parties so far. Its terms:")
    _show_terms(roster, planned)
    print_text(f"Next: inca node roster add {out} CARD...")


def add(
    roster: RosterFile,
    cards: Annotated[list[Path], typer.Argument(metavar="CARD...", help="The card.json of one or more parties.")],
    as_json: AsJson = False,
) -> None:
    """Add parties to a roster by their cards, all of them or none; the card of a party that has moved is replaced.

    Names, keys and addresses must differ from those that are there; a card with the key of a party that is there and
    another address (`inca node card`) takes the place of its old one. Parties may share a host with different ports.
    The address on a card is signed by its owner, and a card that was changed on its way is refused.

    Every addition changes the session, so all parties need the final file; `inca node roster show` tells what to
    compare.

    Example:  inca node roster add roster.json anna/card.json bert/card.json cleo/card.json
    """
    from inca.network.membership.identity import read_card
    from inca.network.membership.roster import read_roster

    added = [read_card(path) for path in cards]
    extended = read_roster(roster).with_parties(*added)
    extended.write(roster)
    if as_json:
        print_json(report_on(extended))
        return
    _show_parties(extended, only=[card.name for card in added])
    show_session(extended)
    if not extended.missing:
        print_next(f"send {roster} to all parties, compare fingerprints, and inca node run {roster} on every machine")


def show(roster: RosterFile, as_json: AsJson = False) -> None:
    """Show who takes part and on which terms, the session's id, and what is missing (status 1 if anything is).

    The same id on all machines means that all have the same roster. Compare fingerprints with the parties themselves,
    over a channel that you trust: an id does not tell whether a card was swapped before the roster was complete.

    Example:  inca node roster show roster.json
    """
    from inca.network.membership.roster import read_roster

    shown = read_roster(roster)
    if as_json:
        print_json(report_on(shown))
    else:
        print_text(f"Roster {shown.name}: {len(shown.parties)} parties")
        _show_parties(shown)
        _show_terms(shown)
        show_session(shown)
    if shown.missing or shown.unsigned:
        raise typer.Exit(1)


def _require(context: typer.Context, *names: str) -> None:
    missing = [f"--{name.replace('_', '-')}" for name in names if context.params[name] is None]
    if missing:
        raise InvalidInput(f"without --plan, {', '.join(missing)} must be given")


def _expected_error(roster: Roster, plan: Plan | None = None) -> tuple[float, str, str]:
    """Return the error to expect in each coordinate, what that is in words, and a sentence if a guess would do as well.

    Without a plan nobody knows how many will leave. What is left is the independent noise of those who are in the
    roster, or of as many as a result needs; those who leave can only add to it.
    """
    from inca.protocol.usefulness import remark_on_noise

    terms = roster.terms
    if plan is not None:
        error, name = math.sqrt(plan.expected_mse), "expected error"
        words = f"about {error:.3g}, as planned"
    else:
        parties = max(len(roster.parties), terms.min_participants)
        error = math.hypot(terms.sigma_independent, terms.topup(0)) / math.sqrt(parties)
        name = "standard error"
        words = f"a standard error of {error:.3g} if {parties} parties take part and nobody leaves"
    return error, words, remark_on_noise(terms.domain, error, dimensions=terms.dimension, name=name)


def report_on(roster: Roster, plan: Plan | None = None) -> dict[str, Any]:
    """Return what `--json` prints of a roster."""
    parties = [
        {"name": card.name, "host": card.host, "port": card.port, "fingerprint": card.fingerprint}
        for card in roster.parties
    ]
    error, _, remark = _expected_error(roster, plan)
    report = {"name": roster.name, "session": roster.session.hex(), "complete": not roster.missing}
    report |= {"expected_error": error, "remarks": [remark] if remark else []}
    report |= {"missing": list(roster.missing), "unsigned": list(roster.unsigned)}
    return report | {"terms": roster.as_dict()["terms"], "parties": parties}


def _show_parties(roster: Roster, only: Collection[str] | None = None) -> None:
    rows = [
        (str(party), card.name, card.address, card.fingerprint)
        for party, card in enumerate(roster.parties)
        if only is None or card.name in only
    ]
    for line in in_columns([("id", "party", "address", "fingerprint"), *rows]) if rows else ():
        print_text(f"  {line}")


def _show_terms(roster: Roster, plan: Plan | None = None) -> None:
    """Say the terms in words, and what error they lead one to expect."""
    from inca.cli.times import in_words
    from inca.network.membership.terms import to_utc

    terms = roster.terms
    _, error, remark = _expected_error(roster, plan)
    where = f"of length at most {terms.radius:g}" if terms.radius is not None else f"each in {terms.domain}"
    values = f"one number in {terms.domain}" if terms.dimension == 1 else f"{terms.dimension:,} numbers, {where}"
    alike = (
        "two values of a party differ by at most" if terms.distance is None else "protected if they differ by at most"
    )
    plural = "" if terms.receivers == 1 else "s"
    quiet = f", the last {terms.quiet_rounds} without a share of the value" if terms.quiet_rounds else ""
    share = f"{terms.colluding:.3g} of the parties" if terms.colluding > 0.0 else "nobody"
    at_least = f"{terms.min_round_duration:g} to " if terms.min_round_duration else "at most "
    length = f"rounds of {at_least}{terms.period:g} s: {in_words(terms.rounds * terms.period)} in all at most"
    for name, text in (
        ("values", f"{values}; {alike} {terms.sensitivity:.6g}"),
        ("protocol", f"{terms.rounds} rounds, {terms.receivers} receiver{plural} each ({terms.schedule}){quiet}"),
        ("noise", f"sigma_independent {terms.sigma_independent:.6g}, sigma_cancelling {terms.sigma_cancelling:.6g}"),
        *([("", f"sigma_topup {_topup_in_words(terms)}")] if terms.sigma_topup else []),
        ("error", error),
        ("guarantee", f"{terms.agreed} by the {terms.rule} rule, in a session"),
        ("against", f"{share} colluding; every party checks {terms.coalitions} random coalitions"),
        ("result", f"from the final messages of {terms.min_participants} parties or more"),
        ("time", f"from {to_utc(terms.start)}, {length}"),
        ("clocks", f"wrong by at most {terms.max_clock_skew:g} s"),
        ("seed", "drawn by a coin flip of the parties" if terms.seed is None else terms.seed),
    ):
        print_text(f"  {name:10} {text}")
    if remark:
        print_text(remark)


def _topup_in_words(terms: Terms) -> str:
    """Say how much noise is added at the end, depending on how many have left."""
    most = len(terms.sigma_topup) - 1
    first, last = (f"{terms.topup(leavers):.6g} if {leavers or 'nobody'} left" for leavers in (0, most))
    return f"{first}, up to {last}" if most else f"{terms.topup(0):.6g}"


def show_session(roster: Roster) -> None:
    """Print the session's id, and what is in the way of a session."""
    note = "   (every further card changes it)" if roster.missing else ""
    print_text(f"Session {roster.session.hex()}{note}")
    print_text("Complete." if not roster.missing else "Not complete:")
    for sentence in roster.missing:
        print_text(f"  {sentence}")
    if roster.unsigned:
        print_text(f"Addresses that are not signed (version 0.1): {', '.join(roster.unsigned)}. No session can begin.")
