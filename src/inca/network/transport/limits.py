"""What a transport allows a peer: sizes, times and rates, and how many violations before it is refused."""

from __future__ import annotations

from dataclasses import dataclass, fields

from inca._base.validation import integer, positive, refuse

_SHORTEST_PAUSE_S = 0.02  # many tiny pauses would cost more than they spare


@dataclass(frozen=True, slots=True)
class Limits:
    """What a transport allows; times in seconds, sizes in bytes.

    A party is refused after its violations. An address is only slowed down, as parties may share it with others; mind
    `max_pending_per_address` where many do.
    """

    max_frame_bytes: int = 1 << 23
    max_queue_bytes: int = 1 << 26  # waiting for one peer; beyond, the oldest unsent frames are given up
    max_queue_shared_bytes: int = 1 << 28  # likewise, of large pieces, which wait by reference
    handshake_timeout_s: float = 10.0  # for reaching a peer, and again for agreeing on TLS
    hello_timeout_s: float = 10.0  # for the exchange of hellos
    ping_timeout_s: float = 10.0  # for the answer to a ping, which follows the frames that are on their way already
    idle_timeout_s: float = 120.0  # a connection on which nothing is heard that long is closed
    stall_timeout_s: float = 20.0  # a write that makes no progress that long ends its connection
    frames_per_second: float = 2000.0  # read from one peer in the long run; above, reading pauses
    burst_frames: int = 4000  # read from one peer at full speed
    bytes_per_second: float = 1e8
    burst_bytes: int = 1 << 28
    max_pending: int = 256  # incoming connections that have not completed their hello, in all
    max_pending_per_address: int = 128
    max_violations: int = 5  # before a peer is refused
    penalty_s: float = 30.0  # how long it is refused, and how long a violation is remembered

    def __post_init__(self) -> None:
        """Refuse what makes no sense."""
        for field in fields(self):
            if field.type == "int":
                integer(field.name, getattr(self, field.name), min=1)
            else:
                positive(field.name, getattr(self, field.name))
        integer("max_frame_bytes", self.max_frame_bytes, min=1, max=2**32 - 1)  # its length has four bytes
        if self.max_queue_shared_bytes < self.max_frame_bytes:
            limit = f"at least max_frame_bytes ({self.max_frame_bytes})"
            refuse("max_queue_shared_bytes", self.max_queue_shared_bytes, limit)


class TokenBuckets:
    """How much one peer may send: two token buckets that may fall into debt by the work of one wake-up."""

    __slots__ = ("_at", "_bytes", "_frames", "_limits", "over_since")

    def __init__(self, limits: Limits, now: float) -> None:
        self._limits, self._at = limits, now
        self._frames, self._bytes = float(limits.burst_frames), float(limits.burst_bytes)
        self.over_since: float | None = None
        """Since when the peer has been held back without a break."""

    def take(self, frames: int, size: int, now: float) -> float:
        """Count what was read; return for how many seconds to read no more."""
        limits, elapsed = self._limits, now - self._at
        self._at = now
        self._frames = min(limits.burst_frames, self._frames + elapsed * limits.frames_per_second) - frames
        self._bytes = min(limits.burst_bytes, self._bytes + elapsed * limits.bytes_per_second) - size
        pause = max(-self._frames / limits.frames_per_second, -self._bytes / limits.bytes_per_second)
        if pause > 0:
            self.over_since = now if self.over_since is None else self.over_since
            return max(pause, _SHORTEST_PAUSE_S)
        if self._frames > limits.burst_frames / 2 and self._bytes > limits.burst_bytes / 2:
            self.over_since = None
        return 0.0


class Violations:
    """Violations by culprit (a party or an address), and who is refused for them.

    Beyond `max_culprits` the oldest are forgotten.
    """

    def __init__(self, limits: Limits, max_culprits: int = 4096) -> None:
        self._limits, self._max_culprits = limits, max_culprits
        self._culprits: dict[int | str, tuple[int, float]] = {}

    def add(self, culprit: int | str, now: float) -> int:
        """Count one; return how many there are now."""
        count, last = self._culprits.pop(culprit, (0, now))
        count = 1 if now - last >= self._limits.penalty_s else count + 1
        self._culprits[culprit] = count, now
        if len(self._culprits) > self._max_culprits:
            del self._culprits[next(iter(self._culprits))]
        return count

    def refused_for(self, culprit: int | str, now: float) -> float:
        """Return for how many more seconds it is refused: 0 if it is not."""
        count, last = self._culprits.get(culprit, (0, now))
        return max(0.0, last + self._limits.penalty_s - now) if count >= self._limits.max_violations else 0.0
