"""What all tests of relays share."""

from __future__ import annotations

import pytest

from helpers.proxies import VARIABLES


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no proxy but those of the tests."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
