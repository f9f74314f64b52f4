from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import socket
import ssl
import stat
import tempfile
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import given
from hypothesis import strategies as st

from inca.errors import InvalidInput
from inca.network.addresses import Address, read_addresses
from inca.network.membership.identity import Card, Identity, fingerprint, read_card, verify
from inca.network.membership.roster import Roster
from inca.network.membership.terms import Terms
from inca.network.membership.tls import _load_key, client_context, server_context

TERMS = Terms(
    rounds=4,
    schedule="permutation",
    sigma_independent=1.0,
    sigma_cancelling=5.0,
    dimension=1,
    lower=0.0,
    upper=1.0,
    epsilon=1.0,
    delta=1e-5,
    rule="analytic",
    colluding=0.0,
    min_participants=2,
    start=1.9e9,
    period=1.0,
    max_clock_skew=0.1,
)


SIGNER = Identity.create("anna")


@pytest.fixture(scope="module")
def parties() -> list[Identity]:
    return [Identity.create(name) for name in ("anna", "bert", "cleo")]


@pytest.fixture(scope="module")
def roster(parties: list[Identity]) -> Roster:
    return Roster("trial", TERMS, tuple(party.card(f"127.0.0.1:{7000 + i}") for i, party in enumerate(parties)))


@pytest.fixture(scope="module")
def stranger() -> Identity:
    return Identity.create("anna")  # bears a name of the roster, with another key


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_signatures_hold_for_their_message_and_signer_only(parties: list[Identity]) -> None:
    anna, bert = parties[:2]
    signature = anna.sign(b"round 3")
    assert verify(anna.certificate, b"round 3", signature) and len(signature) == 64
    assert not verify(anna.certificate, b"round 4", signature)
    assert not verify(bert.certificate, b"round 3", signature)
    assert not verify(anna.certificate, b"round 3", signature[:-1] + bytes([signature[-1] ^ 1]))
    assert not verify(anna.certificate, b"round 3", b"")
    assert not verify(b"no certificate", b"round 3", signature)
    # The bare message is never signed, or signatures could pass for those of another protocol with the same key.
    assert not verify(anna.certificate, b"round 3", anna.key.sign(b"round 3"))


def test_a_fingerprint_is_that_of_the_key(parties: list[Identity]) -> None:
    key = parties[0].key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    digits = hashlib.sha256(key).hexdigest()
    shown = fingerprint(parties[0].certificate)
    assert shown.replace("-", "") == digits[:32] and [len(group) for group in shown.split("-")] == [4] * 8
    assert len({fingerprint(party.certificate) for party in parties}) == 3


def test_an_identity_is_written_and_read_with_private_modes(tmp_path: Path) -> None:
    before = os.umask(0)  # the modes must not depend on it
    try:
        identity = Identity.create("Hôpital Nº 5")
        identity.write(tmp_path / "anna", "anna.example.org:7001")
    finally:
        os.umask(before)
    folder = tmp_path / "anna"
    assert (mode(folder), mode(folder / "identity.pem"), mode(folder / "card.json")) == (0o700, 0o600, 0o644)
    again = Identity.read(folder)
    assert (again.name, again.certificate) == ("Hôpital Nº 5", identity.certificate)
    assert verify(identity.certificate, b"x", again.sign(b"x"))
    assert read_card(folder / "card.json") == identity.card("anna.example.org:7001")
    fields = json.loads((folder / "card.json").read_text())
    assert fields["format"] == "inca-card/3" and base64.b64decode(fields["certificate"]) == identity.certificate
    assert "PRIVATE" not in (folder / "card.json").read_text()
    assert repr(identity) == "Identity(name='Hôpital Nº 5')"


def test_nothing_is_overwritten_and_nothing_half_written_remains(tmp_path: Path) -> None:
    first, second = Identity.create("anna"), Identity.create("anna")
    first.write(tmp_path / "a", "h:1")
    with pytest.raises(InvalidInput, match=r"identity\.pem is there already, and an identity is never overwritten"):
        second.write(tmp_path / "a", "h:1")
    assert Identity.read(tmp_path / "a").certificate == first.certificate
    (tmp_path / "b").mkdir(mode=0o700)
    (tmp_path / "b" / "card.json").write_text("mine")
    with pytest.raises(InvalidInput, match=r"card\.json is there already"):
        second.write(tmp_path / "b", "h:1")
    assert [file.name for file in (tmp_path / "b").iterdir()] == ["card.json"]
    with pytest.raises(InvalidInput, match="port must be an integer from 1 to 65535, got 0"):
        second.write(tmp_path / "c", "h:0")
    with pytest.raises(InvalidInput, match="cannot be written: No such file"):
        second.write(tmp_path / "no" / "folder", "h:1")
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="file cannot be written: Not a directory"):
        second.write(tmp_path / "file", "h:1")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a", "b", "file"]


