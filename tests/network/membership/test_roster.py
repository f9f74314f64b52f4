from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers.rosters import fixed_terms
from inca.errors import InvalidInput
from inca.network.membership.identity import Card, Identity
from inca.network.membership.roster import Roster, read_roster
from inca.network.membership.terms import Terms

CANONICAL = (
    '{"format":"inca-roster/3","name":"trial","parties":[{"addresses":["anna.example.org:7001"],'
    '"certificate":"CERTIFICATE","format":"inca-card/3","name":"anna","signature":"SIGNATURE"}],'
    '"relays":["wss://relay.example.org/inca"],'
    '"terms":{"clock_bound":0.5,"colluding":0.1,'
    '"delta":1e-05,"dimension":4,"epsilon":1.0,"least_cohort":3,"lower":0.0,"pace":0.0,"period":10.0,'
    '"radius":null,"rounds":6,"rule":"exact","schedule":"permutation","seed":"00112233445566778899aabbccddeeff",'
    '"sigma_cancelling":30.5,"sigma_independent":3.0,"start":"2030-01-15T08:00:00.250000Z","upper":1.0}}'
)

RELAY, SECOND = "wss://relay.example.org/inca", "wss://second.example.org"


@pytest.fixture(scope="module")
def cards() -> list[Card]:
    names = ("anna", "bert", "cleo", "dora", "emil", "fritz", "gina", "hans")
    return [Identity.create(name).card(f"{name}.example.org:7001") for name in names]


@pytest.fixture(scope="module")
def roster(cards: list[Card]) -> Roster:
    return Roster("trial", fixed_terms(), tuple(cards[:4]))


def test_a_roster_is_written_and_read(tmp_path: Path, roster: Roster) -> None:
    path = tmp_path / "roster.json"
    ball = fixed_terms(seed=None, lower=None, upper=None, radius=2)
    for written in (roster, Roster("empty", ball), Roster("near", fixed_terms(distance=0.25))):
        written.write(path)
        again = read_roster(path)
        assert again == written and again.session == written.session
    assert [file.name for file in tmp_path.iterdir()] == ["roster.json"]
    assert roster.names == ("anna", "bert", "cleo", "dora")
    assert [roster.index(card.certificate) for card in roster.parties] == [0, 1, 2, 3]
    assert roster.index(b"another") is None and roster.index(Identity.create("anna").certificate) is None


@pytest.mark.parametrize("start", [0.0, 1894694400.0, 1894694400.123456789, 2.0**31 + 1 / 3, 4.1e9 + 1e-6])
def test_a_start_time_is_the_same_in_memory_and_in_the_file(start: float, tmp_path: Path) -> None:
    roster = Roster("a", fixed_terms(start=start))
    roster.write(tmp_path / "r.json")
    assert read_roster(tmp_path / "r.json").terms.start == roster.terms.start == pytest.approx(start, abs=6e-7, rel=0)


def test_the_session_is_the_hash_of_the_canonical_text() -> None:
    card = Identity.create("anna").card("anna.example.org:7001")
    certificate, signature = (base64.b64encode(part).decode() for part in (card.certificate, card.signature))
    text = CANONICAL.replace("CERTIFICATE", certificate).replace("SIGNATURE", signature)
    roster = Roster("trial", fixed_terms(), (card,), (RELAY,))
    assert roster.session == hashlib.sha256(text.encode()).digest()


CHANGES: dict[str, Any] = {
    "rounds": 7,
    "schedule": "circle",
    "sigma_independent": 3.1,
    "sigma_cancelling": 31,
    "dimension": 5,
    "lower": 0.1,
    "upper": 1.1,
    "distance": 0.5,
    "epsilon": 1.1,
    "delta": 1e-6,
    "rule": "classic",
    "colluding": 0.2,
    "min_participants": 2,
    "start": 1894694400.250001,
    "period": 11,
    "max_clock_skew": 0.6,
    "min_round_duration": 0.5,
    "seed": None,
    "failure": 1e-7,
    "sigma_together": 0.5,
}


