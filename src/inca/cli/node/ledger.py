"""`inca node ledger`: what the sessions of this machine have cost the values that took part."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from inca._base.options import Delta
from inca.cli.options import OPTIONS, Json, StateFolder, options
from inca.cli.printing import print_json, print_text

if TYPE_CHECKING:
    from inca.network.node.booked_losses import BookedLoss


@options(OPTIONS)
class TotalDelta(Delta):
    """At which delta sessions are added up."""


def ledger(folder: StateFolder, /, *, total: TotalDelta = TotalDelta(), output: Json = Json()) -> None:
    """Say what each session of this machine has cost, and all that were about the same datum together.

    A session costs the agreed epsilon once its first round has begun, whatever came of it; the party's own loss
    instead, if all coalitions of the agreed size were checked, or if it was larger. Sessions have the same datum if
    they were run with the same *--datum*; without that they count as one, to be on the safe side.

    Example:  inca node ledger sessions
    """
    from inca._base.validation import finite_float, refuse
    from inca.network.node.booked_losses import UNNAMED, booked_losses, together
    from inca.reporting.parts import rounded_up

    finite_float("--delta", total.delta, 0.0, 1.0)
    losses = booked_losses(folder)
    if not losses:
        refuse("FOLDER", str(folder), "a --state folder with a session in it")
    by_datum: dict[str, list[BookedLoss]] = {}
    for loss in losses:
        by_datum.setdefault(loss.datum, []).append(loss)
    totals = {datum: together(group, total.delta) for datum, group in by_datum.items()}
    if output.json:
        from dataclasses import asdict

        documents = [
            {"datum": datum, "epsilon": epsilon, "delta": delta, "sessions": [asdict(loss) for loss in by_datum[datum]]}
            for datum, (epsilon, delta) in totals.items()
        ]
        print_json(documents)
        return
    for datum, group in by_datum.items():
        print_text(
            datum if datum != UNNAMED else f"{datum} (`inca node run --datum LABEL` names what a value is about)"
        )
        for loss in group:
            when = "not ended " if loss.ended is None else f"{datetime.fromtimestamp(loss.ended, UTC):%Y-%m-%d}"
            print_text(f"  {when}  {loss.session[:8]}  epsilon {rounded_up(loss.epsilon)}  {loss.name}".rstrip())
            print_text(f"              {loss.basis}")
        epsilon, delta = totals[datum]
        known = f"{total.delta:g} + an unknown probability of failure" if delta is None else rounded_up(delta)
        print_text(f"  together    epsilon {rounded_up(epsilon)} at delta {known}")
