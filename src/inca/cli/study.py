"""`inca learn agree` and `inca learn party`: a study of several sessions over the network, one party each."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inca.cli.learn import _learn_app
from inca.cli.node import AsJson, check_network
from inca.cli.party import Keys, State, address

if TYPE_CHECKING:
    from inca.learn.study import Study
    from inca.network.membership.roster import Roster

StudyFile = Annotated[Path, typer.Argument(metavar="STUDY", help="What is to be learned: inca-study/1 (JSON).")]
RosterFile = Annotated[Path, typer.Argument(metavar="ROSTER", help="Who takes part: inca-roster/1, as for `node`.")]
_SHOWN = 6  # sessions whose times are told


@_learn_app.command()
def agree(study: StudyFile, roster: RosterFile, as_json: AsJson = False) -> None:
    """Show what a study means before anyone agrees to it: sessions, times, and what is given away at most.

    All parties must have the same two files; the id tells whether they do.

    Example:  inca learn agree study.json roster.json
    """
    check_network("inca learn agree")
    from inca.learn.study import read_study
    from inca.network.membership.roster import read_roster

    fields = _agreement(read_study(study), read_roster(roster))
    if as_json:
        typer.echo(json.dumps(fields))
        return
    times = ", ".join(fields["starts"][:_SHOWN]) + (", ..." if len(fields["starts"]) > _SHOWN else "")
    for name, text in (
        ("study", f"{fields['name']}: {fields['task']} of {', '.join(fields['columns'])}"),
        ("parties", f"{fields['parties']} with {fields['records']:,} records"),
        (
            "protected",
            f"each {fields['level']}, with epsilon {fields['epsilon']:g} at delta {fields['delta']:g} in all",
        ),
        ("sessions", f"{fields['sessions']}, each epsilon {fields['session_epsilon']:.4g} on its own"),
        ("times", times),
        ("id", fields["id"]),
    ):
        typer.echo(f"{name:10} {text}")


@_learn_app.command()
def party(
    study: StudyFile,
    roster: RosterFile,
    identity: Keys,
    state: State,
    records: Annotated[Path, typer.Option(metavar="FILE", help="This party's records: CSV with a header.")],
    clip: Annotated[bool, typer.Option(help="Move numbers outside their bounds to them.")] = False,
    listen: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Listen here instead of at the address in the roster.")
    ] = None,
    quiet: Annotated[bool, typer.Option(help="No lines about what happens.", rich_help_panel="Output")] = False,
    as_json: AsJson = False,
) -> None:
    """Take part in a study: several sessions over the network, one after the other, with one budget for all.

    Start it on every party's machine before the first session. Should it stop or crash, start it again with the same
    options: it goes on, and gets from the others what it missed. The answer is printed as soon as it is there and
    kept as *answer.json*; the process stays for a last meeting, where those who missed the last result get it.
    *course.json* says what all sessions together gave away of this party. Should more be lost in a session than was
    agreed, because too many left, the party stays away from those that its budget does not allow any more.

    Example:  inca learn party study.json roster.json --identity anna --state course --records patients.csv
    """
    check_network("inca learn party")
    from inca._base.files import write_json
    from inca._base.validation import InputError
    from inca.learn.averagers.network import Sessions
    from inca.learn.budget import Budget
    from inca.learn.statistics.estimates import NoResult
    from inca.learn.study import carry_out, read_records, read_study
    from inca.network.membership.identity import Identity
    from inca.network.membership.roster import read_roster
    from inca.network.sequence.session_sequence import Course

    agreed, made = read_study(study), read_roster(roster)
    table, labels = read_records(records, agreed, clip=clip)
    fields = _agreement(agreed, made)
    folder = state / fields["id"][:16]

    def tell(text: str) -> None:
        if not (quiet or as_json):
            print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    try:
        course = Course(
            agreed.agreement(made),
            Identity.read(identity),
            folder,
            interval=agreed.interval,
            gathering=agreed.gathering,
            limit=Budget(agreed.epsilon, agreed.delta).mu,
            listen=None if listen is None else address(listen),
            tell=tell,
        )
        with Sessions(course) as sessions:
            answer = carry_out(agreed, sessions, table, labels, clip=clip)
            write_json(folder / "answer.json", answer, indent=1)
            answer["own_epsilon"] = sessions.report()["own_epsilon"]
            _show(answer, folder, as_json=as_json)
    except NoResult as error:
        typer.echo(f"no result: {error}", err=True)
        raise typer.Exit(1) from None
    except OSError as error:
        raise InputError(f"{folder} cannot be used: {error.strerror or error}") from None


def _agreement(study: Study, roster: Roster) -> dict[str, Any]:
    """Return what the two files mean together; refuse those that do not belong together."""
    from inca.learn.budget import Budget
    from inca.network.membership.roster import to_utc
    from inca.network.sequence.session_sequence import Course
    from inca.privacy.gaussian import epsilon_for

    roster.check_complete()
    sizes, budget = study.sizes(roster), Budget(study.epsilon, study.delta)
    mu = budget.split([1.0] * study.sessions)[0]
    interval, _ = Course.times(roster.terms, study.interval, study.gathering)
    starts = [to_utc(round(roster.terms.start + number * interval, 3)) for number in range(study.sessions)]
    fields: dict[str, Any] = {"name": study.name, "task": study.task, "columns": study.inputs, "level": study.level}
    fields |= {"parties": len(sizes), "records": sum(sizes), "epsilon": study.epsilon, "delta": study.delta}
    fields |= {"sessions": study.sessions, "session_epsilon": float(epsilon_for(mu, study.delta)), "starts": starts}
    return fields | {"id": study.agreement(roster).session.hex()}


def _show(answer: dict[str, Any], folder: Path, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(answer), flush=True)
        return
    for name, part in answer.items():
        if name in ("mean", "variance", "coefficients", "intercept"):
            for label, row in _rows(name, part):
                print(f"{label:28} {row}")
    if "steps_without_result" in answer:
        print(f"steps without result         {answer['steps_without_result']}")
    print(f"epsilon {answer['epsilon']:.4g} at delta {answer['delta']:g} was agreed for all sessions; what they gave")
    own = "without bound" if answer["own_epsilon"] is None else f"{answer['own_epsilon']:.4g}"
    print(f"away of this party: {own}. Kept in {folder}", flush=True)


def _rows(name: str, part: dict[str, Any]) -> list[tuple[str, str]]:
    """Return a line for each number: an estimate with its interval, or the weights of a class."""
    if "value" in part:
        return [(name, _estimate(part))]
    if all(isinstance(each, float) for each in part.values()):
        return [(f"{name} {label}", f"{each:.6g}") for label, each in part.items()]
    found = []
    for label, each in part.items():
        if "value" in each:
            found.append((f"{name} {label}", _estimate(each)))
        else:
            found += [(f"{label}: {column}", f"{weight:.6g}") for column, weight in each.items()]
    return found


def _estimate(row: dict[str, float]) -> str:
    return f"{row['value']:.6g}  [{row['low']:.6g}, {row['high']:.6g}] with 95 %"
