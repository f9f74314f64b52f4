from __future__ import annotations

import base64
import dataclasses
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import inca
from helpers.paths import ROOT
from inca._base.validation import InputError
from inca.network.membership.identity import Card, Identity
from inca.network.membership.roster import Roster, Terms, from_utc, read_roster, to_utc

PLAN = ROOT / "examples" / "waiting-times-plan.json"
SEED = "00112233445566778899aabbccddeeff"
FIELDS: dict[str, Any] = {
    "rounds": 6,
    "receivers": 1,
    "schedule": "permutation",
    "quiet_rounds": 2,
    "sigma_independent": 3,
    "sigma_cancelling": 30.5,
    "dimension": 4,
    "lower": 0,
    "upper": 1,
    "epsilon": 1,
    "delta": 1e-5,
    "rule": "exact",
    "colluding": 0.1,
    "coalitions": 20,
    "least_cohort": 3,
    "start": 1894694400.25,
    "period": 10,
    "clock_bound": 0.5,
    "seed": SEED,
}
CERTIFICATE = (
    "MIIBEDCBw6ADAgECAhRyhNFOGkJYFqylGzZX3kkWL06zzzAFBgMrZXAwDzENMAsGA1UEAwwEYW5uYTAgFw0wMDAxMDEwMDAwMDBaGA85OTk5MTIzMTIz"
    "NTk1OVowDzENMAsGA1UEAwwEYW5uYTAqMAUGAytlcAMhAKiDCLC1c0mPYn/n4W1jWPo1ZbakEp+OfqhF5p6uJH4qoy8wLTAMBgNVHRMBAf8EAjAAMB0G"
    "A1UdJQQWMBQGCCsGAQUFBwMBBggrBgEFBQcDAjAFBgMrZXADQQAryCaZIg0lMJnd+/X9N2YV3OpEflB4UNDiQ1irtHfvAufAUDbIiVKLj4nBsFAFvjZr"
    "4mAX9YOOgwxoT/2KU/MA"
)
CANONICAL = (
    '{"format":"inca-roster/1","name":"trial","parties":[{"certificate":"' + CERTIFICATE + '","format":"inca-card/1",'
    '"host":"anna.example.org","name":"anna","port":7001}],"terms":{"clock_bound":0.5,"coalitions":20,"colluding":0.1,'
    '"delta":1e-05,"dimension":4,"epsilon":1.0,"least_cohort":3,"lower":0.0,"pace":0.0,"period":10.0,"quiet_rounds":2,'
    '"radius":null,"receivers":1,"rounds":6,"rule":"exact","schedule":"permutation","seed":"00112233445566778899aabbccddeeff",'
    '"sigma_cancelling":30.5,"sigma_independent":3.0,"start":"2030-01-15T08:00:00.250000Z","upper":1.0}}'
)


def terms(**changes: Any) -> Terms:
    return Terms(**(FIELDS | changes))


@pytest.fixture(scope="module")
def cards() -> list[Card]:
    names = ("anna", "bert", "cleo", "dora", "emil", "fritz", "gina", "hans")
    return [Identity.create(name).card(f"{name}.example.org", 7001) for name in names]


@pytest.fixture(scope="module")
def roster(cards: list[Card]) -> Roster:
    return Roster("trial", terms(), tuple(cards[:4]))


def test_terms_know_their_domain_and_injection() -> None:
    box = terms()
    assert box.domain == inca.Interval(0, 1) and box.sensitivity == pytest.approx(2.0)
    ball = terms(lower=None, upper=None, radius=3)
    assert ball.domain == inca.Ball(3) and ball.sensitivity == 6.0
    assert box.injection == inca.incremental(6, 2)


