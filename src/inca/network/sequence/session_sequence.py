"""Several averages of the same parties, one session after the other, each of which may depend on those before.

All follow from one roster: it says who takes part, the protocol, and noise for one average of some sensitivity and
loss, which scales to others. Session k begins (k - 1) intervals after the roster's start. Before that the parties catch
up, so that whoever missed a result gets it (`catch_up`), and then gather for the session. Who is too late for one
waits for the next time to catch up.

A program asks for averages, and every party runs the same. Each outcome is kept on disk before the program sees it. A
program that was stopped is started again from the beginning, is given the same outcomes, and goes on.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import msgspec

from inca._base.files import null_for_infinity, write_json
from inca._base.types import Array
from inca._base.validation import finite_array, positive, refuse
from inca.documents.result import ResultDocument, session_cost
from inca.errors import InvalidInput, OtherRoster, SequencePaused
from inca.network.lattice.fixed_point import granularity_for
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.node.event_log import fields_of
from inca.network.node.journal import shred_files
from inca.network.node.node import NodeOptions
from inca.network.node.report import kept_result
from inca.network.node.runner import run_party
from inca.network.node.session_clock import session_clock
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess
from inca.network.node.warm_up import warm_up
from inca.network.protocol.stages import periods_after_rounds
from inca.network.sequence.catch_up import CatchUp, CatchUpResult, needed_vouchers
from inca.network.sequence.outcome_log import OutcomeLog, SessionResult, last_result
from inca.privacy.gaussian import epsilon_for, mu_for
from inca.protocol.noise_levels import NoiseLevels

FORMAT = "inca-course/1"
_SMALLER_COHORTS = 2  # for which a session has time by default: some refuse or vanish at the end, and then some more
_MIN_GATHERING_S = 5.0  # by default
_MAX_TIMES_ALONE = 3  # in a row, with nobody else there to catch up with
_ROUNDING_SLACK = 1e-9  # relative, where a loss is exactly what was agreed


class AverageRequest(msgspec.Struct, frozen=True):
    """What a program asks for; kept as *asked.json*."""

    dimension: int
    max_norm: float = msgspec.field(name="reach")
    distance: float
    mu: float


@dataclass(frozen=True, eq=False)
class SessionOutcome:
    """The outcome of a session."""

    estimate: Array | None
    """The average; None if there was no result."""
    standard_error: float | None
    """The standard deviation of the noise in each coordinate; None if this party cannot tell."""


class SessionSequence:
    """A party's way through a sequence of sessions: `average` holds the next one, `finish` is called after the last.

    A session in which more went wrong than the noise was made for can give away more than was agreed. This party stays
    away from sessions that would exceed `max_mu`, and asks the others for their results.

    Args:
        roster: Who takes part, and on which terms.
        identity: This party's keys.
        folder: Where outcomes are kept; what is there already is not asked for again.
        interval: Seconds between the starts of two sessions, the same for all parties; by default what a session lasts
            at most, and twice the gathering.
        gathering: Seconds for catching up before a session, and again for gathering, the same for all parties; by
            default two periods, but at least five seconds.
        max_mu: The largest loss of all sessions together that this party accepts; by default what the program has asked
            for up to the next session, or has said by `allow` that it will.
        access: How this machine takes part in the network.
        notify: Called with a sentence about what happens.
    """

    def __init__(
        self,
        roster: Roster,
        identity: Identity,
        folder: str | Path,
        *,
        interval: float | None = None,
        gathering: float | None = None,
        max_mu: float | None = None,
        access: NetworkAccess | None = None,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        roster.check_complete()
        self.roster, self.me, self._identity = roster, roster.party_of(identity), identity
        self._access = access or NetworkAccess()
        self._interval, self._gathering = self.times(roster.terms, interval, gathering)
        self._max_mu = None if max_mu is None else positive("max_mu", max_mu)
        self._mu_allowed = 0.0
        warm_up()  # now, and not when a session begins
        self._notify = notify or (lambda text: None)
        self._clock = session_clock()  # one for all sessions, which may take days
        self.outcome_log = OutcomeLog(Path(folder))
        self._number = self._times_alone = 0
        self._mu_agreed = self._mu_spent = 0.0  # in all sessions that the program has been through

    @staticmethod
    def times(terms: Terms, interval: float | None = None, gathering: float | None = None) -> tuple[float, float]:
        """Return interval and gathering in seconds, as agreed on or by default.

        The default is enough for a session whose cohort shrinks twice at the end.
        """
        default = max(_MIN_GATHERING_S, 2.0 * terms.period)
        gathering_s = positive("gathering", default if gathering is None else gathering)
        longest = (terms.rounds + periods_after_rounds(_SMALLER_COHORTS)) * terms.period + 2.0 * gathering_s
        interval_s = positive("interval", longest if interval is None else interval)
        if interval_s <= 2.0 * gathering_s:
            refuse("interval", interval_s, f"above two gatherings ({2.0 * gathering_s:g} s)")
        return interval_s, gathering_s

    def start(self, number: int) -> float:
        """Return when a session begins, as Unix time."""
        return self.roster.terms.start + (number - 1) * self._interval

    def allow(self, mu: float) -> None:
        """Say how much all sessions together may give away, those to come included: the budgets they are taken from.

        A limit that the party has set itself, `max_mu`, stays.
        """
        self._mu_allowed = positive("mu", mu)

    def average(self, value: Array, *, max_norm: float, distance: float, mu: float) -> SessionOutcome:
        """Average one vector of each party in the next session, or return its outcome if it is known.

        Args:
            value: This party's vector.
            max_norm: A bound on the Euclidean norm of every party's vector.
            distance: Two vectors at most so far apart must be indistinguishable up to mu.
            mu: The loss of the session.

        Raises:
            InvalidInput: If the program asks for something else than it did when it was started before.
            SequencePaused: If the sequence cannot go on now.
        """
        row = finite_array("value", value, (1,), "one vector")
        bounds = positive("max_norm", max_norm), positive("distance", distance), positive("mu", mu)
        request = AverageRequest(row.size, *bounds)
        self._number += 1
        number = self._number
        self._remember(number, request)
        self._mu_agreed = math.hypot(self._mu_agreed, request.mu)
        while len(self.outcome_log) < number:
            self._advance(number, row, request)
        for place in self._taken_part(number):  # nobody goes on with a session whose outcome is known
            if (journal := place / "journal.db").exists():  # a killed process has left it
                shred_files(journal)
        self._mu_spent = math.hypot(self._mu_spent, self._loss(number))
        known = self.outcome_log.result(number)
        return SessionOutcome(None, None) if known is None else SessionOutcome(known.average, known.standard_error)

    def finish(self) -> None:
        """Write *course.json*, and stay for those who missed the last result to catch up."""
        write_json(self.outcome_log.folder / "course.json", self.report(), indent=1)
        if self._number and self._clock() < self._catch_up_ends(self._number + 1):
            self._catch_up(self._number + 1)

    def result(self, number: int) -> ResultDocument | None:
        """Return this party's result of a session; None if it did not take part to its end."""
        results = [kept_result(place) for place in self._taken_part(number)]
        return results[0] if len(results) == 1 else None

    def report(self) -> dict[str, Any]:
        """Return this party's loss in all sessions: as agreed, and on the realized executions."""
        terms, rows, mu_agreed = self.roster.terms, [], 0.0
        for number in range(1, len(self.outcome_log) + 1):
            took_part = bool(self._taken_part(number))
            mu = fields_of(self._request_path(number)).get("mu", 0.0) if took_part else 0.0
            mu_agreed = math.hypot(mu_agreed, mu)
            row: dict[str, Any] = {"number": number, "took_part": took_part, "mu": mu, "own_mu": self._loss(number)}
            row["result"] = self.outcome_log.result(number) is not None
            result = self.result(number)
            rows.append(row | {"reason": "" if result is None else result.reason})
        mu_own = math.hypot(*(row["own_mu"] for row in rows))
        epsilon, own_epsilon = (float(epsilon_for(mu, terms.delta, terms.rule)) for mu in (mu_agreed, mu_own))
        fields = {"format": FORMAT, "name": self.roster.name, "party": self.roster.names[self.me], "delta": terms.delta}
        return dict(null_for_infinity(fields | {"epsilon": epsilon, "own_epsilon": own_epsilon, "sessions": rows}))

    def _loss(self, number: int) -> float:
        """Return the mu that this party lost in a session at most (`session_cost`)."""
        if not self._taken_part(number):
            return 0.0
        result, terms = self.result(number), self.roster.terms
        agreed = float(fields_of(self._request_path(number)).get("mu", 0.0))
        # Not the epsilon that the result calls agreed: were it larger, a loss below it would be charged as `agreed`.
        cost = session_cost(result, float(epsilon_for(agreed, terms.delta, terms.rule)))
        if cost.why in ("agreed", "not in the result", "not all coalitions"):
            return agreed
        return mu_for(cost.epsilon, terms.delta, terms.rule) if 0.0 < cost.epsilon < math.inf else cost.epsilon

    # --- the next session -------------------------------------------------------------------------------------------

    def _advance(self, number: int, row: Array, request: AverageRequest) -> None:
        """Come nearer to the outcome of a session: take part in it, or ask others about it."""
        setup = SessionSetup(self._roster_of(number, request))
        place = self.outcome_log.session_folder(number) / "sessions" / setup.roster.session.hex()[:16]
        in_another = any(folder != place for folder in self._taken_part(number))
        if in_another or (place / "ended.json").exists():
            result = None if in_another else self.result(number)
        elif not self._in_time(number, place) or not self._affordable(number, request.mu):
            result = None
        else:
            if number > 1 and self._clock() < self._catch_up_ends(number):
                self._catch_up(number)
                if len(self.outcome_log) >= number:  # by another's clock the session is over
                    return
            result = self._hold(number, setup, place, row)
        if result is None or (estimate := self._estimate(number, result, place)) is None:
            self._ask_around(number)
        else:
            beacon = bytes.fromhex(result.beacon)
            self.outcome_log.append(number, SessionResult(estimate, result.standard_error, beacon))

    def _estimate(self, number: int, result: ResultDocument, place: Path) -> Array | None:
        """Return the estimate of a result of this party; None if there is none, or its archive is damaged."""
        try:
            return result.vector(place, "estimate") if result.has_result else None
        except InvalidInput as error:  # the others have the same
            self._notify(f"session {number}: {error}")
            return None

    def _hold(self, number: int, setup: SessionSetup, place: Path, row: Array) -> ResultDocument | None:
        self._notify(f"session {number}: {row.size:,} numbers")
        new = not place.exists()
        try:
            # What a row is longer than agreed by rounding is clipped away.
            wait_until = self.start(number + 1) - 2.0 * self._gathering  # then the others are asked for the outcome
            options = NodeOptions(clip=True, access=self._access, clock=self._clock, unfinished_until=wait_until)
            result = run_party(setup, self._identity, place, lambda: row, options, shred=True)
        except OtherRoster as error:
            # They know other outcomes, or say so. When the parties catch up next, it will turn out.
            self._notify(f"session {number}: not held with the others: {error}")
            if new:
                shutil.rmtree(place)  # nothing was sent: it did not take part
            return None
        if result is None:
            raise SequencePaused(f"session {number} was stopped by a signal; it goes on when this is started again")
        outcome = f"no result: {result.reason}" if not result.has_result else f"{result.present} parties"
        self._notify(f"session {number}: {outcome}")
        return result

    def _in_time(self, number: int, place: Path) -> bool:
        """Whether a session can still be joined; who was in it may come back as long as others may be there."""
        back = (place / "journal.db").exists()
        return self._clock() < (self.start(number + 1) - 2.0 * self._gathering if back else self.start(number))

    def _affordable(self, number: int, mu: float) -> bool:
        """Whether this party can afford to take part; in a session it has begun, it may."""
        limit = max(self._mu_agreed, self._mu_allowed) if self._max_mu is None else self._max_mu
        if math.hypot(self._mu_spent, mu) <= limit * (1.0 + _ROUNDING_SLACK) or self._taken_part(number):
            return True
        self._notify(f"session {number}: stays away, since earlier ones gave away more than was agreed")
        return False

    def _taken_part(self, number: int) -> list[Path]:
        """Return the folders of sessions of this number in which this party took part: never more than one."""
        return sorted((self.outcome_log.session_folder(number) / "sessions").glob("*"))

    def _roster_of(self, number: int, request: AverageRequest) -> Roster:
        """Return the roster of a session; its name tells the outcomes before it, so it has its own id.

        A coin flip for the seed, if one is needed, needs every party. As soon as there is a result, the next seed is a
        hash of the results and their beacons, to which all had committed before any was opened: nobody could know or
        choose it before.
        """
        name = hashlib.sha256(b"inca-course/1" + self.roster.session + self.outcome_log.digest()).hexdigest()
        terms = terms_for(self.roster.terms, request, len(self.roster.parties))
        changes: dict[str, Any] = {"start": self.start(number)}
        if terms.seed is not None or (terms.needs_seed and last_result(self.outcome_log.outcomes)):
            base = b"inca-seed/1" + bytes.fromhex(terms.seed or "")
            changes["seed"] = hashlib.sha256(base + name.encode()).hexdigest()
        return replace(self.roster, name=f"{number} {name[:48]}", terms=msgspec.structs.replace(terms, **changes))

    def _remember(self, number: int, request: AverageRequest) -> None:
        """Refuse a program that asks for something else than it did before: its losses would not be those planned."""
        path, fields = self._request_path(number), msgspec.to_builtins(request)
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_json(path, fields)
        elif (before := fields_of(path)) != fields:
            raise InvalidInput(
                f"average {number} must be asked for with {before}, as before, got {fields}: the program or its input "
                "has changed"
            )

    def _request_path(self, number: int) -> Path:
        return self.outcome_log.session_folder(number) / "asked.json"

    # --- catching up ------------------------------------------------------------------------------------------------

    def _catch_up_ends(self, number: int) -> float:
        """Return when the parties stop catching up and gather for a session."""
        return self.start(number) - self._gathering

    def _catch_up(self, number: int) -> CatchUpResult:
        """Catch up before a session."""
        time.sleep(max(0.0, self._catch_up_ends(number) - self._gathering - self._clock()))
        catch_up = CatchUp(self.roster, self.me, self.outcome_log, number, self._clock)
        result = asyncio.run(catch_up.hold(self._identity, self._catch_up_ends(number), self._access))
        if result.adopted_from is not None:
            self._notify(f"before session {number}: caught up with {self.roster.names[result.adopted_from]}")
        if result.changed:
            names = ", ".join(self.roster.names[peer] for peer in sorted(result.vouched_by))
            raise SequencePaused(
                f"{names} know of other results than this party knew, which it has taken over: start it again"
            )
        return result

    def _ask_around(self, number: int) -> None:
        """Learn when the parties next catch up what became of a session; what nobody has a result of has none."""
        coming = number + 1
        while self._clock() >= self._catch_up_ends(coming):
            coming += 1
        self._notify(f"session {number}: no result here, asks the others before session {coming}")
        if len(self._catch_up(coming).peers) >= needed_vouchers(self.roster):
            self._times_alone = 0
            for unknown in range(len(self.outcome_log) + 1, coming):
                self.outcome_log.append(unknown, None)
            return
        self._times_alone += 1
        if self._times_alone >= _MAX_TIMES_ALONE:
            raise SequencePaused(
                f"at least {needed_vouchers(self.roster)} others must be there to catch up with, got fewer "
                f"{_MAX_TIMES_ALONE} times in a row: start it again when they are back"
            )


def terms_for(base: Terms, request: AverageRequest, parties: int) -> Terms:
    """Return terms with noise in proportion to distance / mu, a little more for rounding values to the lattice.

    Rounded to a step, two vectors are at most step sqrt d further apart.
    """
    scale = request.distance / base.sensitivity * mu_for(base.epsilon, base.delta, base.rule) / request.mu
    noise = NoiseLevels(
        independent=scale * base.sigma_independent,
        cancelling=scale * base.sigma_cancelling,
        topup=scale * base.topup(parties).most(base.min_participants),
    )
    step = granularity_for(noise, request.max_norm, parties, base.rounds)
    rounding = 1.0 + step * math.sqrt(request.dimension) / request.distance
    radius = max(request.max_norm, request.distance / 2.0)
    return msgspec.structs.replace(
        base,
        dimension=request.dimension,
        lower=None,
        upper=None,
        radius=radius,
        distance=request.distance if request.distance < 2.0 * radius else None,
        sigma_independent=noise.independent * rounding,
        sigma_cancelling=noise.cancelling * rounding,
        sigma_together=scale * base.sigma_together * rounding,
        epsilon=float(epsilon_for(request.mu * (1.0 + _ROUNDING_SLACK), base.delta, base.rule)),
    )
