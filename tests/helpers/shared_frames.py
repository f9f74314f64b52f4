"""Frames of a simulated network: what was sent to many is encoded once, and what was received by many held once.

A thousand parties hold four thousand signed items each. On machines of their own that is little; in one process it is
too much, unless the parties that hold the same item share it. Messages never change, so nobody can tell.
"""

from __future__ import annotations

from inca.network.protocol.messages import Item, Items, Message, decode, encode


class Frame:
    """The bytes of a message, and the message that whoever receives them has read in them."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.message: Message | None = None


class SharedFrames:
    """Encodes and decodes for all parties of a simulated network.

    Example:
        >>> frames, item = SharedFrames(), Item("done", 3, b"", b"signature")
        >>> first, second = (frames.message(frames.frame(Items([item]))) for _ in range(2))
        >>> first == second and first.items[0] is second.items[0]
        True
    """

    def __init__(self) -> None:
        self._last: tuple[Message, Frame] | None = None
        self._items: dict[bytes, Item] = {}  # by signature, as they were first read

    def frame(self, message: Message) -> Frame:
        """Return the frame of a message; the same one if it is the message of the last call."""
        if self._last is None or self._last[0] is not message:
            self._last = message, Frame(encode(message))
        return self._last[1]

    def message(self, frame: Frame) -> Message:
        """Return the message in a frame; the same object to all who receive it."""
        if frame.message is None:
            message = decode(frame.content)
            frame.message = (
                Items([self._shared(item) for item in message.items]) if isinstance(message, Items) else message
            )
        return frame.message

    def _shared(self, item: Item) -> Item:
        known = self._items.setdefault(item.signature, item)
        return known if known == item else item  # somebody may show a signature with something else
