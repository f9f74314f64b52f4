"""What would keep a session from working, examined before it begins, on one party's machine.

The doctor listens where the party will, shakes hands with every peer that is there (a node that waits, or another
doctor), compares clocks, and measures how fast links are; it tries the journal on the disk that will hold it, and a
sample of the session's work. So it estimates what the session will take, and whether periods leave enough time for it.
It sends nothing of the protocol. Once the session has begun, or a node of this party runs, it stays off the network: to
the peers it would be a new incarnation of that node.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import shutil
import stat
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from inca._base.validation import positive
from inca.errors import IncaError, JournalUnusable
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.journal import Journal, check_disk_space
from inca.network.node.loss_check import LossChecker
from inca.network.node.session_cost import MachineSeconds, session_bytes
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess
from inca.network.node.warm_up import warm_up
from inca.network.preflight.advice import NOT_THERE, UNHEARD
from inca.network.preflight.checks import OURS, Check, fine, our_problem
from inca.network.preflight.machine import available_memory, measure_machine
from inca.network.preflight.peer_checks import PeerChecks
from inca.network.preflight.period_check import LinkSpeed, Needed, check_period, estimate
from inca.network.protocol.records import Credited
from inca.network.transport.transport import ClockMeasurement
from inca.reporting.parts import in_words

FORMAT = "inca-doctor/1"
_MAX_TRIALS, _MIN_TRIALS, _TRIAL_BYTES = 200, 3, 2**28  # transactions with which the journal is tried, and their size
_DISTANT_DISKS = ("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs")
_DOUBTFUL_DISKS = dict.fromkeys(("tmpfs", "ramfs"), "forgets everything at a restart of the machine")
_DOUBTFUL_DISKS |= dict.fromkeys(_DISTANT_DISKS, "is only as durable as another machine")


@dataclass(frozen=True)
class Diagnosis:
    """All that was checked: on this machine by our own `party`, and how every peer is, and who else connected."""

    roster: Roster
    party: str
    checks: tuple[Check, ...]
    peers: tuple[Check, ...] = ()

    @property
    def problems(self) -> tuple[Check, ...]:
        """What would keep the session from working."""
        return tuple(check for check in self.checks + self.peers if check.level == "problem")

    @property
    def absent(self) -> tuple[str, ...]:
        """The peers that are not there yet."""
        return tuple(check.what for check in self.peers if check.state == NOT_THERE)

    @property
    def apart(self) -> tuple[str, ...]:
        """The peers that no way led to, nor from them to us, though they may be there."""
        return tuple(check.what for check in self.peers if check.state in UNHEARD and check.state != NOT_THERE)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        return {
            "format": FORMAT,
            "name": self.roster.name,
            "session": self.roster.session.hex(),
            "party": self.party,
            "well": not self.problems,
            "problems": [f"{check.what}: {check.text}" for check in self.problems],
            "absent": list(self.absent),
            "apart": list(self.apart),
            "checks": [check.as_dict() for check in self.checks],
            "peers": [check.as_dict() for check in self.peers],
        }


async def examine(
    roster: Roster, identity: Identity, state: Path, *, seconds: float = 5.0, access: NetworkAccess | None = None
) -> Diagnosis:
    """Check everything that a session of this party needs.

    Args:
        roster: The roster of the session.
        identity: This party's keys.
        state: The folder that will hold the journal.
        seconds: How long peers have to show up and answer.
        access: How this machine takes part in the network.
    """
    positive("seconds", seconds)
    me = roster.index(identity.certificate)
    if roster.missing or me is None:
        gaps = [our_problem("roster", f"not complete: {sentence}") for sentence in roster.missing]
        if me is None:
            gaps.append(our_problem("identity", f"the roster does not have the certificate of {identity.name}"))
        return Diagnosis(roster, identity.name, tuple(gaps))
    setup = SessionSetup(roster)
    complete = f"complete: {len(roster.parties)} parties, of which this is party {me}"
    checks = [fine("roster", f"{complete}; {setup.tolerance.sentence}")]
    checks += [_check_start(setup, me, state / roster.session.hex()[:16])]
    peers: list[Check] = []
    measurements: dict[int, ClockMeasurement] = {}
    rates: dict[int, float] = {}
    links: dict[int, LinkSpeed] = {}
    if checks[-1].level == "problem":
        machine, work = await asyncio.to_thread(_check_machine, setup, me, identity, state)
    else:
        peer_checks = PeerChecks(setup, me)
        async with peer_checks.open(identity, seconds, access or NetworkAccess()) as address:
            checks.append(address)
            if address.level != "problem":
                measurements = await peer_checks.measure(seconds)
                rates = await peer_checks.measure_rates(measurements, seconds)
                checks += peer_checks.own_relays()
            # In a thread: other doctors can still shake hands with this one.
            machine, work = await asyncio.to_thread(_check_machine, setup, me, identity, state)
            for peer, rate in rates.items():
                links[peer] = LinkSpeed(rate, measurements[peer].round_trip, roster.names[peer])
            if address.level != "problem":
                enough = {peer: Needed.by(setup, link, work, machine).sentence for peer, link in links.items()}
                peers = peer_checks.checks(measurements, enough)
            await peer_checks.linger()
        peers += peer_checks.strangers
    trip = max((clock.round_trip for clock in measurements.values()), default=0.0)
    slowest = min(links.values(), key=lambda link: link.rate, default=LinkSpeed(math.inf, 0.0))
    needed = Needed.by(setup, replace(slowest, round_trip=trip), work, machine)
    checks += [*machine, check_period(needed), estimate(setup, needed)]
    return Diagnosis(roster, identity.name, tuple(checks), tuple(peers))


# --- this machine ---------------------------------------------------------------------------------------------------


def _check_start(setup: SessionSetup, me: int, folder: Path) -> Check:
    """Is the session still to come, and does no node of this party run? Else the doctor would be in its way."""
    left = setup.roster.terms.start - time.time()
    if (folder / "ended.json").exists():
        return our_problem("start", "the session has ended here before, and a session is never held twice")
    if (folder / "journal.db").exists():
        try:
            Journal(folder / "journal.db", session=setup.session.id, party=me).close()
        except IncaError as error:
            return our_problem("start", str(error))
    if left <= 0:
        text = f"the session began {in_words(round(-left))} ago: peers are left in peace"
        return our_problem("start", text, seconds_left=left)
    return fine("start", f"in {in_words(round(left))}", seconds_left=left)


def _check_machine(setup: SessionSetup, me: int, identity: Identity, state: Path) -> tuple[list[Check], MachineSeconds]:
    """Try disk and memory, work out the planned loss, and measure how fast this machine is at the session's work."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        checks = [_check_space(setup, state), _check_journal(setup, state)]
    except OSError as error:
        checks = [our_problem("journal", f"{state} cannot be used: {error.strerror or error}")]
    write = 1.0 / (checks[-1].figures.get("commits_per_second") or math.inf)
    warm_up()  # so that the time for compiling it does not count
    began, tolerance = time.perf_counter(), setup.tolerance
    checks += [_check_memory(setup), _check_loss(setup, me)]
    assess = time.perf_counter() - began
    trustees, threshold = tolerance.trustees, tolerance.threshold
    work = measure_machine(setup.session, identity, trustees, threshold, write=write, assess=assess)
    return checks, work


