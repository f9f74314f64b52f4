"""Commitments, the seed of a coin flip and the beacon: what they are hashes of, so that others can compute them."""

from __future__ import annotations

from hashlib import sha256

from hypothesis import given
from hypothesis import strategies as st

from inca.network.protocol.agreement.public_randomness import beacon, beacon_commitment, commitment, flipped_seed

SESSION, OTHER_SESSION = b"s" * 32, b"t" * 32
secrets = st.binary(min_size=32, max_size=32)


def test_each_is_the_hash_of_a_label_the_session_and_its_contents() -> None:
    three = bytes([3, 0, 0, 0])
    assert commitment(SESSION, 3, b"x" * 32) == sha256(b"inca-toss/1" + SESSION + three + b"x" * 32).digest()
    assert flipped_seed(SESSION, [b"x" * 32, b"y" * 32]) == (
        sha256(b"inca-seed/1" + SESSION + b"x" * 32 + b"y" * 32).digest()
    )
    assert beacon_commitment(SESSION, 3, b"x" * 32) == (
        sha256(b"inca-beacon-commit/1" + SESSION + three + b"x" * 32).digest()
    )
    revealed = {3: b"x" * 32, 0: b"y" * 32}
    committed = {party: beacon_commitment(SESSION, party, secret) for party, secret in revealed.items()}
    expected = sha256(b"inca-beacon/1" + SESSION + bytes(4) + b"y" * 32 + three + b"x" * 32).digest()
    assert beacon(SESSION, committed, revealed) == expected


@given(st.dictionaries(st.integers(0, 300), secrets, min_size=1, max_size=5), st.data())
def test_the_beacon_follows_from_what_was_committed_to_and_revealed_and_from_nothing_else(
    revealed: dict[int, bytes], data: st.DataObject
) -> None:
    committed = {party: beacon_commitment(SESSION, party, secret) for party, secret in revealed.items()}
    value = beacon(SESSION, committed, revealed)
    party = data.draw(st.sampled_from(sorted(revealed)))
    without = {other: secret for other, secret in revealed.items() if other != party}
    changed = bytes([revealed[party][0] ^ 1]) + revealed[party][1:]
    assert beacon(SESSION, committed, {**revealed, party: changed}) == beacon(SESSION, committed, without) != value
    recommitted = {**committed, party: beacon_commitment(SESSION, party, changed)}
    assert beacon(SESSION, recommitted, {**revealed, party: changed}) != value
    elsewhere = {other: beacon_commitment(OTHER_SESSION, other, secret) for other, secret in revealed.items()}
    assert beacon(OTHER_SESSION, elsewhere, revealed) != value
    assert beacon(OTHER_SESSION, committed, revealed) == beacon(OTHER_SESSION, {}, {})  # none of them counts there
