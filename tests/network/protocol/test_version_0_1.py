"""What version 0.1 put on the wire and into journals, byte for byte: parties of both versions understand each other."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from helpers.paths import FIXTURES
from inca._base.randomness import PublicSeed
from inca.network.protocol.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.protocol.ledger import (
    Accepted,
    Began,
    Credited,
    Joined,
    Left,
    Opened,
    Promised,
    Record,
    Sealed,
    Seeded,
    Settled,
    Signed,
    Tombstoned,
)
from inca.network.protocol.messages import (
    Accept,
    Account,
    Ack,
    Ask,
    Have,
    Item,
    Items,
    Message,
    Nudge,
    Offer,
    Prepare,
    Promise,
    Resolve,
    Seen,
    Skipped,
    Voided,
    Want,
    Yes,
    decode,
    encode,
    pack,
)
from inca.network.protocol.signed_items import Digest, Final, Vote, commitment, flipped_seed
from inca.network.transport.frames import Hello
from inca.protocol.schedules import random_schedule

FIXTURE = json.loads((FIXTURES / "version-0.1" / "wire.json").read_text())
SESSION = b"s" * 32
ACCOUNT = Account([1, 2], [[1], [5]], [(1, 2, 0)])
ITEM = Item("digest", 3, b"body", b"signature")
MESSAGES: list[Message] = [
    Offer(2, 0, pack(np.array([5, -7])), ACCOUNT),
    Ack(3, 0),
    Voided(3, 1),
    Resolve(4, 0),
    Nudge(5),
    Skipped(6),
    Ask(),
    Seen([(1, 0), (2, 0)], 4, 1),
    Have({"commit": b"\x05"}, True),
    Want({"reveal": b"\x03"}),
    Items([ITEM]),
    Prepare(12),
    Promise(12, 5, b"\x0f", b"\x07"),
    Accept(12, b"\x0f", b"\x07"),
    Yes(12),
]
RECORDS: list[Record] = [
    Opened(b"noisy", b"m" * 32, b"s" * 32, True),
    Seeded(b"x" * 32),
    Joined(3),
    Began(1, b"share"),
    Credited(1, 2, 0, b"payload"),
    Tombstoned(1, 2, 0),
    Settled(1, 0, "acked"),
    Sealed(),
    Signed(ITEM),
    Promised(7),
    Accepted(7, b"\x01", b"\x01"),
    Left("why"),
]
BODIES: list[Digest | Final | Vote] = [
    Digest(ACCOUNT, [(1, ACCOUNT)]),
    Final(b"p", "w"),
    Vote(b"\x01", b"\x01"),
]


def name(struct: msgspec.Struct) -> str:
    return type(struct).__name__


def test_every_message_record_and_body_is_there() -> None:
    assert (
        {name(message) for message in MESSAGES}
        == set(FIXTURE["messages"])
        == {kind.__name__ for kind in Message.__args__}
    )
    assert (
        {name(record) for record in RECORDS} == set(FIXTURE["records"]) == {kind.__name__ for kind in Record.__args__}
    )
    assert {name(body) for body in BODIES} == set(FIXTURE["bodies"])


@pytest.mark.parametrize("message", MESSAGES, ids=name)
def test_messages(message: Message) -> None:
    frame = bytes.fromhex(FIXTURE["messages"][name(message)])
    assert encode(message) == frame and decode(frame) == message


@pytest.mark.parametrize("record", RECORDS, ids=name)
def test_records(record: Record) -> None:
    row = bytes.fromhex(FIXTURE["records"][name(record)])
    assert msgspec.msgpack.encode(record) == row
    assert msgspec.msgpack.decode(row, type=Record) == record


@pytest.mark.parametrize("body", BODIES, ids=name)
def test_bodies_of_items(body: Digest | Final | Vote) -> None:
    content = bytes.fromhex(FIXTURE["bodies"][name(body)])
    assert msgspec.msgpack.encode(body) == content
    assert msgspec.msgpack.decode(content, type=type(body)) == body


def test_hello() -> None:
    hello = Hello(SESSION, 3, b"l" * 16, 9, b"n" * 16, b"e" * 16)
    assert hello.encode().hex() == FIXTURE["hello"]
    assert Hello.decode(bytes.fromhex(FIXTURE["hello"])) == hello


def test_coin_flip() -> None:
    assert commitment(SESSION, 3, b"x" * 32).hex() == FIXTURE["commitment"]
    assert flipped_seed(SESSION, [b"x" * 32, b"y" * 32]).hex() == FIXTURE["seed"]


def test_noise() -> None:
    assert discrete_gaussian(2**32, 8, Keystream(bytes(32), b"fixture")).tolist() == FIXTURE["gaussian"]


@pytest.mark.parametrize("kind", ["random", "distinct", "permutation"])
def test_schedules(kind: str) -> None:
    schedule = random_schedule(kind, 7, 4, 1, seed=PublicSeed(b"q" * 32))
    receivers = [schedule.round(t).receivers[:, 0].tolist() for t in range(1, 5)]
    assert receivers == FIXTURE["receivers"][kind]