def _check_memory(setup: SessionSetup) -> Check:
    needed, available = session_bytes(setup.session).memory, available_memory()
    if available is None:
        return fine("memory", f"{_size(needed)} needed; how much is free cannot be measured here", needed=needed)
    figures, text = {"needed": needed, "available": available}, f"{available // 2**20:,} MiB free"
    if available < needed:
        text += f", {_size(needed)} needed: close other programs, or take a larger machine"
        return our_problem("memory", text, **figures)
    return fine("memory", f"{text}, {_size(needed)} needed", **figures)


def _check_space(setup: SessionSetup, state: Path) -> Check:
    free, mode = shutil.disk_usage(state).free, stat.S_IMODE(state.stat().st_mode)
    needed = session_bytes(setup.session).disk
    try:
        check_disk_space(state, setup.session)
    except IncaError as error:
        return our_problem("space", str(error), free=free)
    if mode & 0o022:
        text = f"the mode of {state} must keep others from replacing what is in it, got {mode:04o}"
        return our_problem("space", text, free=free)
    return fine("space", f"{free / 2**30:.1f} GiB free, {_size(needed)} needed", free=free, needed=needed)


def _check_journal(setup: SessionSetup, state: Path) -> Check:
    """Write transactions as long as those of the session, each durable before the next, to a journal of their own."""
    payload = bytes(setup.session.payload_bytes)
    trials = max(_MIN_TRIALS, min(_MAX_TRIALS, _TRIAL_BYTES // len(payload)))
    times: list[float] = []
    with tempfile.TemporaryDirectory(prefix=".doctor-", dir=state) as folder:
        try:
            journal = Journal(Path(folder) / "journal.db", session=bytes(32), party=0)
            for t in range(trials):
                began = time.perf_counter()
                journal.append([Credited(t, payload)])
                times.append(time.perf_counter() - began)
            modes = sorted({stat.S_IMODE(path.stat().st_mode) for path in Path(folder).iterdir()})
            kept = len(journal.read())
            journal.close()
        except JournalUnusable as error:
            return our_problem("journal", str(error))
    rate, median, slowest = trials / sum(times), sorted(times)[trials // 2], max(times)
    figures = {"commits": trials, "commits_per_second": rate, "median": median, "slowest": slowest}
    if any(mode & 0o077 for mode in modes):
        return our_problem("journal", f"{state} does not keep files private: their mode is {modes[-1]:04o}", **figures)
    if kept != trials:
        return our_problem("journal", f"of {trials} records only {kept} could be read again", **figures)
    text = f"{rate:,.0f} durable commits per second, {1e3 * median:.1f} ms each, the slowest {1e3 * slowest:.1f} ms"
    if doubt := _DOUBTFUL_DISKS.get(kind := _file_system(state)):
        return Check("journal", "note", f"{text}; but {kind} {doubt}", fault=OURS, figures=figures)
    return fine("journal", text, **figures)


def _file_system(folder: Path) -> str:
    """Return the kind of file system that a folder is on; empty where that cannot be told."""
    try:
        lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return ""
    resolved = f"{folder.resolve()}/"
    holding = [(len(path), kind) for _, path, kind, *_ in lines if resolved.startswith(path.rstrip("/") + "/")]
    return max(holding, default=(0, ""))[1]


def _check_loss(setup: SessionSetup, me: int) -> Check:
    """Work out the loss at full attendance; with a seed that is still to be drawn, on a sample of one.

    A refusal comes before anyone sends anything then, and not after the parties have gathered.
    """
    seed, of = setup.session.seed, ""
    if seed is None:
        seed = hashlib.sha256(b"inca-sample-seed/1" + setup.session.id).digest()
        of = " (a sample: the seed is drawn later)"
    planned = LossChecker(setup, seed, me).planned
    figures = {"epsilon": planned.epsilon, "allowed": planned.allowed, "coalitions": planned.coalitions}
    if planned.refusal:
        return our_problem("loss", f"even with everyone present {planned.refusal}{of}", **figures)
    return fine("loss", f"epsilon {planned.epsilon:.4g} of {planned.allowed:g} with everyone present{of}", **figures)


def _size(count: int) -> str:
    """Return a number of bytes in words, rounded up.

    >>> _size(200 * 2**20 + 1)
    '201 MiB'
    """
    return f"{math.ceil(count / 2**20):,} MiB"
