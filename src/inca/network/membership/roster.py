"""The roster: one file with the parties of a consortium and the terms of their run, the same for all of them.

Its hash is the session's id, so that parties with different rosters never talk to each other by mistake.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import force_setattr

from inca._base.files import write_json
from inca._base.validation import InputError, positive, real, refuse, whole
from inca.network.membership.identity import Card, check_name
from inca.privacy.gaussian import Rule, mu_for
from inca.privacy.theorems.failure_bounds import SCHEDULES
from inca.protocol.adversary import rounded_up
from inca.protocol.domain import Ball, Domain, Interval
from inca.protocol.injection import Injection, incremental
from inca.protocol.schedules import random_schedule

if TYPE_CHECKING:
    from inca.planning.plan import Plan

FORMAT = "inca-roster/1"
LEAST_PARTIES = 3  # of two, each learns the other's value from the average and its own

_WHOLE = {
    "rounds": (1, 10_000),
    "receivers": (1, 8),
    "dimension": (1, 10_000_000),
    "coalitions": (1, 10_000),
    "least_cohort": (2, 2**31 - 1),
}
_POSITIVE = ("sigma_independent", "sigma_cancelling", "epsilon", "period", "clock_bound")
_SEED = re.compile("(?:[0-9a-f]{2}){16,64}")
_YEAR_2100 = 4_102_444_800.0  # until then a float holds microseconds exactly enough to write and read them again


class Terms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the parties agree on: the protocol, its noise, where values lie, what is promised, and when it happens.

    Values have `dimension` coordinates, each from `lower` to `upper`, or a length of at most `radius`. The guarantee is
    (epsilon, delta)-DP by the `rule` against coalitions of a fraction `colluding` of the parties; every party checks it
    against so many random `coalitions` of that size. It is for any two values of a party, or, with a `distance`, for
    those at most so far apart: a value made of many records moves little if one of them changes. Without final messages
    of `least_cohort` parties there is no result. Round t = 1..T ends at the latest at `start` (Unix time, kept to the
    microsecond) + t `period` (seconds), by clocks that are wrong by at most `clock_bound` seconds; sooner if all is
    said, but not before it has lasted `pace` seconds, which gives those who crash time to come back. `seed`
    (hexadecimal) decides who sends to whom; with None the parties toss it.
    """

    rounds: int
    receivers: int
    schedule: str
    quiet_rounds: int
    sigma_independent: float
    sigma_cancelling: float
    dimension: int
    lower: float | None = None
    upper: float | None = None
    radius: float | None = None
    distance: float | None = None
    epsilon: float
    delta: float
    rule: Rule
    colluding: float
    coalitions: int = 20
    least_cohort: int
    start: float
    period: float
    clock_bound: float
    pace: float = 0.0
    seed: str | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense; numbers are kept as the file will have them, so that they hash alike."""
        for name, (least, most) in _WHOLE.items():
            force_setattr(self, name, whole(name, getattr(self, name), least, most))
        force_setattr(self, "quiet_rounds", whole("quiet_rounds", self.quiet_rounds, 0, self.rounds))
        for name in _POSITIVE:
            force_setattr(self, name, positive(name, getattr(self, name)))
        for name in ("colluding", "delta"):
            force_setattr(self, name, real(name, getattr(self, name), 0.0, 1.0))
        if self.schedule not in SCHEDULES:
            raise refuse("schedule", self.schedule, "one of " + ", ".join(SCHEDULES))
        self._check_domain()
        self._check_promise()
        force_setattr(self, "start", from_utc(to_utc(self.start)))
        if not self.clock_bound < self.period / 2.0:
            raise refuse("clock_bound", self.clock_bound, f"less than half of period ({self.period:g} s)")
        force_setattr(self, "pace", real("pace", self.pace, 0.0, self.period / 2.0))
        if self.seed is not None and not (isinstance(self.seed, str) and _SEED.fullmatch(self.seed)):
            raise refuse("seed", self.seed, "None, or 32 to 128 hexadecimal digits in lower case")

    @property
    def domain(self) -> Domain:
        """The set that every value lies in."""
        if self.lower is None or self.upper is None:
            return Ball(self.radius or 0.0)
        return Interval(self.lower, self.upper)

    @property
    def sensitivity(self) -> float:
        """The largest distance between two values of a party that must look alike: by default, of any two."""
        return self.domain.sensitivity(self.dimension) if self.distance is None else self.distance

    @property
    def injection(self) -> Injection:
        """How values and noise enter: in equal shares, with one noise term renewed per round."""
        return incremental(self.rounds, self.quiet_rounds)

    @classmethod
    def from_plan(
        cls,
        plan: Plan,
        *,
        dimension: int,
        lower: float | None = None,
        upper: float | None = None,
        radius: float | None = None,
        distance: float | None = None,
        start: float,
        period: float,
        clock_bound: float,
        least_cohort: int,
        coalitions: int = 20,
        pace: float = 0.0,
        seed: str | None = None,
    ) -> Terms:
        """Return the terms of a planned run; distances must be those that the plan's noise was made for."""
        wish, shape = plan.wish, plan.shape
        if shape.kind != "incremental":
            raise refuse("the injection of the plan", shape.kind, "incremental")
        planned: dict[str, Any] = {name: getattr(wish, name) for name in ("epsilon", "delta", "rule", "colluding")}
        planned |= {"rounds": shape.rounds, "receivers": shape.receivers, "schedule": shape.schedule}
        planned |= {"sigma_independent": plan.sigma_independent, "sigma_cancelling": plan.sigma_cancelling}
        bounds: dict[str, Any] = {"dimension": dimension, "lower": lower, "upper": upper, "radius": radius}
        bounds["distance"] = distance
        agreed: dict[str, Any] = {
            "start": start,
            "period": period,
            "clock_bound": clock_bound,
            "pace": pace,
            "seed": seed,
        }
        agreed |= {"least_cohort": least_cohort, "coalitions": coalitions, "quiet_rounds": shape.quiet}
        terms = cls(**planned, **bounds, **agreed)
        if not math.isclose(wish.sensitivity, terms.sensitivity, rel_tol=1e-12):
            whose = "the domain's" if distance is None else "the distance"
            raise refuse("the plan's sensitivity", wish.sensitivity, f"{whose} ({terms.sensitivity:.12g})")
        return terms

    def _check_domain(self) -> None:
        box = (self.lower is not None) + (self.upper is not None)
        if box + 2 * (self.radius is not None) != 2:
            given = {name: getattr(self, name) for name in ("lower", "upper", "radius")}
            raise refuse("the domain", given, "either lower and upper, or radius,")
        if self.lower is not None and self.upper is not None:
            for name in ("lower", "upper"):
                force_setattr(self, name, real(name, getattr(self, name)))
            if not self.lower < self.upper:
                raise refuse("upper", self.upper, f"a number above lower ({self.lower:g})")
        if self.radius is not None:
            force_setattr(self, "radius", positive("radius", self.radius))
        widest = positive("the sensitivity", self.domain.sensitivity(self.dimension))
        if self.distance is not None:
            force_setattr(self, "distance", positive("distance", self.distance))
            if self.distance > widest:
                raise refuse("distance", self.distance, f"at most the domain's diameter ({widest:.12g})")

    def _check_promise(self) -> None:
        if not 0.0 < self.delta < 1.0:
            raise refuse("delta", self.delta, "a number between 0 and 1 (Gaussian noise promises nothing at 0 or 1)")
        if self.rule not in ("exact", "classic"):
            raise refuse("rule", self.rule, "exact or classic")
        if not 0.0 < mu_for(self.epsilon, self.delta, self.rule) < math.inf:
            raise refuse("(epsilon, delta)", (self.epsilon, self.delta), "one that Gaussian noise can promise")


