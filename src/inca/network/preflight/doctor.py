"""What would keep a session from working, found before it begins, on one party's machine.

The doctor listens where the party will, shakes hands with every peer that is there (a node that waits, or another
doctor), and compares clocks; it tries the journal on the disk that will hold it, and asks whether a round leaves enough
time. It sends nothing of the protocol. Once the session has begun, or a node of this party runs, it stays off the
network: to the peers it would be a new life of that node.
"""

from __future__ import annotations

import asyncio
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from inca._base.validation import InputError, positive
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.journal import Journal, JournalError
from inca.network.node.loss_check import Judge
from inca.network.node.node import check_room
from inca.network.node.session_setup import Setting
from inca.network.preflight.checks import EVERYONE, OURS, Finding, fine, wrong
from inca.network.preflight.peer_checks import Visit
from inca.network.protocol.ledger import Credited
from inca.network.transport.transport import Measured

FORMAT = "inca-doctor/1"
_TRIALS, _LEAST_TRIALS, _BYTES = 200, 3, 2**28  # transactions of the journal's test, and how much it writes at most
_MARGIN = 1.5  # by which a suggested period exceeds what was measured
_DOUBTFUL = dict.fromkeys(("tmpfs", "ramfs"), "forgets everything at a restart of the machine")
_DOUBTFUL |= dict.fromkeys(("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"), "is only as durable as another machine")


@dataclass(frozen=True)
class Diagnosis:
    """All that was found: about this machine, and about every peer."""

    roster: Roster
    party: str
    checks: tuple[Finding, ...]
    peers: tuple[Finding, ...] = ()

    @property
    def problems(self) -> tuple[Finding, ...]:
        """What would keep the session from working."""
        return tuple(each for each in self.checks + self.peers if each.level == "problem")

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {
            "format": FORMAT,
            "name": self.roster.name,
            "session": self.roster.session.hex(),
            "party": self.party,
            "well": not self.problems,
            "problems": [f"{each.what}: {each.text}" for each in self.problems],
            "checks": [each.as_dict() for each in self.checks],
            "peers": [each.as_dict() for each in self.peers],
        }


async def examine(
    roster: Roster, identity: Identity, state: Path, *, seconds: float = 5.0, listen: tuple[str, int] | None = None
) -> Diagnosis:
    """Look at everything that a session of this party needs; peers have so many `seconds` to show up and answer."""
    positive("seconds", seconds)
    me = roster.index(identity.certificate)
    if roster.missing or me is None:
        return Diagnosis(roster, identity.name, tuple(_gaps(roster, identity, me)))
    setting = Setting(roster)
    checks = [fine("roster", f"complete: {len(roster.parties)} parties, of which this is party {me}")]
    checks += [_beginning(setting, me, state / roster.session.hex()[:16])]
    peers: list[Finding] = []
    measured: dict[int, Measured] = {}
    if checks[-1].level == "problem":
        others = await asyncio.to_thread(_examine_machine, setting, me, state)
    else:
        visit = Visit(setting, me)
        async with visit.open(identity, seconds, listen) as address:
            checks.append(address)
            if address.level != "problem":
                measured = await visit.meet(seconds)
                peers = visit.findings(measured)
            # In a thread: other doctors can still shake hands with this one.
            others = await asyncio.to_thread(_examine_machine, setting, me, state)
            await visit.stay()
        peers += visit.strangers
    write = max((each.figures.get("slowest") or 0.0 for each in others), default=0.0)
    checks += [*others, _period(setting, measured, write)]
    return Diagnosis(roster, identity.name, tuple(checks), tuple(peers))


# --- this machine ---------------------------------------------------------------------------------------------------


def _gaps(roster: Roster, identity: Identity, me: int | None) -> Iterator[Finding]:
    for sentence in roster.missing:
        yield wrong("roster", f"not complete: {sentence}")
    if me is None:
        yield wrong("identity", f"the roster does not have the certificate of {identity.name}")


def _beginning(setting: Setting, me: int, folder: Path) -> Finding:
    """Is the session still to come, and does no node of this party run? Else the doctor would be in its way."""
    left = setting.roster.terms.start - time.time()
    if (folder / "ended.json").exists():
        return wrong("start", "the session has ended here before, and a session is never held twice")
    if (folder / "journal.db").exists():
        try:
            Journal(folder / "journal.db", session=setting.session.id, party=me).close()
        except (InputError, JournalError) as error:
            return wrong("start", str(error))
    if left <= 0:
        return wrong("start", f"the session began {_length(-left)} ago: peers are left in peace", seconds_left=left)
    return fine("start", f"in {_length(left)}", seconds_left=left)


