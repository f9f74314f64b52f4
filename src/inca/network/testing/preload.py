"""To be imported where many nodes are forked from one process: loads, and compiles, all that a node needs."""

import gc

import inca.network.node.runner
from inca.network.node.warm_up import warm_up

warm_up()
gc.collect()
gc.freeze()  # what is loaded stays: no collection need look at it, nor copy its pages in every forked process

__all__ = ["inca"]