def test_a_failed_write_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def full(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:  # of the card, after the key
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InvalidInput, match="anna cannot be written: No space left on device"):
        Identity.create("anna").write(tmp_path / "anna", "h:1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("bits", [0o770, 0o777, 0o702])
def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path, bits: int) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(bits)
    with pytest.raises(
        InvalidInput, match=f"the mode of .*open must be .* only its owner can write to it, got {bits:04o}"
    ):
        Identity.create("anna").write(tmp_path / "open", "h:1")
    assert list((tmp_path / "open").iterdir()) == []


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o644, 0o660, 0o610])
def test_a_key_that_others_can_read_is_refused(tmp_path: Path, bits: int) -> None:
    Identity.create("anna").write(tmp_path / "a", "h:1")
    (tmp_path / "a" / "identity.pem").chmod(bits)
    with pytest.raises(InvalidInput, match=rf"identity\.pem must be 0600, for its owner alone, got {bits:04o}"):
        Identity.read(tmp_path / "a")


def test_damaged_identities_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"identity\.pem cannot be read: No such file"):
        Identity.read(tmp_path)
    for name in ("a", "b"):
        Identity.create(name).write(tmp_path / name, "h:1")
    path = tmp_path / "a" / "identity.pem"
    mine, other = path.read_bytes(), (tmp_path / "b" / "identity.pem").read_bytes()
    split = mine.index(b"-----BEGIN CERT")
    authority = trustme.CA()
    for content, sentence in (
        (b"", "does not hold an Ed25519 key and its certificate"),
        (b"\xff\x00", "does not hold"),
        (mine[:split], "does not hold"),
        (mine[split:], "does not hold"),
        (mine[: split - 60] + mine[split:], "does not hold"),
        (mine[:split] + other[other.index(b"-----BEGIN CERT") :], "its certificate is not that of its key"),
        (mine[:split] + authority.cert_pem.bytes(), "does not hold"),
        (authority.private_key_pem.bytes() + mine[split:], "its certificate is not that of its key"),
    ):
        path.write_bytes(content)
        with pytest.raises(InvalidInput, match=f"is damaged: .*{sentence}"):
            Identity.read(tmp_path / "a")


@pytest.mark.parametrize("name", ["", " anna", "anna\n", "a\x1b[31m", "x" * 65, "é" * 33, "a\ud800"])
def test_names_that_cannot_be_shown_are_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match=r"name must be 1 to 64 bytes of printable text .*, got "):
        Identity.create(name)


ADDRESSES: dict[str, tuple[tuple[str, ...], str]] = {
    "no port": (("h",), "an address must be HOST:PORT, or wss://HOST/PATH of a relay, got 'h'"),
    "everywhere": (("0.0.0.0:80",), "host must be a host name or an IP address that the other parties can reach"),
    "another spelling": (
        ("H.example.org:80",),
        "an entry of addresses must be written as 'h.example.org:80', got 'H",
    ),
    "the usual port": (
        ("wss://r:443/inca",),
        "an entry of addresses must be written as 'wss://r/inca', got 'wss://r:4",
    ),
    "twice": (("h:1", "h:1"), "addresses must be of different places, not twice of one, got 'h:1'"),
    "twice, spelled otherwise": (("[::1]:1", "[0::1]:1"), "addresses must be of different places, not twice of one"),
    "relays first": (
        ("wss://r", "h:1"),
        "addresses must be direct ones first, then those of relays, got 'wss://r",
    ),
    "too many": (tuple(f"h:{i}" for i in range(1, 10)), "the number of addresses must be at most 8, got 9"),
}


