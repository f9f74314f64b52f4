"""What an error of a connection means, and whose fault it looks like, in a sentence."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import socket
import ssl


def origin(address: str) -> str:
    """Return what counts as one address: with IPv6, a whole network is given to one customer."""
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if parsed.version == 6 and parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address


def tls_reason(error: Exception) -> str:
    """Say what an error of TLS means."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"wrong certificate: {error.verify_message}"
    reason = str(getattr(error, "reason", None) or error)
    if "ALERT" in reason:
        return f"refuses us in TLS: {reason}"
    return (
        f"showed no certificate ({reason})" if "DID_NOT_RETURN" in reason else f"does not speak TLS with us: {reason}"
    )


def blame(error: Exception, where: str) -> str:
    """Say what an error of a socket means and whose fault it looks like."""
    number = error.errno if isinstance(error, OSError) else None
    if number is None and f"[Errno {errno.ECONNREFUSED}]" in str(error):  # several addresses, all tried
        number = errno.ECONNREFUSED
    for numbers, text in _BLAME:
        if number in numbers:
            return text.format(where)
    if isinstance(error, socket.gaierror | ValueError | OverflowError):
        return f"no address: {where} cannot be looked up (our roster, or the name service)"
    return f"{where} broke the connection off" if isinstance(error, ConnectionError) else f"{where}: {error}"


_BLAME = (
    ((errno.ECONNREFUSED,), "refused: nothing listens at {} (the peer is not running, or its address is wrong)"),
    ((errno.ETIMEDOUT,), "timed out: nothing answers at {} (the network, or the peer's machine)"),
    (
        (errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN),
        "no route to {} (the network, ours or the peer's)",
    ),
    (
        (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM),
        "our own machine has no file descriptors or memory left for {}",
    ),
)
