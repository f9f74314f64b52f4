"""A relay's certificate, and the names under which parties reach it."""

from __future__ import annotations

import ssl

from inca._base.extras import importing
from inca.errors import InvalidInput
from inca.network.addresses import Address
from inca.network.transport.relay.options import RelayOptions

with importing("inca.network", extra="network"):
    from cryptography import x509


class RelayCertificate:
    """What a relay shows to be who it is; no `context` if a reverse proxy does so in its place."""

    def __init__(self, options: RelayOptions) -> None:
        self._options = options
        self.context: ssl.SSLContext | None = None
        self._names: set[str] = set()
        self.renew()

    def renew(self) -> None:
        """Read the files again, for connections from now on; if they cannot be used, all stays as it was."""
        context = None if self._options.certificate is None else _context(self._options)
        self._names = _names(self._options)
        self.context = context

    def is_for(self, authority: str) -> bool:
        """Return whether parties reach this relay under this name; a port says nothing, as others may map it."""
        try:
            host = Address.parse(f"wss://{authority}").place[0]
        except InvalidInput:
            return False
        return host in self._names or f"*.{host.partition('.')[2]}" in self._names


def _context(options: RelayOptions) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_cert_chain(str(options.certificate), None if options.key is None else str(options.key))
    except OSError as error:  # an SSLError, too
        what = f"{options.certificate} and {options.key}" if options.key else str(options.certificate)
        reason = "they do not belong together, or are not in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise InvalidInput(f"the relay's certificate and key in {what} cannot be used: {reason}") from None
    return context


def _names(options: RelayOptions) -> set[str]:
    """Return the hosts under which parties reach it, given or in its certificate."""
    if options.names or options.certificate is None:
        return {name.rstrip(".").lower() for name in options.names}
    try:
        certificate = x509.load_pem_x509_certificate(options.certificate.read_bytes())
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (OSError, ValueError, x509.ExtensionNotFound):
        raise InvalidInput(f"{options.certificate} must be a certificate (PEM) that names hosts") from None
    addresses = map(str, names.get_values_for_type(x509.IPAddress))
    return {*addresses, *(name.lower() for name in names.get_values_for_type(x509.DNSName))}