def test_numbers_of_other_types_make_the_same_terms() -> None:
    other = terms(rounds=np.int64(6), epsilon=np.float64(1), sigma_independent=3.0, lower=np.float32(0), upper=1.0)
    assert other == terms() and Roster("a", other).session == Roster("a", terms()).session
    assert type(other.rounds) is int and type(other.epsilon) is float


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no rounds": ({"rounds": 0}, "rounds is 0, but a whole number from 1 to 10000 was expected"),
    "many rounds": ({"rounds": 10_001}, "rounds is 10001"),
    "half a round": ({"rounds": 1.5}, "rounds is 1.5"),
    "no receivers": ({"receivers": 0}, "receivers is 0, but a whole number from 1 to 8"),
    "many receivers": ({"receivers": 9}, "receivers is 9"),
    "schedule": ({"schedule": "star"}, "schedule is 'star', but one of random, distinct, permutation"),
    "quiet": ({"quiet_rounds": 7}, "quiet_rounds is 7, but a whole number from 0 to 6"),
    "no noise": ({"sigma_independent": 0}, "sigma_independent is 0, but a finite number above 0"),
    "no cancelling noise": ({"sigma_cancelling": 0.0}, "sigma_cancelling is 0.0"),
    "endless noise": ({"sigma_cancelling": float("inf")}, "sigma_cancelling is inf"),
    "no dimension": ({"dimension": 0}, "dimension is 0, but a whole number from 1 to 10000000"),
    "many dimensions": ({"dimension": 10_000_001}, "dimension is 10000001"),
    "no domain": ({"lower": None, "upper": None}, "either lower and upper, or radius, was expected"),
    "half a domain": ({"lower": None}, "either lower and upper, or radius, was expected"),
    "two domains": ({"radius": 1.0}, "either lower and upper, or radius, was expected"),
    "a domain and a half": ({"radius": 1.0, "upper": None}, "either lower and upper, or radius, was expected"),
    "empty interval": ({"upper": 0}, "upper is 0.0, but a number above lower (0)"),
    "endless interval": ({"upper": float("inf")}, "upper is inf"),
    "overflowing interval": ({"lower": -1e308, "upper": 1e308}, "the sensitivity is inf"),
    "empty ball": ({"lower": None, "upper": None, "radius": 0}, "radius is 0, but a finite number above 0"),
    "epsilon": ({"epsilon": 0}, "epsilon is 0"),
    "delta 0": ({"delta": 0}, "delta is 0.0, but a number between 0 and 1"),
    "delta 1": ({"delta": 1}, "delta is 1.0, but a number between 0 and 1"),
    "delta nan": ({"delta": float("nan")}, "delta is nan"),
    "rule": ({"rule": "loose"}, "rule is 'loose', but exact or classic"),
    "colluding": ({"colluding": 1.1}, "colluding is 1.1, but a number from 0 to 1"),
    "coalitions": ({"coalitions": 0}, "coalitions is 0"),
    "cohort": ({"least_cohort": 1}, "least_cohort is 1"),
    "start": ({"start": -1.0}, "start is -1.0"),
    "late start": ({"start": 5e9}, "start is 5000000000.0"),
    "period": ({"period": 0}, "period is 0"),
    "pace": ({"pace": 6}, "pace is 6, but a number from 0 to 5 was expected"),
    "clocks": ({"clock_bound": 5}, "clock_bound is 5.0, but less than half of period (10 s)"),
    "perfect clocks": ({"clock_bound": 0}, "clock_bound is 0"),
    "seed": ({"seed": "xyz"}, "seed is 'xyz', but None, or 32 to 128 hexadecimal digits"),
    "short seed": ({"seed": SEED[2:]}, "32 to 128 hexadecimal digits"),
    "odd seed": ({"seed": SEED + "a"}, "32 to 128 hexadecimal digits"),
    "long seed": ({"seed": SEED * 4 + "00"}, "32 to 128 hexadecimal digits"),
    "upper-case seed": ({"seed": SEED.upper()}, "32 to 128 hexadecimal digits"),
    "seed of another type": ({"seed": 10**33}, "32 to 128 hexadecimal digits"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_terms_that_make_no_sense_are_refused(case: str) -> None:
    changes, sentence = REFUSED[case]
    with pytest.raises(InputError) as caught:
        terms(**changes)
    assert sentence in str(caught.value) and "\n" not in str(caught.value)


def test_a_roster_is_written_and_read(tmp_path: Path, roster: Roster) -> None:
    path = tmp_path / "roster.json"
    for each in (roster, Roster("empty", terms(seed=None, lower=None, upper=None, radius=2))):
        each.write(path)
        again = read_roster(path)
        assert again == each and again.session == each.session
    assert [each.name for each in tmp_path.iterdir()] == ["roster.json"]
    assert roster.names == ("anna", "bert", "cleo", "dora")
    assert [roster.index(card.certificate) for card in roster.parties] == [0, 1, 2, 3]
    assert roster.index(b"another") is None and roster.index(Identity.create("anna").certificate) is None


@pytest.mark.parametrize("start", [0.0, 1894694400.0, 1894694400.123456789, 2.0**31 + 1 / 3, 4.1e9 + 1e-6])
def test_a_start_time_is_the_same_in_memory_and_in_the_file(start: float, tmp_path: Path) -> None:
    made = Roster("a", terms(start=start))
    made.write(tmp_path / "r.json")
    assert read_roster(tmp_path / "r.json").terms.start == made.terms.start == pytest.approx(start, abs=6e-7, rel=0)
    assert to_utc(from_utc(to_utc(start))) == to_utc(start) and to_utc(start).endswith("Z")


def test_the_session_is_the_hash_of_the_canonical_text() -> None:
    card = Card(name="anna", host="anna.example.org", port=7001, certificate=base64.b64decode(CERTIFICATE))
    session = Roster("trial", terms(), (card,)).session
    assert session == hashlib.sha256(CANONICAL.encode()).digest()
    assert session.hex() == "bfa89cd87702a7452396d477337c5b8e3b0aa0f752bd4eeab71e184ec00dfd5d"


def test_a_distance_is_what_is_protected_and_a_roster_without_one_says_nothing_of_it(tmp_path: Path) -> None:
    near = Roster("trial", terms(distance=0.25))
    near.write(tmp_path / "near.json")
    assert read_roster(tmp_path / "near.json") == near and near.terms.sensitivity == 0.25
    assert terms().sensitivity == terms().domain.sensitivity(terms().dimension)
    assert "distance" not in Roster("trial", terms()).as_dict()["terms"]
    for wrong in (0.0, -1.0, float("nan"), 100.0):
        with pytest.raises(InputError, match="distance is"):
            terms(distance=wrong)


CHANGES: dict[str, Any] = {
    "rounds": 7,
    "receivers": 2,
    "schedule": "random",
    "quiet_rounds": 1,
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
    "coalitions": 21,
    "least_cohort": 2,
    "start": 1894694400.250001,
    "period": 11,
    "clock_bound": 0.6,
    "pace": 0.5,
    "seed": None,
}


def test_the_session_changes_with_every_field(cards: list[Card]) -> None:
    assert CHANGES.keys() | {"radius"} == set(Terms.__struct_fields__)
    # epsilon below 1, as the classic rule needs it
    agreed, three = terms(epsilon=0.5), tuple(cards[:3])
    made = [Roster("trial", agreed, three), Roster("trial 2", agreed, three)]
    made += [Roster("trial", terms(**({"epsilon": 0.5} | {name: new})), three) for name, new in CHANGES.items()]
    made += [Roster("trial", terms(epsilon=0.5, lower=None, upper=None, radius=each), three) for each in (1, 2)]
    made += [Roster("trial", agreed, tuple(cards[:4])), Roster("trial", agreed, three[::-1])]
    for change in ({"host": "10.0.0.1"}, {"port": 7002}):
        made.append(Roster("trial", agreed, (msgspec.structs.replace(three[0], **change), *three[1:])))
    again = Identity.create("anna").card("anna.example.org", 7001)
    made.append(Roster("trial", agreed, (again, *three[1:])))
    assert len({each.session for each in made}) == len(made)
    assert Roster("trial", agreed, three).session == made[0].session and len(made[0].session) == 32


def test_parties_must_be_different(cards: list[Card]) -> None:
    anna, bert = cards[:2]
    cases = (
        (Identity.create("anna").card("other", 1), "the name of party 1 ('anna') is 'anna', but another than that of"),
        (Identity.create("\uff21NNA").card("other", 1), "the name of party 1 ('\uff21NNA') is 'anna'"),
        (msgspec.structs.replace(anna, port=9), "the name of party 1 ('anna')"),
        (msgspec.structs.replace(bert, host="Anna.Example.org."), "the address of party 1 ('bert') is ('anna.example"),
    )
    for other, sentence in cases:
        with pytest.raises(InputError) as caught:
            Roster("trial", terms(), (anna,)).with_parties(other)
        assert sentence in str(caught.value)
    assert Roster("trial", terms(), (anna,)).with_parties(bert).names == ("anna", "bert")


def test_one_key_under_two_names_is_refused() -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    anna = Identity.create("anna")
    old = x509.load_der_x509_certificate(anna.certificate)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "bert")])
    span = old.not_valid_before_utc, old.not_valid_after_utc
    made = x509.CertificateBuilder(name, name, anna.key.public_key(), 1, *span, list(old.extensions))
    bert = Identity("bert", made.sign(anna.key, None).public_bytes(Encoding.DER), anna.key)
    with pytest.raises(
        InputError, match=r"the key of party 1 \('bert'\) is .* another than that of party 0 \('anna'\)"
    ):
        Roster("trial", terms(), (anna.card("a", 1), bert.card("b", 1)))


