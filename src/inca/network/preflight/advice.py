"""What to do about a peer that could not be reached: one row for each cause."""

from __future__ import annotations

from typing import NamedTuple

from inca.network.preflight.checks import EITHER, NETWORK, OURS, THEIRS
from inca.network.transport.failures import FailureCause

NOT_THERE, TIMED_OUT, NO_ROUTE, NO_RELAY, NO_ADDRESS = "not there", "timed out", "no route", "no relay", "no address"
UNHEARD = (NOT_THERE, TIMED_OUT, NO_ROUTE, NO_RELAY, NO_ADDRESS)
"""States of peers that said nothing at all, so that nothing can be learned from what they have in common."""


class Advice(NamedTuple):
    """What a failure means to whoever runs a node."""

    state: str
    fault: str
    text: str


ADVICE = {
    FailureCause.REFUSED: Advice(NOT_THERE, THEIRS, "it is not running yet, or listens elsewhere"),
    FailureCause.TIMED_OUT: Advice(TIMED_OUT, NETWORK, "ask whether its machine is on and its firewall open"),
    FailureCause.NO_ANSWER: Advice(NOT_THERE, THEIRS, "a tunnel or relay takes connections, and it is not behind it"),
    FailureCause.UNRESPONSIVE: Advice(TIMED_OUT, THEIRS, "it takes connections and says nothing"),
    FailureCause.NO_ADDRESS: Advice(NO_ADDRESS, OURS, "check its host in the roster, and our name service"),
    FailureCause.NO_ROUTE: Advice(NO_ROUTE, NETWORK, "check our network, then the peer's"),
    FailureCause.NOT_REGISTERED: Advice(NOT_THERE, THEIRS, "it is not running yet, or does not reach the relay"),
    FailureCause.RELAY_UNREACHABLE: Advice(
        NO_RELAY, NETWORK, "ask whether the relay runs, and whether our network lets us reach it (or set HTTPS_PROXY)"
    ),
    FailureCause.RELAY_UNTRUSTED: Advice(
        NO_RELAY,
        OURS,
        "ask whoever runs the relay, or our own network, which authority vouches for it, and give --relay-ca FILE",
    ),
    FailureCause.RELAY_REFUSES: Advice(
        NO_RELAY, EITHER, "ask whoever runs the relay whether its allow-list has both keys, and about its limits"
    ),
    FailureCause.PROXY_REFUSES: Advice(
        NO_RELAY, OURS, "our proxy is in the way: check its address and password in HTTPS_PROXY, and its rules"
    ),
    FailureCause.NOT_TLS: Advice("refused", THEIRS, "another program listens at its address"),
    FailureCause.WRONG_CERTIFICATE: Advice(
        "wrong certificate",
        THEIRS,
        "another key answers at its address than the roster has: compare fingerprints by telephone",
    ),
    FailureCause.CERTIFICATE_REFUSED: Advice(
        "refused", EITHER, "its roster does not have our certificate: compare rosters"
    ),
    FailureCause.IMPERSONATION: Advice("refused", THEIRS, "it claims to be another party: compare rosters"),
    FailureCause.OTHER_SESSION: Advice(
        "other session",
        EITHER,
        "its roster is not ours: compare the session's id, as `inca node roster show` prints it",
    ),
    FailureCause.OTHER_VERSION: Advice("other version", EITHER, "it runs another version of inca"),
    FailureCause.OLD_INCARNATION: Advice("failed", OURS, "another process with our identity is running"),
    FailureCause.RESTARTED: Advice("failed", THEIRS, "it was started again meanwhile: run this once more"),
    FailureCause.VIOLATION: Advice("failed", EITHER, "one of the two does not keep to the protocol: compare versions"),
    FailureCause.PENALTY: Advice("refused", EITHER, "there were too many violations before: wait a minute"),
    FailureCause.HUNG_UP: Advice("refused", THEIRS, "it turns us away, or takes no more connections"),
    FailureCause.LOST: Advice("failed", EITHER, "the connection did not last: run this once more"),
    FailureCause.IDLE: Advice("failed", THEIRS, "it stopped answering"),
    FailureCause.CLOSED: Advice("failed", OURS, "the examination was over before it answered"),
    FailureCause.CLOCK_SET: Advice("failed", EITHER, "a clock was set meanwhile: run this once more"),
    FailureCause.OUR_MACHINE: Advice("failed", OURS, "close other programs, or raise the limit of open files"),
    FailureCause.UNKNOWN: Advice("failed", EITHER, "try to connect by other means"),
}