@pytest.mark.parametrize("case", ADDRESSES)
def test_addresses_on_a_card_are_few_different_and_in_one_spelling(case: str, parties: list[Identity]) -> None:
    addresses, sentence = ADDRESSES[case]
    anna = parties[0]
    text = f"inca-card/3\0{json.dumps([anna.name, addresses], separators=(',', ':'))}".encode()
    with pytest.raises(InvalidInput) as caught:
        Card(name=anna.name, addresses=addresses, certificate=anna.certificate, signature=anna.sign(text))
    assert sentence in str(caught.value)


def test_a_card_has_one_spelling_whatever_its_owner_writes(parties: list[Identity]) -> None:
    card = parties[0].card(Address("Anna.example.org", 80), "wss://Relay.example.org:443/")
    assert card.addresses == ("anna.example.org:80", "wss://relay.example.org")
    assert parties[0].card().addresses == ()


def signed(subject: str, issuer: str, ca: bool | None, signer: Ed25519PrivateKey | None = None) -> Identity:
    key = Ed25519PrivateKey.generate()
    one, other = (x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)]) for name in (subject, issuer))
    builder = x509.CertificateBuilder(other, one, key.public_key(), 1, datetime(2000, 1, 1), datetime(9999, 1, 1))
    if ca is not None:
        builder = builder.add_extension(x509.BasicConstraints(ca=ca, path_length=None), critical=True)
    return Identity(subject, builder.sign(signer or key, None).public_bytes(Encoding.DER), key)


CERTIFICATES: dict[str, tuple[Callable[[], bytes], str]] = {
    "not one": (lambda: b"nonsense", "not a self-signed one"),
    "cut": (lambda: Identity.create("anna").certificate[:-1], "not a self-signed one"),
    "another name": (
        lambda: Identity.create("bert").certificate,
        "the name in the certificate must be the card's name .*, got 'bert'",
    ),
    "another's signature": (
        lambda: signed("anna", "anna", False, Ed25519PrivateKey.generate()).certificate,
        "not a self-signed",
    ),
    "another issuer": (lambda: signed("anna", "bert", False).certificate, "not a self-signed"),
    "an authority": (lambda: signed("anna", "anna", True).certificate, "not a self-signed"),
    "perhaps an authority": (lambda: signed("anna", "anna", None).certificate, "not a self-signed"),
    "another kind of key": (
        lambda: x509.load_pem_x509_certificate(trustme.CA().cert_pem.bytes()).public_bytes(Encoding.DER),
        "not a self-signed",
    ),
}


@pytest.mark.parametrize("case", CERTIFICATES)
def test_certificates_that_are_not_the_party_s_own_are_refused(case: str) -> None:
    make, sentence = CERTIFICATES[case]
    with pytest.raises(InvalidInput, match=sentence):
        Card(name="anna", addresses=("h:1",), certificate=make(), signature=bytes(64))


CARDS: dict[str, tuple[str, str]] = {
    "not json": ("{", "Input data was truncated"),
    "not an object": ("71.25", "format must be inca-card/3, got None"),  # it could be a value
    "no format": ("{}", "format must be inca-card/3, got None"),
    "another format": ('{"format": "inca-card/2"}', "format must be inca-card/3, got 'inca-card/2'"),
    "no fields": ('{"format": "inca-card/3"}', "missing required field `name`"),
    "unknown field": ('{"format": "inca-card/3", "nmae": "a"}', "unknown field `nmae`"),
    "not base64": ('{"format": "inca-card/3", "name": "a", "addresses": [], "certificate": "*"}', "base64"),
    "not text": ("\udcff", ""),
}


