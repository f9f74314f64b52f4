"""Docstrings as the documentation site shows them: examples as code, formulas untouched.

mkdocstrings loads this extension (mkdocs.yml). Docstrings are plain text with names in backquotes and doctests, which
Markdown would take for quotations.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", flags=re.MULTILINE)
_CODE = re.compile(r"(```.*?```|``.*?``|`[^`]*`|^ {4,}.*$)", flags=re.DOTALL | re.MULTILINE)
_SECTION = re.compile(r"^(?:Args|Attributes|Returns|Raises|Yields):\n(?:(?: {4,}.*)?\n?)*", flags=re.MULTILINE)


class Docstrings(Extension):
    """Change every docstring when its object is loaded."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        """Rewrite the docstring of a module, class, function or attribute."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    r"""Return a docstring with its doctests fenced and its asterisks and underscores as they are.

    >>> as_markdown("Twice eta*.\n\n>>> 1 + 1\n2")
    'Twice eta\\*.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    fenced = _EXAMPLE.sub(lambda match: f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```", text)
    with_sections = _SECTION.sub(lambda match: _literal(match[0]), fenced)
    parts = _CODE.split(with_sections)
    return "".join(part if place % 2 else _escaped(part) for place, part in enumerate(parts))


def _literal(section: str) -> str:
    """Keep the asterisks of what parameters are said to be; their names are code anyway."""
    parts = re.split(r"(`[^`]*`)", section)
    # The name of a parameter begins its line, and stays as it is: `**options: ...`.
    stars = re.compile(r"^ +\*\*?(?=\w+:)|\*", flags=re.MULTILINE)
    return "".join(
        part if place % 2 else stars.sub(lambda found: r"\*" if found[0] == "*" else found[0], part)
        for place, part in enumerate(parts)
    )


def _escaped(text: str) -> str:
    return re.sub(r"([*_])", r"\\\1", text)
