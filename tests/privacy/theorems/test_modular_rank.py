from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from helpers.strategies import generator
from inca.privacy.theorems import _modular_rank

flint = pytest.importorskip("flint")


def test_arithmetic_modulo_primes() -> None:
    rng = generator(1)
    numbers = np.concatenate([rng.random(50), [1 / 3, 1.0, 5e-324, 2.0**-1030 * 3, 1e-300]])
    for prime in _modular_rank._PRIMES:
        assert flint.fmpz(prime).is_prime()
        residues, p, q = _modular_rank._dyadic(numbers, prime)
        for number, residue in zip(numbers.tolist(), residues.tolist(), strict=True):
            exact = Fraction(number)
            assert residue == exact.numerator * pow(exact.denominator, -1, prime) * 2**32 % prime
            back = np.uint64(_modular_rank.inverse(np.uint64(residue), p, q))
            assert _modular_rank.times(np.uint64(residue), back, p, q) == 2**32 % prime
        for size, rank in ((1, 1), (7, 3), (20, 20), (30, 11)):
            low = (rng.integers(prime, size=(size, rank)) @ rng.integers(2, size=(rank, size + 3))) % prime
            low[rng.random(low.shape) < 0.2] = 0
            expected = flint.nmod_mat(size, size + 3, low.reshape(-1).tolist(), prime).rank()
            assert len(_modular_rank.eliminate(low.astype(np.uint32), p, q)) == expected
