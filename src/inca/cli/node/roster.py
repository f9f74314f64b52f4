"""`inca node roster`: the file that all parties share, begun (`init`), completed (`add`) and compared (`show`)."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from inca.cli.options import (
    OPTIONS,
    AgreedPrivacy,
    AgreedProtocol,
    AgreedValues,
    Json,
    NewFile,
    PlanFile,
    RelayChoice,
    RosterFile,
    SessionTimes,
    domain_of,
    names,
    options,
    refuse_combination,
)
from inca.cli.printing import in_columns, print_json, print_next, print_text
from inca.errors import InvalidInput

if TYPE_CHECKING:
    from inca.network.membership.roster import Roster
    from inca.network.membership.terms import Terms
    from inca.network.node.session_cost import SessionBytes
    from inca.network.protocol.opening.trustees import Tolerance
    from inca.planning.plan import Plan

_ADDED = "if the honest parties of a cohort have less together, they add the rest"
_LARGE = 2**20  # bytes: sessions of less go anywhere
BY_HAND = ("--rounds", "--sigma-independent", "--sigma-cancelling", "--epsilon", "--min-participants")


@options(OPTIONS)
class SessionPlan(RelayChoice, PlanFile):
    """What else is agreed on."""

    min_participants: int | None = None
    """Final messages that a result needs. Default: as many as the plan expects at the end."""


def init(
    name: Annotated[str, Parameter(help="What the run is called.")],
    /,
    *,
    times: SessionTimes,
    output: NewFile,
    plan: SessionPlan = SessionPlan(),
    values: AgreedValues = AgreedValues(),
    protocol: AgreedProtocol = AgreedProtocol(),
    privacy: AgreedPrivacy = AgreedPrivacy(),
) -> None:
    """Begin a roster with the terms of a run, from a plan or by hand; parties come with `inca node roster add`.

    A relay that is named here, with --relay, is for all parties: they need no address of their own then.

    Example:  inca plan --parties 20 --epsilon 1 --colluding 0.1 --dropout 0.1 --out plan.json, then
    inca node roster init waiting-times --plan plan.json --domain 0 1 --start +30m --out roster.json

    By hand:  inca node roster init trial --rounds 10 --sigma-independent 3 --sigma-cancelling 30 --epsilon 1
    --min-participants 4 --domain 0 1 --start 2030-01-15T08:00:00Z --period 5s --out roster.json
    """
    from inca._base.validation import refuse
    from inca.cli.times import duration, future_time
    from inca.network.addresses import Address
    from inca.network.membership.roster import Roster
    from inca.network.membership.terms import Terms

    refuse_combination("--plan", *names(AgreedProtocol, AgreedPrivacy))
    refuse_combination("--domain", "--ball")
    out = output.out
    if out.exists():
        refuse("--out", str(out), "a file that does not exist yet")
    domain_of(values)
    low, high = (None, None) if values.domain is None else values.domain
    period, skew = duration("--period", times.period), times.max_clock_skew
    agreed: dict[str, Any] = {
        "dimension": values.dimensions,
        "lower": low,
        "upper": high,
        "radius": values.ball,
        "distance": values.distance,
        "start": future_time("--start", times.start),
        "period": period,
        "min_round_duration": duration("--min-round-duration", times.min_round_duration),
        "max_clock_skew": period / 10.0 if skew is None else duration("--max-clock-skew", skew),
        "min_participants": plan.min_participants,
        "seed": times.public_seed,
    }
    planned = None
    if plan.plan is not None:
        from inca.planning.plan import read_plan

        planned = read_plan(plan.plan)
        if plan.min_participants is None:
            agreed["min_participants"] = planned.requirements.survivors
        terms = Terms.from_plan(planned, **agreed)
    else:
        by_hand = vars(protocol) | vars(privacy)
        said = by_hand | agreed
        if missing := [option for option in BY_HAND if said[option[2:].replace("-", "_")] is None]:
            raise InvalidInput(f"without --plan, {', '.join(missing)} must be given")
        terms = Terms(**by_hand, **agreed)
    roster = Roster(name, terms, relays=tuple(str(Address.parse(relay)) for relay in plan.relay))
    roster.write(out)
    if output.json:
        print_json(report_on(roster, planned))
        return
    print_text(f"The roster {name} is in {out}, without parties so far. Its terms:")
    _show_terms(roster, planned)
    print_text(f"Next: inca node roster add {out} CARD...")


def add(
    roster: RosterFile,
    cards: Annotated[list[Path], Parameter(help="The card.json of one or more parties.", name="CARD...")],
    /,
    *,
    output: Json = Json(),
) -> None:
    """Add parties to a roster by their cards, all of them or none; the card of a party that has moved is replaced.

    Names, keys and addresses must differ from those that are there; a card with the key of a party that is there and
    other addresses (`inca node card`) takes the place of its old one. Parties may share a relay, and a host with
    different ports. The addresses on a card are signed by its owner, and a card that was changed on its way is refused.

    Every addition changes the session, so all parties need the final file; `inca node roster show` tells what to
    compare.

    Example:  inca node roster add roster.json anna/card.json bert/card.json cleo/card.json
    """
    from inca.network.membership.identity import read_card
    from inca.network.membership.roster import read_roster

    added = [read_card(path) for path in cards]
    extended = read_roster(roster).with_parties(*added)
    extended.write(roster)
    if output.json:
        print_json(report_on(extended))
        return
    _show_parties(extended, only=[card.name for card in added])
    show_session(extended)
    if not extended.missing:
        print_next(f"send {roster} to all parties, compare fingerprints, and inca node run {roster} on every machine")


def show(roster: RosterFile, /, *, output: Json = Json()) -> None:
    """Show who takes part and on which terms, the session's id, and what is missing (status 1 if anything is).

    The same id on all machines means that all have the same roster. Compare fingerprints with the parties themselves,
    over a channel that you trust: an id does not tell whether a card was swapped before the roster was complete.

    Example:  inca node roster show roster.json
    """
    from inca.network.membership.roster import read_roster

    shown = read_roster(roster)
    if output.json:
        print_json(report_on(shown))
    else:
        print_text(f"Roster {shown.name}: {len(shown.parties)} parties")
        _show_parties(shown)
        _show_terms(shown)
        show_session(shown)
    if shown.missing:
        raise SystemExit(1)


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
        error = terms.sigma_at_full_attendance(parties) / math.sqrt(parties)
        name = "standard error"
        words = f"a standard error of {error:.3g} if {parties} parties take part and nobody leaves"
    return error, words, remark_on_noise(terms.domain, error, dimensions=terms.dimension, name=name)


def report_on(roster: Roster, plan: Plan | None = None) -> dict[str, Any]:
    """Return what `--json` prints of a roster."""
    parties = [
        {"name": card.name, "addresses": card.addresses, "fingerprint": card.fingerprint} for card in roster.parties
    ]
    error, _, remark = _expected_error(roster, plan)
    report = {"name": roster.name, "session": roster.session.hex(), "complete": not roster.missing}
    report |= {"expected_error": error, "remarks": [remark] if remark else []}
    tolerance = _tolerance(roster)
    report |= {"missing": list(roster.missing), "tolerance": None if tolerance is None else asdict(tolerance)}
    cost = _cost(roster)
    report["cost"] = None if cost is None else asdict(cost)
    return report | {"terms": roster.as_dict()["terms"], "parties": parties, "relays": roster.relays}


def _show_parties(roster: Roster, only: Collection[str] | None = None) -> None:
    none = "relays below" if roster.relays else "none"
    rows = [
        (str(party), card.name, ", ".join(card.addresses) or none, card.fingerprint)
        for party, card in enumerate(roster.parties)
        if only is None or card.name in only
    ]
    for line in in_columns([("id", "party", "addresses", "fingerprint"), *rows]) if rows else ():
        print_text(f"  {line}")


def _show_terms(roster: Roster, plan: Plan | None = None) -> None:
    """Say the terms in words, and what error they lead one to expect."""
    from inca.network.membership.terms import to_utc
    from inca.reporting.parts import in_words

    terms = roster.terms
    _, error, remark = _expected_error(roster, plan)
    tolerance, cost = _tolerance(roster), _cost(roster)
    where = f"of length at most {terms.radius:g}" if terms.radius is not None else f"each in {terms.domain}"
    values = f"one number in {terms.domain}" if terms.dimension == 1 else f"{terms.dimension:,} numbers, {where}"
    alike = (
        "two values of a party differ by at most" if terms.distance is None else "protected if they differ by at most"
    )
    share = f"{terms.colluding:.3g} of the parties" if terms.colluding > 0.0 else "nobody"
    at_least = f"{terms.min_round_duration:g} to " if terms.min_round_duration else "at most "
    length = f"rounds of {at_least}{terms.period:g} s: {in_words(terms.rounds * terms.period)} in all at most"
    for name, text in (
        ("values", f"{values}; {alike} {terms.sensitivity:.6g}"),
        ("protocol", f"{terms.rounds} rounds ({terms.schedule})"),
        ("noise", f"sigma_independent {terms.sigma_independent:.6g}, sigma_cancelling {terms.sigma_cancelling:.6g}"),
        *([("", f"sigma_together {terms.sigma_together:.6g}: {_ADDED}")] if terms.sigma_together else []),
        ("error", error),
        ("guarantee", f"{terms.agreed} by the {terms.rule} rule, in a session"),
        ("against", f"{share} colluding; every party checks its own loss before it hands anything over"),
        ("result", f"from the final messages of {terms.min_participants} parties or more"),
        *([("missing", tolerance.sentence)] if tolerance else []),
        *([("size", cost.sentence)] if cost and cost.traffic >= _LARGE else []),
        ("time", f"from {to_utc(terms.start)}, {length}"),
        ("clocks", f"wrong by at most {terms.max_clock_skew:g} s"),
        ("seed", _seed_in_words(terms)),
        *([("relays", ", then ".join(roster.relays))] if roster.relays else []),
    ):
        print_text(f"  {name:10} {text}")
    if remark:
        print_text(remark)


def _tolerance(roster: Roster) -> Tolerance | None:
    """Return how many parties may be missing, once the roster is complete."""
    from inca.network.node.session_setup import SessionSetup

    return None if roster.missing else SessionSetup(roster).tolerance


def _cost(roster: Roster) -> SessionBytes | None:
    """Return what a session costs a party, once the roster is complete."""
    from inca.network.node.session_cost import session_bytes
    from inca.network.node.session_setup import SessionSetup

    return None if roster.missing else session_bytes(SessionSetup(roster).session)


def _seed_in_words(terms: Terms) -> str:
    if not terms.needs_seed:
        return "none: who sends to whom is not drawn"
    return "drawn by a coin flip of the parties" if terms.seed is None else terms.seed


def show_session(roster: Roster) -> None:
    """Print the session's id, and what is in the way of a session."""
    note = "   (every further card changes it)" if roster.missing else ""
    print_text(f"Session {roster.session.hex()}{note}")
    print_text("Complete." if not roster.missing else "Not complete:")
    for sentence in roster.missing:
        print_text(f"  {sentence}")
