"""The dissemination phase: how all parties learn the estimate from the final messages, which are public.

After round T every present party holds a final message and its weight; the estimate is the sum of the former
over the sum of the latter. The paper suggests gossip averaging or, where parties may still vanish, epidemics:
a final message that gets lost counts as its owner's absence in round T (section on Algorithm 2).
"""

from inca.protocol.dissemination.base import Dissemination, exact
from inca.protocol.dissemination.epidemics import epidemic, epidemic_loss, epidemic_loss_simulated, epidemic_rounds
from inca.protocol.dissemination.gossip_averaging import gossip_average, gossip_rounds, push_sum

__all__ = [
    "Dissemination",
    "epidemic",
    "epidemic_loss",
    "epidemic_loss_simulated",
    "epidemic_rounds",
    "exact",
    "gossip_average",
    "gossip_rounds",
    "push_sum",
]
