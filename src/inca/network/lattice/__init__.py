"""Numbers on the wire: one public lattice for values and noise, and discrete Gaussian noise on it."""

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.int64]
"""Whole numbers of steps."""