def _examine_machine(setting: Setting, me: int, state: Path) -> list[Finding]:
    """Try the disk, and work out the planned loss."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk = [_space(setting, state), _journal(setting, state)]
    except OSError as error:
        disk = [wrong("journal", f"{state} cannot be used: {error.strerror or error}")]
    return [*disk, _loss(setting, me)]


def _space(setting: Setting, state: Path) -> Finding:
    free, mode = shutil.disk_usage(state).free, stat.S_IMODE(state.stat().st_mode)
    try:
        check_room(state, setting)
    except InputError as error:
        return wrong("space", str(error), free=free)
    if mode & 0o022:
        return wrong("space", f"the mode of {state} is {mode:04o}: others can replace what is in it", free=free)
    return fine("space", f"{free / 2**30:.1f} GiB are free, enough", free=free)


def _journal(setting: Setting, state: Path) -> Finding:
    """Write transactions as long as those of the session, each durable before the next, to a journal of their own."""
    payload = bytes(8 * (setting.session.dimension + 1))
    trials = max(_LEAST_TRIALS, min(_TRIALS, _BYTES // len(payload)))
    times: list[float] = []
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=state) as folder:
        try:
            journal = Journal(Path(folder) / "journal.db", session=bytes(32), party=0)
            for t in range(trials):
                began = time.perf_counter()
                journal.append([Credited(t, 0, 0, payload)])
                times.append(time.perf_counter() - began)
            modes = sorted({stat.S_IMODE(each.stat().st_mode) for each in Path(folder).iterdir()})
            kept = len(journal.read())
            journal.close()
        except JournalError as error:
            return wrong("journal", str(error))
    rate, middle, slowest = trials / sum(times), sorted(times)[trials // 2], max(times)
    figures = {"commits": trials, "commits_per_second": rate, "median": middle, "slowest": slowest}
    if any(mode & 0o077 for mode in modes):
        return wrong("journal", f"{state} does not keep files private: their mode is {modes[-1]:04o}", **figures)
    if kept != trials:
        return wrong("journal", f"of {trials} records only {kept} could be read again", **figures)
    text = f"{rate:,.0f} durable commits per second, {1e3 * middle:.1f} ms each, the slowest {1e3 * slowest:.1f} ms"
    if doubt := _DOUBTFUL.get(kind := _file_system(state)):
        return Finding("journal", "note", f"{text}; but {kind} {doubt}", fault=OURS, figures=figures)
    return fine("journal", text, **figures)


def _file_system(place: Path) -> str:
    """Return the kind of file system that a folder is on; empty where that cannot be told."""
    try:
        lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ""
    whole = f"{place.resolve()}/"
    holding = [(len(path), kind) for _, path, kind, *_ in lines if whole.startswith(path.rstrip("/") + "/")]
    return max(holding, default=(0, ""))[1]


def _loss(setting: Setting, me: int) -> Finding:
    seed = setting.session.seed
    if seed is None:
        return fine("loss", "worked out when the parties have tossed the seed, before anything is sent")
    planned = Judge(setting.roster, setting.session.topology(seed), seed).planned(me)
    figures = {"epsilon": planned.epsilon, "allowed": planned.allowed, "coalitions": planned.coalitions}
    if planned.refusal:
        return wrong("loss", f"even with everyone present {planned.refusal}", **figures)
    return fine("loss", f"epsilon {planned.epsilon:.4g} of {planned.allowed:g} with everyone present", **figures)


def _period(setting: Setting, measured: Mapping[int, Measured], write: float) -> Finding:
    """Does a round leave time for clocks that are wrong, two round trips and a durable write?"""
    period, clocks = setting.roster.terms.period, 2.0 * setting.roster.terms.clock_bound
    trips = 2.0 * max((each.round_trip for each in measured.values()), default=0.0)
    needed = clocks + trips + write
    parts = f"clocks {clocks:g} s, round trips {trips:.2g} s, durable write {write:.2g} s"
    if needed < period:
        return fine(
            "period", f"{period:g} s, of which {needed:.3g} s are needed: {parts}", period=period, needed=needed
        )
    suggested = float(f"{_MARGIN * needed:.1e}")
    text = f"{period:g} s, but {needed:.3g} s are needed ({parts}): agree on {suggested:g} s or more"
    figures = {"period": period, "needed": needed, "suggested": suggested}
    return Finding("period", "problem", text, fault=EVERYONE, figures=figures)


def _length(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