def test_the_session_changes_with_every_field(cards: list[Card]) -> None:
    assert CHANGES.keys() | {"radius"} == set(Terms.__struct_fields__)
    # epsilon below 1, as the classic rule needs it
    agreed, three = fixed_terms(epsilon=0.5), tuple(cards[:3])
    rosters = [Roster("trial", agreed, three), Roster("trial 2", agreed, three)]
    changes = ({name: new} | ({"seed": None} if new == "circle" else {}) for name, new in CHANGES.items())
    rosters += [Roster("trial", fixed_terms(**({"epsilon": 0.5} | change)), three) for change in changes]
    rosters += [
        Roster("trial", fixed_terms(epsilon=0.5, lower=None, upper=None, radius=radius), three) for radius in (1, 2)
    ]
    rosters += [Roster("trial", agreed, tuple(cards[:4])), Roster("trial", agreed, three[::-1])]
    anna = Identity.create("anna")
    first, second = "wss://relay.example.org/a", "wss://relay.example.org/b"
    for addresses in (("anna.example.org:7001",), ("10.0.0.1:7001",), (), (first,), (first, second), (second, first)):
        rosters.append(Roster("trial", agreed, (anna.card(*addresses), *three[1:])))
    rosters += [Roster("trial", agreed, three, relays) for relays in ((first,), (first, second), (second, first))]
    assert len({roster.session for roster in rosters}) == len(rosters)
    assert Roster("trial", agreed, three).session == rosters[0].session and len(rosters[0].session) == 32


def test_parties_must_be_different(cards: list[Card]) -> None:
    anna, bert = cards[:2]
    cases = (
        (Identity.create("anna").card("other:1"), "the name of party 1 ('anna') must be another than that of"),
        (
            Identity.create("\uff21NNA").card("other:1"),
            "the name of party 1 ('\uff21NNA') must be another than that of party 0 ('anna'), got 'anna'",
        ),
        (anna, "the name of party 1 ('anna')"),
        (Identity.create("bert").card("Anna.Example.org.:7001"), "the address of party 1 ('bert') must be another"),
    )
    for other, sentence in cases:
        with pytest.raises(InvalidInput) as caught:
            Roster("trial", fixed_terms(), (anna,)).with_parties(other)
        assert sentence in str(caught.value)
    assert Roster("trial", fixed_terms(), (anna,)).with_parties(bert).names == ("anna", "bert")


def test_a_new_card_of_a_party_takes_the_place_of_the_old(cards: list[Card]) -> None:
    anna = Identity.create("anna")
    roster = Roster("trial", fixed_terms(), (cards[1], anna.card("old:1"), cards[2]))
    moved = roster.with_parties(anna.card("new:1"), cards[3])
    assert [card.addresses for card in moved.parties[:2]] == [cards[1].addresses, ("new:1",)]
    assert moved.names == ("bert", "anna", "cleo", "dora") and moved.session != roster.session
    with pytest.raises(InvalidInput, match=r"the address of party 1 \('anna'\) must be another than that of party 0"):
        roster.with_parties(anna.card(*cards[1].addresses))


def test_parties_behind_one_address_differ_by_their_ports() -> None:
    cards = [Identity.create(name).card(f"gateway.example.org:{7001 + i}") for i, name in enumerate(("a", "b", "c"))]
    roster = Roster("trial", fixed_terms(), tuple(cards))
    assert not roster.missing and [roster.addresses_of(i)[0].port for i in range(3)] == [7001, 7002, 7003]


def test_relays_for_all_come_after_the_addresses_on_a_card() -> None:
    own = {"anna": ("anna.example.org:7001",), "bert": (), "cleo": (SECOND,), "dora": ("dora.example.org:7001", RELAY)}
    cards = tuple(Identity.create(name).card(*addresses) for name, addresses in own.items())
    roster = Roster("trial", fixed_terms(), cards, (RELAY, SECOND))
    assert [tuple(map(str, roster.addresses_of(party))) for party in range(4)] == [
        ("anna.example.org:7001", RELAY, SECOND),
        (RELAY, SECOND),
        (SECOND, RELAY),
        ("dora.example.org:7001", RELAY, SECOND),
    ]
    roster.check_complete()
    again = roster.at(roster.terms.start + 60.0, seed="ab" * 16).without("anna")
    assert again.relays == roster.relays and again.addresses_of(0) == roster.addresses_of(1)


def test_a_party_without_an_address_needs_relays_for_all(cards: list[Card]) -> None:
    hidden = [Identity.create(name).card() for name in ("bert", "cleo")]
    roster = Roster("trial", fixed_terms(), (cards[0], *hidden))
    assert roster.missing == (
        "every party must have an address, got none of bert, cleo: name one on the card (`inca node card`), or a relay "
        "for all (`inca node roster init --relay`)",
    )
    assert not Roster("trial", fixed_terms(), roster.parties, (RELAY,)).missing