def test_a_roster_has_a_name() -> None:
    with pytest.raises(InputError, match="the roster's name is '', but 1 to 64 bytes"):
        Roster("", terms())


GAPS: dict[str, tuple[int, dict[str, Any], str | None]] = {
    "complete": (3, {}, None),
    "nobody": (0, {"least_cohort": 2}, "the number of parties is 0, but at least 3 was expected"),
    "one": (1, {"least_cohort": 2}, "the number of parties is 1, but at least 3 was expected"),
    "two": (2, {"least_cohort": 2}, "the number of parties is 2, but at least 3 was expected"),
    "cohort": (3, {"least_cohort": 4}, "least_cohort is 4, but at most the number of parties (3) was expected"),
    "whole cohort": (4, {"least_cohort": 4}, None),
    "receivers": (
        3,
        {"receivers": 3, "schedule": "random"},
        "receivers is 3, but fewer than the number of parties (3)",
    ),
    "as many receivers as others": (4, {"receivers": 3, "schedule": "random"}, None),
    "distinct": (
        6,
        {"schedule": "distinct"},
        "rounds is 6, but receivers times rounds below the number of parties (6)",
    ),
    "just distinct": (7, {"schedule": "distinct"}, None),
    "permutation": (4, {"receivers": 3}, "receivers is 3, but at most 2 for permutations of 4 parties"),
    "just permutation": (5, {"receivers": 3}, None),
    "all collude": (3, {"colluding": 0.7}, "colluding is 0.7, but a fraction that leaves one of 3 parties honest"),
    "one does not": (4, {"colluding": 0.75}, None),
}


