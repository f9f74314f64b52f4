"""What CONTRIBUTING.md says of names and folders, checked over the whole tree."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections import defaultdict
from functools import cache
from pathlib import Path

import inca.errors
from helpers.paths import ROOT

SOURCES = sorted((ROOT / "src" / "inca").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
WORD = re.compile(r"\w+")

REPLACED = {
    *("Wish", "Shape", "CannotMeet", "Rough", "Judge", "rough", "judge", "Desk", "desk", "Arrival", "Ending", "Talk"),
    *("Door", "Link", "Home", "Visit", "Finding", "blame", "Setting", "Realised", "realised", "doubts", "Course"),
    *("Chain", "Meeting", "Consortium", "Rehearsal", "World", "Nonsense", "Broken", "Refused", "Fault", "UsedUp"),
    *("Stopped", "Dependent", "toss", "tossed", "strikes", "Strikes", "clock_bound", "least_cohort", "Averaging"),
    *("Aggregator", "Sessions", "Answer", "Line", "Descent", "Notebook", "Sentences", "incremental", "hypercube"),
    *("nobody_absent", "losing", "admit", "whole", "InputError", "tapped", "law", "conclude", "wish", "aggregator"),
}
"""Words of our own that have been replaced by those of the field; none of them is an identifier any more."""

NAMELESS = {"found", "given", "made", "each"}
"""Names for things that have a name of their own."""


def identifiers(text: str) -> dict[str, int]:
    """Return the identifiers of a file, each with the line where it stands first; strings and comments do not count."""
    seen: dict[str, int] = {}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.NAME:
            seen.setdefault(token.string, token.start[0])
    return seen


def has_word(text: str, words: set[str]) -> bool:
    """Whether a text has one of these words, be it in a comment: what has none need not be parsed to look for them."""
    return not words.isdisjoint(WORD.findall(text))


@cache
def classes(path: Path) -> tuple[ast.ClassDef, ...]:
    text = path.read_text()
    nodes = ast.walk(ast.parse(text)) if has_word(text, {"class"}) else iter(())
    return tuple(node for node in nodes if isinstance(node, ast.ClassDef))


def test_names_say_what_they_are() -> None:
    forbidden = REPLACED | NAMELESS
    for path in SOURCES:
        text = path.read_text()
        there = identifiers(text) if has_word(text, forbidden) else {}
        assert {name: there[name] for name in forbidden & set(there)} == {}, path.relative_to(ROOT)


def test_a_forbidden_name_is_seen_but_not_in_a_comment_or_a_string() -> None:
    text = "each = 1  # whole\nnumber = 'found'\n"
    assert has_word(text, {"whole"}) and not has_word(text, {"hole", "eac"})
    assert identifiers(text) == {"each": 1, "number": 2}


def test_a_class_name_has_one_meaning() -> None:
    homes = defaultdict(list)
    for path in SOURCES:
        for node in classes(path):
            homes[node.name].append(path.relative_to(ROOT).as_posix())
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_errors_are_in_one_file() -> None:
    """Every error that is raised on purpose is of `inca.errors`, or a private matter of its file."""
    elsewhere = set()
    for path in SOURCES:
        for node in classes(path):
            if path.name != "errors.py" and not node.name.startswith("_"):
                bases = {base.id for base in node.bases if isinstance(base, ast.Name)}
                if bases & {"Exception", "ValueError", "RuntimeError", "ArithmeticError", "IncaError", "InvalidInput"}:
                    elsewhere.add(f"{path.name}:{node.name}")
    assert elsewhere == set()


def test_every_error_is_an_inca_error_and_says_when_it_is_raised() -> None:
    kinds = [kind for kind in vars(inca.errors).values() if getattr(kind, "__module__", "") == "inca.errors"]
    assert len(kinds) >= 12
    for kind in kinds:
        assert issubclass(kind, inca.errors.IncaError) and kind.__doc__
        assert kind.__name__ in str(inca.errors.__doc__), "missing from the tree at the top of the file"


def test_no_test_imports_another() -> None:
    modules = {path.stem for path in TESTS if path.name.startswith("test_")}
    for path in TESTS:
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if has_word(text, modules) else ():
            if isinstance(node, ast.ImportFrom):
                imported = {*(node.module or "").split("."), *(alias.name for alias in node.names)}
                assert not imported & modules, f"{path.name} imports {sorted(imported & modules)}"


def test_tests_mirror_the_source_tree() -> None:
    rooms = {path.parent.relative_to(ROOT / "src" / "inca").as_posix() for path in SOURCES}
    beside = {"helpers", "docs", "examples", "deploy", "golden", "fixtures"}
    for path in TESTS:
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        assert folder in rooms or folder.split("/")[0] in beside, f"{folder} is no room"
