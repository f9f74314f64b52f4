"""Real data that ships with scikit-learn, and ways to divide it among parties.

Features are scaled by bounds that are taken as public: those of the measurement, or of scikit-learn's description of
the data set. In a real study such bounds are agreed on beforehand, never computed from private records.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from inca._base.extras import importing
from inca._base.types import Array
from inca._base.validation import between_0_and_1, generator, integer, refuse

Labels = NDArray[np.int64]
PartySizes = Literal["equal", "unequal"]
ClassMix = Literal["similar", "skewed"]
CLASSIFIED = ("breast_cancer", "digits")
"""Data sets whose target is a class."""
NAMES = (*CLASSIFIED, "diabetes")
_DIRICHLET_ALPHA = 0.3  # of a skewed party's classes: most of its records are of one or two
_SIZE_RATIO = 10.0  # the largest of unequal parties has about so many times the records of the smallest


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """Records in rows, with public bounds.

    Attributes:
        name: One of `NAMES`.
        features: Numbers between -1 and 1, (m, p).
        target: What is to be predicted: classes, or numbers between -1 and 1, (m,).
        classes: The number of classes; 0 if the target is a number.
    """

    name: str
    features: Array
    target: NDArray[Any]
    classes: int

    def __repr__(self) -> str:
        return f"Dataset(name={self.name!r}, features={self.features.shape}, classes={self.classes})"

    def split(self, rng: np.random.Generator, *, test_fraction: float = 0.25) -> tuple[Dataset, Dataset]:
        """Divide the records at random.

        Args:
            rng: The source of all randomness.
            test_fraction: The fraction of the records to test with.

        Returns:
            Records to train on and records to test with.
        """
        order = generator(rng).permutation(len(self.target))
        cut = round(between_0_and_1("test_fraction", test_fraction) * len(order))
        return self._of(order[cut:]), self._of(order[:cut])

    def _of(self, rows: NDArray[np.intp]) -> Dataset:
        return Dataset(self.name, self.features[rows], self.target[rows], self.classes)


def load_dataset(name: str) -> Dataset:
    """Load a data set that ships with scikit-learn.

    Args:
        name: "breast_cancer" (569 tumours, 2 classes), "digits" (1,797 digits, 10 classes) or "diabetes" (442 people,
            a number).

    Returns:
        The data set, scaled by public bounds.

    Raises:
        InvalidInput: If there is no such data set, or scikit-learn is not installed.

    Example:
        >>> load_dataset("breast_cancer").features.shape, load_dataset("digits").classes
        ((569, 30), 10)
    """
    with importing("load_dataset", extra="learn"):
        from sklearn import datasets
    if name not in NAMES:
        refuse("data", name, f"one of {', '.join(NAMES)}")
    bunch = getattr(datasets, f"load_{name}")()
    x, y = np.asarray(bunch.data, dtype=float), np.asarray(bunch.target)
    if name == "digits":
        return Dataset(name, x / 8.0 - 1.0, y.astype(np.int64), 10)  # pixels from 0 to 16
    low, high = x.min(axis=0), x.max(axis=0)  # as the description of the data set publishes them
    scaled = 2.0 * (x - low) / (high - low) - 1.0
    if name == "diabetes":
        return Dataset(name, scaled, (y - 25.0) / (346.0 - 25.0) * 2.0 - 1.0, 0)  # the score's range, published
    return Dataset(name, scaled, y.astype(np.int64), 2)


def divide_records(
    labels: NDArray[Any],
    parties: int,
    rng: np.random.Generator,
    *,
    sizes: PartySizes = "equal",
    mix: ClassMix = "similar",
) -> Labels:
    """Divide records among parties; every party holds at least one.

    Args:
        labels: The class of each record, or a number, which counts as its tenth of all.
        parties: The number of parties.
        rng: The source of all randomness.
        sizes: "equal" numbers of records, or "unequal" ones that differ by up to about ten times.
        mix: "similar" mixtures of classes, or "skewed": most records of a party are of one or two classes.

    Returns:
        The party of each record.

    Example:
        >>> groups = divide_records(np.arange(100) % 2, 10, np.random.default_rng(1))
        >>> np.bincount(groups).tolist()
        [10, 10, 10, 10, 10, 10, 10, 10, 10, 10]
    """
    n, total = integer("parties", parties, min=2), len(labels)
    if total < n:
        refuse("parties", parties, f"at most {total}, one for each record")
    if sizes not in get_args(PartySizes):
        refuse("sizes", sizes, f"one of {', '.join(get_args(PartySizes))}")
    if mix not in get_args(ClassMix):
        refuse("mix", mix, f"one of {', '.join(get_args(ClassMix))}")
    counts = _counts(total, n, generator(rng), sizes)
    if mix == "similar":
        return np.asarray(rng.permutation(np.repeat(np.arange(n), counts)), dtype=np.int64)
    return _skewed(_kinds(labels), counts, rng)


def _counts(total: int, n: int, rng: np.random.Generator, sizes: PartySizes) -> Labels:
    weights = np.ones(n) if sizes == "equal" else rng.permutation(np.geomspace(1.0, _SIZE_RATIO, n))
    counts = np.maximum(1, np.floor(weights / weights.sum() * total).astype(np.int64))
    while (missing := total - int(counts.sum())) != 0:  # rounding, a few records at most per party
        step = np.sign(missing)
        able = np.flatnonzero(counts > 1) if step < 0 else np.arange(n)
        counts[able[np.argsort(counts[able])[: abs(missing)]]] += step
    return np.asarray(counts, dtype=np.int64)


def _kinds(labels: NDArray[Any]) -> Labels:
    """Return the class of each record; numbers fall into tenths."""
    if np.issubdtype(labels.dtype, np.integer):
        return np.asarray(np.unique(labels, return_inverse=True)[1], dtype=np.int64)
    return np.asarray(np.searchsorted(np.quantile(labels, np.linspace(0.1, 0.9, 9)), labels), dtype=np.int64)


def _skewed(kinds: Labels, counts: Labels, rng: np.random.Generator) -> Labels:
    """Let each party take records of the classes it prefers, as long as there are any."""
    piles = [rng.permutation(np.flatnonzero(kinds == kind)).tolist() for kind in range(kinds.max() + 1)]
    groups = np.empty(len(kinds), dtype=np.int64)
    for party in rng.permutation(len(counts)):
        preference = rng.dirichlet(np.full(len(piles), _DIRICHLET_ALPHA))
        for _ in range(counts[party]):
            odds = np.where([bool(pile) for pile in piles], preference + 1e-12, 0.0)
            groups[piles[rng.choice(len(piles), p=odds / odds.sum())].pop()] = party
    return groups
