"""BLAS on parts of arrays stored by columns, called without the interpreter's lock.

Cut into ranges of rows or columns for our own threads, BLAS itself works with one thread each. Its own threads keep a
core busy while they wait for more work, which our other compiled loops then lack.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, byref, c_char, c_double, c_int, c_void_p
from typing import Any

from numba.extending import get_cython_function_address

from inca._base.types import Array

_LETTER, _INT, _REAL = POINTER(c_char), POINTER(c_int), POINTER(c_double)
_MATRIX = c_void_p  # which takes plain addresses: on small matrices, pointers take longer to make than the product
_ONE, _MINUS_ONE = byref(c_double(1.0)), byref(c_double(-1.0))
_L, _N, _R, _T = (byref(c_char(letter)) for letter in (b"L", b"N", b"R", b"T"))


def _routine(name: str, *kinds: Any) -> Any:
    return ctypes.CFUNCTYPE(None, *kinds)(get_cython_function_address("scipy.linalg.cython_blas", name))


_dgemm = _routine(
    "dgemm", _LETTER, _LETTER, _INT, _INT, _INT, _REAL, _MATRIX, _INT, _MATRIX, _INT, _REAL, _MATRIX, _INT
)  # fmt: skip
_dtrsm = _routine("dtrsm", *[_LETTER] * 4, _INT, _INT, _REAL, _MATRIX, _INT, _MATRIX, _INT)


def subtract_product(c: Array, a: Array, b: Array, rows: int | None, lo: int, hi: int) -> None:
    """Do c -= a b^T in columns lo..hi-1 and the first rows, or all; the three are stored by columns."""
    count, inner, width = len(a) if rows is None else rows, a.shape[1], hi - lo
    args = _at(a, 0, 0), _int(len(a)), _at(b, lo, 0), _int(len(b)), _ONE, _at(c, 0, lo), _int(len(c))
    _dgemm(_N, _T, _int(count), _int(width), _int(inner), _MINUS_ONE, *args)


def divide_by_root(a: Array, root: Array, lo: int, hi: int) -> None:
    """Replace rows lo..hi-1 of a by their product with root^-T, root being lower triangular."""
    sizes = _int(hi - lo), _int(a.shape[1])
    _dtrsm(_R, _L, _T, _N, *sizes, _ONE, _at(root, 0, 0), _int(root.shape[0]), _at(a, lo, 0), _int(a.shape[0]))


def _at(array: Array, row: int, column: int) -> int:
    """Return the address of an entry of an array stored by columns."""
    place: int = array.ctypes.data + 8 * (row + column * array.shape[0])
    return place


def _int(number: int) -> Any:
    return byref(c_int(number))
