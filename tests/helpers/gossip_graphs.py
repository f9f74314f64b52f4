"""Gossip graphs that have no name."""

from __future__ import annotations

import numpy as np
from scipy.sparse import csr_array

from inca._base.types import Array
from inca.mechanisms.gossip_matrix import GossipGraph


def graph_of(matrix: Array) -> GossipGraph:
    """Return the graph of a symmetric, doubly stochastic matrix, which is not checked."""
    return GossipGraph("custom", csr_array(matrix), np.asarray(np.linalg.eigvalsh(matrix)[::-1], np.float64))
