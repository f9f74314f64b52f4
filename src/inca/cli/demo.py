"""`inca demo`: a consortium of real processes on this machine, some of which are killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inca._base.options import Size
from inca.cli.options import OPTIONS, Shown, options
from inca.cli.printing import print_content, print_json, print_text

if TYPE_CHECKING:
    from rich.table import Table

    from inca.network.testing.demo import Demo

EVENTS_SHOWN = 6


@options(OPTIONS)
class Show(Size):
    """How many processes there are, and what happens to them."""

    parties: int = 12
    kill: int = 3
    """How many of them to kill (SIGKILL) in mid-session, the last one right after commit."""
    restart: int = 1
    """How many of the killed to start again."""
    keep_files: bool = False
    """Keep all files of the parties, and say where they are."""
    relay: bool = False
    """Let the parties reach each other through a relay, another process; none of them has a port to listen on."""
    dashboard: bool = False
    """Show it in a browser as it happens, until Ctrl-C."""


def demo(*, show: Show = Show(), output: Shown = Shown()) -> None:
    """Run a session of real processes over TLS on this machine, kill some of them, and show the result.

    Every process is a clinic with an identity, a private value (the mean waiting time of its 60 patients, from 0 to 240
    minutes), a journal and a port of its own; nobody is in charge. With --relay they have no ports: all connect to one
    relay, as parties behind firewalls do, and it passes on what it cannot read. At the end each of those who are left
    holds the same estimate and has worked out for itself what the session gave away about any one of its patients. The
    table follows the parties' rounds.

    Example:  inca demo --parties 12 --kill 3 --restart 1

    Behind firewalls:  inca demo --relay
    """
    from inca._base.extras import require_extra
    from inca._base.validation import integer, refuse
    from inca.network.protocol.session import quorum_of
    from inca.network.testing.demo import Demo

    parties, kill = integer("--parties", show.parties, 4, 60), integer("--kill", show.kill)
    quorum, restart = quorum_of(parties), integer("--restart", show.restart)
    if kill > parties - quorum:
        refuse("--kill", kill, f"at most {parties - quorum}, as {quorum} of {parties} parties must agree on a result")
    if restart > kill:
        refuse("--restart", restart, f"at most --kill ({kill})")
    if show.dashboard:
        require_extra("inca demo --dashboard", "dashboard")
    with (
        Demo(parties, kill=kill, restart=restart, relay=show.relay, keep=show.keep_files) as session,
        served(session.folder) if show.dashboard else nullcontext(),
    ):
        if output.json or not sys.stderr.isatty():
            for event in session.follow():
                print(event, file=sys.stderr, flush=True)
        else:
            _watch(session)
        report = session.report()
        if output.json:
            print_json(_plain(report))
        else:
            _show(report, details=output.details)
        if show.dashboard:
            _wait_for_interrupt()
    if not report["agreed"]:
        raise SystemExit(1)


@contextmanager
def served(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Show all sessions below a folder in a dashboard of its own process, which ends with the block."""
    command = [sys.executable, "-m", "inca", "dashboard", "--sessions", str(folder), "--port", "0"]
    process = subprocess.Popen(command)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def _wait_for_interrupt() -> None:
    print_text("The dashboard goes on showing the session, until Ctrl-C.")
    with suppress(KeyboardInterrupt):
        signal.pause()


def _watch(session: Demo) -> None:
    from rich.console import Console, Group
    from rich.live import Live
    from rich.text import Text

    events: list[str] = []
    with Live(console=Console(stderr=True), refresh_per_second=8, transient=True) as live:
        for event in session.follow(pulse=True):
            if event:
                events.append(event)
            live.update(Group(_table(session), *(Text(line) for line in events[-EVENTS_SHOWN:])))
    for line in events:
        print(line, file=sys.stderr)


def _table(session: Demo) -> Table:
    from rich.table import Table
    from rich.text import Text

    way = "through a relay" if session.relayed else "over TLS"
    table = Table(
        title=f"Session {session.cluster.roster.session.hex()[:16]}: {session.rounds} rounds {way} on this machine"
    )
    for heading in ("party", "process", "rounds", "stage", "offers open"):
        table.add_column(heading)
    for row in session.rows():
        style = "red" if row["process"] == "killed" else "yellow" if "back" in row["process"] else ""
        cells = [row["party"], row["process"], row["presence"], row["stage"], str(row["open"])]
        table.add_row(*(Text(cell, style=style) for cell in cells))
    return table


def _plain(report: dict[str, Any]) -> dict[str, Any]:
    """Return the report for JSON."""
    return report | ({"certificate": report["certificate"].as_fields()} if "certificate" in report else {})


def _show(report: dict[str, Any], *, details: bool) -> None:
    """Print the result, then what became of each party; the certificate if asked for."""
    if report["agreed"]:
        _show_result(report)
    else:
        print_text(f"no common result: {report['reason']}")
    _show_parties(report)
    if details and report["agreed"]:
        from inca.reporting.content import content

        print_text("")
        print_content(content(report["certificate"]), details=True)
    if report["folder"]:
        print_text(f"\nAll files are in {report['folder']}.")
    if report["agreed"] and not details:
        print_text("more         --details, for the certificate of privacy")


def _show_result(report: dict[str, Any]) -> None:
    from inca.reporting.verdict import verdict

    print_text(f"estimate     {report['estimate']:.1f} min, the same for all {report['holders']} who are left")
    if report["standard_error"] is not None:
        print_text(f"noise        {report['standard_error']:.1f} min standard error, which hides every single patient")
    print_text(f"private      {verdict(report['certificate']).text}")
    print_text(f"truth        {report['stayed']:.1f} min is the mean of the {report['cohort']} whose values count,")
    print_text(f"             {report['truth']:.1f} min that of all {report['parties']}")
    if report["sealed"]:
        killed = ", ".join(report["sealed"])
        print_text(f"sealed       {killed} was killed right after commit, and its value counts: others opened its seal")
    low, high = report["interval"]
    sure = f"with a probability of {report['confidence']:.0%}"
    print_text(f"interval     {low:.1f} to {high:.1f} min for all, whatever those who left held, {sure}")
    for sentence in report["remarks"]:
        print_text(f"note         {sentence}")
    print_text(f"lattice      {report['lattice']}")
    print_text(f"time         {report['seconds']:.1f} s from the start of the first round to the last party's end")


def _show_parties(report: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"{report['parties']} parties, {report['rounds']} rounds; # took part, . was absent")
    for heading in ("party", "process", "rounds", "estimate", "own loss"):
        table.add_column(heading)
    for row in report["rows"]:
        estimate = "" if row["estimate"] is None else f"{row['estimate']:.1f} min"
        loss = "" if row["epsilon"] is None else f"epsilon {row['epsilon']:.3f}"
        table.add_row(row["party"], row["process"], row["presence"], estimate, loss)
    Console().print(table)