@pytest.mark.parametrize("case", GAPS)
def test_what_keeps_a_roster_from_being_complete(case: str, cards: list[Card]) -> None:
    parties, changes, sentence = GAPS[case]
    made = Roster("trial", terms(**changes), tuple(cards[:parties]))
    if sentence is None:
        made.check_complete()
        assert made.missing == ()
        return
    assert sentence in made.missing[0] and len(made.missing) == (1 if parties >= 2 else 2)  # the cohort is at least 2
    with pytest.raises(InputError, match="the roster 'trial' is not complete: "):
        made.check_complete()


FILES: dict[str, tuple[Callable[[dict[str, Any]], Any], str]] = {
    "not an object": (lambda _: [], "Expected `object`, got `array`"),
    "no format": (lambda fields: fields.pop("format"), "format is None, but inca-roster/1 was expected"),
    "another format": (lambda fields: fields.update(format="inca-roster/2"), "format is 'inca-roster/2'"),
    "unknown field": (lambda fields: fields.update(nmae=1), "unknown field `nmae`"),
    "unknown term": (lambda fields: fields["terms"].update(round=1), "unknown field `round` - at `$.terms`"),
    "unknown on a card": (lambda fields: fields["parties"][1].update(x=1), "unknown field `x` - at `$.parties[1]`"),
    "no terms": (lambda fields: fields.pop("terms"), "missing required field `terms`"),
    "no rounds": (lambda fields: fields["terms"].pop("rounds"), "missing required field `rounds`"),
    "bad rounds": (lambda fields: fields["terms"].update(rounds=0), "rounds is 0, but a whole number"),
    "text for a number": (lambda fields: fields["terms"].update(period="1"), "Expected `float`, got `str`"),
    "start in seconds": (lambda fields: fields["terms"].update(start=1e9), "start is 1000000000.0, but a UTC time"),
    "local start": (lambda fields: fields["terms"].update(start="2030-01-15T08:00:00"), "but a UTC time such as"),
    "no start": (lambda fields: fields["terms"].update(start="soonZ"), "start is 'soonZ', but a UTC time such as"),
    "early start": (lambda fields: fields["terms"].update(start="0001-01-01T00:00:00Z"), "start is -62135596800.0"),
    "same party": (lambda fields: fields["parties"].append(fields["parties"][0]), "the name of party 4 ('anna')"),
    "bad card": (lambda fields: fields["parties"][2].update(port=0), "port is 0, but a whole number from 1 to 65535"),
}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_no_rosters_are_refused(case: str, roster: Roster, tmp_path: Path) -> None:
    change, sentence = FILES[case]
    fields = roster.as_dict()
    path = tmp_path / "roster.json"
    path.write_text(json.dumps([] if change(fields) == [] else fields))
    with pytest.raises(InputError) as caught:
        read_roster(path)
    assert sentence in str(caught.value) and "roster.json is not a valid inca-roster/1 file: " in str(caught.value)


