"""The HTTP proxy of `connect_proxy.py`, running on a machine of a test's network."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from helpers.netns.internet import Place, Process

CREDENTIALS = "ward7:p4ssw0rd"
PORT = 3128
_PROGRAM = Path(__file__).with_name("connect_proxy.py")


def start_proxy(place: Place, output: Path) -> Process:
    """Start the proxy there; what it prints tells who asked for what."""
    process = place.start([sys.executable, "-IS", _PROGRAM, PORT, CREDENTIALS], output, os.environ)
    process.wait_for("listens")
    return process


def proxy_url(place: Place) -> str:
    """Return what HTTPS_PROXY must be."""
    return f"http://{CREDENTIALS}@{place.address}:{PORT}"
