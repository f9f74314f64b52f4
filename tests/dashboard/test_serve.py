"""Names under which browsers may ask."""

from __future__ import annotations

from inca.dashboard.serve import host_names


def test_names_of_this_machine_only() -> None:
    assert host_names("127.0.0.1", 1) == host_names("localhost", 1)
    assert host_names("10.0.0.1", 80) == ["10.0.0.1:80"] and host_names("fe80::1", 80) == ["[fe80::1]:80"]
