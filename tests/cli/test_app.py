"""The command as a whole: its help, its exit statuses, and how it refuses bad usage."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import is_dataclass
from inspect import signature
from pathlib import Path
from typing import cast, get_type_hints

import docstring_parser
import pytest

import inca
import inca.errors
from helpers.command_line import NOISE, Capture, call, documented, refused, run
from helpers.paths import ROOT
from inca.cli import app
from inca.cli.app import COMMANDS, EXIT_STATUS, STATUS_MEANING, build, commands, exit_status
from inca.cli.usage import NO_RESULT

ERRORS = [kind for kind in vars(inca.errors).values() if isinstance(kind, type) and kind.__module__ == "inca.errors"]
HEAVY = "{'numpy', 'numba', 'scipy', 'msgspec', 'cryptography', 'matplotlib', 'starlette'}"


@pytest.mark.parametrize("kind", ERRORS, ids=lambda kind: kind.__name__)
def test_the_table_of_exit_statuses_has_every_error(
    kind: type[inca.IncaError], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = kind.__new__(kind, "a sentence")  # some take a cause as well
    expected = 2 if issubclass(kind, inca.InvalidInput) else 75 if kind is inca.errors.TemporaryFault else 1
    assert exit_status(error) == expected

    def fail(words: list[str]) -> int:
        raise error

    monkeypatch.setattr(app, "_run", fail)
    assert call(capsys) == (expected, "", "inca: a sentence\n")


def test_ctrl_c_is_130(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*parameters: object, **named: object) -> None:
        raise KeyboardInterrupt

    assert exit_status(KeyboardInterrupt()) == 130
    monkeypatch.setattr(inca, "read_execution", interrupt)
    assert call(capsys, "audit", "run.json") == (130, "", "inca: stopped\n")
    monkeypatch.setattr(app, "_run", interrupt)
    assert call(capsys) == (130, "", "inca: stopped\n")


def test_ctrl_c_stops_a_program(programs: Path, tmp_path: Path) -> None:
    """The signal comes when the plan is about to be printed; it is not ignored, as in a shell's background jobs."""
    code = "import os, signal; from inca.cli import main, plan\n"
    code += "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    code += "import inca.cli.progress; inca.cli.progress.FIRST_LINE_S = 1e9\n"  # however slow the machine
    code += "plan.print_json = lambda document: os.kill(os.getpid(), signal.SIGINT)\nmain()"
    (tmp_path / "program.py").write_text(code)
    words = ["plan", "--parties", "10", "--epsilon", "1", "--json"]
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
    "missing option": (["plan", "--parties", 10], "missing option --epsilon; see inca plan --help"),
    "missing argument": (["average", *NOISE], "missing argument VALUES; see inca average --help"),
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
    "misspelled": (["plan", "--epsilo=3"], "inca plan has no option --epsilo; did you mean --epsilon?"),
    "misspelled word": (
        ["plan", "--parties", 9, "--epsilon", 1, "--recipe", "papr"],
        "--recipe must be best or paper, got 'papr'; did you mean paper?",
    ),
    "twice": (["plan", "--parties", 9, "--epsilon", 1, "--epsilon", 2], "--epsilon must be given once, got it again"),
    "a flag twice": (["demo", "--json", "--json"], "--json must be given once, got it again"),
    "a flag with a value": (["plan", "--json=3"], "--json must stand alone, got a value"),
    "too much": (["plan", "3", "--parties", 10, "--epsilon", 1], "inca plan takes no such argument, got 3"),
    "too few": (["demo", "--parties", 3], "--parties must be from 4 to 60, got 3"),
    "too many": (["demo", "--parties", 61], "--parties must be from 4 to 60, got 61"),
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


VERBS = list(COMMANDS)


@pytest.fixture
def quickly_documented(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docstring_parser, "parse_from_object", documented)


@pytest.mark.usefixtures("quickly_documented")
def test_every_option_is_declared_once_and_has_one_help() -> None:
    """With the same text wherever it is; verbs may have other defaults."""
    helps: dict[str, set[str | None]] = {}
    declared: dict[str, set[str]] = {}
    for path, command in commands(build()):
        verb = command.default_command
        assert verb is not None and len(signature(verb).parameters) <= 8, path
        for argument in command.assemble_argument_collection(parse_docstring=True):
            if not argument.children and argument.index is None:
                helps.setdefault(argument.name, set()).add(argument.parameter.help)
        groups = [group for group in get_type_hints(verb).values() if is_dataclass(group)]
        for kind in {kind for group in groups for kind in cast(type, group).__mro__[:-1]}:
            for text in documented(kind).params:
                declared.setdefault(text.arg_name, set()).add(kind.__qualname__)
    assert len(helps) > 90
    # What is certified is a loss, and of a relay its name; the demo runs a relay, all others name some.
    for name in ("certificate", "relay"):
        assert len(helps.pop(f"--{name}")) == len(declared.pop(name)) == 2
    assert {name: texts for name, texts in helps.items() if len(texts) > 1 or not all(texts)} == {}
    assert {name: kinds for name, kinds in declared.items() if len(kinds) > 1} == {}


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """The help of all verbs and groups, from one process: what one of them imports is seen in all that follow, too."""
    code = (
        "import functools, sys, docstring_parser, inca.cli\n"
        "docstring_parser.parse_from_object = functools.cache(docstring_parser.parse_from_object)\n"
        "for words in sys.argv[1:]:\n"
        " sys.argv = ['inca', *words.split(), '--help']\n"
        " try: inca.cli.main()\n"
        " except SystemExit as ended: status = ended.code\n"
        f" print(status, sorted({HEAVY} & sys.modules.keys()), end='\\f')\n"
    )
    called = ["", "node", "node roster", "learn", "stats", *VERBS]
    command = [sys.executable, "-c", code, *called]
    env = os.environ | {"COLUMNS": "200"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=120, env=env)
    return dict(zip(called, done.stdout.split("\f")[:-1], strict=True))


def test_help_is_quick_since_nothing_heavy_is_imported_for_it(pages: dict[str, str]) -> None:
    for page in pages.values():
        assert page.splitlines()[-1].endswith(" []") and "Usage: inca" in page


def test_a_plan_is_quick_since_nothing_is_compiled_or_factored_for_it() -> None:
    code = (
        "import sys, inca.cli\n"
        "sys.argv = ['inca', 'plan', '--parties', '1000', '--epsilon', '1', '--details']\n"
        "try: inca.cli.main()\n"
        "except SystemExit: pass\n"
        "slow = {'numba', 'scipy.linalg', 'scipy.sparse', 'scipy.optimize', 'cryptography'}\n"
        "print(sorted(slow & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.splitlines()[-1] == "[]" and "Cost" in done.stdout


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_example(verb: str, pages: dict[str, str]) -> None:
    out = pages[verb]
    assert out.splitlines()[-1].startswith("0 ") and f"inca {verb} " in out.split("Example:")[1]
    assert "<bool>" not in out and f"Usage: inca {verb} " in out and "Exit status: 0 done;" in out


@pytest.mark.usefixtures("quickly_documented")
def test_shells_complete_commands_and_options() -> None:
    script = build().generate_completion(shell="bash")
    for words, expected in (("inca pl", "plan"), ("inca node led", "ledger"), ("inca plan --eps", "--epsilon")):
        typed = words.split()
        ask = f"{script}\nCOMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; _inca; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=False)
        assert done.stdout.split() == [expected], (words, done.stderr)
