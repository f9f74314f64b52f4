"""What version 0.1 wrote: schedules, noise and seeds are the same; its journals and messages are not continued."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import msgspec
import pytest

from helpers.paths import FIXTURES
from inca._base.randomness import PublicSeed
from inca.errors import InvalidInput, InvalidPeerMessage
from inca.network.lattice.discrete_gaussian import Keystream, discrete_gaussian
from inca.network.node.journal import FORMAT, Journal
from inca.network.protocol.agreement.public_randomness import commitment, flipped_seed
from inca.network.protocol.messages import decode
from inca.network.protocol.records import Record
from inca.network.transport.frames import Hello
from inca.protocol.schedules import random_schedule

FIXTURE = json.loads((FIXTURES / "version-0.1" / "wire.json").read_text())
SESSION = b"s" * 32
CHANGED = ("Offer", "Resolve", "Seen", "Have", "Want", "Prepare", "Promise", "Accept", "Yes")


@pytest.mark.parametrize("name", CHANGED)
def test_messages_that_mean_something_else_now_are_refused(name: str) -> None:
    with pytest.raises(InvalidPeerMessage):
        decode(bytes.fromhex(FIXTURE["messages"][name]))


@pytest.mark.parametrize("name", ["Settled", "Promised", "Accepted"])
def test_records_that_mean_something_else_now_are_not_read(name: str) -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.msgpack.decode(bytes.fromhex(FIXTURE["records"][name]), type=Record)


@pytest.mark.parametrize("mark", ["inca-journal/1", "inca-journal/0", "something else"])
def test_a_journal_of_an_earlier_version_is_refused_in_a_sentence_and_left_alone(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "journal"
    Journal(path, session=SESSION, party=3).close()
    with sqlite3.connect(path) as database:
        database.execute("UPDATE about SET mark = ?", (f"{mark} {SESSION.hex()} 3",))
        database.execute("INSERT INTO records (body) VALUES (?)", (bytes.fromhex(FIXTURE["records"]["Opened"]),))
    database.close()
    sentence = f"the journal {path} was begun by another version, which must end the session"
    with pytest.raises(InvalidInput, match=re.escape(sentence)):
        Journal(path, session=SESSION, party=3)
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM records").fetchone() == (1,)
    database.close()
    assert FORMAT == "inca-journal/3"


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
