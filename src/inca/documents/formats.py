"""Files of any format: which document one is, by what it says of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from inca.documents.average import AverageDocument
from inca.documents.certificate import CertificateDocument
from inca.documents.document import Document
from inca.documents.execution import ExecutionDocument
from inca.documents.plan import PlanDocument
from inca.documents.result import ResultDocument
from inca.errors import InvalidInput

FORMATS: Final[dict[str, type[Document]]] = {
    "inca-certificate/2": CertificateDocument,
    "inca-plan/2": PlanDocument,
    "inca-result/2": ResultDocument,
    "inca-result/3": ResultDocument,
    "inca-average/1": AverageDocument,
    "inca-execution/1": ExecutionDocument,
    "inca-execution/2": ExecutionDocument,
}
"""The documents by their formats."""


class _Header(msgspec.Struct):
    format: str


def format_of(content: bytes, source: str | Path) -> str:
    """Return the format that a JSON file says it has.

    Example:
        >>> format_of(b'{"format": "inca-plan/2"}', "plan.json")
        'inca-plan/2'
    """
    try:
        name = msgspec.json.decode(content, type=_Header).format
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        name = "something else"
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise InvalidInput(f"{source}: must be a file that this version of inca writes ({known}), got {name[:40]!r}")
    return name