def test_parties_share_relays_but_no_address_of_their_own() -> None:
    anna, bert = Identity.create("anna"), Identity.create("bert")
    shared = Roster("trial", fixed_terms(), (anna.card("h:1", RELAY), bert.card("h:2", RELAY)), (RELAY,))
    assert shared.addresses_of(0)[1:] == shared.addresses_of(1)[1:]
    with pytest.raises(InvalidInput, match=r"the address of party 1 \('bert'\) must be another than .*, got 'h:1'"):
        Roster("trial", fixed_terms(), (anna.card("h:1"), bert.card("h:2", "h:1")))


@pytest.mark.parametrize("relays", ["wss://r", None, [None], ("wss://R",)])
def test_relays_that_are_none_are_refused(relays: Any) -> None:
    with pytest.raises(InvalidInput, match=r"relays|address"):
        Roster("trial", fixed_terms(), (), relays)


def test_another_try_is_another_session_of_the_same_parties(cards: list[Card]) -> None:
    roster = Roster("trial", fixed_terms(seed=None), tuple(cards[:4]))
    later = roster.at(roster.terms.start + 60.0)
    assert later.session != roster.session and later.parties == roster.parties
    assert later.terms == msgspec.structs.replace(roster.terms, start=roster.terms.start + 60.0)
    assert roster.at(roster.terms.start + 60.0).session == later.session
    slower = roster.at(roster.terms.start + 60.0, period=20.0)
    assert (slower.terms.period, slower.terms.max_clock_skew) == (20.0, 0.5)
    default = Roster("trial", fixed_terms(seed=None, max_clock_skew=1.0), roster.parties)
    assert default.at(roster.terms.start + 60.0, period=2.0).terms.max_clock_skew == 0.2
    with pytest.raises(InvalidInput, match="max_clock_skew must be less than half of period"):
        roster.at(roster.terms.start + 60.0, period=1.0)
    with pytest.raises(InvalidInput, match=r"the start must be another than before, so that .*, got '2030-01-15T08:00"):
        roster.at(roster.terms.start, period=20.0)
    with pytest.raises(InvalidInput, match="the seed must be left to the parties, who draw it by a coin flip, got"):
        roster.at(roster.terms.start + 60.0, seed="ab" * 16)


def test_a_public_seed_is_never_used_for_two_tries(cards: list[Card]) -> None:
    """Who sends to whom follows from it alone, and whoever saw the first try could choose whom to cut off."""
    roster = Roster("trial", fixed_terms(), tuple(cards[:4]))
    for seed in (None, roster.terms.seed):
        with pytest.raises(InvalidInput, match=r"the seed must be a new one, .* one is known, got '(none|the old)"):
            roster.at(roster.terms.start + 60.0, seed=seed)
    assert roster.at(roster.terms.start + 60.0, seed="ab" * 16).terms.seed == "ab" * 16


def test_one_key_under_two_names_is_refused() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    anna = Identity.create("anna")
    old = x509.load_der_x509_certificate(anna.certificate)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bert")])
    span = old.not_valid_before_utc, old.not_valid_after_utc
    builder = x509.CertificateBuilder(name, name, anna.key.public_key(), 1, *span, list(old.extensions))
    bert = Identity("bert", builder.sign(anna.key, None).public_bytes(Encoding.DER), anna.key)
    sentence = r"the key of party 1 \('bert'\) must be another than that of party 0 \('anna'\), got "
    with pytest.raises(InvalidInput, match=sentence):
        Roster("trial", fixed_terms(), (anna.card("a:1"), bert.card("b:1")))


def test_a_roster_has_a_name() -> None:
    with pytest.raises(
        InvalidInput, match="the roster's name must be 1 to 64 bytes of printable text without spaces around it, got ''"
    ):
        Roster("", fixed_terms())


GAPS: dict[str, tuple[int, dict[str, Any], str | None]] = {
    "complete": (3, {}, None),
    "nobody": (0, {"min_participants": 2}, "the number of parties must be at least 3, got 0"),
    "one": (1, {"min_participants": 2}, "the number of parties must be at least 3, got 1"),
    "two": (2, {"min_participants": 2}, "the number of parties must be at least 3, got 2"),
    "participants": (3, {"min_participants": 4}, "min_participants must be at most the number of parties (3), got 4"),
    "all participants": (4, {"min_participants": 4}, None),
    "circle": (
        6,
        {"schedule": "circle", "seed": None},
        "rounds must be below the number of parties (6) on a circle, where in round 6 everyone would send to itself, "
        "got 6",
    ),
    "just circle": (7, {"schedule": "circle", "seed": None}, None),
    "all collude but one": (
        3,
        {"colluding": 0.4},
        "colluding must be a fraction that leaves two of 3 parties honest, got 0.4",
    ),
    "too small a cohort": (
        4,
        {"colluding": 0.3},
        "min_participants must be at least 4, so that two of a cohort with 2 colluding are honest, got 3",
    ),
    "two do not": (4, {"colluding": 0.5, "min_participants": 4}, None),
}


