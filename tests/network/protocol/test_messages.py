from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from helpers.examples import examples
from inca.errors import InvalidPeerMessage
from inca.network.protocol.messages import (
    Accept,
    Ack,
    Ask,
    Decision,
    Decisions,
    Fetch,
    Goodbye,
    Have,
    Item,
    ItemProof,
    Items,
    Lock,
    Message,
    Nudge,
    Offer,
    OfferProof,
    Prepare,
    Promise,
    Proposal,
    Propose,
    Seen,
    Skipped,
    Voided,
    Vote,
    Want,
    Yes,
    bits,
    decode,
    encode,
    encode_in_pieces,
    members,
    pack,
    unpack,
)

counts = st.integers(0, 2**32 - 1)
ballots = st.integers(0, 2**62 - 1)
blobs = st.binary(max_size=40)
proposals = st.builds(Proposal, st.sampled_from(["cohort", "commit"]), st.lists(st.tuples(counts, blobs), max_size=3))
contents = st.lists(st.tuples(counts, blobs), max_size=3)
decisions = st.builds(Decision, ballots, proposals, contents)
locks = st.builds(Lock, ballots, proposals, contents)
promises = st.lists(st.tuples(counts, ballots, blobs), max_size=3)
items = st.builds(Item, kind=st.text(max_size=8), party=counts, body=blobs, signature=blobs, sealed=blobs)
MESSAGES: dict[type, st.SearchStrategy[Message]] = {
    Offer: st.builds(Offer, round=counts, payload=blobs, signature=blobs),
    Ack: st.builds(Ack, counts),
    Voided: st.builds(Voided, counts),
    Nudge: st.builds(Nudge, counts),
    Skipped: st.builds(Skipped, counts),
    Goodbye: st.just(Goodbye()),
    Ask: st.just(Ask()),
    Seen: st.builds(
        Seen,
        offers=st.lists(st.builds(OfferProof, counts, blobs, blobs, blobs), max_size=4),
        round=counts,
        since=counts,
        signed=st.lists(st.builds(ItemProof, st.text(max_size=8), blobs, blobs), max_size=3),
    ),
    Have: st.builds(
        Have, held=st.dictionaries(st.text(max_size=8), blobs, max_size=4), decided=counts, reply=st.booleans()
    ),
    Want: st.builds(Want, wanted=st.dictionaries(st.text(max_size=8), blobs, max_size=4), decided=counts),
    Items: st.builds(Items, items=st.lists(items, max_size=3)),
    Fetch: st.builds(Fetch, st.text(max_size=8), contents),
    Decisions: st.builds(Decisions, counts, st.lists(decisions, max_size=2)),
    Prepare: st.builds(Prepare, counts, ballots),
    Promise: st.builds(Promise, counts, ballots, st.none() | locks, blobs),
    Propose: st.builds(Propose, counts, ballots, proposals, promises, contents),
    Vote: st.builds(Vote, counts, ballots, blobs),
    Accept: st.builds(Accept, counts, locks),
    Yes: st.builds(Yes, counts, ballots, blobs),
}
messages = st.one_of(*MESSAGES.values())
numbers = st.integers(-(2**62) + 1, 2**62 - 1)


def test_there_is_a_strategy_for_every_message() -> None:
    assert set(MESSAGES) == set(Message.__args__)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: kind.__name__)
def test_every_message_comes_back_from_its_bytes(kind: type) -> None:
    @given(MESSAGES[kind])
    def check(message: Message) -> None:
        frame = encode(message)
        assert decode(frame) == message and type(decode(frame)) is kind
        assert encode(decode(frame)) == frame  # a retry is byte-identical

    check()


LARGE = bytes(range(256)) * 256


