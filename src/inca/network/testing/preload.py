"""To be imported where many nodes are forked from one process: loads and compiles all that nodes and relays need."""

import gc

import inca.network.node.runner
import inca.network.transport.relay.client
import inca.network.transport.relay.server
from inca.network.node.warm_up import warm_up

warm_up()
gc.collect()
gc.freeze()  # what is loaded stays: no collection need look at it, nor copy its pages in every forked process

__all__ = ["inca"]
