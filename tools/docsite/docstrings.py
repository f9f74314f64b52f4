"""Docstrings (Google style, names in backquotes, doctests) as Markdown for the documentation site."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

_TITLE = re.compile(r"^(Args|Attributes|Returns|Raises|Yields|Example|Examples):$")
_ITEM = re.compile(r"^(\*{0,2}\w+(?:, \*{0,2}\w+)*): ?(.*)$")
_DOCTEST = re.compile(r"^(?P<indent> *)>>> .*(?:\n(?! *$).*)*", flags=re.MULTILINE)
_CODE = re.compile(r"(```.*?```|``.*?``|`[^`]*`|^ {4,}.*$)", flags=re.DOTALL | re.MULTILINE)
_NAME = re.compile(r"`((?:inca\.(?:\w+\.)*)?(\w+))(\(\))?`")


@dataclass
class Docstring:
    """A docstring in its parts.

    Attributes:
        text: What stands before, between and after the sections.
        parameters: What each of `Args` is.
        attributes: What each of `Attributes` is.
        returns: The text of `Returns`.
        yields: The text of `Yields`.
        raises: When each error of `Raises` is raised.
        example: The doctests of `Example`, and what stands between them.
    """

    text: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    yields: str = ""
    raises: dict[str, str] = field(default_factory=dict)
    example: str = ""


def parsed(docstring: str) -> Docstring:
    r"""Return the parts of a docstring whose indentation has been taken off (`inspect.getdoc`).

    >>> parts = parsed("Double.\n\nArgs:\n    x: A number,\n        not too large.\n\nReturns:\n    Twice that.")
    >>> parts.text, parts.parameters, parts.returns
    ('Double.', {'x': 'A number,\nnot too large.'}, 'Twice that.')
    """
    plain: list[str] = []
    sections: dict[str, list[str]] = {}
    into = plain
    for line in docstring.splitlines():
        if title := _TITLE.match(line):
            into = sections.setdefault(title[1].removesuffix("s") if title[1] == "Examples" else title[1], [])
            continue
        if line and not line.startswith(" ") and into is not plain:
            into = plain
            plain.append("")
        into.append(line)
    texts = {title: textwrap.dedent("\n".join(lines)).strip("\n") for title, lines in sections.items()}
    return Docstring(
        text="\n".join(plain).strip(),
        parameters=_items(texts.get("Args", "")),
        attributes=_items(texts.get("Attributes", "")),
        returns=texts.get("Returns", ""),
        yields=texts.get("Yields", ""),
        raises=_items(texts.get("Raises", "")),
        example=texts.get("Example", ""),
    )


def as_markdown(text: str, targets: Mapping[str, str]) -> str:
    r"""Return text of a docstring as Markdown: doctests fenced, symbols as they are, names of objects as links.

    Args:
        text: The text.
        targets: Where objects are described, by their short names.

    Example:
        >>> as_markdown("Twice eta*, a `Plan` of $1.\n\n>>> 1 + 1\n2", {"Plan": "class-plan"})
        'Twice eta\\*, a [`Plan`](#class-plan) of \\$1.\n\n```pycon\n>>> 1 + 1\n2\n```'
    """
    fenced = _DOCTEST.sub(lambda match: f"{match['indent']}```pycon\n{match[0]}\n{match['indent']}```", text)
    parts = _CODE.split(fenced)
    return "".join(_linked(part, targets) if at % 2 else escaped(part) for at, part in enumerate(parts))


def escaped(text: str) -> str:
    r"""Return plain text in which nothing means anything to Markdown.

    >>> escaped("[low, high]^d < sigma_*")
    '\\[low, high\\]^d \\< sigma\\_\\*'
    """
    return re.sub(r"([*_$<\[\]{}])", r"\\\1", text)


def _linked(code: str, targets: Mapping[str, str]) -> str:
    """Lead a name in backquotes to its object; `plan` alone may be a parameter, and is left as it is."""
    name = _NAME.fullmatch(code)
    if name is None or name[2] not in targets:
        return code
    unmistakable = name[1] != name[2] or name[3] or name[2] != name[2].lower() or "_" in name[2]
    return f"[{code}](#{targets[name[2]]})" if unmistakable else code


def _items(text: str) -> dict[str, str]:
    """Return what is said of each name; more lines of the same are indented in the docstring."""
    items: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if item := _ITEM.match(line):
            lines = [item[2]]
            items |= {name.lstrip("*"): lines for name in item[1].split(", ")}
        else:
            lines.append(line)
    return {
        name: "\n".join([first, textwrap.dedent("\n".join(rest))]).strip() for name, (first, *rest) in items.items()
    }
