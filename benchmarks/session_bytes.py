"""How many bytes a party sends and receives, from the real encodings: today, and in a design for more parties.

`python benchmarks/growth.py end` prints it; docs/growth.md says what it means. Only messages are counted, not what
frames, TLS and TCP add, and no retries. Party numbers are taken to be as long as the largest one.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


import msgspec

from helpers.network_faults import random_session, without_faults
from helpers.simulated_network import SimulatedNetwork
from inca.network.protocol.messages import (
    ACKED,
    Account,
    Ack,
    Item,
    Items,
    Message,
    Offer,
    encode,
)
from inca.network.protocol.opening.cohort_keys import COHORTS, KEY_BYTES
from inca.network.protocol.opening.deposits import Deposit
from inca.network.protocol.opening.shamir import SHARE_BYTES
from inca.network.protocol.opening.trustees import tolerance_of
from inca.network.protocol.session import quorum_of
from inca.network.protocol.signed_items import Digest, Key, Kind

SIGNATURE, HASH, SECRET = 64, 32, 32  # bytes; Ed25519, SHA-256
NUMBER = 8  # bytes of a coordinate or a weight
SUM_NUMBER = 16  # of a sum over up to 10^9 parties: their weights alone, 2^40 units each, do not fit into 64 bits
FANOUT = 16  # of the tree along which sums are taken
DECISIONS = 2  # cohort, commit
COLLUDING = LEAVING = 0.1  # for which trustees suffice


def _size(content: Any) -> int:
    return len(msgspec.msgpack.encode(content))


def rounds_bytes(rounds: int, dimension: int, signature: int = SIGNATURE) -> int:
    """Return what a party sends in all rounds, and receives as well: an offer and an answer in each."""
    offer = Offer(rounds, bytes(NUMBER * (dimension + 1)), bytes(signature))
    return rounds * (len(encode(offer)) + len(encode(Ack(rounds))))


class EndBytes(NamedTuple):
    """What the end of a session takes today if everyone is there.

    Attributes:
        words: What a party receives of digests, deposits, keys and farewells, each once; it passes on as much.
        decisions: What it receives of proposals, locks and decisions.
        proposer: What the party that proposes sends.
    """

    words: int
    decisions: int
    proposer: int


def today(parties: int, rounds: int, dimension: int, signature: int = SIGNATURE) -> EndBytes:
    """Return the bytes of everyone-to-everyone."""
    last = parties - 1
    account = Account(list(range(1, rounds + 1)), [ACKED] * rounds, list(range(1, rounds + 1)))
    trustees = tolerance_of(parties, math.ceil(COLLUDING * parties), math.ceil(LEAVING * parties)).trustees
    deposit = Deposit(0, bytes(HASH), bytes(HASH), bytes(KEY_BYTES), bytes(SHARE_BYTES * trustees))
    sealed = bytes(NUMBER * (dimension + 1) + SECRET)
    bodies: dict[Kind, tuple[bytes, int, bytes]] = {
        "digest": (msgspec.msgpack.encode(Digest(account, bytes(HASH), COHORTS * [bytes(KEY_BYTES)])), parties, b""),
        "deposit": (msgspec.msgpack.encode(deposit), parties, sealed),
        "key": (msgspec.msgpack.encode(Key(0, bytes(KEY_BYTES))), trustees, b""),
        "done": (b"", parties, b""),
    }
    words = sum(
        count * _size(Item(kind, last, body, bytes(signature), extra)) for kind, (body, count, extra) in bodies.items()
    )
    content, signed = _size((last, bytes(HASH))), _size((last, bytes(signature)))
    quorum = quorum_of(parties)
    # Proposed, accepted with the votes for it, and decided with the acceptances: the contents travel three times.
    decisions = DECISIONS * (3 * parties * content + 2 * quorum * signed)
    return EndBytes(words, decisions, (parties - 1) * decisions)


class BeyondBytes(NamedTuple):
    """What a design for more parties would take.

    Attributes:
        partners: What a party sends to the parties it exchanged something with, and receives from them.
        tree: What a party inside the tree sends, and receives, for two sums: how many are ready, and the result.
        tree_delays: How many messages follow one another for these.
        bits: What it would send to pass on the set S, a bit for each party, in every round of an epidemic.
    """

    partners: int
    tree: int
    tree_delays: int
    bits: int


def beyond(parties: int, rounds: int, dimension: int) -> BeyondBytes:
    """Return the bytes of pairwise words and sums along a tree; nothing of it is implemented in the networked party."""
    last = parties - 1
    word = Item("word", last, msgspec.msgpack.encode((1, bytes(HASH))), bytes(SIGNATURE))
    count = Item("count", last, bytes(SUM_NUMBER), bytes(SIGNATURE))
    total = Item("sum", last, bytes(SUM_NUMBER * (dimension + 1)), bytes(SIGNATURE))
    sums = sum(len(encode(Items([item]))) for item in (count, total))
    depth = math.ceil(math.log(max(2, parties), FANOUT) - 1e-9)
    pushes = math.ceil(math.log2(parties))
    return BeyondBytes(2 * rounds * len(encode(Items([word]))), (FANOUT + 1) * sums, 4 * depth, pushes * parties // 8)


class _Counting(SimulatedNetwork):
    """The real state machines on a perfect network; counts what is posted."""

    def __init__(self, parties: int, rounds: int, dimension: int) -> None:
        drawn = random_session(random.Random(1))
        session = replace(
            drawn,
            parties=parties,
            rounds=rounds,
            dimension=dimension,
            schedule="permutation",
            min_round_duration=0.0,
            min_participants=parties - math.ceil(LEAVING * parties),
            colluders=math.ceil(COLLUDING * parties),
            leavers=math.ceil(LEAVING * parties),
            seed=bytes(32),
        )
        self.received: Counter[str] = Counter()
        super().__init__(1, faults=without_faults(), session=session)

    def check(self) -> None:
        """Leave out the ledgers, which tests add up."""

    def _post(self, i: int, j: int, message: Message) -> None:
        self.received[type(message).__name__] += len(encode(message))
        super()._post(i, j, message)


def counted(parties: int, rounds: int, dimension: int) -> dict[str, float]:
    """Return what a party received of each type of message in a simulated session, on average, and check its end."""
    network = _Counting(parties, rounds, dimension)
    network.run(max_steps=10**7)
    assert len(network.results) == parties
    return {name: count / parties for name, count in network.received.items()}
