"""What is known about one peer, and what waits for it."""

from __future__ import annotations

import asyncio
from collections import deque

from inca.network.transport.connection import Connection
from inca.network.transport.failures import Failure
from inca.network.transport.frames import DATA, HEADER
from inca.network.transport.limits import Limits, TokenBuckets
from inca.network.transport.streams import READ_BYTES, RECORD_BYTES

LONGEST_BACKOFF_S = 1.0
_FIRST_BACKOFF_S = 0.05


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
        self.flush_scheduled = False
        self.waiters: list[asyncio.Future[None]] = []
        self.queue: deque[tuple[bytes, object]] = deque()  # frames and their tokens
        self._queued_bytes = 0

    def connections_of(self, incarnation: bytes) -> list[Connection]:
        """Return those with this incarnation of the peer that are live or have been answered."""
        return [one for one in (self.live, *self.answered) if one is not None and one.incarnation == incarnation]

    def enqueue(self, frame: bytes, token: object) -> list[object]:
        """Have a frame wait; return the tokens of the oldest ones, which are given up if there are too many."""
        self.queue.append((frame, token))
        self._queued_bytes += len(frame) + HEADER.size
        given_up = []
        while self._queued_bytes > self._limits.max_queue_bytes and len(self.queue) > 1:
            oldest, oldest_token = self.queue.popleft()
            self._queued_bytes -= len(oldest) + HEADER.size
            given_up.append(oldest_token)
        return given_up

    def next_batch(self) -> tuple[tuple[bytes, memoryview], list[object]]:
        """Return the next frames, to be written one after the other, and their tokens; they no longer wait."""
        parts: list[bytes] = []
        tokens: list[object] = []
        size = 0
        while self.queue and size < READ_BYTES // 4:
            frame, token = self.queue.popleft()
            tokens.append(token)
            parts += (HEADER.pack(len(frame), DATA), frame)
            size += HEADER.size + len(frame)
        self._queued_bytes -= size
        # Fill the records of TLS without copying a long frame.
        last = memoryview(parts.pop())
        cut = -sum(map(len, parts)) % RECORD_BYTES
        return (b"".join((*parts, last[:cut])), last[cut:]), tokens

    def wake_waiters(self, failure: Failure | None = None) -> None:
        """Tell those who wait for a connection that there is one, or why there is none."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(failure.as_error()) if failure else waiter.set_result(None)

    def empty_queue(self) -> list[object]:
        """Give up what waits; return the tokens."""
        tokens = [token for _, token in self.queue]
        self.queue.clear()
        self._queued_bytes = 0
        return tokens

    def back_off(self, now: float) -> None:
        """Wait longer before each dial."""
        self._backoff_s = min(max(2 * self._backoff_s, _FIRST_BACKOFF_S), LONGEST_BACKOFF_S)
        self.next_dial = now + self._backoff_s

    def forget_back_off(self) -> None:
        """Begin with short waits again."""
        self._backoff_s = 0.0
