"""`inca learn agree`: what a study means, before anyone agrees to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inca.cli.options import Json, RosterFile, StudyFile
from inca.cli.printing import print_json, print_text

if TYPE_CHECKING:
    from inca.learn.study import Study
    from inca.network.membership.roster import Roster

TIMES_SHOWN = 6


def agree(study: StudyFile, roster: RosterFile, /, *, output: Json = Json()) -> None:
    """Show what a study means before anyone agrees to it: sessions, times, and what is given away at most.

    A study is of moments, a histogram, quantiles, a regression or a logistic model. All parties must have the same two
    files; the id tells whether they do.

    Example:  inca learn agree study.json roster.json
    """
    from inca.learn.study import read_study
    from inca.network.membership.roster import read_roster

    fields = _agreement(read_study(study), read_roster(roster))
    if output.json:
        print_json(fields)
        return
    times = ", ".join(fields["starts"][:TIMES_SHOWN]) + (", ..." if len(fields["starts"]) > TIMES_SHOWN else "")
    promise = f"with epsilon {fields['epsilon']:g} at delta {fields['delta']:g} in all"
    for name, text in (
        ("study", f"{fields['name']}: {_what(fields)}"),
        ("parties", f"{fields['parties']} with {fields['records']:,} records"),
        ("protected", f"each {fields['level']}, {promise}"),
        ("failure", failure_text(fields["failure_probability"])),
        ("sessions", f"{fields['sessions']}, each epsilon {fields['session_epsilon']:.4g} on its own"),
        ("times", times),
        ("id", fields["id"]),
    ):
        print_text(f"{name:10} {text}")


def _what(fields: dict[str, Any]) -> str:
    """Return what is to be learned, in words."""
    text = f"{fields['task']} of {', '.join(fields['columns'])}"
    if "edges" in fields:
        edges = fields["edges"]
        text += f", {len(edges) - 1} bins from {edges[0]:g} to {edges[-1]:g}"
    if "quantiles" in fields:
        text += f", {', '.join(f'{share:g}' for share in fields['quantiles'])}"
    return text


def failure_text(probability: float | None) -> str:
    """Return how likely the plan fails in any session, in words.

    Example:
        >>> failure_text(1e-6)
        'at most 1e-06 in all sessions, which adds to delta'
    """
    if probability is None:
        return "not said by the roster; it adds to delta"
    return f"at most {probability:.4g} in all sessions, which adds to delta"


def _agreement(study: Study, roster: Roster) -> dict[str, Any]:
    """Return what the two files mean together; refuse those that do not belong together."""
    from inca.learn.budget import Budget
    from inca.network.membership.terms import to_utc
    from inca.network.sequence.session_sequence import SessionSequence
    from inca.privacy.gaussian import epsilon_for

    roster.check_complete()
    sizes, budget = study.sizes(roster), Budget(study.epsilon, study.delta)
    mu = budget.split([1.0] * study.sessions)[0]
    interval, _ = SessionSequence.times(roster.terms, study.interval, study.gathering)
    starts = [to_utc(round(roster.terms.start + number * interval, 3)) for number in range(study.sessions)]
    fields: dict[str, Any] = {"name": study.name, "task": study.task, "columns": study.inputs, "level": study.level}
    if study.task == "histogram":
        fields["edges"] = study.histogram_edges().tolist()
    if study.task == "quantiles":
        fields["quantiles"] = study.quantile_shares()
    fields |= {"parties": len(sizes), "records": sum(sizes), "epsilon": study.epsilon, "delta": study.delta}
    fields["failure_probability"] = study.failure_probability(roster)
    fields |= {"sessions": study.sessions, "session_epsilon": float(epsilon_for(mu, study.delta)), "starts": starts}
    return fields | {"id": study.agreement(roster).session.hex()}
