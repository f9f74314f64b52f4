"""Simulated runs as addresses describe them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from inca.dashboard.simulated_run import SimulatedRun
from inca.errors import IncaError


@given(st.text(alphabet="0123456789:- x", max_size=20))
def test_any_absence_is_read_or_refused(text: str) -> None:
    try:
        present = SimulatedRun(parties=5, rounds=6, absent=text).execution().presence
    except IncaError as error:
        assert "absent" in str(error)
    else:
        assert present.row(0).all()