@pytest.mark.parametrize(
    "sizes", [(), (0,), (1,), (0, 0, 1), (1, 0, 1, 1), (0, 1, 0), (*[0] * 16, 1), (1, *[0] * 70000)]
)
def test_large_parts_of_a_message_are_pieces_and_not_copied(sizes: tuple[int, ...]) -> None:
    message = Items([Item("deposit", p, b"body", b"s", (b"", LARGE)[size]) for p, size in enumerate(sizes)])
    pieces = encode_in_pieces(message)
    assert b"".join(pieces) == encode(message)
    assert sum(piece is LARGE for piece in pieces) == sum(sizes)
    assert len(pieces) <= 2 * sum(sizes) + 1


@given(messages)
def test_small_messages_are_one_piece(message: Message) -> None:
    assert encode_in_pieces(message) == (encode(message),)


@pytest.mark.parametrize("size", [2**16 - 1, 2**16, 2**20])
def test_an_offer_refers_to_its_payload(size: int) -> None:
    offer = Offer(70000, bytes(size), bytes(64))
    pieces = encode_in_pieces(offer)
    assert b"".join(pieces) == encode(offer)
    assert any(piece is offer.payload for piece in pieces) == (size >= 2**16)


@given(messages, messages)
def test_different_messages_have_different_bytes(one: Message, other: Message) -> None:
    assert (encode(one) == encode(other)) == (one == other)


@given(st.binary(max_size=60))
@examples(150, 500)
@example(b"")
@example(b"\xc0")
@example(b"\x92\xa5items\xdd\xff\xff\xff\xff")  # a list of 2^32 - 1 items that are not there
@example(b"\x93\xa4have\xdf\xff\xff\xff\xff")  # and as long a dictionary
@example(b"\x91" * 5000)  # nested deeper than any stack
@example(b"\x93\xa3ack\xa1\xff\x00")  # a text that is not UTF-8
def test_random_bytes_are_nonsense_or_a_message_with_those_bytes(frame: bytes) -> None:
    try:
        message = decode(frame)
    except InvalidPeerMessage:
        return
    assert decode(encode(message)) == message


@given(messages, st.data())
def test_damaged_messages_are_nonsense_or_another_message(message: Message, data: st.DataObject) -> None:
    frame = bytearray(encode(message))
    place = data.draw(st.integers(0, len(frame) - 1))
    match data.draw(st.sampled_from(["flip", "cut", "more"])):
        case "flip":
            frame[place] ^= data.draw(st.integers(1, 255))
        case "cut":
            del frame[place:]
        case _:
            frame += data.draw(st.binary(min_size=1, max_size=5))
    try:
        changed = decode(bytes(frame))
    except InvalidPeerMessage:
        return
    assert decode(encode(changed)) == changed


@pytest.mark.parametrize(
    "content",
    [
        ["ack"],
        ["ack", 1, 2],  # an unknown field
        ["ack", -1],
        ["ack", 2**32],
        ["ack", 1.0],
        ["ack", float("nan")],
        ["ack", "1"],
        ["ack", None],
        ["ack", True],
        ["nack", 1],
        [1, 1],
        [],
        "ack",
        7,
        {"round": 1},
        ["offer", 1, "text where bytes belong"],
        ["offer", 1],
        ["offer", 1, b"", []],
        ["resolve", 1],
        ["seen", [[1]], 0, 0, []],
        ["seen", [], 0, 0],
        ["seen", [[1, b"", b"", b""]], 0, -1, []],
        ["seen", [[1, b"", b"", b""]], 0, 0, [1]],
        ["nudge", -1],
        ["nudge", 1, 0],
        ["skipped", 2**32],
        ["skipped"],
        ["have", {"digest": 5}, 0, False],
        ["have", {1: b""}, 0, False],
        ["have", {}, 0, 0],
        ["have", {}, -1, False],
        ["want", {"digest": 5}, 0],
        ["want", {1: b""}, 0],
        ["want", {}, b""],
        ["want", {}],
        ["fetch", "digest", [[1]]],
        ["fetch", "digest", [[-1, b""]]],
        ["fetch", 3, []],
        ["items", [["digest", 0, b""]]],
        ["items", [["digest", 2**32, b"", b""]]],
        ["items", [["deposit", 0, b"", b"", "sealed"]]],
        ["items", [["deposit", 0, b"", b"", b"", b""]]],
        ["prepare", 0, 2**62],
        ["prepare", 0, -1],
        ["prepare", 0, 0.5],
        ["prepare", 2**32, 1],
        ["prepare", 1],
        ["promise", 0, 1, 2**62, None],
        ["promise", 0, 1, 1, ["gift", []]],
        ["promise", 0, 1, 1],
        ["accept", 0, 1, None],
        ["accept", 0, 1, ["cohort", [[1, "text"]]]],
        ["accept", 0, 1, ["cohort", [[2**32, b""]]]],
        ["accept", 0, 1, ["cohort", [], 1]],
        ["accept", 0, [1, ["result", []], []]],
        ["yes", 0, 1],
        ["yes", 0, 1, None],
        ["decisions", 0, [[1, ["cohort", []]]]],
        ["decisions", 0, [[1, ["cohort", []], [[1]]]]],
        ["decisions", -1, []],
        ["ask", 1],
    ],
    ids=repr,
)
def test_nonsense_is_refused(content: Any) -> None:
    with pytest.raises(InvalidPeerMessage):
        decode(msgspec.msgpack.encode(content))


