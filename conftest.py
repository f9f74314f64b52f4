"""Execute the Python blocks of the README and the docs as tests."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


def name_what_is_missing(namespace: dict[str, Any]) -> None:
    """Let pages skip, visibly, what needs a library that is not installed."""
    namespace["without_torch"] = find_spec("torch") is None


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()], patterns=["README.md", "docs/*.md"], setup=name_what_is_missing
).pytest()
