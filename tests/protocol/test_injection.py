from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers import reference
from helpers.strategies import generator, injections, seeds


@given(st.integers(1, 30).flatmap(injections))
def test_every_injection_is_valid(injection: inca.Injection) -> None:
    """Lemma 1, and the three conditions of Definition "Valid (c, Z)-Gaussian"."""
    assert injection.value.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.allclose(injection.noise.sum(axis=0), 0.0, atol=1e-9)
    rounds = injection.rounds
    assert np.linalg.matrix_rank(np.column_stack([injection.value, injection.noise])) == rounds + 1
    assert np.linalg.matrix_rank(injection.noise[:-1]) == rounds


@given(st.integers(1, 12).flatmap(injections), seeds)
def test_adaptation_is_that_of_erratum_2(injection: inca.Injection, seed: int) -> None:
    present = generator(seed).random(injection.rounds + 1) < 0.6
    c, z = reference.adapted(injection.value.tolist(), injection.noise.tolist(), present.tolist())
    own_c, own_z = injection.adapted(present)
    assert np.array_equal(own_c, np.array(c, dtype=float))
    assert np.allclose(own_z, np.array(z, dtype=float), atol=1e-12)


@given(st.integers(1, 12).flatmap(injections))
def test_full_attendance_changes_nothing(injection: inca.Injection) -> None:
    c, z = injection.adapted(np.ones(injection.rounds + 1))
    assert np.array_equal(c, injection.value)
    assert np.allclose(z, injection.noise, atol=1e-12)


def test_the_two_examples_of_the_paper() -> None:
    assert inca.early_injection(3).value.tolist() == [1, 0, 0, 0]
    assert inca.early_injection(3).noise.tolist() == [[1, 1, 1], [-1, 0, 0], [0, -1, 0], [0, 0, -1]]
    assert inca.incremental_injection(3).value.tolist() == [0.25] * 4
    assert inca.incremental_injection(3).noise.tolist() == [[1, 0, 0], [-1, 1, 0], [0, -1, 1], [0, 0, -1]]


def test_quiet_rounds_carry_no_share_and_variances_scale_columns() -> None:
    quiet = inca.incremental_injection(5, quiet=2)
    assert quiet.value.tolist() == [0.25, 0.25, 0.25, 0.25, 0, 0]
    assert np.array_equal(quiet.noise, inca.incremental_injection(5).noise)
    scaled = inca.incremental_injection(2, variances=[4, 9])
    assert scaled.noise.tolist() == [[2, 0], [-2, 3], [0, -3]]
    assert scaled.mask_scales is not None and scaled.mask_scales.tolist() == [2, 3]


def test_any_injection_takes_variances() -> None:
    plain = inca.Injection([0.5, 0.5, 0], [[1, 0], [-1, 1], [0, -1]])
    scaled = inca.Injection([0.5, 0.5, 0], plain.noise, variances=[4, 9])
    assert np.array_equal(scaled.noise, plain.noise * [2, 3])
    assert scaled.mask_scales is not None and scaled.mask_scales.tolist() == [2, 3]
    with pytest.raises(inca.InvalidInput, match="the number of variances must be 2, one per noise term, got 3"):
        inca.Injection(plain.value, plain.noise, variances=[1, 2, 3])


def test_the_incremental_family_is_recognised() -> None:
    assert inca.incremental_injection(4, quiet=1).mask_scales is not None
    assert inca.early_injection(1).mask_scales is not None  # with one round the two examples share their Z
    assert inca.early_injection(2).mask_scales is None


@pytest.mark.parametrize(
    ("value", "noise", "words"),
    [
        ([0.5, 0.4], [[1], [-1]], r"validity condition \(i\) fails: value must sum to 1, got 0\.9"),
        ([0.5, 0.5], [[1], [-0.5]], r"validity condition \(i\) fails: column 0 of noise must sum to 0, got 0\.5"),
        (
            [1, 0, 0],
            [[1, 2], [-1, -2], [0, 0]],
            r"conditions \(ii\) and \(iii\) fail.*column \d of noise depends",
        ),
        ([1, 0, 0], [[1, 0], [-1, 0], [0, 0]], r"conditions \(ii\) and \(iii\) fail.*column 1"),
        (
            [1.0],
            np.zeros((1, 0)),
            r"the number of entries of value must be at least 2, as there are T\+1 of them, got 1",
        ),
        ([], np.zeros((0, 0)), r"the number of entries of value must be at least 2, as there are T\+1 of them, got 0"),
        ([0.5, 0.5], [[1, 0], [-1, 0]], r"the shape of noise must be \(2, 1\), as value has 2 entries, got \(2, 2\)"),
        ([0.5, np.nan], [[1], [-1]], r"value\[1\] must be a finite number, got nan"),
        ([0.5, 0.5], [[np.inf], [-1]], r"noise\[0, 0\] must be a finite number, got inf"),
        ([[0.5, 0.5]], [[1], [-1]], "shape of value"),
    ],
)
def test_an_invalid_injection_is_refused(value: object, noise: object, words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        inca.Injection(value, noise)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"rounds": 0}, "rounds must be at least 1, got 0"),
        ({"rounds": 2.5}, r"rounds must be an integer, at least 1, got 2\.5"),
        ({"rounds": True}, "rounds must be an integer, at least 1, got True"),
        ({"rounds": 3, "quiet": 4}, "quiet must be from 0 to 3, got 4"),
        ({"rounds": 3, "quiet": -1}, "quiet must be from 0 to 3, got -1"),
        ({"rounds": 2, "variances": [1]}, "the number of variances must be 2, one per noise term, got 1"),
        ({"rounds": 2, "variances": [1, 0]}, r"variances\[1\] must be above 0, got 0\.0"),
        ({"rounds": 2, "variances": [1, np.nan]}, r"variances\[1\] must be a finite number, got nan"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(inca.InvalidInput, match=words):
        inca.incremental_injection(**arguments)  # type: ignore[arg-type]


def test_presence_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(inca.InvalidInput, match=r"the shape of present must be \(4,\), got \(3,\)"):
        inca.incremental_injection(3).adapted([1, 1, 1])
