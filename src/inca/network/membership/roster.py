"""The roster: one file with the parties of a consortium and the terms of their run, the same for all of them.

Its hash is the session's id, so that parties with different rosters never talk to each other by mistake.
"""

from __future__ import annotations

import hashlib
import json
import math
import unicodedata
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from inca._base.files import write_json
from inca._base.validation import instance, listed, refuse, whole_parties
from inca.errors import InvalidInput
from inca.network.addresses import Address, read_addresses
from inca.network.membership.identity import Card, Identity, check_name, read_file
from inca.network.membership.terms import Terms, fields_from_file, to_utc
from inca.protocol.adversary import smallest_cohort
from inca.protocol.schedules.kinds import schedule_of_kind

FORMAT = "inca-roster/3"
MOST_ON_CIRCLE = 1000
"""Of more parties the trustees are drawn by a public seed (docs/settlement.md), and a circle has none."""
MIN_PARTIES = 3  # of two, each learns the other's value from the average and its own


@dataclass(frozen=True)
class Roster:
    """The parties of a session, by their cards in the order of their ids, and their terms; the name is for people.

    Two parties with the same name, key or address of their own are refused. Relays that the roster names are for all
    parties, after the addresses on their cards.

    Example:
        >>> from inca.network.membership.identity import Identity
        >>> from inca.network.membership.terms import Terms, from_utc
        >>> terms = Terms(
        ...     rounds=6, schedule="permutation", sigma_independent=3.0,
        ...     sigma_cancelling=30.0, dimension=1, lower=0.0, upper=1.0, epsilon=1.0, delta=1e-5, rule="analytic",
        ...     colluding=0.0, min_participants=3, period=10.0, max_clock_skew=1.0,
        ...     start=from_utc("2030-01-15T08:00:00Z"),
        ... )
        >>> cards = [Identity.create("anna").card("anna.example.org:7001"), Identity.create("bert").card()]
        >>> roster = Roster("trial", terms, tuple(cards), relays=("wss://relay.example.org/inca",))
        >>> roster.addresses_of(0), roster.addresses_of(1)
        ((Address('anna.example.org:7001'), Address('wss://relay.example.org/inca')), \
(Address('wss://relay.example.org/inca'),))
        >>> roster.names, roster.missing
        (('anna', 'bert'), ('the number of parties must be at least 3, got 2', 'min_participants must be at most the \
number of parties (2), got 3'))
    """

    name: str
    terms: Terms
    parties: tuple[Card, ...] = ()
    relays: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse parties that are not different ones, and relays that are none."""
        instance("terms", self.terms, Terms)
        for card in listed("parties", self.parties, "cards"):
            instance("an entry of parties", card, Card)
        check_name("the roster's name", self.name)
        for relay in self._common:
            if not relay.relayed:
                refuse("an entry of relays", str(relay), "the address of a relay, wss://HOST/PATH")
        folded = [unicodedata.normalize("NFKC", name).casefold() for name in self.names]
        direct = [{one.place: str(one) for one in addresses if not one.relayed} for addresses in self._addresses]
        self._refuse_second("name", [{name: name} for name in folded])
        self._refuse_second("key", [{card.fingerprint: card.fingerprint} for card in self.parties])
        self._refuse_second("address", direct)

    @property
    def names(self) -> tuple[str, ...]:
        """The parties' names."""
        return tuple(card.name for card in self.parties)

    def addresses_of(self, party: int) -> tuple[Address, ...]:
        """Return where a party is reached, in order of preference: as its card says, then at the relays for all."""
        return self._addresses[party]

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

    def party_of(self, identity: Identity) -> int:
        """Return the id of the party with these keys; refuse those of a stranger."""
        if (party := self.index(identity.certificate)) is None:
            raise InvalidInput(f"the identity of {identity.name!r} is not in the roster {self.name!r}")
        return party

    def with_parties(self, *cards: Card) -> Roster:
        """Return the roster with further parties: another session.

        A card with the key of a party that is there must have other addresses, and takes the place of the old one.
        """
        parties = list(self.parties)
        for card in cards:
            party = self.index(card.certificate)
            if party is None or self.parties[party] == card:  # the same card again is refused as a second party
                parties.append(card)
            else:
                parties[party] = card
        return replace(self, parties=tuple(parties))

    def at(self, start: float, *, period: float | None = None, seed: str | None = None) -> Roster:
        """Return the roster with another start, for another try: another session of the same parties.

        Args:
            start: When the first round begins, as Unix time; another than before.
            period: How long a round lasts at most, if another than before. A bound on clocks that was a tenth of it,
                the default, stays a tenth.
            seed: A new public seed, which a roster that has one needs: with the old one everyone would know who sends
                to whom long before the start, and could choose whom to cut off.
        """
        terms, skew = self.terms, self.terms.max_clock_skew
        period = terms.period if period is None else period
        if math.isclose(skew, terms.period / 10.0, rel_tol=1e-12):
            skew = period / 10.0
        again = msgspec.structs.replace(terms, start=start, period=period, max_clock_skew=skew, seed=seed)
        if again.start == terms.start:
            refuse("the start", to_utc(start), "another than before, so that it is another session")
        if terms.seed is None and seed is not None:
            refuse("the seed", seed, "left to the parties, who draw it by a coin flip")
        if terms.seed is not None and seed in (None, terms.seed):
            must_be = "a new one, drawn after the roster was complete: who sends to whom follows from it, and the old"
            refuse("the seed", "none" if seed is None else "the old one", f"{must_be} one is known")
        return replace(self, terms=again)

    def without(self, *names: str) -> Roster:
        """Return the roster without some parties, one that has lied for example: another session of the others.

        The noise is what it would be had they left; a start of its own is set by `at`.
        """
        for name in names:
            if name not in self.names:
                refuse("a party to leave out", name, f"one of {', '.join(self.names)}")
        rest = tuple(card for card in self.parties if card.name not in names)
        return replace(self, terms=self.terms.with_fewer(len(self.parties), len(rest)), parties=rest)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields for JSON."""
        cards = [msgspec.to_builtins(card) for card in self.parties]
        fields = {"format": FORMAT, "name": self.name, "terms": self.terms.as_dict(), "parties": cards}
        return fields | {"relays": list(self.relays)}

    def write(self, path: str | Path) -> None:
        """Write the roster as JSON, whole or not at all."""
        write_json(path, self.as_dict(), indent=1)

    @cached_property
    def _common(self) -> tuple[Address, ...]:
        return read_addresses("relays", listed("relays", self.relays, "addresses"))

    @cached_property
    def _addresses(self) -> tuple[tuple[Address, ...], ...]:
        return tuple(self._all_addresses(read_addresses("addresses", card.addresses)) for card in self.parties)

    def _all_addresses(self, own: tuple[Address, ...]) -> tuple[Address, ...]:
        places = {address.place for address in own}
        return own + tuple(relay for relay in self._common if relay.place not in places)

    def _refuse_second(self, what: str, keys: Iterable[Mapping[Any, str]]) -> None:
        """Refuse what two parties have; each key maps to how it is written."""
        first: dict[Hashable, int] = {}
        for party, own in enumerate(keys):
            for key, shown in own.items():
                if (other := first.setdefault(key, party)) != party:
                    must_be = f"another than that of party {other} ({self.names[other]!r})"
                    refuse(f"the {what} of party {party} ({self.names[party]!r})", shown, must_be)

    @cached_property
    def _ids(self) -> dict[bytes, int]:
        return {card.certificate: party for party, card in enumerate(self.parties)}

    def _gaps(self) -> Iterator[str]:
        n, terms = len(self.parties), self.terms
        if unreachable := [name for party, name in enumerate(self.names) if not self.addresses_of(party)]:
            where = "on the card (`inca node card`), or a relay for all (`inca node roster init --relay`)"
            yield f"every party must have an address, got none of {', '.join(unreachable)}: name one {where}"
        colluders = whole_parties("colluding", terms.colluding, max(n, 1))
        if n < MIN_PARTIES:
            yield f"the number of parties must be at least {MIN_PARTIES}, got {n}"
        if n < terms.min_participants:
            yield f"min_participants must be at most the number of parties ({n}), got {terms.min_participants}"
        elif MIN_PARTIES <= n >= (least := smallest_cohort(colluders)) > terms.min_participants:
            hidden = f"so that two of a cohort with {colluders} colluding are honest"
            yield f"min_participants must be at least {least}, {hidden}, got {terms.min_participants}"
        if n < MIN_PARTIES:
            return
        if smallest_cohort(colluders) > n:
            yield f"colluding must be a fraction that leaves two of {n} parties honest, got {terms.colluding}"
        if not terms.needs_seed and n > MOST_ON_CIRCLE:
            yield f"at most {MOST_ON_CIRCLE:,} parties fit on a circle (above, a seed draws trustees), got {n:,}"
        try:
            schedule_of_kind(terms.schedule, n, terms.rounds, seed=0)
        except InvalidInput as error:
            yield str(error)


class RosterDocument(msgspec.Struct, forbid_unknown_fields=True):
    """A roster file."""

    format: str
    name: str
    terms: Terms
    parties: tuple[Card, ...]
    relays: tuple[str, ...]


def read_roster(path: str | Path) -> Roster:
    """Read a roster that `Roster.write` wrote, complete or not."""
    return read_file(path, FORMAT, _from_fields)


def _from_fields(fields: dict[str, Any]) -> Roster:
    if "terms" in fields:
        fields["terms"] = fields_from_file(fields["terms"])
    document = msgspec.convert(fields, RosterDocument)
    return Roster(document.name, document.terms, document.parties, document.relays)
