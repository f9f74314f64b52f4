"""Relays on public machines of a test's network, by the command line."""

from __future__ import annotations

import os
from pathlib import Path

import trustme

from helpers.command_line import MAIN
from helpers.netns.internet import Internet, Place, Process

AUTHORITY = trustme.CA()
"""A private one, which parties know by a file."""
_READY = "The relay listens on"


class Relay:
    """A relay with a name, and a certificate of a private authority."""

    def __init__(self, net: Internet, number: int, folder: Path) -> None:
        self.name, self._folder = f"relay{number}.example.org", folder
        self.url = f"wss://{self.name}/inca"
        self.place: Place = net.host(f"relay{number}", 10 + number)
        self.authority = folder / "authority.pem"
        AUTHORITY.cert_pem.write_to_path(self.authority)
        certificate = AUTHORITY.issue_cert(self.name)
        self._files = [folder / f"relay{number}.pem", folder / f"relay{number}-key.pem"]
        for path, blob in zip(self._files, (certificate.cert_chain_pems[0], certificate.private_key_pem), strict=True):
            blob.write_to_path(path)

    def start(self, *options: object) -> Process:
        """Start it, and wait until it serves; also again."""
        certificate, key = self._files
        words = [*MAIN, "relay", "--certificate", certificate, "--key", key, *options]
        output = self._folder / f"{self.name}.txt"
        before = output.read_text().count(_READY) if output.exists() else 0
        process = self.place.start(words, output, os.environ)
        process.wait_for(_READY, before + 1)
        return process
