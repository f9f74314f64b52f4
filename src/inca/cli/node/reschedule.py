"""`inca node roster reschedule`: the same terms at another time, for another try, with all parties or without some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from inca.cli.node.roster import report_on, show_session
from inca.cli.options import OUTPUT, JsonOut, NewStartTime, RosterFile, default, options
from inca.cli.printing import print_json, print_text

if TYPE_CHECKING:
    from inca.network.membership.terms import Terms


@options(OUTPUT)
class Again(JsonOut):
    """Where the roster goes, and who takes part again."""

    out: Annotated[Path | None, default("the same file; another must not exist yet")] = None
    without: Annotated[tuple[str, ...], Parameter(metavar="NAME")] = ()
    """A party to leave out, such as one that has lied; may be given several times. The noise is what it would be had
    they left."""


def reschedule(roster: RosterFile, /, *, schedule: NewStartTime, output: Again = Again()) -> None:
    """Give a roster another start, so that a session that failed can be tried again without collecting cards anew.

    It is another session, with an id of its own: all parties need the new file. And it is another release of the same
    values. A session that came to its first round has given something away even if it had no result, and losses add
    up; every try is also another draw of the public seed, which adds to the probability of failure. If round 1 did not
    begin anywhere (no line *round* in any party's *log.jsonl*), nothing of a value was sent, and nothing adds up.

    A session that ended since one party has lied, which its *proof.json* proves, is tried again without it.

    Example:  inca node roster reschedule roster.json --start +30m --without mallory
    """
    from inca._base.validation import refuse
    from inca.cli.times import duration, future_time
    from inca.network.membership.roster import read_roster

    before, out, period = read_roster(roster), output.out, schedule.period
    if out is not None and out.exists():
        refuse("--out", str(out), "a file that does not exist yet")
    new_period = None if period is None else duration("--period", period)
    others = before.without(*output.without) if output.without else before
    again = others.at(future_time("--start", schedule.start), period=new_period, seed=schedule.public_seed)
    path = out or roster
    again.write(path)
    tries, epsilon = 2, _epsilon_of(again.terms, tries=2)
    if output.json:
        cost = {"tries": tries, "epsilon": epsilon, "delta": again.terms.delta}
        print_json(report_on(again) | {"before": before.session.hex(), "together": cost})
        return
    from inca.network.membership.terms import to_utc

    print_text(f"The roster {again.name} begins at {to_utc(again.terms.start)} now, in {path}.")
    print_text(f"It was session {before.session.hex()}.")
    show_session(again)
    print_text("All parties need the new file, and must see this id in `inca node roster show`.")
    agreed = f"epsilon {again.terms.epsilon:g} at delta {again.terms.delta:g}"
    print_text(
        f"If round 1 had begun, values are released a second time: {agreed} each becomes epsilon {epsilon:.4g} for "
        "both, and the probabilities of failure add up. If it had not, nothing was given away."
    )


def _epsilon_of(terms: Terms, tries: int) -> float:
    """Return the epsilon, at the agreed delta, of so many sessions with the agreed loss: mu squared adds up."""
    from inca.privacy.gaussian import compose, epsilon_for, mu_for

    mu = mu_for(terms.epsilon, terms.delta, terms.rule)
    return float(epsilon_for(compose(*[mu] * tries), terms.delta))
