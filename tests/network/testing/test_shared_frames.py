"""What many simulated parties receive is encoded and held once, and nobody can tell."""

from __future__ import annotations

from helpers.shared_frames import Frame, SharedFrames
from inca.network.protocol.messages import Ack, Item, Items, Message, encode

DONE = Item("done", 3, b"", b"signature of 3")


def received(frames: SharedFrames, message: Message) -> Message:
    return frames.message(Frame(encode(message)))


def test_a_message_to_many_is_encoded_once_and_read_once() -> None:
    frames, message = SharedFrames(), Ack(3)
    first, second = frames.frame(message), frames.frame(message)
    assert first is second and first.content == encode(message)
    assert frames.message(first) == message and frames.message(first) is frames.message(second)
    assert frames.frame(Ack(4)).content == encode(Ack(4))


def test_items_in_different_messages_are_held_once() -> None:
    frames, other = SharedFrames(), Item("done", 4, b"", b"signature of 4")
    one, both = received(frames, Items([DONE])), received(frames, Items([other, DONE]))
    assert isinstance(one, Items) and isinstance(both, Items)
    assert one == Items([DONE]) and both == Items([other, DONE])
    assert both.items[1] is one.items[0]


def test_a_signature_shown_with_something_else_does_not_stand_for_what_it_was_shown_with_before() -> None:
    frames, forged = SharedFrames(), Item("done", 3, b"more", DONE.signature)
    assert received(frames, Items([DONE])) == Items([DONE])
    assert received(frames, Items([forged])) == Items([forged])
    assert received(frames, Items([DONE])) == Items([DONE])
