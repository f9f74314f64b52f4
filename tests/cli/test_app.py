"""The command as a whole: its help, its exit statuses, and how it refuses bad usage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
import typer.main

import inca
import inca.errors
from helpers.command_line import NOISE, Capture, call, refused, run
from helpers.paths import ROOT
from inca.cli import app
from inca.cli.app import EXIT_STATUS, STATUS_MEANING, called_path, exit_status, part_of
from inca.cli.node.run import NO_RESULT

ERRORS = [kind for kind in vars(inca.errors).values() if isinstance(kind, type) and kind.__module__ == "inca.errors"]
HEAVY = "{'numpy', 'numba', 'scipy', 'msgspec', 'cryptography', 'matplotlib', 'starlette'}"


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_the_table_of_exit_statuses_has_every_error(
    kind: type[inca.IncaError], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = kind.__new__(kind, "a sentence")  # some take a cause as well
    expected = 2 if issubclass(kind, inca.InvalidInput) else 1
    assert exit_status(error) == expected

    def fail(**named: object) -> None:
        raise error

    monkeypatch.setattr(app, "app", fail)
    assert call(capsys) == (expected, "", "inca: a sentence\n")


def test_ctrl_c_is_130(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*parameters: object, **named: object) -> None:
        raise KeyboardInterrupt

    assert exit_status(KeyboardInterrupt()) == 130
    monkeypatch.setattr(inca, "read_execution", interrupt)
    assert call(capsys, "audit", "run.json") == (130, "", "inca: stopped\n")
    monkeypatch.setattr(app, "app", interrupt)
    assert call(capsys) == (130, "", "inca: stopped\n")


def test_ctrl_c_stops_a_program(programs: Path, tmp_path: Path) -> None:
    """The signal comes when the plan is about to be printed; it is not ignored, as in a shell's background jobs."""
    code = "import os, signal; from inca.cli import main, plan\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import inca.cli.progress; inca.cli.progress.FIRST_LINE_S = 1e9\n"  # however slow the machine
    code += "plan.print_json = lambda document: os.kill(os.getpid(), signal.SIGINT)\nmain()"
    (tmp_path / "program.py").write_text(code)
    words = ["plan", "--parties", "10", "--epsilon", "1", "--views", "4", "--no-baselines", "--json"]
    command = [str(programs / "python"), str(tmp_path / "program.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "inca: stopped\n")


def test_all_statuses_are_explained_in_the_help_and_on_the_page(capsys: Capture) -> None:
    assert {number for _, number in EXIT_STATUS} | {0, NO_RESULT} == set(STATUS_MEANING)
    shown = " ".join(call(capsys, "--help")[1].split())
    page = (ROOT / "docs" / "command-line.md").read_text()
    for number, meaning in STATUS_MEANING.items():
        assert f"{number} {meaning}" in shown
        assert re.search(rf"^\| {number} \| {re.escape(meaning)}", page, flags=re.MULTILINE), number


USAGE: dict[str, tuple[list[object], str]] = {
    "missing option": (["plan", "--parties", 10], "--epsilon must be said; inca plan --help tells what it is"),
    "missing argument": (["average", *NOISE], "VALUES must be said; inca average --help tells what it is"),
    "unknown option": (["average", "x.csv", *NOISE, "--foo"], "inca average has no option --foo; see --help"),
    "unknown command": (["averge"], "inca has no command 'averge'; did you mean 'average'?"),
    "unknown node command": (["node", "dance"], "inca node has no command 'dance'; see --help"),
    "not a number": (
        ["average", "x.csv", "--sigma-independent", "abc", "--sigma-cancelling", 1],
        "--sigma-independent must be a number, got 'abc'",
    ),
    "not an integer": (["plan", "--parties", 1.5, "--epsilon", 1], "--parties must be an integer, got '1.5'"),
    "half a domain": (["average", "x.csv", *NOISE, "--domain", 1], "--domain must be followed by 2 values"),
    "half an option": (["plan", "--parties", 10, "--epsilon"], "--epsilon must be followed by a value"),
    "misspelled": (["plan", "--foo=3"], "inca plan has no option --foo; did you mean --out?"),
    "a flag with a value": (["plan", "--json=3"], "--json must stand alone, got a value"),
    "too much": (["plan", "3", "--parties", 10, "--epsilon", 1], "inca plan takes no such argument, got 3"),
    "too few": (["demo", "--parties", 3], "--parties must be at least 4, got '3'"),
    "too many": (["demo", "--parties", 61], "--parties must be at most 60, got '61'"),
    "epsilon 0": (["plan", "--parties", 10, "--epsilon", 0], "epsilon must be above 0, got 0.0"),
    "audit for epsilon 0": (["audit", "x.json", "--epsilon", 0], "--epsilon must be above 0, got 0.0"),
    "attack for epsilon 0": (["attack", "x.json", "--epsilon", 0], "--epsilon must be above 0, got 0.0"),
}


@pytest.mark.parametrize("case", USAGE)
def test_bad_usage_is_one_sentence_and_status_2(case: str, capsys: Capture) -> None:
    words, part = USAGE[case]
    assert refused(capsys, *words) == part


@pytest.mark.parametrize("words", [[], ["node"], ["node", "roster"], ["learn"], ["stats"]])
def test_a_call_without_arguments_prints_the_help(words: list[str], capsys: Capture) -> None:
    status, out, err = call(capsys, *words)
    assert "Usage:" in out and err == "" and status == 2


def test_the_version(capsys: Capture) -> None:
    assert call(capsys, "--version") == (0, f"inca {inca.__version__}\n", "")
    assert run("--version").stdout == f"inca {inca.__version__}\n"


VERBS = ["plan", "average", "audit", "attack", "report", "compare", "reproduce", "demo", "dashboard"]
VERBS += ["node keygen", "node roster init", "node roster add", "node roster show"]
VERBS += ["node doctor", "node run", "node status", "learn compare", "learn agree", "learn party"]
VERBS += ["stats mean", "stats variance", "stats histogram", "stats quantiles", "stats regression"]


@cache
def all_commands() -> Any:
    return typer.main.get_command(app.app)


@pytest.mark.parametrize("verb", VERBS)
def test_a_call_reads_the_signature_of_its_own_command_only(verb: str) -> None:
    """And of no other: the command is the one that is there among all, with the same options in the same order."""
    path = tuple(verb.split())
    assert called_path([*path, "--json"]) == path
    among_all, alone = all_commands(), cast(Any, typer.main.get_command(part_of(app.app, path)))
    for word in path:
        assert word in among_all.commands and list(alone.commands) == [word]
        among_all, alone = among_all.commands[word], alone.commands[word]
    assert [parameter.opts for parameter in alone.params] == [parameter.opts for parameter in among_all.params]
    assert alone.callback.__wrapped__ is among_all.callback.__wrapped__ and alone.help == among_all.help


def test_help_is_quick_since_nothing_heavy_is_imported_for_it() -> None:
    """One process for all verbs: what one of them imports is seen in the last line of it and of all that follow."""
    code = (
        "import sys, inca.cli\n"
        "for words in sys.argv[1:]:\n"
        " sys.argv = ['inca', *words.split(), '--help']\n"
        " try: inca.cli.main()\n"
        " except SystemExit: pass\n"
        f" print(sorted({HEAVY} & sys.modules.keys()), end='\\f')\n"
    )
    command = [sys.executable, "-c", code, "", "node", "node roster", "learn", "stats", *VERBS]
    env = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=env)
    pages = done.stdout.split("\f")[:-1]
    assert len(pages) == 5 + len(VERBS)
    for page in pages:
        assert page.splitlines()[-1] == "[]" and "Usage: inca" in page


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example(verb: str, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    status, out, _ = call(capsys, *verb.split(), "--help")
    assert status == 0 and f"inca {verb} " in out.split("Example:")[1]
    assert "<bool>" not in out and f"Usage: inca {verb} " in out


@pytest.mark.parametrize(("words", "expected"), [("inca pl", ["plan"]), ("inca node led", ["ledger"])])
def test_shells_complete_commands(words: str, expected: list[str]) -> None:
    typed = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1), "_INCA_COMPLETE": "complete_bash"}
    command = [sys.executable, "-m", "inca"]
    done = subprocess.run(command, env=os.environ | typed, capture_output=True, text=True, check=False)
    assert done.stdout.split() == expected and done.returncode == 0


@pytest.mark.parametrize("group", [[], ["node"], ["node", "roster"], ["learn"], ["stats"]])
def test_flags_of_groups_look_like_flags(capsys: Capture, group: list[str]) -> None:
    _, out, _ = call(capsys, *group, "--help")
    assert "--help" in out and "<bool>" not in out
