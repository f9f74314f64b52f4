"""Statistics and models made of private averages."""

import lazy_loader

# Names are loaded when first used: scikit-learn, PyTorch and cryptography are optional. __init__.pyi lists them.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
