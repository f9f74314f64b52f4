"""The pages of the documentation site, made of those in the repository.

Pages are plain Markdown with links that work where the repository is read. `stage` writes them into a folder of their
own, with links led to the same files in the site, the menu on the start page, and the objects of the reference in place
of their names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath

from docsite import navigation, reference

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md", "golden/README.md": "golden.md"}
"""Pages outside docs/, and their names in the site."""
PLACES = PAGES | {"README.md": "index.md"}
"""The README is what the start page is in the repository: who links to it is led there."""

_FENCE = re.compile(r"(^ *```.*?^ *```[^\n]*$)", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
_OBJECT = re.compile(r"^- `(inca\.[\w.]+)`\n?", flags=re.MULTILINE)


def sources() -> list[str]:
    """Return the files of all pages, by their names in the repository."""
    return [*sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md")), *PAGES]


def stage(folder: Path) -> None:
    """Write all pages, and whatever they show or link to, into a folder that holds nothing else.

    Raises:
        ValueError: If a page is not exactly once in the menu.
    """
    names = sources()
    if errors := navigation.menu_errors(place(name).removesuffix(".md") for name in names):
        raise ValueError("; ".join(errors))
    targets = reference.targets(listed_objects())
    kept: set[Path] = set()
    for name in names:
        text = (ROOT / name).read_text(encoding="utf-8")
        kept.add(_write(folder / place(name), page(name, text, targets).encode()))
        for target in (*outside(name, text), *pictures(name, text)):
            if not target.endswith(".md"):
                kept.add(_write(folder / place(target), (ROOT / target).read_bytes()))
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path not in kept:
            path.unlink()


def page(name: str, text: str, targets: dict[str, str]) -> str:
    """Return a page of the repository as the site has it."""
    text = translate(text, name)
    if name.startswith("docs/reference/"):
        level = 3 if "\n## " in text else 2
        described = _OBJECT.sub(lambda item: reference.describe(item[1], targets, level), text)
        # Methods have headings, too, so that they can be linked to; the list beside the page ends at their classes.
        text = f"---\ntocdepth: {level}\n---\n\n{described}"
    if place(name) == "index.md":
        text += "\n" + navigation.menu() + "\n"
    elif place(name) == "reference/index.md":
        text += "\n" + navigation.python_menu() + "\n"
    return text


def listed_objects() -> dict[str, list[str]]:
    """Return the names of all objects that reference pages show, page by page."""
    folder = ROOT / "docs" / "reference"
    return {path.stem: _OBJECT.findall(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.md"))}


def place(name: str) -> str:
    """Return where a file of the repository is in the site, as seen from its top.

    >>> place("README.md"), place("docs/format.md"), place("golden/README.md")
    ('index.md', 'format.md', 'golden.md')
    """
    return PLACES.get(name, name.removeprefix("docs/"))


def outside(source: str, markdown: str) -> list[str]:
    """Return the files outside docs/ that a page links to, by their names in the repository.

    >>> outside("docs/attack.md", "[one](../examples/consortium.py), [two](noise-design.md), [three](https://a.example)")
    ['examples/consortium.py']
    """
    return [target for target in _targets(source, markdown) if not target.startswith("docs/")]


def pictures(source: str, markdown: str) -> list[str]:
    """Return the files in docs/ that are not pages and that a page shows or links to.

    >>> pictures("docs/attack.md", "![a picture](pictures/run.png), [a page](format.md)")
    ['docs/pictures/run.png']
    """
    return [name for name in _targets(source, markdown) if name.startswith("docs/") and not name.endswith(".md")]


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


def resolved(source: str, link: str) -> str | None:
    """Return the file of the repository that a link leads to; None if it leads elsewhere, or within its page.

    >>> resolved("docs/attack.md", "../examples/consortium.py#L3")
    'examples/consortium.py'
    """
    path = link.partition("#")[0]
    if not path or ":" in path or path.startswith("/"):
        return None
    return os.path.normpath(PurePosixPath(source).parent / path).replace(os.sep, "/")


def _targets(source: str, markdown: str) -> list[str]:
    names: list[str] = []

    def note(match: re.Match[str]) -> str:
        target = resolved(source, match[3])
        if target is not None and (ROOT / target).is_file():
            names.append(target)
        return match[0]

    _each_link(markdown, note)
    return list(dict.fromkeys(names))


def _each_link(markdown: str, change: Callable[[re.Match[str]], str]) -> str:
    """Replace every link outside of code blocks."""
    return "".join(_LINK.sub(change, part) if not code else part for code, part in _parts(markdown))


def _parts(markdown: str) -> Iterator[tuple[bool, str]]:
    for place_in_page, part in enumerate(_FENCE.split(markdown)):
        yield place_in_page % 2 == 1, part


def _write(path: Path, content: bytes) -> Path:
    """Write a file unless it is there as it should be: what has not changed need not be built anew."""
    if not path.is_file() or path.read_bytes() != content:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return path
