"""What the documentation site needs beyond docs/: the README, the changes, and whatever pages link to outside of it.

mkdocs calls these functions (`hooks` in mkdocs.yml). Pages keep the links that work in the repository: here they are
led to the same files in the site.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files at the root, and the names of their pages."""

_FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_CODE = re.compile(r"(`[^`\n]+`|^ {4,}.*$)", flags=re.MULTILINE)
_SYMBOL = re.compile(r"(?:(?<=_)|(?<=_H)|(?<=\beta)|(?<=\bxi)|(?<=\()(?=\*\)))\*(_?)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from the root, and every file outside docs/ that some page links to."""
    from mkdocs.structure.files import File

    waiting = [*PAGES, *(f"docs/{page.src_uri}" for page in files.documentation_pages())]
    done = set(waiting)
    for name in waiting:  # grows: pages outside docs/ have links, too
        if not name.startswith("docs/"):
            files.append(File.generated(config, place(name), abs_src_path=str(ROOT / name)))
        if not name.endswith(".md"):
            continue
        for target in outside(name, (ROOT / name).read_text(encoding="utf-8")):
            if target not in done:
                done.add(target)
                waiting.append(target)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where files are in the site, and write down what this Markdown reads otherwise than others do."""
    if page.parent is None:  # alone in its part of the site: a list of neighbours would only take room
        page.meta["hide"] = ["navigation"]
    here = PurePosixPath(page.file.src_uri)
    source = next((name for name, uri in PAGES.items() if uri == str(here)), None)
    if source is None:
        source = str(here) if page.file.generated_by else f"docs/{here}"
    parts = _parts(translate(markdown, source))
    return "".join(part if code else indented(symbols(part)) for code, part in parts)


def place(name: str) -> str:
    """Return where a file of the repository is in the site, as seen from its top.

    >>> place("README.md"), place("docs/format.md"), place("golden/README.md")
    ('index.md', 'format.md', 'golden/README.md')
    """
    return PAGES.get(name, name.removeprefix("docs/"))


def outside(source: str, markdown: str) -> list[str]:
    """Return the files outside docs/ that a page links to, by their names in the repository.

    >>> outside("docs/attack.md", "[one](../examples/consortium.py), [two](noise-design.md), [three](https://a.example)")
    ['examples/consortium.py']
    """
    found: list[str] = []

    def note(match: re.Match[str]) -> str:
        target = resolved(source, match[3])
        if target is not None and not target.startswith("docs/") and (ROOT / target).is_file():
            found.append(target)
        return match[0]

    _each_link(markdown, note)
    return list(dict.fromkeys(found))


def translate(markdown: str, source: str) -> str:
    """Return a page with its links led to the same files in the site; folders are not pages and lose their link.

    >>> translate("[how](docs/planner.md#sure), [plan](examples/waiting-times-plan.json)", "README.md")
    '[how](planner.md#sure), [plan](examples/waiting-times-plan.json)'
    >>> translate("[an example](../examples/consortium.py), [data](reproduction)", "docs/attack.md")
    '[an example](examples/consortium.py), data'
    """
    top = PurePosixPath(place(source)).parent

    def lead(match: re.Match[str]) -> str:
        picture, text, link = match.groups()
        target = resolved(source, link)
        if target is None:
            return match[0]
        if (ROOT / target).is_dir():
            return text
        fragment = link.partition("#")[2]
        led = os.path.relpath(place(target), top).replace(os.sep, "/") + (f"#{fragment}" if fragment else "")
        return f"{picture}[{text}]({led})"

    return _each_link(markdown, lead)


def symbols(text: str) -> str:
    r"""Return text with asterisks that belong to symbols escaped, so that they emphasise nothing.

    >>> symbols("eta*_i has level sigma_* (*)")
    'eta\\*\\_i has level sigma_\\* (\\*)'
    """
    parts = _CODE.split(text)
    return "".join(
        part if place % 2 else _SYMBOL.sub(lambda star: r"\*" + (r"\_" if star[1] else ""), part)
        for place, part in enumerate(parts)
    )


def indented(text: str) -> str:
    """Return text in which what belongs to a list item is indented by four blanks, as this Markdown wants it.

    An item after one of several paragraphs gets a blank line before it.

    >>> indented("- one\\n\\n  more of it\\n\\nafter")
    '- one\\n\\n    more of it\\n\\nafter'
    """
    lines: list[str] = []
    extra, loose = "", False
    for line in text.split("\n"):
        if item := _ITEM.match(line):
            if loose and lines[-1]:
                lines.append("")
            extra, loose = " " * (4 - item.end()), False
        elif line and not line.startswith(" "):
            extra, loose = "", False
        loose |= not line and extra != ""
        lines.append(extra + line if line.startswith(" ") else line)
    return "\n".join(lines)


def resolved(source: str, link: str) -> str | None:
    """Return the file of the repository that a link leads to; None if it leads elsewhere, or within its page.

    >>> resolved("docs/attack.md", "../examples/consortium.py#L3")
    'examples/consortium.py'
    """
    path = link.partition("#")[0]
    if not path or ":" in path or path.startswith("/"):
        return None
    return os.path.normpath(PurePosixPath(source).parent / path).replace(os.sep, "/")


def _each_link(markdown: str, change: Callable[[re.Match[str]], str]) -> str:
    """Replace every link outside of code blocks."""
    return "".join(_LINK.sub(change, part) if not code else part for code, part in _parts(markdown))


def _parts(markdown: str) -> Iterator[tuple[bool, str]]:
    for place_in_page, part in enumerate(_FENCE.split(markdown)):
        yield place_in_page % 2 == 1, part
