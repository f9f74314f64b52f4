"""The roster: one file with the parties of a consortium and the terms of their run, the same for all of them.

Its hash is the session's id, so that parties with different rosters never talk to each other by mistake.
"""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from inca._base.files import write_json
from inca._base.validation import refuse
from inca.errors import InvalidInput
from inca.network.membership.identity import Card, check_name
from inca.network.membership.terms import Terms, fields_from_file
from inca.protocol.adversary import rounded_up
from inca.protocol.schedules import random_schedule

FORMAT = "inca-roster/1"
MIN_PARTIES = 3  # of two, each learns the other's value from the average and its own


@dataclass(frozen=True)
class Roster:
    """The parties of a session and their terms.

    Args:
        name: Tells people what the run is for.
        terms: What the parties have agreed on.
        parties: Their cards, in the order of their ids.

    Raises:
        InvalidInput: Two parties have the same name, key or address.

    Example:
        >>> from inca.network.membership.identity import Identity
        >>> from inca.network.membership.terms import Terms, from_utc
        >>> terms = Terms(
        ...     rounds=6, receivers=1, schedule="permutation", quiet_rounds=2, sigma_independent=3.0,
        ...     sigma_cancelling=30.0, dimension=1, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-5, rule="analytic",
        ...     colluding=0.0, min_participants=3, period=10.0, max_clock_skew=1.0,
        ...     start=from_utc("2030-01-15T08:00:00Z"),
        ... )
        >>> cards = [Identity.create(name).card(f"{name}.example.org", 7001) for name in ("anna", "bert")]
        >>> roster = Roster("trial", terms, tuple(cards))
        >>> roster.names, roster.missing
        (('anna', 'bert'), ('the number of parties must be at least 3, got 2', 'min_participants must be at most the \
number of parties (2), got 3'))
    """

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
                    must_be = f"another than that of party {other} ({self.parties[other].name!r})"
                    refuse(f"the {what} of party {party} ({self.parties[party].name!r})", key, must_be)

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
        return tuple(self._gaps())

    def check_complete(self) -> None:
        """Refuse a roster with which no run could begin."""
        if self.missing:
            raise InvalidInput(f"the roster {self.name!r} is not complete: {'; '.join(self.missing)}")

    def index(self, certificate: bytes) -> int | None:
        """Return the id of the party with this certificate (DER), None if there is none."""
        return self._ids.get(certificate)

    def with_parties(self, *cards: Card) -> Roster:
        """Return the roster with further parties."""
        return replace(self, parties=(*self.parties, *cards))

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        cards = [msgspec.to_builtins(card) for card in self.parties]
        return {"format": FORMAT, "name": self.name, "terms": self.terms.as_dict(), "parties": cards}

    def write(self, path: str | Path) -> None:
        """Write the roster as JSON, whole or not at all."""
        write_json(path, self.as_dict(), indent=1)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {card.certificate: party for party, card in enumerate(self.parties)}

    def _gaps(self) -> Iterator[str]:
        n, terms = len(self.parties), self.terms
        if n < MIN_PARTIES:
            yield f"the number of parties must be at least {MIN_PARTIES}, got {n}"
        if n < terms.min_participants:
            yield f"min_participants must be at most the number of parties ({n}), got {terms.min_participants}"
        if n < MIN_PARTIES:
            return
        if rounded_up("colluding", terms.colluding, n) >= n:
            yield f"colluding must be a fraction that leaves one of {n} parties honest, got {terms.colluding}"
        try:
            random_schedule(terms.schedule, n, terms.rounds, terms.receivers, seed=0)
        except InvalidInput as error:
            yield str(error)


class RosterDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A roster file."""

    format: str
    name: str
    terms: Terms
    parties: tuple[Card, ...]


def read_roster(path: str | Path) -> Roster:
    """Read a roster that `Roster.write` wrote, complete or not.

    Args:
        path: The JSON file.

    Returns:
        The roster.

    Raises:
        InvalidInput: The file cannot be read, or is not a roster.
    """
    try:
        fields = msgspec.json.decode(Path(path).read_bytes(), type=dict[str, Any])
        if fields.get("format") != FORMAT:
            refuse("format", fields.get("format"), FORMAT)
        if "terms" in fields:
            fields["terms"] = fields_from_file(fields["terms"])
        document = msgspec.convert(fields, RosterDocument)
        return Roster(document.name, document.terms, document.parties)
    except (msgspec.MsgspecError, InvalidInput, UnicodeDecodeError, RecursionError) as error:
        raise InvalidInput(f"{path} is not a valid {FORMAT} file: {error}") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