@pytest.mark.parametrize("case", CARDS)
def test_cards_that_are_none_are_refused(case: str, tmp_path: Path) -> None:
    text, sentence = CARDS[case]
    (tmp_path / "card.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InvalidInput, match=rf"card\.json is not a valid inca-card/3 file: .*{sentence}"):
        read_card(tmp_path / "card.json")
    with pytest.raises(InvalidInput, match=r"none\.json cannot be read"):
        read_card(tmp_path / "none.json")


def test_a_card_in_a_file_is_checked_like_any_other(tmp_path: Path, parties: list[Identity]) -> None:
    fields = msgspec.to_builtins(parties[0].card("h:1")) | {"addresses": ["h:0"]}
    (tmp_path / "card.json").write_text(json.dumps(fields))
    with pytest.raises(InvalidInput, match=r"card\.json is not a valid .* port must be .* from 1 to 65535, got 0"):
        read_card(tmp_path / "card.json")


def test_an_address_is_signed_by_the_key_of_its_card(tmp_path: Path, parties: list[Identity]) -> None:
    """Whoever passes a card on can change nothing on it."""
    anna, bert = parties[:2]
    card = anna.card("anna.example.org:7001")
    text = b'inca-card/3\0["' + card.name.encode() + b'",["anna.example.org:7001"]]'
    assert verify(anna.certificate, text, card.signature)
    others = bert.card("anna.example.org:7001").signature
    changes: list[dict[str, Any]] = [
        {"addresses": other} for other in (("evil.example.org:7001",), ("anna.example.org.:7001",), ())
    ]
    for change in (*changes, {"signature": others}):
        sentence = rf"the addresses of {card.name} \(.*\) must be signed by its key, got another signature: .* ask"
        with pytest.raises(InvalidInput, match=sentence):
            msgspec.structs.replace(card, **change)
        fields = msgspec.to_builtins(card) | msgspec.to_builtins(change)
        (tmp_path / "card.json").write_text(json.dumps(fields))
        with pytest.raises(InvalidInput, match=rf"card\.json is not a valid inca-card/3 file: {sentence}"):
            read_card(tmp_path / "card.json")


places = st.builds(Address, st.from_regex(r"[a-z]{1,3}\.org", fullmatch=True), st.integers(1, 65535))
relays = st.builds(Address, st.just("relay.org"), st.integers(1, 65535), st.from_regex(r"/[a-z]{0,3}", fullmatch=True))
on_cards = st.tuples(st.lists(places, max_size=3, unique=True), st.lists(relays, max_size=3, unique=True))


@given(on_cards, on_cards, st.randoms(use_true_random=False))
def test_any_other_addresses_or_order_break_the_signature(
    own: tuple[list[Address], list[Address]], others: tuple[list[Address], list[Address]], rng: random.Random
) -> None:
    card = SIGNER.card(*own[0], *own[1])
    assert read_addresses("addresses", card.addresses) == (*own[0], *own[1])
    shuffled = [rng.sample(part, len(part)) for part in own]
    for direct, relayed in (shuffled, others):
        changed = tuple(map(str, (*direct, *relayed)))
        if changed == card.addresses:
            continue
        with pytest.raises(InvalidInput, match=r"the addresses of anna \(.*\) must be signed by its key"):
            msgspec.structs.replace(card, addresses=changed)


def test_a_party_that_moves_signs_its_new_address_with_the_same_key(tmp_path: Path) -> None:
    identity = Identity.create("anna")
    identity.write(tmp_path / "anna", "old.example.org:7001")
    moved = Identity.read(tmp_path / "anna").write_card(tmp_path / "anna", "new.example.org:7002")
    assert read_card(tmp_path / "anna" / "card.json") == moved == identity.card("new.example.org:7002")
    assert moved.fingerprint == fingerprint(identity.certificate)
    assert sorted(file.name for file in (tmp_path / "anna").iterdir()) == ["card.json", "identity.pem"]
    with pytest.raises(InvalidInput, match="port must be an integer from 1 to 65535, got 0"):
        identity.write_card(tmp_path / "anna", "h:0")
    assert read_card(tmp_path / "anna" / "card.json") == moved


BROKEN = (ssl.SSLError, ConnectionError)  # an alert, or the end of the connection if it came first


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> tuple[list[object], list[object]]:
    """Return what each end learned: the version and the peer's certificate, or the error that ended it."""
    ends = socket.socketpair()
    learned: tuple[list[object], list[object]] = ([], [])

    def end(side: int, context: ssl.SSLContext) -> None:
        ends[side].settimeout(60.0)
        try:
            with context.wrap_socket(ends[side], server_side=side == 0) as connection:
                # In TLS 1.3 a client has finished before the server has looked at its certificate; it learns of a
                # refusal when it reads.
                connection.sendall(b"x")
                assert connection.recv(1) == b"x"
                learned[side].extend((connection.version(), connection.getpeercert(binary_form=True)))
        except BROKEN as error:
            learned[side].append(error)
            ends[side].close()

    threads = [threading.Thread(target=end, args=side) for side in ((0, server), (1, client))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120.0)
    return learned


def test_parties_shake_hands_and_know_each_other(parties: list[Identity], roster: Roster) -> None:
    listening = server_context(parties[0], roster)
    server, client = shake_hands(listening, client_context(parties[2], roster))
    assert server == ["TLSv1.3", parties[2].certificate] and client == ["TLSv1.3", parties[0].certificate]
    assert roster.index(parties[2].certificate) == 2 and listening.num_tickets == 0


def naive(context: ssl.SSLContext) -> ssl.SSLContext:
    """A client that trusts anyone, so that only the server can refuse it."""
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def of_stranger(stranger: Identity) -> Roster:
    return Roster("another", TERMS, (stranger.card("h:1"),))


def test_a_server_refuses_a_stranger_even_with_a_party_s_name(
    parties: list[Identity], roster: Roster, stranger: Identity
) -> None:
    client = naive(client_context(stranger, of_stranger(stranger)))
    server, seen = shake_hands(server_context(parties[0], roster), client)
    assert isinstance(server[0], ssl.SSLCertVerificationError) and isinstance(seen[0], BROKEN)


def test_a_client_refuses_a_stranger_even_with_a_party_s_name(
    parties: list[Identity], roster: Roster, stranger: Identity
) -> None:
    context = server_context(stranger, of_stranger(stranger))
    context.verify_mode = ssl.CERT_NONE
    server, client = shake_hands(context, client_context(parties[1], roster))
    assert isinstance(client[0], ssl.SSLCertVerificationError) and isinstance(server[0], BROKEN)


def test_certificates_of_an_authority_are_refused_on_both_sides(parties: list[Identity], roster: Roster) -> None:
    leaf = trustme.CA().issue_cert("anna", common_name="anna")
    client = naive(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
    leaf.configure_cert(client)
    assert isinstance(shake_hands(server_context(parties[0], roster), client)[0][0], ssl.SSLCertVerificationError)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    leaf.configure_cert(server)
    assert isinstance(shake_hands(server, client_context(parties[0], roster))[1][0], ssl.SSLCertVerificationError)


def test_a_party_cannot_vouch_for_anyone(parties: list[Identity], roster: Roster) -> None:
    for ca in (None, False, True):
        client = naive(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        _load_key(client, signed("dora", "anna", ca, parties[0].key))
        server, _ = shake_hands(server_context(parties[2], roster), client)
        assert isinstance(server[0], ssl.SSLCertVerificationError)


def test_a_client_without_a_certificate_is_refused(parties: list[Identity], roster: Roster) -> None:
    server, client = shake_hands(server_context(parties[0], roster), naive(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)))
    assert "PEER_DID_NOT_RETURN_A_CERTIFICATE" in str(server[0]) and isinstance(client[0], BROKEN)


def test_tls_12_is_refused_on_both_sides(parties: list[Identity], roster: Roster) -> None:
    old = naive(client_context(parties[1], roster))
    old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_2
    server, client = shake_hands(server_context(parties[0], roster), old)
    assert isinstance(server[0], ssl.SSLError) and isinstance(client[0], BROKEN)
    older = server_context(parties[0], roster)
    older.minimum_version = older.maximum_version = ssl.TLSVersion.TLSv1_2
    server, client = shake_hands(older, client_context(parties[1], roster))
    assert isinstance(server[0], ssl.SSLError) and isinstance(client[0], BROKEN)


def test_an_identity_outside_the_roster_gets_no_context(roster: Roster, stranger: Identity) -> None:
    for make in (server_context, client_context):
        with pytest.raises(InvalidInput, match="the identity of 'anna' is not in the roster 'trial'"):
            make(stranger, roster)


def test_no_copy_of_the_key_is_left_or_readable(
    parties: list[Identity], roster: Roster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    seen: list[tuple[int, bytes]] = []
    remove = Path.unlink

    def unlink(path: Path) -> None:
        seen.append((mode(path), path.read_bytes()))
        remove(path)

    monkeypatch.setattr(Path, "unlink", unlink)
    client_context(parties[0], roster)
    assert list(tmp_path.iterdir()) == []
    bits, text = seen[0]
    assert bits == 0o600 and b"BEGIN ENCRYPTED PRIVATE KEY" in text and b"BEGIN PRIVATE KEY" not in text
