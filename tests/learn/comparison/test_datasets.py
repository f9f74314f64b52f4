"""Real data sets, and that dividing them among parties loses no record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca._base.validation import InputError
from inca.learn.comparison.datasets import CLASSIFIED, NAMES, Mix, Sizes, divide, load


@pytest.mark.parametrize("name", NAMES)
def test_data_is_scaled_into_public_bounds(name: str) -> None:
    found = load(name)
    assert found.features.shape[0] == len(found.target) > 400
    assert np.abs(found.features).max() <= 1.0 + 1e-12
    assert bool(found.classes) == (name in CLASSIFIED)
    if found.classes:
        assert sorted(set(found.target.tolist())) == list(range(found.classes))
    else:
        assert np.abs(found.target).max() <= 1.0 + 1e-12


def test_a_split_keeps_all_records() -> None:
    whole = load("diabetes")
    train, test = whole.split(np.random.default_rng(1))
    assert len(test.target) == round(0.25 * len(whole.target))
    both = np.concatenate([train.features, test.features])
    assert sorted(map(tuple, both.tolist())) == sorted(map(tuple, whole.features.tolist()))


@given(
    st.integers(2, 12),
    st.integers(0, 60),
    st.sampled_from(["equal", "unequal"]),
    st.sampled_from(["similar", "skewed"]),
    st.integers(0, 5),
)
def test_every_record_has_one_party_and_every_party_a_record(
    parties: int, more: int, sizes: Sizes, mix: Mix, seed: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, 4, parties + more)
    groups = divide(labels, parties, np.random.default_rng(seed), sizes, mix)
    counts = np.bincount(groups, minlength=parties)
    assert len(groups) == len(labels) and len(counts) == parties and counts.min() >= 1
    if sizes == "equal":
        assert counts.max() - counts.min() <= 1


def test_unequal_is_unequal_and_skewed_is_skewed() -> None:
    labels, rng = load("digits").target, np.random.default_rng(1)
    counts = np.bincount(divide(labels, 20, rng, "unequal"))
    assert counts.max() > 5 * counts.min()

    def purity(mix: Mix) -> float:
        groups = divide(labels, 20, np.random.default_rng(2), "equal", mix)
        most = [np.bincount(labels[groups == party]).max() / (groups == party).sum() for party in range(20)]
        return float(np.mean(most))

    assert purity("skewed") > 2 * purity("similar")


def test_numbers_are_skewed_by_their_tenths() -> None:
    target = load("diabetes").target

    def spread(mix: Mix) -> float:
        groups = divide(target, 20, np.random.default_rng(1), "equal", mix)
        return float(np.std([target[groups == party].mean() for party in range(20)]))

    assert spread("skewed") > 1.5 * spread("similar")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((np.zeros(5, dtype=int), 1), "parties is 1"),
        ((np.zeros(5, dtype=int), 6), "parties is 6, but at most one for each of 5 records"),
    ],
)
def test_bad_divisions_are_refused(arguments: tuple[object, int], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        divide(*arguments, np.random.default_rng(1))  # type: ignore[arg-type]


def test_unknown_words_are_refused() -> None:
    labels, rng = np.zeros(5, dtype=int), np.random.default_rng(1)
    with pytest.raises(InputError, match="sizes is 'odd'"):
        divide(labels, 2, rng, "odd")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="mix is 'odd'"):
        divide(labels, 2, rng, "equal", "odd")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="data is 'iris', but one of breast_cancer"):
        load("iris")
