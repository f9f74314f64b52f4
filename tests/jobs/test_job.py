from __future__ import annotations

from inca.jobs.job import counted_sources


def test_the_digest_follows_the_library_and_not_the_pictures() -> None:
    names = counted_sources("reproduction")
    assert {
        "reproduction/runs.py",
        "reproduction/rounds_to_connect.py",
        "protocol/simulation.py",
        "privacy/calibration.py",
    } <= set(names)
    assert not {name for name in names if name.startswith("cli/") or "figure" in name or "report" in name}