@pytest.mark.parametrize("case", GAPS)
def test_what_keeps_a_roster_from_being_complete(case: str, cards: list[Card]) -> None:
    parties, changes, sentence = GAPS[case]
    roster = Roster("trial", fixed_terms(**changes), tuple(cards[:parties]))
    if sentence is None:
        roster.check_complete()
        assert roster.missing == ()
        return
    assert sentence == roster.missing[0]
    assert len(roster.missing) == (1 if parties >= 2 else 2)  # there are at least two participants
    with pytest.raises(InvalidInput, match="the roster 'trial' is not complete: "):
        roster.check_complete()


FILES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "not an object": (lambda _: [], "format must be inca-roster/3, got None"),
    "no format": (lambda fields: fields.pop("format"), "format must be inca-roster/3, got None"),
    "another format": (
        lambda fields: fields.update(format="inca-roster/1"),
        "format must be inca-roster/3, got 'inca-roster/1'",
    ),
    "unknown field": (lambda fields: fields.update(nmae=1), "unknown field `nmae`"),
    "unknown term": (lambda fields: fields["terms"].update(round=1), "unknown field `round` - at `$.terms`"),
    "unknown on a card": (lambda fields: fields["parties"][1].update(x=1), "unknown field `x` - at `$.parties[1]`"),
    "no terms": (lambda fields: fields.pop("terms"), "missing required field `terms`"),
    "no rounds": (lambda fields: fields["terms"].pop("rounds"), "missing required field `rounds`"),
    "other rule": (lambda fields: fields["terms"].update(rule="analytic"), "rule must be exact or classic, got"),
    "bad rounds": (lambda fields: fields["terms"].update(rounds=0), "rounds must be from 1 to 10000, got 0"),
    "text for a number": (lambda fields: fields["terms"].update(period="1"), "Expected `float`, got `str`"),
    "start in seconds": (
        lambda fields: fields["terms"].update(start=1e9),
        "start must be a UTC time such as 2030-01-15T08:00:00Z, got 1000000000.0",
    ),
    "local start": (
        lambda fields: fields["terms"].update(start="2030-01-15T08:00:00"),
        "start must be a UTC time such as",
    ),
    "no start": (lambda fields: fields["terms"].update(start="soonZ"), "2030-01-15T08:00:00Z, got 'soonZ'"),
    "early start": (lambda fields: fields["terms"].update(start="0001-01-01T00:00:00Z"), "got -62135596800.0"),
    "same party": (lambda fields: fields["parties"].append(fields["parties"][0]), "the name of party 4 ('anna')"),
    "bad card": (
        lambda fields: fields["parties"][2].update(addresses=["h:0"]),
        "port must be an integer from 1 to 65535, got 0",
    ),
    "no relays": (lambda fields: fields.__delitem__("relays"), "missing required field `relays`"),
    "one relay": (lambda fields: fields.update(relays="wss://r"), "Expected `array`, got `str`"),
    "a relay that is none": (
        lambda fields: fields.update(relays=["r.example.org:443"]),
        "an entry of relays must be the address of a relay, wss://HOST/PATH, got 'r.example.org:443'",
    ),
    "a relay twice": (
        lambda fields: fields.update(relays=["wss://r/a", "wss://r/a"]),
        "relays must be of different places, not twice of one, got 'wss://r/a'",
    ),
    "too many relays": (
        lambda fields: fields.update(relays=[f"wss://r/{i}" for i in range(9)]),
        "the number of relays must be at most 8, got 9",
    ),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_rosters_are_refused(case: str, roster: Roster, tmp_path: Path) -> None:
    change, sentence = FILES[case]
    fields = roster.as_dict()
    path = tmp_path / "roster.json"
    path.write_text(json.dumps([] if change(fields) == [] else fields))
    with pytest.raises(InvalidInput) as caught:
        read_roster(path)
    assert sentence in str(caught.value) and "roster.json is not a valid inca-roster/3 file: " in str(caught.value)


def test_files_that_cannot_be_read_or_written_are_refused(roster: Roster, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        read_roster(tmp_path / "none.json")
    for content in (b"", b"{", b"\xff", b"[" * 100_000):
        (tmp_path / "r.json").write_bytes(content)
        with pytest.raises(InvalidInput, match=r"r\.json is not a valid inca-roster/3 file"):
            read_roster(tmp_path / "r.json")
    with pytest.raises(InvalidInput, match="cannot be written: No such file"):
        roster.write(tmp_path / "no" / "r.json")
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]
