"""inca: private averages without a server.

The protocol of "Dropout-Robust Mechanisms for Differentially Private and Fully Decentralized Mean Estimation":
parties inject their values bit by bit, hidden in noise that they cancel later, and gossip.
"""

import lazy_loader

# Names are loaded when they are first used, so that the command line answers at once; __init__.pyi lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
