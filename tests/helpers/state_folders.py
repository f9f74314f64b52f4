"""Which secrets of cohorts are somewhere in the state folder of a party of a `Room`: its raw bytes are searched."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from helpers.trustee_keys import secrets_of
from inca.network.protocol.opening.cohort_keys import COHORTS, derived


@cache
def _needles(party: int, cohort: int) -> dict[str, bytes]:
    secrets = secrets_of(party, cohort)
    return {
        "state": secrets.state,
        "dealing": secrets.dealing,
        "top-up": secrets.topup,
        "private key": secrets.private_key[1:31],  # whatever becomes of the five bits that are fixed
        "unclamped key": derived(secrets.state, b"inca-trustee/1")[1:31],
    }


def _content(folder: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def secrets_in(folder: Path, party: int, cohort: int) -> set[str]:
    """Return which secrets of a cohort are somewhere in a folder, byte by byte."""
    content = _content(folder)
    return {name for name, needle in _needles(party, cohort).items() if needle in content}


def cohorts_in(folder: Path, party: int) -> list[int]:
    """Return the cohorts of which a folder has a secret."""
    content = _content(folder)
    return [c for c in range(COHORTS) if any(needle in content for needle in _needles(party, c).values())]
