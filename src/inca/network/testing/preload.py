"""To be imported where many nodes are forked from one process: loads, and compiles, all that a node needs."""

import gc

import inca.network.node.runner
from inca.network.protocol.fixed_point import Keystream, discrete_gaussian
from inca.privacy.accountant import account
from inca.privacy.certificate import certify
from inca.privacy.view import View
from inca.protocol.adversary import Adversary
from inca.protocol.execution import Execution
from inca.protocol.injection import incremental
from inca.protocol.schedules import RandomReceivers
from inca.protocol.transcript import Transcript

_small = Execution(RandomReceivers(4, 3, seed=1), incremental(3))
account(View(_small, Adversary([0])), 1.0, 10.0)
certify(Transcript(_small, 1.0, 10.0))
discrete_gaussian(2**32, 8, Keystream(bytes(32), b"warm"))
gc.collect()
gc.freeze()  # what is loaded stays: no collection need look at it, nor copy its pages in every forked process

__all__ = ["inca"]
