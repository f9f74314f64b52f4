"""`inca learn party`: one party's part in a study, which is several sessions over the network."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from inca.cli.learn.agree import failure_text
from inca.cli.options import OPTIONS, Clip, JsonQuiet, PartyFolders, RosterFile, StudyFile, options
from inca.cli.printing import print_json, print_text
from inca.errors import InvalidInput, NoResult


@options(OPTIONS)
class OwnRecords(Clip):
    """A party's own records."""

    records: Annotated[Path, Parameter(metavar="FILE")]
    """This party's records: CSV with a header."""


def party(
    study: StudyFile,
    roster: RosterFile,
    /,
    *,
    own: OwnRecords,
    folders: PartyFolders,
    output: JsonQuiet = JsonQuiet(),
) -> None:
    """Take part in a study: several sessions over the network, one after the other, with one budget for all.

    What is learned are moments, a histogram or quantiles of a column, a regression or a logistic model, as the study
    says. Start it on every party's machine before the first session. Should it stop or crash, start it again with the
    same options: it resumes, and gets from the others what it missed. The answer is printed as soon as it is there
    and kept as *answer.json*; the process stays until those who missed the last result could catch up. *course.json*
    says what all sessions together gave away of this party, at the delta of the study, which must be that
    of the roster. Should more be lost in a session than was agreed, because too many left, the party stays away from
    sessions that its budget no longer allows.

    Example:  inca learn party study.json roster.json --identity anna --state course --records patients.csv
    """
    from inca._base.files import write_json
    from inca.learn.averagers.network import NetworkAverager
    from inca.learn.budget import Budget
    from inca.learn.study import read_records, read_study
    from inca.learn.study_run import run_study
    from inca.network.membership.identity import Identity
    from inca.network.membership.roster import read_roster
    from inca.network.sequence.session_sequence import SessionSequence

    agreed, members = read_study(study), read_roster(roster)
    table, labels = read_records(own.records, agreed, clip=own.clip)
    members.check_complete()
    agreed.sizes(members)
    named = agreed.agreement(members)
    folder = folders.state / named.session.hex()[:16]

    def print_event(text: str) -> None:
        if not (output.quiet or output.json):
            print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)

    try:
        sequence = SessionSequence(
            named,
            Identity.read(folders.identity),
            folder,
            interval=agreed.interval,
            gathering=agreed.gathering,
            max_mu=Budget(agreed.epsilon, agreed.delta).mu,
            access=folders.access,
            notify=print_event,
        )
        with NetworkAverager(sequence) as averager:
            answer = run_study(agreed, averager, table, labels)
            write_json(folder / "answer.json", answer, indent=1)
            answer["own_epsilon"] = averager.report()["own_epsilon"]
            # Printed now: the process stays for others to catch up when it leaves this block.
            if output.json:
                print_json(answer)
            else:
                _show(answer, folder)
    except NoResult as error:
        print(f"no result: {error}", file=sys.stderr)
        raise SystemExit(1) from None
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be used: {error.strerror or error}") from None


def _show(answer: dict[str, Any], folder: Path) -> None:
    for name in ("mean", "variance", "bins", "quantiles", "intercept", "coefficients"):
        for label, text in _rows(name, answer.get(name, {})):
            print_text(f"{label:28} {text}")
    if "steps_without_result" in answer:
        print_text(f"steps without result         {answer['steps_without_result']}")
    own = "without bound" if answer["own_epsilon"] is None else f"{answer['own_epsilon']:.4g}"
    print_text(
        f"agreed                       epsilon {answer['epsilon']:.4g} at delta {answer['delta']:g}, all sessions"
    )
    failure = answer["failure_probability"]
    print_text(f"plans fail with probability  {failure_text(failure)}")
    print_text(f"given away by this party     epsilon {own} at delta {answer['delta']:g}")
    print_text(f"kept in                      {folder}")


def _rows(name: str, part: dict[str, Any] | list[dict[str, float]]) -> list[tuple[str, str]]:
    """Return a label and a text for each number: an estimate with its interval, or the weights of a class."""
    if isinstance(part, list):
        return [(_place(entry), _estimate(entry)) for entry in part]
    if "value" in part:
        return [(name, _estimate(part))]
    rows = []
    for label, entry in part.items():
        if isinstance(entry, float):
            rows.append((f"{name} {label}", f"{entry:.6g}"))
        elif "value" in entry:
            rows.append((f"{name} {label}", _estimate(entry)))
        else:
            rows += [(f"{label}: {column}", f"{weight:.6g}") for column, weight in entry.items()]
    return rows


def _place(fields: dict[str, float]) -> str:
    """Return which bin of a histogram it is, or which quantile."""
    if "share" in fields:
        return f"quantile {fields['share']:.6g}"
    return f"share from {fields['from']:.6g} to {fields['to']:.6g}"


def _estimate(fields: dict[str, float]) -> str:
    return f"{fields['value']:.6g}  [{fields['low']:.6g}, {fields['high']:.6g}] with 95 %"
