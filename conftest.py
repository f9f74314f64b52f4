"""Execute the Python blocks of the README and the docs as tests."""

from __future__ import annotations

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser

pytest_collect_file = Sybil(parsers=[PythonCodeBlockParser()], patterns=["README.md", "docs/*.md"]).pytest()
