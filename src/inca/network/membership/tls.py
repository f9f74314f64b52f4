"""TLS 1.3 between the parties of a roster: both ends show a certificate, and only the roster's are accepted.

Host names are not checked. A name in a certificate says something only if an authority vouches for it, and there is
none here: a party's certificate itself is pinned in the roster, wherever the party listens. As those of all parties are
accepted, whoever connects must hold the peer's certificate against the party that it meant to reach (`Roster.index`).
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from pathlib import Path

from inca._base.extras import importing
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster

with importing("inca.network", extra="network"):
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, PrivateFormat


def server_context(identity: Identity, roster: Roster) -> ssl.SSLContext:
    """Return the context with which a party of the roster accepts connections of the others."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.num_tickets = 0  # connections are few and long, and a resumed one would not show its certificate again
    return _pinned(context, identity, roster)


def client_context(identity: Identity, roster: Roster) -> ssl.SSLContext:
    """Return the context with which a party of the roster connects to the others."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False  # see above: the certificate is pinned
    return _pinned(context, identity, roster)


def _pinned(context: ssl.SSLContext, identity: Identity, roster: Roster) -> ssl.SSLContext:
    roster.party_of(identity)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    # A party's certificate ends the chain by itself; it is no authority, which some versions of OpenSSL insist on.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=b"".join(card.certificate for card in roster.parties))
    _load_key(context, identity)
    return context


def _load_key(context: ssl.SSLContext, identity: Identity) -> None:
    """Give the key to the context, which takes it from a file only.

    The file is readable by its owner alone, gone at once, and encrypted with a password that was never stored: what a
    crash leaves behind, or a disk keeps of it, is of no use.
    """
    password = secrets.token_hex(32)
    secret = identity.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode()))
    public = x509.load_der_x509_certificate(identity.certificate).public_bytes(Encoding.PEM)
    descriptor, path = tempfile.mkstemp(prefix="inca-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secret + public)
        context.load_cert_chain(path, password=password)
    finally:
        Path(path).unlink()