@dataclass(frozen=True)
class Roster:
    """The parties, in the order of their ids, and their terms; a name tells people what it is for."""

    name: str
    terms: Terms
    parties: tuple[Card, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parties that are not different ones."""
        check_name("the roster's name", self.name)
        for what, keys in (
            ("name", [unicodedata.normalize("NFKC", card.name).casefold() for card in self.parties]),
            ("key", [card.fingerprint for card in self.parties]),
            ("address", [card.place for card in self.parties]),
        ):
            first: dict[Hashable, int] = {}
            for party, key in enumerate(keys):
                if (other := first.setdefault(key, party)) != party:
                    wanted = f"another than that of party {other} ({self.parties[other].name!r})"
                    raise refuse(f"the {what} of party {party} ({self.parties[party].name!r})", key, wanted)

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names."""
        return tuple(card.name for card in self.parties)

    @cached_property
    def session(self) -> bytes:
        """The SHA-256 of the roster as canonical JSON: keys sorted, no spaces, ASCII, shortest decimal numbers."""
        text = json.dumps(self.as_dict(), sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).digest()

    @cached_property
    def missing(self) -> tuple[str, ...]:
        """What keeps the roster from being complete, a sentence each."""
        return tuple(str(gap) for gap in self._gaps())

    def check_complete(self) -> None:
        """Refuse a roster with which no run could begin."""
        if self.missing:
            raise InputError(f"the roster {self.name!r} is not complete: {'; '.join(self.missing)}")

    def index(self, certificate: bytes) -> int | None:
        """Return the id of the party with this certificate (DER), None if there is none."""
        return self._ids.get(certificate)

    def with_parties(self, *cards: Card) -> Roster:
        """Return the roster with further parties."""
        return replace(self, parties=(*self.parties, *cards))

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        terms = msgspec.to_builtins(self.terms) | {"start": to_utc(self.terms.start)}
        if self.terms.distance is None:
            del terms["distance"]  # rosters without one stay what they were before there was such a term
        cards = [msgspec.to_builtins(card) for card in self.parties]
        return {"format": FORMAT, "name": self.name, "terms": terms, "parties": cards}

    def write(self, path: str | Path) -> None:
        """Write the roster as JSON, whole or not at all."""
        write_json(path, self.as_dict(), indent=1)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {card.certificate: party for party, card in enumerate(self.parties)}

    def _gaps(self) -> Iterator[InputError]:
        n, terms = len(self.parties), self.terms
        if n < LEAST_PARTIES:
            yield refuse("the number of parties", n, f"at least {LEAST_PARTIES}")
        if n < terms.least_cohort:
            yield refuse("least_cohort", terms.least_cohort, f"at most the number of parties ({n})")
        if n < LEAST_PARTIES:
            return
        if rounded_up("colluding", terms.colluding, n) >= n:
            yield refuse("colluding", terms.colluding, f"a fraction that leaves one of {n} parties honest")
        try:
            random_schedule(terms.schedule, n, terms.rounds, terms.receivers, seed=0)
        except InputError as error:
            yield error


class _Document(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    name: str
    terms: Terms
    parties: tuple[Card, ...]


def read_roster(path: str | Path) -> Roster:
    """Read a roster that `Roster.write` wrote, finished or not."""
    try:
        fields = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        if fields.get("format") != FORMAT:
            raise refuse("format", fields.get("format"), FORMAT)
        terms = fields.get("terms")
        if isinstance(terms, dict) and "start" in terms:
            fields["terms"] = terms | {"start": from_utc(terms["start"])}
        found = msgspec.convert(fields, _Document)
        return Roster(found.name, found.terms, found.parties)
    except (msgspec.MsgspecError, InputError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"{path} is not a valid {FORMAT} file: {error}") from None
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}") from None


def to_utc(seconds: float) -> str:
    """Return a Unix time as the roster writes it.

    >>> to_utc(1_894_694_400)
    '2030-01-15T08:00:00Z'
    """
    return datetime.fromtimestamp(real("start", seconds, 0.0, _YEAR_2100), UTC).isoformat().replace("+00:00", "Z")


def from_utc(text: str) -> float:
    """Return the Unix time of a UTC time in ISO 8601 with a Z.

    >>> from_utc("2030-01-15T08:00:00.5Z")
    1894694400.5
    """
    try:
        if not isinstance(text, str) or not text.endswith("Z"):
            raise ValueError
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        raise refuse("start", text, "a UTC time such as 2030-01-15T08:00:00Z") from None
