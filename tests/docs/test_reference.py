"""The reference: every public object with all of its parameters, every command, and blocks that print what is shown."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pkgutil import resolve_name
from typing import Any

import pytest

import inca
import inca.learn
import inca.network
import inca.protocol.dissemination
from docsite import pages
from docsite import reference as described
from docsite.docstrings import parsed
from helpers.paths import ROOT
from inca.cli.app import build, commands
from inca.mechanisms import compare
from inca.mechanisms.base import Mechanism

DOCS = ROOT / "docs"


def reference() -> list[str]:
    """Return what the reference pages show, page by page."""
    return [name for names in pages.listed_objects().values() for name in names]


def test_every_exported_name_is_in_the_reference_exactly_once() -> None:
    names = reference()
    assert sorted(names) == sorted(set(names))
    assert {name.removeprefix("inca.") for name in names if name.count(".") == 1} == set(inca.__all__)
    for room in (inca.protocol.dissemination, inca.learn, inca.network):
        theirs = {name.removeprefix(f"{room.__name__}.") for name in names if name.startswith(f"{room.__name__}.")}
        assert {name for name in theirs if "." not in name} == set(room.__all__)


def test_every_name_in_the_reference_exists_and_says_what_it_is() -> None:
    for name in reference():
        thing = resolve_name(name)
        assert isinstance(thing, str) or inspect.getdoc(thing), name


def functions() -> Iterator[tuple[str, Any, str]]:
    """Yield whatever can be called: its name, itself, its docstring."""
    for name in reference():
        thing = resolve_name(name)
        if inspect.isclass(thing):
            yield from ((f"{name}.{method}", code, code.__doc__ or "") for method, _, code in described.methods(thing))
            if parsed(inspect.getdoc(thing) or "").parameters:
                yield name, thing, thing.__doc__ or ""
        elif callable(thing):
            yield name, thing, thing.__doc__ or ""


def test_what_docstrings_say_of_parameters_is_said_of_those_that_there_are() -> None:
    """A function may leave one undescribed if its type says it all, but never describes one that it does not take."""
    called = list(functions())
    assert len(called) > 200
    for name, thing, docstring in called:
        stated = set(parsed(inspect.cleandoc(docstring)).parameters)
        there = {parameter.name for parameter in described.parameters(thing)}
        assert stated <= there, name


def test_every_parameter_is_listed_with_its_type_and_default() -> None:
    links = described.targets(pages.listed_objects())
    for name in reference():
        text = described.describe(name, links)
        assert text.startswith(f"({links[name.rpartition('.')[2]]})=\n\n### `")
        thing = resolve_name(name)
        if inspect.isclass(thing) or not callable(thing):
            continue
        for parameter in described.parameters(thing):
            (entry,) = re.findall(rf"^`\*{{0,2}}{parameter.name}` .*$", text, flags=re.MULTILINE)
            assert "{.type}" in entry and ("{.default}" in entry) == (parameter.default is not parameter.empty), entry
    average = described.describe("inca.average", links)
    guarantee = described.describe("inca.Guarantee", links)
    assert "`delta` [float]{.type} [= `1e-05`]{.default}\n: Required delta, between 0 and 1;" in guarantee
    assert f"[[Domain](#{links['Domain']})]{{.type}}" in average and ">>> mean.guarantee_holds" in average


def test_every_mechanism_is_in_the_reference() -> None:
    def kinds(kind: type[Any]) -> Iterator[type[Any]]:
        for below in kind.__subclasses__():
            yield below
            yield from kinds(below)

    assert compare.compare.__module__ == "inca.mechanisms.compare"  # has imported them all
    theirs = {f"{kind.__module__}.{kind.__name__}" for kind in kinds(Mechanism) if not inspect.isabstract(kind)}
    ours = {name for name in theirs if name.startswith("inca.mechanisms.")} - {"inca.mechanisms.pairwise.Pairwise"}
    assert ours and ours <= set(reference())


@pytest.mark.parametrize("page", ["accountant-in-pictures.md", "index.md", "tutorial-engineer.md"])
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
    assert compared >= (1 if page == "index.md" else 2)


def options(name: str) -> set[str]:
    """Return the options of a command, or of all commands in a group."""
    those = [command for path, command in commands(build()) if f"{path} ".startswith(f"{name} ")]
    return {option for each in those for argument in each.assemble_argument_collection() for option in argument.names}


def test_every_command_is_on_its_page() -> None:
    page = (DOCS / "command-line.md").read_text()
    found = [f"inca {path}" for path, _ in commands(build())]
    assert set(re.findall(r"^## inca (\w+)$", page, flags=re.MULTILINE)) == {name.split()[1] for name in found}
    assert {"inca plan", "inca node run", "inca node roster init"} <= set(found)
    for name in found:
        assert re.search(rf"`{name}[ `]", page), name


def test_options_on_the_command_line_page_exist() -> None:
    sections = re.split(r"^## inca (\w+)$", (DOCS / "command-line.md").read_text(), flags=re.MULTILINE)[1:]
    for name, text in zip(sections[::2], sections[1::2], strict=True):
        assert set(re.findall(r"--[a-z][a-z-]*", text)) <= options(name), name
