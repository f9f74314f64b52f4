from __future__ import annotations

import sys

import pytest

from inca._base.extras import importing, require_extra
from inca.errors import MissingLibrary


def test_what_is_missing_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    wanted = r"^inca dashboard needs starlette and uvicorn: pip install 'inca\[dashboard\]'$"
    with pytest.raises(MissingLibrary, match=wanted):
        require_extra("inca dashboard", "dashboard")
    with pytest.raises(MissingLibrary, match=wanted) as refused, importing("inca dashboard", extra="dashboard"):
        import uvicorn  # noqa: F401
    assert refused.value.__suppress_context__  # one sentence, not two errors


def test_a_broken_library_keeps_its_own_error() -> None:
    """Who has the extra is not told to install it."""
    for error in (ModuleNotFoundError("No module named 'cffi'", name="cffi"), ImportError("libssl.so: not there")):
        with pytest.raises(ImportError) as raised, importing("inca.network", extra="network"):
            raise error
        assert raised.value is error
