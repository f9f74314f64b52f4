"""What a transport tells whoever uses it."""

from __future__ import annotations

from typing import Protocol


class Listener(Protocol):
    """Whoever uses a transport; called in the event loop, so nothing here may block."""

    def received(self, peer: int, frame: bytes) -> None:
        """Take a frame of `peer`."""

    def unsent(self, peer: int, token: object) -> None:
        """Learn that, for certain, no byte of the frame sent with this token ever left."""

    def down(self, peer: int, reason: str) -> None:
        """Learn that `peer` cannot be reached."""

    def up(self, peer: int) -> None:
        """Learn that there is a connection to `peer`."""

    def note(self, event: str, **fields: object) -> None:
        """Log an event, never with contents of frames.

        Events: connected, lost, fault (with strikes), throttled, refused (times in a second), accepting failed.
        """


class Unreachable(Exception):
    """A peer that cannot be reached; the text says whose fault it looks like."""
