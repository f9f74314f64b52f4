"""The first ten minutes of every role, as the page shows them: from an empty folder, on a terminal.

`make test-all` starts every program anew, as a reader does; `make test` lets them share what they have to load.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.paths import ROOT
from helpers.transcripts import COLUMNS, Step, agrees, sections, take

ROLES = sections((ROOT / "docs" / "first-ten-minutes.md").read_text())


@pytest.mark.parametrize("role", ROLES)
def test_what_is_shown_is_printed(role: str, tmp_path: Path, programs: Path) -> None:
    follow([step for step in ROLES[role] if not step.slow], tmp_path, programs)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_the_rest_is_printed_too(role: str, tmp_path: Path) -> None:
    follow(ROLES[role], tmp_path)


def follow(steps: list[Step], folder: Path, programs: Path | None = None) -> None:
    for step in steps:
        shown = take(unhurried(step), folder, programs)
        assert agrees(shown, step.printed), f"{step.command}\nprints\n{shown}\n\nand the page says\n{step.printed}"


def unhurried(step: Step) -> Step:
    """Let a session begin later on a busy machine, where ten processes load slowly; nothing shown depends on it."""
    busy = os.getloadavg()[0] > (os.cpu_count() or 1)
    return replace(step, command=step.command.replace("+60s", "+200s")) if busy else step


def test_every_role_has_a_quick_part_and_fits_its_terminal() -> None:
    assert len(ROLES) == 3
    for role, steps in ROLES.items():
        assert any(not step.slow and step.command for step in steps) and any(step.slow for step in steps), role
        for step in steps:
            text = step.printed if step.file else f"$ {step.command}\n{step.printed}"
            assert max(map(len, text.splitlines())) <= COLUMNS, text


def test_a_page_that_says_something_else_is_noticed(tmp_path: Path) -> None:
    page = """## One
```py
# two.py
print(1 + 1)
```
```console
$ python two.py && \\
> echo three
2
three
$ inca audit nowhere.json
inca: nowhere.json cannot be read as an execution: No such file or directory
```
<!-- slow -->
```console
$ echo four
five
```
"""
    (steps,) = sections(page).values()
    assert [step.slow for step in steps] == [False, False, False, True]
    follow(steps[:-1], tmp_path)
    with pytest.raises(AssertionError, match=r"prints\n *four\n"):
        follow(steps[-1:], tmp_path)
