"""Types that many rooms share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""A float array; the shapes are in the docstrings."""

Progress = Callable[[int, int], None]
"""Called with (steps done, steps in all)."""