@given(st.lists(numbers, min_size=1, max_size=6))
def test_payloads_have_a_fixed_width_and_come_back(sent: list[int]) -> None:
    payload = pack(np.array(sent, dtype=np.int64))
    assert len(payload) == 8 * len(sent)  # whatever the numbers are
    back = unpack(payload, len(sent))
    assert back.dtype == np.int64 and back.tolist() == sent
    assert payload[:8] == sent[0].to_bytes(8, "little", signed=True)
    assert not back.flags.writeable  # the message stays as it was


@pytest.mark.parametrize("number", [2**62, -(2**62), 2**63 - 1, -(2**63), -(2**63) + 1])
def test_numbers_that_no_balance_can_hold_are_refused(number: int) -> None:
    for place in range(3):
        content = np.zeros(3, dtype=np.int64)
        content[place] = number
        with pytest.raises(InvalidPeerMessage, match="below 2"):
            unpack(pack(content), 3)


@given(st.binary(max_size=40), st.integers(1, 4))
def test_payloads_of_another_width_are_refused(payload: bytes, count: int) -> None:
    if len(payload) != 8 * count:
        with pytest.raises(InvalidPeerMessage, match=f"must have {8 * count} bytes, got {len(payload)}"):
            unpack(payload, count)


@given(st.integers(1, 40), st.data())
def test_sets_of_parties_come_back_from_their_bits(count: int, data: st.DataObject) -> None:
    parties = data.draw(st.sets(st.integers(0, count - 1)))
    field = bits(parties, count)
    assert len(field) == (count + 7) // 8  # whoever is in it
    assert members(field, count) == parties


@given(st.integers(1, 40), st.binary(max_size=7))
def test_bits_that_do_not_fit_are_refused(count: int, field: bytes) -> None:
    fits = len(field) == (count + 7) // 8 and int.from_bytes(field, "little") < 2**count
    if fits:
        assert bits(members(field, count), count) == field
    else:
        with pytest.raises(InvalidPeerMessage, match=f"must be that of {count} parties"):
            members(field, count)


@pytest.mark.parametrize("read", [decode, lambda frame: unpack(frame, 1), lambda frame: members(frame, 3)])
def test_nonsense_is_a_value_error(read: Callable[[bytes], object]) -> None:
    with pytest.raises(ValueError):
        read(b"\xff\xff\xff")


def test_proposals_are_known_by_what_they_say() -> None:
    one = Proposal("cohort", [(0, b"a"), (2, b"b")])
    assert one.parties == {0, 2} and one.hash == Proposal("cohort", [(0, b"a"), (2, b"b")]).hash and len(one.hash) == 32
    others = [Proposal("commit", one.contents), Proposal("cohort", [(0, b"a"), (2, b"c")]), Proposal("cohort", [])]
    assert len({proposal.hash for proposal in (one, *others)}) == 4
