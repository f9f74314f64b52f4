"""Real data sets, and that dividing them among parties loses no record."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inca.errors import InvalidInput
from inca.learn.comparison.datasets import CLASSIFIED, NAMES, ClassMix, PartySizes, divide_records, load_dataset


@pytest.mark.parametrize("name", NAMES)
def test_data_is_scaled_into_public_bounds(name: str) -> None:
    dataset = load_dataset(name)
    assert dataset.features.shape[0] == len(dataset.target) > 400
    assert np.abs(dataset.features).max() <= 1.0 + 1e-12
    assert bool(dataset.classes) == (name in CLASSIFIED)
    if dataset.classes:
        assert sorted(set(dataset.target.tolist())) == list(range(dataset.classes))
    else:
        assert np.abs(dataset.target).max() <= 1.0 + 1e-12


def test_a_split_keeps_all_records() -> None:
    whole = load_dataset("diabetes")
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
    parties: int, more: int, sizes: PartySizes, mix: ClassMix, seed: int
) -> None:
    labels = np.random.default_rng(seed).integers(0, 4, parties + more)
    groups = divide_records(labels, parties, np.random.default_rng(seed), sizes=sizes, mix=mix)
    counts = np.bincount(groups, minlength=parties)
    assert len(groups) == len(labels) and len(counts) == parties and counts.min() >= 1
    if sizes == "equal":
        assert counts.max() - counts.min() <= 1


def test_unequal_is_unequal_and_skewed_is_skewed() -> None:
    labels, rng = load_dataset("digits").target, np.random.default_rng(1)
    counts = np.bincount(divide_records(labels, 20, rng, sizes="unequal"))
    assert counts.max() > 5 * counts.min()

    def purity(mix: ClassMix) -> float:
        groups = divide_records(labels, 20, np.random.default_rng(2), mix=mix)
        most = [np.bincount(labels[groups == party]).max() / (groups == party).sum() for party in range(20)]
        return float(np.mean(most))

    assert purity("skewed") > 2 * purity("similar")


def test_numbers_are_skewed_by_their_tenths() -> None:
    target = load_dataset("diabetes").target

    def spread(mix: ClassMix) -> float:
        groups = divide_records(target, 20, np.random.default_rng(1), mix=mix)
        return float(np.std([target[groups == party].mean() for party in range(20)]))

    assert spread("skewed") > 1.5 * spread("similar")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((np.zeros(5, dtype=int), 1), "parties must be .*got 1"),
        ((np.zeros(5, dtype=int), 6), "parties must be at most 5, one for each record, got 6"),
    ],
)
def test_bad_divisions_are_refused(arguments: tuple[object, int], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        divide_records(*arguments, np.random.default_rng(1))  # type: ignore[arg-type]


def test_unknown_words_are_refused() -> None:
    labels, rng = np.zeros(5, dtype=int), np.random.default_rng(1)
    with pytest.raises(InvalidInput, match=r"sizes must be .*got 'odd'"):
        divide_records(labels, 2, rng, sizes="odd")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"mix must be .*got 'odd'"):
        divide_records(labels, 2, rng, mix="odd")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"data must be one of breast_cancer.*, got 'iris'"):
        load_dataset("iris")
