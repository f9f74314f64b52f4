"""Several averages of the same parties, one session after the other, each of which may depend on those before.

All follow from one roster: it says who takes part, the protocol, and noise for one average of some distance and loss,
which scales to others. Session k begins (k - 1) intervals after the roster's start. Before that the parties meet, so
that whoever missed a result gets it (`catch_up`), and then gather for the session. Who is too late for one
waits for the next meeting.

A course is a program that asks for averages, and every party runs the same. Each outcome is kept on disk before the
program sees it. A program that was stopped is started again from the beginning, is given the same outcomes, and goes
on.
"""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from inca._base.files import null_for_infinity, write_json
from inca._base.types import Array
from inca._base.validation import InputError, finite_array, positive, refuse
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster, Terms
from inca.network.node.event_log import fields_of
from inca.network.node.runner import attend
from inca.network.node.session_setup import Setting
from inca.network.protocol.fixed_point import granularity_for
from inca.network.sequence.catch_up import Heard, Meeting
from inca.network.sequence.outcome_log import Chain, last_result
from inca.privacy.gaussian import epsilon_for, mu_for

FORMAT = "inca-course/1"
_AFTER_ROUNDS = 13  # periods that a session lasts at most after its last round (docs/network.md)
_PATIENCE = 3  # meetings in a row at which nobody else was
_SLACK = 1e-9  # relative, for rounding where a loss is exactly what was agreed


class Stopped(InputError):
    """A course that cannot go on now, and can when it is started again."""

    status = 1


@dataclass(frozen=True)
class Asked:
    """What a program asks for: numbers with a `reach`, of which those at most `distance` apart look alike up to mu."""

    dimension: int
    reach: float
    distance: float
    mu: float


@dataclass(frozen=True, eq=False)
class Outcome:
    """An average, None if there was no result, and the noise in each coordinate, None if this party cannot tell."""

    average: Array | None
    standard_error: float | None


