"""Libraries that only some parts of inca need: where one is missing, a sentence names it and the extra that brings it.

It says `pip install 'inca[EXTRA]'` however inca was installed, from a clone, a git address or a wheel: pip sees that
inca is there, asks no index for it, and adds what the extra needs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import NoReturn

from inca.errors import MissingLibrary

LIBRARIES: dict[str, dict[str, str]] = {
    "graphs": {"networkx": "networkx"},
    "design": {"cvxpy": "cvxpy", "scs": "scs", "clarabel": "clarabel"},
    "parquet": {"pyarrow": "pyarrow"},
    "plots": {"matplotlib": "matplotlib"},
    "network": {"cryptography": "cryptography", "websockets": "websockets"},
    "relay": {"prometheus_client": "prometheus-client"},
    "learn": {"sklearn": "scikit-learn"},
    "torch": {"torch": "PyTorch"},
    "dashboard": {"starlette": "starlette", "uvicorn": "uvicorn"},
    "reproduce": {"joblib": "joblib", "matplotlib": "matplotlib"},
    "cluster": {"distributed": "distributed", "joblib": "joblib", "matplotlib": "matplotlib"},
}
"""By extra, as in pyproject.toml: the modules that are imported, and what people call them."""


def require_extra(what: str, extra: str) -> None:
    """Refuse `what` unless all libraries of an extra can be imported; none of them is imported for it.

    Example:
        >>> require_extra("inca demo", "network")
    """
    if any(find_spec(module) is None for module in LIBRARIES[extra]):
        _refuse(what, extra)


@contextmanager
def importing(what: str, extra: str) -> Iterator[None]:
    """Surround imports from the libraries of an extra, which `what` needs.

    A library that is installed but broken is another matter, and keeps its own error.

    Example:
        >>> with importing("a regular graph", extra="graphs"):
        ...     import networkx
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES[extra]:
            raise
        _refuse(what, extra)


def _refuse(what: str, extra: str) -> NoReturn:
    *others, last = LIBRARIES[extra].values()
    libraries = f"{', '.join(others)} and {last}" if others else last
    raise MissingLibrary(f"{what} needs {libraries}: pip install 'inca[{extra}]'") from None
