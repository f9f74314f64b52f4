"""The documentation site: the reference is complete, and the site is whole and asks nothing of other machines."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from pkgutil import resolve_name
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import typer

import inca
import inca.learn
import inca.network
import inca.protocol.dissemination
from helpers.paths import ROOT
from inca.cli.app import app
from inca.mechanisms import compare
from inca.mechanisms.base import Mechanism

DOCS = ROOT / "docs"


def reference() -> list[str]:
    """Return what the reference pages show, page by page."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    return [name for page in pages for name in re.findall(r"^::: (\S+)$", page.read_text(), flags=re.MULTILINE)]


def test_every_exported_name_is_in_the_reference_exactly_once() -> None:
    names = reference()
    assert sorted(names) == sorted(set(names))
    assert {name.removeprefix("inca.") for name in names if name.count(".") == 1} == set(inca.__all__)
    for room in (inca.protocol.dissemination, inca.learn, inca.network):
        theirs = {name.removeprefix(f"{room.__name__}.") for name in names if name.startswith(f"{room.__name__}.")}
        assert {name for name in theirs if "." not in name} == set(room.__all__)


def test_every_name_in_the_reference_exists_and_says_what_it_is() -> None:
    for name in reference():
        found = resolve_name(name)
        assert isinstance(found, str) or inspect.getdoc(found), name


def test_every_mechanism_is_in_the_reference() -> None:
    def kinds(kind: type[Any]) -> Iterator[type[Any]]:
        for each in kind.__subclasses__():
            yield each
            yield from kinds(each)

    assert compare.compare.__module__ == "inca.mechanisms.compare"  # has imported them all
    theirs = {f"{kind.__module__}.{kind.__name__}" for kind in kinds(Mechanism) if not inspect.isabstract(kind)}
    ours = {name for name in theirs if name.startswith("inca.mechanisms.")} - {"inca.mechanisms.pairwise.Pairwise"}
    assert ours and ours <= set(reference())


@pytest.mark.parametrize("page", ["accountant-in-pictures.md", "tutorial-engineer.md"])
def test_blocks_print_what_the_page_says(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    names: dict[str, Any] = {}
    compared = 0
    shown = r"```python\n(.*?)```(?:\n\nIt prints[^\n]*\n\n```\n(.*?)```)?"
    for block, wanted in re.findall(shown, (DOCS / page).read_text(), flags=re.DOTALL):
        with redirect_stdout(StringIO()) as printed:
            exec(compile(block, page, "exec"), names)
        if wanted:
            assert printed.getvalue() == wanted
            compared += 1
    assert compared >= 2


@pytest.fixture(scope="module")
def command_line() -> Any:
    """Return the tree of all commands, as the help shows it."""
    return typer.main.get_command(app)


def leaves(group: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield all commands below a group, by what is typed."""
    for each, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from leaves(command, f"{name} {each}")
        else:
            yield f"{name} {each}", command


def test_every_command_is_on_its_page(command_line: Any) -> None:
    page = (DOCS / "command-line.md").read_text()
    assert sorted(re.findall(r"^## inca (\w+)$", page, flags=re.MULTILINE)) == sorted(command_line.commands)
    found = [name for name, _ in leaves(command_line, "inca")]
    assert {"inca plan", "inca node run", "inca node roster init"} <= set(found)
    for name in found:
        assert re.search(rf"`{name}[ `]", page), name


def test_options_on_the_command_line_page_exist(command_line: Any) -> None:
    sections = re.split(r"^## inca (\w+)$", (DOCS / "command-line.md").read_text(), flags=re.MULTILINE)[1:]
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        command = command_line.commands[name]
        those = [each for _, each in leaves(command, name)] if hasattr(command, "commands") else [command]
        options = {option for each in those for param in each.params for option in param.opts + param.secondary_opts}
        assert set(re.findall(r"--[a-z][a-z-]*", text)) <= options, name


class Page(HTMLParser):
    """What a page has to be led to: links, what it loads by itself, and the places within it."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.classes: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.places |= {given[name] for name in ("id", "name") if name in given}
        self.classes |= set(given.get("class", "").split())
        targets = [given[name] for name in ("href", "src", "data", "poster", "action") if name in given]
        targets += [part.split()[0] for part in given.get("srcset", "").split(",") if part.strip()]
        targets += re.findall(r"url\(['\"]?([^'\")]+)", given.get("style", ""))
        (self.links if tag == "a" else self.loads).extend(targets)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    call = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(call, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr, done.stderr
    return folder


def is_elsewhere(link: str) -> bool:
    return bool(urlsplit(link).netloc) or urlsplit(link).scheme in ("http", "https")


@pytest.mark.slow
def test_every_page_is_there(site: Path) -> None:
    sources = [path.relative_to(DOCS).with_suffix(".html") for path in DOCS.rglob("*.md")]
    for page in [*sources, Path("index.html"), Path("changelog.html"), Path("golden/index.html")]:
        assert (site / page).is_file(), page
    assert not list(site.glob("*.py")) and (site / "examples" / "consortium.py").is_file()
    start = (site / "index.html").read_text()
    assert "Private averages without a server" in start and 'src="pictures/run.png"' in start
    shown = "".join(page.read_text() for page in (site / "reference").glob("*.html"))
    for name in inca.__all__:
        assert re.search(rf'id="inca\.(\w+\.)*{name}"', shown), name


@pytest.mark.slow
def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*.html"):
        page = Page(path)
        assert not [target for target in page.loads if is_elsewhere(target)], path
        # What the theme's script would fetch: diagrams, and facts about a repository.
        assert not page.classes & {"mermaid", "md-source"}, path
    for path in site.rglob("*.css"):
        text = path.read_text()
        assert not re.search(r"@import|url\(['\"]?(https?:)?//", text), path


@pytest.mark.slow
def test_links_within_the_site_lead_somewhere(site: Path) -> None:
    pages = {path.resolve(): Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if is_elsewhere(link) or parts.scheme in ("data", "javascript", "mailto"):
                continue
            start = site if parts.path.startswith("/") else path.parent
            target = (start / unquote(parts.path).lstrip("/")).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            assert target.is_file(), f"{path.name}: {link}"
            if parts.fragment and target in pages and not parts.fragment.startswith("__"):
                assert unquote(parts.fragment) in pages[target].places, f"{path.name}: {link}"