def test_files_that_cannot_be_read_or_written_are_refused(roster: Roster, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_roster(tmp_path / "none.json")
    for content in (b"", b"{", b"\xff", b"[" * 100_000):
        (tmp_path / "r.json").write_bytes(content)
        with pytest.raises(InputError, match=r"r\.json is not a valid inca-roster/1 file"):
            read_roster(tmp_path / "r.json")
    with pytest.raises(InputError, match="cannot be written: No such file"):
        roster.write(tmp_path / "no" / "r.json")
    assert [each.name for each in tmp_path.iterdir()] == ["r.json"]


def test_terms_from_a_plan() -> None:
    plan = inca.read_plan(PLAN)
    rest: dict[str, Any] = {"start": 1.9e9, "period": 10, "clock_bound": 1, "least_cohort": 950}
    made = Terms.from_plan(plan, dimension=1, lower=0, upper=240, **rest)
    assert (made.rounds, made.receivers, made.schedule, made.quiet_rounds) == (30, 1, "permutation", 2)
    assert made.injection == plan.shape.injection() and made.sensitivity == plan.wish.sensitivity
    assert (made.sigma_independent, made.sigma_cancelling) == (plan.sigma_independent, plan.sigma_cancelling)
    assert (made.epsilon, made.delta, made.rule, made.colluding) == (1.0, 1e-5, "exact", 0.1)
    assert (made.coalitions, made.seed, made.least_cohort) == (20, None, 950)
    ball = Terms.from_plan(plan, dimension=9, radius=120, coalitions=5, seed=SEED, **rest)
    assert (ball.domain, ball.coalitions, ball.seed) == (inca.Ball(120), 5, SEED)
    with pytest.raises(InputError, match=r"the plan's sensitivity is 240\.0, but the domain's \(480\) was expected"):
        Terms.from_plan(plan, dimension=4, lower=0, upper=240, **rest)
    with pytest.raises(InputError, match=r"the plan's sensitivity is 240\.0, but the domain's \(239\) was expected"):
        Terms.from_plan(plan, dimension=1, lower=0, upper=239, **rest)
    early = dataclasses.replace(plan, shape=dataclasses.replace(plan.shape, kind="early", quiet=0))
    with pytest.raises(InputError, match="the injection of the plan is 'early', but incremental was expected"):
        Terms.from_plan(early, dimension=1, lower=0, upper=240, **rest)
