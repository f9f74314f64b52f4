"""What is known about one peer, and what waits for it."""

from __future__ import annotations

import asyncio
from collections import deque

from inca.network.payloads import LARGE_BYTES
from inca.network.transport.connection import Connection
from inca.network.transport.failures import Failure
from inca.network.transport.frames import DATA, HEADER
from inca.network.transport.limits import Limits, TokenBuckets
from inca.network.transport.routes import Routes
from inca.network.transport.streams import RECORD_BYTES

LONGEST_BACKOFF_S = 1.0
_FIRST_BACKOFF_S = 0.05
_BATCH_BYTES = 1 << 16  # written at once, or a single frame
_FRAME_COST = 128  # bytes that a frame in a queue takes beside its own

Frame = tuple[bytes, ...]
"""A frame in pieces, which follow each other. Large ones are those of whoever sends it, never copied."""


class Peer:
    """One peer: its connections, its latest incarnation, what waits for it, and when it may be dialled."""

    def __init__(self, party: int, limits: Limits, now: float) -> None:
        self.party, self._limits = party, limits
        self.live: Connection | None = None
        self.dialled: Connection | None = None
        self.answered: set[Connection] = set()
        self.incarnation, self.own_serial = b"", 0  # the latest proven, and our hello that it answered
        self.past_incarnations: deque[bytes] = deque(maxlen=64)
        self.buckets = TokenBuckets(limits, now)
        self.next_dial, self.trying_since, self._backoff_s = 0.0, 0.0, 0.0
        self.dial_timer: asyncio.TimerHandle | None = None
        self.routes = Routes()
        self.flush_scheduled = False
        self.waiters: list[asyncio.Future[None]] = []
        self.queue: deque[tuple[Frame, int, int, object]] = deque()  # frames, lengths, of large pieces, tokens
        self._queued_bytes = self._queued_shared_bytes = 0  # of small pieces, and of large ones

    def connections_of(self, incarnation: bytes) -> list[Connection]:
        """Return those with this incarnation of the peer that are live or have been answered."""
        return [one for one in (self.live, *self.answered) if one is not None and one.incarnation == incarnation]

    def enqueue(self, frame: Frame, length: int, token: object) -> list[object]:
        """Have a frame of this length wait; return the tokens of the oldest ones, given up if there are too many."""
        limits, given_up = self._limits, []
        shared = sum(len(piece) for piece in frame if len(piece) >= LARGE_BYTES) if length >= LARGE_BYTES else 0
        self.queue.append((frame, length, shared, token))
        self._queued_bytes += length - shared + _FRAME_COST
        self._queued_shared_bytes += shared
        while len(self.queue) > 1 and (
            self._queued_bytes > limits.max_queue_bytes or self._queued_shared_bytes > limits.max_queue_shared_bytes
        ):
            _, length, shared, oldest = self.queue.popleft()
            self._queued_bytes -= length - shared + _FRAME_COST
            self._queued_shared_bytes -= shared
            given_up.append(oldest)
        return given_up

    def next_batch(self) -> tuple[list[memoryview], list[object]]:
        """Return the next frames, to be written one after the other, and their tokens; they no longer wait."""
        pieces: list[bytes] = []
        tokens: list[object] = []
        size = all_shared = 0
        while self.queue and size < _BATCH_BYTES:
            frame, length, shared, token = self.queue.popleft()
            tokens.append(token)
            pieces.append(HEADER.pack(length, DATA))
            pieces += frame
            size += length
            all_shared += shared
        self._queued_bytes -= size - all_shared + len(tokens) * _FRAME_COST
        self._queued_shared_bytes -= all_shared
        return _gathered(pieces), tokens

    def wake_waiters(self, failure: Failure | None = None) -> None:
        """Tell those who wait for a connection that there is one, or why there is none."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(failure.as_error()) if failure else waiter.set_result(None)

    def empty_queue(self) -> list[object]:
        """Give up what waits; return the tokens."""
        tokens = [waiting[-1] for waiting in self.queue]
        self.queue.clear()
        self._queued_bytes = self._queued_shared_bytes = 0
        return tokens

    def back_off(self, now: float) -> None:
        """Wait longer before each dial."""
        self._backoff_s = min(max(2 * self._backoff_s, _FIRST_BACKOFF_S), LONGEST_BACKOFF_S)
        self.next_dial = now + self._backoff_s

    def forget_back_off(self) -> None:
        """Begin with short waits again."""
        self._backoff_s = 0.0


def _gathered(pieces: list[bytes]) -> list[memoryview]:
    """Join small pieces, so that they fill the records of TLS; large ones stay where they are."""
    gathered, first = [], 0  # of those that are not joined yet
    for number, piece in enumerate(pieces):
        if len(piece) >= RECORD_BYTES:
            small, view = pieces[first:number], memoryview(piece)
            cut = -sum(map(len, small)) % RECORD_BYTES
            gathered += [memoryview(b"".join((*small, view[:cut]))), view[cut:]]
            first = number + 1
    return [*gathered, memoryview(b"".join(pieces[first:]))]
