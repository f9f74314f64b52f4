"""Relays as processes on this machine, with a certificate of their own that nobody else would accept."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from collections.abc import Collection
from datetime import UTC, datetime, timedelta
from multiprocessing.context import ForkServerProcess
from pathlib import Path

from inca._base.extras import importing
from inca.network.addresses import Address
from inca.network.testing.fork_server import FORK_SERVER
from inca.network.transport.relay.options import RelayLimits, RelayOptions
from inca.network.transport.relay.server import serve

with importing("inca.network", extra="network"):
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.hashes import SHA256
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

HOST = "127.0.0.1"
_PATH = "/inca"
_VALID = timedelta(days=1)
# All parties are of one origin here, which is no reason to hold them back.
_LIMITS = RelayLimits(max_pending=4096, max_pending_per_origin=4096, bytes_per_second=1e9, burst_bytes=1 << 30)


class LocalRelays:
    """Relays on ports of the loopback interface; `ca` is the certificate by which parties know them."""

    def __init__(self, folder: Path, ports: Collection[int]) -> None:
        self.addresses = [Address(HOST, port, _PATH) for port in ports]
        self.ca = folder / "relay.crt" if ports else None
        self._key = folder / "relay.key"
        if self.ca is not None:
            _write_certificate(self.ca, self._key)
        self.processes: dict[int, ForkServerProcess] = {}

    def start(self, number: int, allow: frozenset[str]) -> None:
        """Start a relay for the keys with these fingerprints, or start it again."""
        port = self.addresses[number].port
        options = RelayOptions(
            host=HOST, port=port, path=_PATH, certificate=self.ca, key=self._key, allow=allow, limits=_LIMITS
        )
        self.processes[number] = FORK_SERVER.Process(target=run_local_relay, args=(options,), daemon=True)
        self.processes[number].start()

    def kill(self, number: int) -> None:
        """Kill a relay without warning (SIGKILL)."""
        self.processes[number].kill()
        self.processes[number].join()

    def stop(self) -> None:
        """Kill all relays that run."""
        for number, process in self.processes.items():
            if process.is_alive():
                self.kill(number)


def run_local_relay(options: RelayOptions) -> None:
    """Do what `inca relay` does, in a process of its own."""
    asyncio.run(serve(options))


def bypass_proxies() -> None:
    """See that this process reaches relays on this machine without the proxy that leads out of its network."""
    os.environ["no_proxy"] = HOST


def _write_certificate(certificate: Path, key: Path) -> None:
    """Write a certificate for the loopback interface, signed by itself, and its key."""
    secret, now = generate_private_key(SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "a relay on this machine")])
    usage = x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    signed = (
        x509.CertificateBuilder(name, name, secret.public_key(), x509.random_serial_number())
        .not_valid_before(now - _VALID)
        .not_valid_after(now + _VALID)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(secret.public_key()), critical=False)
        .sign(secret, SHA256())
    )
    certificate.write_bytes(signed.public_bytes(Encoding.PEM))
    key.touch(mode=0o600)
    key.write_bytes(secret.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