class Course:
    """A party's way through a sequence of sessions; `average` takes the next step, `end` stays for a last meeting."""

    def __init__(
        self,
        roster: Roster,
        identity: Identity,
        folder: str | Path,
        *,
        interval: float | None = None,
        gathering: float | None = None,
        limit: float | None = None,
        listen: tuple[str, int] | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """Go on from what is in the folder.

        All parties must use the same `interval` between starts (by default what a session lasts at most, and twice the
        gathering) and the same `gathering` (by default two periods, but at least five seconds): so long a meeting
        lasts, and as long the parties gather after it.

        A session in which more went wrong than the noise was made for can give away more than was agreed. With a
        `limit`, the largest mu for all sessions, this party stays away from those that would exceed it, and asks the
        others for their results.
        """
        roster.check_complete()
        me = roster.index(identity.certificate)
        if me is None:
            raise InputError(f"the identity of {identity.name!r} is not in the roster {roster.name!r}")
        self.roster, self.me, self._identity, self._listen = roster, me, identity, listen
        self._interval, self._gathering = self.times(roster.terms, interval, gathering)
        importlib.import_module("inca.network.testing.preload")  # now, and not when a session begins
        self._tell = tell or (lambda text: None)
        self.chain = Chain(Path(folder))
        self._limit = math.inf if limit is None else positive("limit", limit)
        self._number = self._alone = 0
        self._lost = 0.0  # the mu of all sessions that the program has been through

    @staticmethod
    def times(terms: Terms, interval: float | None = None, gathering: float | None = None) -> tuple[float, float]:
        """Return interval and gathering in seconds, by default those that are always enough."""
        meeting = positive("gathering", max(5.0, 2.0 * terms.period) if gathering is None else gathering)
        longest = (terms.rounds + _AFTER_ROUNDS) * terms.period + 2.0 * meeting
        between = positive("interval", longest if interval is None else interval)
        if between <= 2.0 * meeting:
            raise refuse("interval", between, f"more than a meeting and a gathering ({2.0 * meeting:g} s)")
        return between, meeting

    def start(self, number: int) -> float:
        """Return when a session begins, as Unix time."""
        return self.roster.terms.start + (number - 1) * self._interval

    def average(self, value: Array, *, reach: float, distance: float, mu: float) -> Outcome:
        """Average one vector of each party, at most `reach` long; those `distance` apart are protected with loss mu."""
        row = finite_array("value", value, (1,), "one vector")
        asked = Asked(row.size, positive("reach", reach), positive("distance", distance), positive("mu", mu))
        self._number += 1
        number = self._number
        self._remember(number, asked)
        while self.chain.settled < number:
            self._advance(number, row, asked)
        self._lost = math.hypot(self._lost, self._loss(number))
        return Outcome(self.chain.average(number), self.chain.noise(number))

    def end(self) -> None:
        """Stay for the meeting after the last session, for those who missed its result; write `course.json`."""
        write_json(self.chain.folder / "course.json", self.report(), indent=1)
        if self._number and time.time() < self._gather(self._number + 1):
            self._meet(self._number + 1)

    def result(self, number: int) -> dict[str, Any]:
        """Return what this party reported of a session; empty if it did not take part to its end."""
        found = [fields_of(place / "result.json") for place in self._held(number)]
        return found[0] if len(found) == 1 else {}

    def report(self) -> dict[str, Any]:
        """Return what the sessions gave away of this party: what was agreed, and what came about."""
        terms, rows, asked = self.roster.terms, [], 0.0
        for number in range(1, self.chain.settled + 1):
            agreed = fields_of(self._asked(number)).get("mu", 0.0) if self._held(number) else 0.0
            asked = math.hypot(asked, agreed)
            row = {"number": number, "took_part": bool(self._held(number)), "mu": agreed, "own_mu": self._loss(number)}
            row |= {"result": self.chain.average(number) is not None, "reason": self.result(number).get("reason", "")}
            rows.append(row)
        own = math.hypot(*(row["own_mu"] for row in rows))
        epsilon, own = (float(epsilon_for(mu, terms.delta, terms.rule)) for mu in (asked, own))
        whole = {"format": FORMAT, "name": self.roster.name, "party": self.roster.names[self.me], "delta": terms.delta}
        return dict(null_for_infinity(whole | {"epsilon": epsilon, "own_epsilon": own, "sessions": rows}))

    def _loss(self, number: int) -> float:
        """Return the mu that this party lost in a session: on the execution that came about, or what was agreed."""
        if not self._held(number):
            return 0.0
        fields, terms = self.result(number), self.roster.terms
        if (own := fields.get("epsilon")) is not None:
            return mu_for(own, terms.delta, terms.rule) if own > 0.0 else 0.0
        worked_out = fields.get("coalitions") is not None  # and then null stands for infinity
        return math.inf if worked_out else float(fields_of(self._asked(number)).get("mu", 0.0))

    # --- the next session -------------------------------------------------------------------------------------------

    def _advance(self, number: int, row: Array, asked: Asked) -> None:
        """Come nearer to the outcome of a session: take part in it, or ask others about it."""
        setting = Setting(self._roster_of(number, asked))
        place = self.chain.place(number) / "sessions" / setting.roster.session.hex()[:16]
        others = [each for each in self._held(number) if each != place]
        if others or (place / "ended.json").exists():
            fields = {} if others else self.result(number)
        elif not self._in_time(number, place) or not self._within_limit(number, asked.mu):
            fields = {}
        else:
            if number > 1 and time.time() < self._gather(number):
                self._meet(number)
                if self.chain.settled >= number:  # by another's clock the session is over
                    return
            fields = self._hold(number, setting, place, row)
        if (average := fields.get("estimate")) is not None:
            numbers = np.atleast_1d(np.asarray(average, dtype=np.float64))
            self.chain.settle(number, numbers, fields["standard_error"])
        else:
            self._ask_around(number)

    def _hold(self, number: int, setting: Setting, place: Path, row: Array) -> dict[str, Any]:
        self._tell(f"session {number}: {row.size:,} numbers")
        # What a row is longer than agreed by rounding is clipped away.
        fields = attend(setting, self._identity, place, lambda: row, clip=True, listen=self._listen, shred=True)
        if fields is None:
            raise Stopped(f"session {number} was stopped by a signal; it goes on when this is started again")
        who = f"{fields['present']} parties" if fields["estimate"] is not None else f"no result: {fields['reason']}"
        self._tell(f"session {number}: {who}")
        return fields

    def _in_time(self, number: int, place: Path) -> bool:
        """Whether a session can still be joined; who was in it may come back as long as others may be there."""
        back = (place / "journal.db").exists()
        return time.time() < (self.start(number + 1) - 2.0 * self._gathering if back else self.start(number))

    def _within_limit(self, number: int, mu: float) -> bool:
        """Whether this party can afford to take part; in a session it has begun, it may."""
        if self._held(number) or math.hypot(self._lost, mu) <= self._limit * (1.0 + _SLACK):
            return True
        self._tell(f"session {number}: stays away, since earlier ones gave away more than was agreed")
        return False

    def _held(self, number: int) -> list[Path]:
        """Return the folders of sessions of this number in which this party took part: never more than one."""
        return sorted((self.chain.place(number) / "sessions").glob("*"))

    def _roster_of(self, number: int, asked: Asked) -> Roster:
        """Return the roster of a session; its name tells the outcomes before it, so it has its own id.

        A toss of the seed needs every party. As soon as there is a result, with the noise of all who were there in it,
        the next seed is a hash of the results: nobody could know it before.
        """
        name = hashlib.sha256(b"inca-course/1" + self.roster.session + self.chain.mark()).hexdigest()
        terms = terms_for(self.roster.terms, asked, len(self.roster.parties))
        changes: dict[str, Any] = {"start": self.start(number)}
        if terms.seed is not None or last_result(self.chain.outcomes):
            changes["seed"] = hashlib.sha256(
                b"inca-seed/1" + bytes.fromhex(terms.seed or "") + name.encode()
            ).hexdigest()
        return Roster(f"{number} {name[:48]}", msgspec.structs.replace(terms, **changes), self.roster.parties)

    def _remember(self, number: int, asked: Asked) -> None:
        """Refuse a program that asks for something else than it did before: its losses would not be those planned."""
        path = self._asked(number)
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(path, asdict(asked))
        elif (before := fields_of(path)) != asdict(asked):
            raise InputError(
                f"average {number} is asked for with {asdict(asked)}, but was with {before} before: the program or "
                "what it was given has changed"
            )

    def _asked(self, number: int) -> Path:
        return self.chain.place(number) / "asked.json"

    # --- meetings -----------------------------------------------------------------------------------------------------

    def _gather(self, number: int) -> float:
        """Return when a meeting ends and the session after it is gathered for."""
        return self.start(number) - self._gathering

    def _meet(self, number: int) -> Heard:
        """Hold the meeting before a session."""
        time.sleep(max(0.0, self._gather(number) - self._gathering - time.time()))
        meeting = Meeting(self.roster, self.me, self.chain, number)
        try:
            heard = asyncio.run(meeting.hold(self._identity, self._gather(number), self._listen))
        except OSError as error:
            raise InputError(f"cannot listen for the others: {error.strerror or error}") from None
        if heard.adopted is not None:
            whose = self.roster.names[heard.adopted]
            self._tell(f"meeting before session {number}: took over what {whose} knows")
        if heard.changed:
            raise Stopped("more than half of the parties agreed on other results than this one knew: start it again")
        return heard

    def _ask_around(self, number: int) -> None:
        """Learn at the next meeting what became of a session; what nobody there knows a result of has none."""
        coming = number + 1
        while time.time() >= self._gather(coming):
            coming += 1
        self._tell(f"session {number}: no result here, asks the others before session {coming}")
        if self._meet(coming).peers:
            self._alone = 0
            for each in range(self.chain.settled + 1, coming):
                self.chain.settle(each, None)
            return
        self._alone += 1
        if self._alone >= _PATIENCE:
            raise Stopped(f"nobody else was there at {_PATIENCE} meetings: start it again when the others are back")


def terms_for(base: Terms, asked: Asked, parties: int) -> Terms:
    """Return terms with noise in proportion to distance / mu, a little more for rounding values to the lattice.

    Rounded to a step, two vectors are at most step sqrt d further apart.
    """
    scale = asked.distance / base.sensitivity * mu_for(base.epsilon, base.delta, base.rule) / asked.mu
    independent, cancelling = scale * base.sigma_independent, scale * base.sigma_cancelling
    step = granularity_for(independent, cancelling, asked.reach, parties, base.rounds)
    rounding = 1.0 + step * math.sqrt(asked.dimension) / asked.distance
    radius = max(asked.reach, asked.distance / 2.0)
    return msgspec.structs.replace(
        base,
        dimension=asked.dimension,
        lower=None,
        upper=None,
        radius=radius,
        distance=asked.distance if asked.distance < 2.0 * radius else None,
        sigma_independent=independent * rounding,
        sigma_cancelling=cancelling * rounding,
        epsilon=float(epsilon_for(asked.mu * (1.0 + _SLACK), base.delta, base.rule)),
    )
