from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import inca

SMALL = inca.Requirements(parties=40, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1, messages=16)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "one party": ({"parties": 1}, "parties must be from 2 to 2147483647, got 1"),
    "epsilon 0": ({"epsilon": 0.0}, "epsilon must be above 0, got 0.0"),
    "epsilon infinite": ({"epsilon": math.inf}, "epsilon must be a finite number, got inf"),
    "delta 0": ({"delta": 0.0}, "delta must be between 0 and 1 (Gaussian noise promises nothing at 0 or 1), got 0.0"),
    "delta 1": ({"delta": 1.0}, "delta must be between 0 and 1 (Gaussian noise promises nothing at 0 or 1), got 1.0"),
    "classic rule": ({"rule": "classic"}, "epsilon must be below 1 for the classic rule"),
    "unknown rule": ({"rule": "best"}, "rule must be analytic or classic, got 'best'"),
    "all collude": ({"colluding": 1.0}, "colluding must be a fraction that leaves one of 40 parties honest, got 1.0"),
    "all leave": ({"dropout": 1.0}, "dropout must be a fraction that leaves one of 40 parties present, got 1.0"),
    "negative dropout": ({"dropout": -0.1}, "dropout must be from 0 to 1, got -0.1"),
    "away": ({"away": 1.5}, "away must be from 0 to 1, got 1.5"),
    "nan": ({"eavesdropped": math.nan}, "eavesdropped must be a finite number, from 0 to 1, got nan"),
    "no messages": ({"messages": 1}, "messages must be at least 2, got 1"),
    "sensitivity 0": ({"sensitivity": 0.0}, "sensitivity must be above 0, got 0.0"),
    "failure 0": ({"failure": 0.0}, "failure must be between 0 and 1, got 0.0"),
    "variance": ({"variance": -1.0}, "variance must be at least 0, got -1.0"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_requirements_that_make_no_sense_are_refused(case: str) -> None:
    changes, sentence = REFUSED[case]
    with pytest.raises(inca.InvalidInput, match="^" + re.escape(sentence)):
        replace(SMALL, **changes)


def test_central_and_local_errors_are_the_textbooks() -> None:
    requirements = inca.Requirements(
        parties=200, epsilon=0.2, delta=1e-5, rule="classic", sensitivity=3.0, colluding=0.0, dropout=0.0
    )
    assert requirements.central_mse == pytest.approx(9 * 2 * math.log(1.25e5) / 0.04 / 200**2, rel=1e-9)
    assert requirements.local_mse == pytest.approx(200 * requirements.central_mse)


def test_values_have_the_variance_of_a_uniform_interval_if_none_is_stated() -> None:
    middles = (np.arange(10_000) + 0.5) / 10_000  # of small pieces of the interval
    assert replace(SMALL, sensitivity=3.0).value_variance == pytest.approx(float(np.var(3.0 * middles)), rel=1e-6)
    assert replace(SMALL, sensitivity=3.0, variance=0.25).value_variance == 0.25


def test_one_party_that_stays_or_is_honest_is_enough() -> None:
    assert replace(SMALL, dropout=0.975).survivors == replace(SMALL, colluding=0.975).honest == 1
