"""In which order the addresses of a peer are tried, and what is said when none of them led to it."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

from inca.network.addresses import Address
from inca.network.transport.failures import Failure, FailureCause

AVOID_S = 60.0  # a firewall that drops packets costs seconds at each try
# Causes that say little of the peer: another address of it may have told more.
_VAGUE = (
    FailureCause.REFUSED,
    FailureCause.TIMED_OUT,
    FailureCause.NO_ANSWER,
    FailureCause.NO_ADDRESS,
    FailureCause.NO_ROUTE,
    FailureCause.RELAY_UNREACHABLE,
)


class Routes:
    """The addresses of a peer: each is tried once in a round, in order of preference.

    One that has failed comes last for a while, so that a way that works is not looked for again at every dial; then it
    is tried in its turn again, as a direct way may have opened.
    """

    def __init__(self) -> None:
        self._untried: deque[Address] = deque()
        self._failures: list[Failure] = []
        self._avoid_until: dict[Address, float] = {}
        self._trying: Address | None = None

    @property
    def more(self) -> bool:
        """Whether there is another address to try in this round."""
        return bool(self._untried)

    def next(self, addresses: Sequence[Address], now: float) -> Address:
        """Return the address to try now; `addresses` are those of the peer, the best first."""
        if not self._untried:
            self._failures = []
            self._untried.extend(sorted(addresses, key=lambda address: self._avoid_until.get(address, 0.0) > now))
        self._trying = self._untried.popleft()
        return self._trying

    def again(self) -> None:
        """Try the same address once more: nothing is wrong with it."""
        if self._trying is not None:
            self._untried.appendleft(self._trying)

    def failed(self, failure: Failure, now: float) -> Failure | None:
        """Count the address as failed; return what to report, None while there are others."""
        if self._trying is not None:
            self._avoid_until[self._trying] = now + AVOID_S
        self._failures.append(failure)
        if self._untried:
            return None
        cause = min(self._failures, key=lambda failure: failure.cause in _VAGUE).cause
        return Failure(cause, "; ".join(dict.fromkeys(failure.detail for failure in self._failures)))

    def reached(self, *, by_us: bool) -> None:
        """End the round: there is a connection; `by_us`: by the address that was tried last."""
        self._untried.clear()
        if by_us and self._trying is not None:
            self._avoid_until.pop(self._trying, None)
