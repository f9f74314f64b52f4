"""Why a peer cannot be reached or a connection ended: a cause that programs read, and a sentence that people read.

No code takes the sentence apart. Whoever wants to act on a failure, or to give advice, looks at its cause.
"""

from __future__ import annotations

import errno
import socket
import ssl
from dataclasses import dataclass
from enum import StrEnum

from inca.errors import PeerUnreachable, TransportViolation


class FailureCause(StrEnum):
    """What went wrong between us and a peer."""

    REFUSED = "refused"  # nothing listens at its address
    TIMED_OUT = "timed out"  # nothing answers at its address
    NO_ANSWER = "no answer"  # a tunnel or a relay took the connection, it seems, and no party answers behind it
    UNRESPONSIVE = "unresponsive"  # a party, or a stranger, fell silent
    NO_ADDRESS = "no address"  # its host name cannot be looked up
    NO_ROUTE = "no route"
    NOT_REGISTERED = "not registered"  # the relay is there, and no party of that name at it: it is not there yet
    RELAY_UNREACHABLE = "relay unreachable"  # the relay itself, or our way to it
    RELAY_REFUSES = "relay refuses"  # its allow-list, its limits, or a name that is taken
    RELAY_UNTRUSTED = "relay untrusted"  # no authority that we know vouches for it: a private one, or a proxy opens TLS
    PROXY_REFUSES = "proxy refuses"  # the proxy on our way out says no, or does not answer
    NOT_TLS = "not TLS"
    WRONG_CERTIFICATE = "wrong certificate"  # it shows none, or not that of the party it should be
    CERTIFICATE_REFUSED = "certificate refused"  # it does not accept ours
    IMPERSONATION = "impersonation"  # its hello names another party than its certificate
    OTHER_SESSION = "other session"
    OTHER_VERSION = "other version"
    OLD_INCARNATION = "old incarnation"  # a later process of the same party has been there already
    RESTARTED = "restarted"  # another process of the same party has taken over
    VIOLATION = "violation"  # a frame that no honest peer sends
    PENALTY = "penalty"  # refused for a while after too many violations
    HUNG_UP = "hung up"  # it closed the connection before its hello, without a word
    LOST = "lost"  # the connection ended after the hellos
    IDLE = "idle"  # nothing was said for long, nor heard
    CLOSED = "closed"  # by ourselves
    CLOCK_SET = "clock set"  # while two clocks were compared
    OUR_MACHINE = "our machine"  # has no file descriptors or memory left
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong: the cause, and a sentence that says whose fault it looks like."""

    cause: FailureCause
    detail: str

    def as_error(self) -> PeerUnreachable:
        """Return the error for whoever waits for the peer."""
        return PeerUnreachable(self.detail, self.cause)


class Unreached(OSError):
    """What the way to a peer knows of why it led nowhere, or ended."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.detail)
        self.failure = failure


def describe_failure(error: Exception, where: str) -> Failure:
    """Return what an error of a connection means.

    Example:
        >>> describe_failure(ConnectionRefusedError(errno.ECONNREFUSED, ""), "10.0.0.1:7001").cause
        <FailureCause.REFUSED: 'refused'>
    """
    if isinstance(error, Unreached):
        return error.failure
    if isinstance(error, TransportViolation):
        return Failure(error.cause, f"{where} {error}")
    if isinstance(error, ssl.SSLError):
        return _describe_tls(error, where)
    if isinstance(error, socket.gaierror | ValueError | OverflowError):
        detail = f"{where} cannot be looked up (our roster, or the name service)"
        return Failure(FailureCause.NO_ADDRESS, detail)
    cause, sentence = _BY_NUMBER.get(getattr(error, "errno", None) or 0, (FailureCause.UNKNOWN, f"{{}}: {error}"))
    if cause is FailureCause.UNKNOWN and isinstance(error, ConnectionError):
        cause, sentence = FailureCause.LOST, "{} broke the connection off"
    return Failure(cause, sentence.format(where))


def _describe_tls(error: ssl.SSLError, where: str) -> Failure:
    if isinstance(error, ssl.SSLCertVerificationError):
        return Failure(FailureCause.WRONG_CERTIFICATE, f"{where} shows a wrong certificate: {error.verify_message}")
    name = str(error.reason or error)  # a symbol of OpenSSL's, such as TLSV1_ALERT_UNKNOWN_CA
    if name == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return Failure(FailureCause.WRONG_CERTIFICATE, f"{where} shows no certificate")
    if "_ALERT_" in name:
        return Failure(FailureCause.CERTIFICATE_REFUSED, f"{where} refuses us in TLS: {name}")
    return Failure(FailureCause.NOT_TLS, f"{where} does not speak TLS with us: {name}")


_NOTHING_LISTENS = (FailureCause.REFUSED, "nothing listens at {} (the peer is not running, or its address is wrong)")
_NOTHING_ANSWERS = (FailureCause.TIMED_OUT, "nothing answers at {} (the network, or the peer's machine)")
_NO_ROUTE = (FailureCause.NO_ROUTE, "there is no route to {} (the network, ours or the peer's)")
_OUR_MACHINE = (FailureCause.OUR_MACHINE, "our own machine has no file descriptors or memory left for {}")
_BY_NUMBER = {
    errno.ECONNREFUSED: _NOTHING_LISTENS,
    errno.ETIMEDOUT: _NOTHING_ANSWERS,
    **dict.fromkeys((errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN), _NO_ROUTE),
    **dict.fromkeys((errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM), _OUR_MACHINE),
}
