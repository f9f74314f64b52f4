"""What a party needs to use relays."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from inca.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class RelayAccess:
    """Who a party is at relays, and whom it believes to be one.

    Attributes:
        key: Its raw Ed25519 public key, 32 bytes.
        sign: Signs with that key (`Identity.sign`).
        names: The name of each party at relays, in the order of the parties: the fingerprint of its key.
        ca: A file of certificates (PEM) of authorities that may vouch for relays, besides those of this machine: of a
            private relay, or of a proxy that opens TLS.
    """

    key: bytes
    sign: Callable[[bytes], bytes]
    names: Sequence[str]
    ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return the context for connections to relays, or refuse the file of authorities."""
        context = ssl.create_default_context()
        if self.ca is not None:
            try:
                context.load_verify_locations(cafile=self.ca)
            except OSError as error:  # an SSLError, too
                reason = "it holds no certificates in PEM" if isinstance(error, ssl.SSLError) else error.strerror
                raise InvalidInput(f"the certificates of authorities in {self.ca} cannot be read: {reason}") from None
        return context
