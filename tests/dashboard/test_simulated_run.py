"""Simulated runs as addresses describe them."""

from __future__ import annotations

import pytest
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


def test_a_run_on_a_circle_has_one_receiver_whatever_the_address_says() -> None:
    run = SimulatedRun(parties=6, rounds=5, receivers=3, schedule="circle")
    assert run.execution().sends(5).receivers.tolist() == [[5], [0], [1], [2], [3], [4]]
    with pytest.raises(IncaError, match=r"rounds must be below the number of parties \(5\) on a circle"):
        SimulatedRun(parties=5, rounds=5, schedule="circle").execution()
