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
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from inca.network.clocks import uncertainty
from inca.network.identity import Identity
from inca.network.journal import Journal, JournalError
from inca.network.ledger import Credited
from inca.network.node import check_room, limits_for
from inca.network.roster import Roster
from inca.network.setting import Setting
from inca.network.tls import client_context, server_context
from inca.network.transport import Measured, Transport, Unreachable
from inca.network.verdict import Judge
from inca.validation import InputError, positive

FORMAT = "inca-doctor/1"
OURS, THEIRS, NETWORK, EITHER, EVERYONE = "ours", "theirs", "the network's", "ours or theirs", "everyone's"

_TRIALS, _LEAST_TRIALS, _BYTES = 200, 3, 2**28  # transactions of the journal's test, and how much it writes at most
_TOGETHER = 64  # peers asked at the same time
_STAY = 1.0  # seconds that a peer has for its own questions
_PAUSE = 0.2  # seconds before a peer that is not there is asked again
_MARGIN = 1.5  # by which a suggested period exceeds what was measured
_DOUBTFUL = dict.fromkeys(("tmpfs", "ramfs"), "forgets everything at a restart of the machine")
_DOUBTFUL |= dict.fromkeys(("nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs"), "is only as durable as another machine")

# What a transport says of a peer -> the state in a word or two, and whose fault it looks like.
_SIGNS = (
    ("refused: nothing listens", "not there", THEIRS),
    ("wrong certificate", "wrong certificate", THEIRS),
    ("in another session", "other session", EITHER),
    ("another version", "other version", EITHER),
    ("another protocol", "other version", EITHER),
    ("refuses us in TLS", "refused", EITHER),
    ("does not believe", "refused", EITHER),
    ("too many errors", "refused", EITHER),
    ("closed the connection", "refused", THEIRS),
    ("does not speak TLS", "refused", THEIRS),
    ("no address", "no address", OURS),
    ("our own machine", "failed", OURS),
    ("no route", "no route", NETWORK),
    ("does not answer at all", "timed out", NETWORK),
    ("nothing answers", "timed out", NETWORK),
    ("timed out", "timed out", THEIRS),
)
_ADVICE = {
    "wrong certificate": "another key answers at its address than the roster has: compare fingerprints by telephone",
    "other session": "its roster is not ours: compare the session's id, as `inca node roster show` prints it",
    "other version": "it runs another version of inca",
}


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, in words and figures; `fault` says whose it looks like unless all is well."""

    what: str
    level: Literal["fine", "note", "problem"]
    text: str
    state: str = ""
    """For a peer: fine, not there, timed out, ... in a word or two."""
    fault: str = ""
    figures: Mapping[str, float | None] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        words = {"what": self.what, "level": self.level, "state": self.state or self.level, "text": self.text}
        return words | {"fault": self.fault or None} | dict(self.figures)


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
    checks = [_fine("roster", f"complete: {len(roster.parties)} parties, of which this is party {me}")]
    checks += [_beginning(setting, me, state / roster.session.hex()[:16])]
    peers: list[Finding] = []
    measured: dict[int, Measured] = {}
    if checks[-1].level == "problem":
        others = await asyncio.to_thread(_examine_machine, setting, me, state)
    else:
        visit = _Visit(setting, me)
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


def _fine(what: str, text: str, **figures: float) -> Finding:
    return Finding(what, "fine", text, figures=figures)


def _wrong(what: str, text: str, **figures: float) -> Finding:
    return Finding(what, "problem", text, fault=OURS, figures=figures)


def _gaps(roster: Roster, identity: Identity, me: int | None) -> Iterator[Finding]:
    for sentence in roster.missing:
        yield _wrong("roster", f"not complete: {sentence}")
    if me is None:
        yield _wrong("identity", f"the roster does not have the certificate of {identity.name}")


def _beginning(setting: Setting, me: int, folder: Path) -> Finding:
    """Is the session still to come, and does no node of this party run? Else the doctor would be in its way."""
    left = setting.roster.terms.start - time.time()
    if (folder / "ended.json").exists():
        return _wrong("start", "the session has ended here before, and a session is never held twice")
    if (folder / "journal.db").exists():
        try:
            Journal(folder / "journal.db", session=setting.session.id, party=me).close()
        except (InputError, JournalError) as error:
            return _wrong("start", str(error))
    if left <= 0:
        return _wrong("start", f"the session began {_length(-left)} ago: peers are left in peace", seconds_left=left)
    return _fine("start", f"in {_length(left)}", seconds_left=left)


def _examine_machine(setting: Setting, me: int, state: Path) -> list[Finding]:
    """Try the disk, and work out the planned loss."""
    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        disk = [_space(setting, state), _journal(setting, state)]
    except OSError as error:
        disk = [_wrong("journal", f"{state} cannot be used: {error.strerror or error}")]
    return [*disk, _loss(setting, me)]


def _space(setting: Setting, state: Path) -> Finding:
    free, mode = shutil.disk_usage(state).free, stat.S_IMODE(state.stat().st_mode)
    try:
        check_room(state, setting)
    except InputError as error:
        return _wrong("space", str(error), free=free)
    if mode & 0o022:
        return _wrong("space", f"the mode of {state} is {mode:04o}: others can replace what is in it", free=free)
    return _fine("space", f"{free / 2**30:.1f} GiB are free, enough", free=free)


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
            return _wrong("journal", str(error))
    rate, middle, slowest = trials / sum(times), sorted(times)[trials // 2], max(times)
    figures = {"commits": trials, "commits_per_second": rate, "median": middle, "slowest": slowest}
    if any(mode & 0o077 for mode in modes):
        return _wrong("journal", f"{state} does not keep files private: their mode is {modes[-1]:04o}", **figures)
    if kept != trials:
        return _wrong("journal", f"of {trials} records only {kept} could be read again", **figures)
    text = f"{rate:,.0f} durable commits per second, {1e3 * middle:.1f} ms each, the slowest {1e3 * slowest:.1f} ms"
    if doubt := _DOUBTFUL.get(kind := _file_system(state)):
        return Finding("journal", "note", f"{text}; but {kind} {doubt}", fault=OURS, figures=figures)
    return _fine("journal", text, **figures)


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
        return _fine("loss", "worked out when the parties have tossed the seed, before anything is sent")
    planned = Judge(setting.roster, setting.session.topology(seed), seed).planned(me)
    figures = {"epsilon": planned.epsilon, "allowed": planned.allowed, "coalitions": planned.coalitions}
    if planned.refusal:
        return _wrong("loss", f"even with everyone present {planned.refusal}", **figures)
    return _fine("loss", f"epsilon {planned.epsilon:.4g} of {planned.allowed:g} with everyone present", **figures)


def _period(setting: Setting, measured: Mapping[int, Measured], write: float) -> Finding:
    """Does a round leave time for clocks that are wrong, two round trips and a durable write?"""
    period, clocks = setting.roster.terms.period, 2.0 * setting.roster.terms.clock_bound
    trips = 2.0 * max((each.round_trip for each in measured.values()), default=0.0)
    needed = clocks + trips + write
    parts = f"clocks {clocks:g} s, round trips {trips:.2g} s, durable write {write:.2g} s"
    if needed < period:
        return _fine(
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


# --- peers ----------------------------------------------------------------------------------------------------------


class _Visit:
    """Shakes hands with all peers; the listener of a transport that sends nothing but hellos and pings."""

    def __init__(self, setting: Setting, me: int) -> None:
        self._roster, self._setting, self._me = setting.roster, setting, me
        self._failures: dict[int, str] = {}
        self._arrived: dict[int, asyncio.Event] = {}
        self._last = 0.0  # when a peer was reached last
        self.strangers: list[Finding] = []

    def received(self, peer: int, frame: bytes) -> None:
        """Ignore what a waiting node says: it will say it again to ours."""

    def unsent(self, peer: int, token: object) -> None:
        """Nothing was sent."""

    def down(self, peer: int, reason: str) -> None:
        """`measure` tells as much."""

    def up(self, peer: int) -> None:
        """Ask a peer that has come to us at once: it may not stay."""
        self._last = time.monotonic()
        self._arrived.setdefault(peer, asyncio.Event()).set()

    def note(self, event: str, **fields: object) -> None:
        """Remember who knocked and could not come in."""
        if event == "fault" and fields.get("peer") is None and len(self.strangers) < _TOGETHER:
            text = f"was turned away: it {fields['reason']}"
            self.strangers.append(Finding(str(fields["address"]), "note", text, "stranger", EITHER))

    @asynccontextmanager
    async def open(self, identity: Identity, seconds: float, listen: tuple[str, int] | None) -> AsyncIterator[Finding]:
        """Listen where the party will."""
        roster, card = self._roster, self._roster.parties[self._me]
        self._transport = Transport(
            me=self._me,
            addresses=[(each.host, each.port) for each in roster.parties],
            session=roster.session,
            server=server_context(identity, roster),
            client=client_context(identity, roster),
            identify=roster.index,
            limits=replace(limits_for(self._setting), handshake=0.8 * seconds, hello=0.8 * seconds),
            listener=self,
        )
        host, port = listen or (card.host, card.port)
        try:
            await self._transport.start(host, port)
        except OSError as error:
            yield _wrong("address", f"cannot listen on {host}:{port}: {error.strerror or error}")
            return
        try:
            yield _fine("address", f"listens on {host}:{port}")
        finally:
            await self._transport.close()

    async def meet(self, seconds: float) -> dict[int, Measured]:
        """Compare clocks with every peer that shows up in time."""
        until, room = time.monotonic() + seconds, asyncio.Semaphore(_TOGETHER)
        peers = [peer for peer in range(len(self._roster.parties)) if peer != self._me]

        async def ask(peer: int) -> Measured | None:
            while True:
                async with room:
                    try:
                        left = max(_PAUSE, until - time.monotonic())
                        return await asyncio.wait_for(self._transport.measure(peer), left)
                    except Unreachable as error:
                        self._failures[peer] = str(error)
                    except TimeoutError:
                        self._failures.setdefault(peer, f"timed out: it did not answer within {seconds:g} s")
                # Only who is not there yet is asked again: a party that refuses us counts our attempts.
                if _state(self._failures[peer])[0] != "not there" or time.monotonic() + _PAUSE > until:
                    return None
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._arrived.setdefault(peer, asyncio.Event()).wait(), _PAUSE)
                self._arrived[peer].clear()

        found = await asyncio.gather(*map(ask, peers))
        return {peer: each for peer, each in zip(peers, found, strict=True) if each is not None}

    async def stay(self) -> None:
        """Wait until a peer that was reached a moment ago has had time to compare clocks with us, too."""
        await asyncio.sleep(self._last + _STAY - time.monotonic())

    def findings(self, measured: dict[int, Measured]) -> list[Finding]:
        """Say what was found of every peer."""
        names, bound = self._roster.names, self._roster.terms.clock_bound
        found = [
            self._measured(peer, measured[peer], bound)
            if peer in measured
            else self._missed(peer, self._failures[peer])
            for peer in range(len(names))
            if peer != self._me
        ]
        answered = [each for each in found if each.state not in ("not there", "timed out", "no route")]
        return [_blamed(each, answered) for each in found]

    def _measured(self, peer: int, each: Measured, bound: float) -> Finding:
        figures = {"offset": each.offset, "round_trip": each.round_trip}
        name, text = self._roster.names[peer], f"clock {each.offset:+.3f} s, round trip {1e3 * each.round_trip:.1f} ms"
        if abs(each.offset) > bound:
            text = f"its clock is {each.offset:+.3f} s off ours, but at most {bound:g} s was agreed"
            return Finding(name, "problem", text, "clock off", EITHER, figures)
        if uncertainty(each) > bound:
            text = f"a round trip of {each.round_trip:.3g} s leaves its clock uncertain by more than {bound:g} s"
            return Finding(name, "problem", text, "too slow", NETWORK, figures)
        return Finding(name, "fine", text, "fine", "", figures)

    def _missed(self, peer: int, failure: str) -> Finding:
        state, fault = _state(failure)
        name, address = self._roster.names[peer], self._roster.parties[peer].address
        if state == "not there":
            return Finding(name, "note", f"nothing listens at {address} yet", state, fault)
        return Finding(name, "problem", f"{_ADVICE[state]} ({failure})" if state in _ADVICE else failure, state, fault)


def _state(failure: str) -> tuple[str, str]:
    """Return what a failure is in a word or two, and whose fault it looks like."""
    return next(((state, fault) for sign, state, fault in _SIGNS if sign in failure), ("failed", EITHER))


def _blamed(finding: Finding, answered: list[Finding]) -> Finding:
    """If most of those who answered have the same trouble with us it is ours; if one of several has, it is theirs."""
    if finding.fault != EITHER or len(answered) < 2:
        return finding
    alike = sum(each.state == finding.state for each in answered)
    return replace(finding, fault=OURS if alike > len(answered) / 2 else THEIRS if alike == 1 else EITHER)
