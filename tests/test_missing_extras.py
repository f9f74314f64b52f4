"""Without its extras inca refuses what needs them in one sentence, in commands and in Python, without a traceback."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.command_examples import COMMANDS, all_commands
from helpers.paths import ROOT
from inca._base.extras import LIBRARIES
from inca.cli.app import NEEDED_EXTRA
from inca.errors import MissingLibrary

HIDE = """
import json, sys
from importlib.machinery import PathFinder

hidden = set(sys.argv[1].split())

class WithoutHidden(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else super().find_spec(name, path, target)

sys.meta_path = [WithoutHidden if finder is PathFinder else finder for finder in sys.meta_path]
"""

CALL = """
import contextlib, functools, io
import docstring_parser
from inca.cli import main

docstring_parser.parse_from_object = functools.cache(docstring_parser.parse_from_object)

def call(words):
    sys.argv, out, err = ["inca", *words], io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            return [ended.code, out.getvalue(), err.getvalue()]

print(json.dumps([call(words) for words in json.loads(sys.argv[2])]))
"""

EVALUATE = """
import importlib, pkgutil
import inca

def outcome(statement):
    try:
        exec(statement, {})
    except Exception as error:
        return [type(error).__name__, isinstance(error, ImportError), str(error)]

names = [f"from {room} import {name}" for room in ("inca", "inca.learn", "inca.network")
         for name in importlib.import_module(room).__all__]
modules = [f"import {found.name}" for found in pkgutil.walk_packages(inca.__path__, "inca.")]
print(json.dumps({statement: outcome(statement) for statement in names + modules + json.loads(sys.argv[2])}))
"""

NEEDING = [name for name in COMMANDS if any(f"inca {name} ".startswith(f"{start} ") for start in NEEDED_EXTRA)]

OPTIONS = {
    "compare --plot errors.png": ("--plot", "plots"),
    "average values.parquet --domain 0 1 --epsilon 1": ("values.parquet is a Parquet file, which", "parquet"),
    f"stats mean {COMMANDS['stats mean']} --picture mean.png": ("--picture", "plots"),
}

USES = {
    "import inca.learn; inca.learn.load_dataset('digits')": ("load_dataset", "learn"),
    "import inca.learn; inca.learn.TorchModel(object(), print)": ("TorchModel", "torch"),
    "from inca.mechanisms.gossip_matrix import regular_gossip; regular_gossip(20, None)": ("a regular graph", "graphs"),
    "from inca.jobs.engine import Engine; Engine('processes')": ("engine processes", "reproduce"),
    "from inca.jobs.engine import Engine; Engine('dask')": ("engine dask", "cluster"),
    "from inca.reproduction.reproduce import reproduce; reproduce('fig3', 'x')": ("reproduce", "reproduce"),
    "from inca._base.plotting import canvas; canvas(1, 1)": ("a picture", "plots"),
}


def extras() -> dict[str, list[str]]:
    """Return the packages of each extra for users, as pyproject.toml has them."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    names = {extra: [re.split(r"[<>=\[]", line)[0] for line in lines] for extra, lines in listed.items()}
    return {extra: packages for extra, packages in names.items() if extra not in ("all", "dev")}


def without_extras(code: str, question: Any, folder: Path) -> Any:
    modules = " ".join({module for libraries in LIBRARIES.values() for module in libraries})
    command = [sys.executable, "-c", HIDE + code, modules, json.dumps(question)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def sentence(what: str, extra: str) -> str:
    *others, last = LIBRARIES[extra].values()
    return f"{what} needs {', '.join(others) + ' and ' if others else ''}{last}: pip install 'inca[{extra}]'"


def test_the_table_of_libraries_is_that_of_the_package() -> None:
    called = {"scikit-learn": "sklearn", "prometheus-client": "prometheus_client"}
    modules = {extra: {called.get(name, name) for name in names} - {"inca"} for extra, names in extras().items()}
    assert {extra: set(libraries) for extra, libraries in LIBRARIES.items()} == modules


def test_every_command_has_an_example() -> None:
    """A new command gets its line in `helpers.command_examples`, so that it is tried in an empty environment."""
    assert sorted(COMMANDS) == all_commands()


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Any]]:
    """Return what commands without their extra print, and then their help, by what is typed."""
    folder = tmp_path_factory.mktemp("commands")
    (folder / "values.parquet").write_bytes(b"PAR1")
    typed = [*(f"{name} {COMMANDS[name]}" for name in NEEDING), *OPTIONS, *(f"{name} --help" for name in NEEDING)]
    return dict(zip(typed, without_extras(CALL, [words.split() for words in typed], folder), strict=True))


def test_commands_that_need_an_extra_say_which(answers: dict[str, list[Any]]) -> None:
    for name in NEEDING:
        extra = next(extra for start, extra in NEEDED_EXTRA.items() if f"inca {name} ".startswith(f"{start} "))
        assert answers[f"{name} {COMMANDS[name]}"] == [2, "", f"inca: {sentence(f'inca {name}', extra)}\n"]
    for words, parts in OPTIONS.items():
        assert answers[words] == [2, "", f"inca: {sentence(*parts)}\n"], words


def test_help_is_there_without_the_extra(answers: dict[str, list[Any]]) -> None:
    for name in NEEDING:
        status, out, err = answers[f"{name} --help"]
        assert (status, err) == (0, "") and f"Usage: inca {name}" in out


@cache
def outcomes(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = without_extras(EVALUATE, list(USES), folder)
    return found


def test_imports_work_or_say_what_they_need(tmp_path_factory: pytest.TempPathFactory) -> None:
    known = {sentence("inca.network", "network"), sentence("inca.dashboard", "dashboard")}
    known |= {sentence("PrivateLogisticRegression", "learn"), sentence("inca relay --metrics-port", "relay")}
    failed = {statement: error for statement, error in outcomes(tmp_path_factory.getbasetemp()).items() if error}
    imports = {statement: error for statement, error in failed.items() if statement not in USES}
    assert {tuple(error) for error in imports.values()} == {("MissingLibrary", True, words) for words in known}
    assert "from inca.network import Identity" in imports and "from inca import average" not in imports


@pytest.mark.parametrize("use", USES)
def test_uses_say_what_they_need(use: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert outcomes(tmp_path_factory.getbasetemp())[use] == ["MissingLibrary", True, sentence(*USES[use])]


def test_the_error_can_be_caught_as_what_it_is() -> None:
    assert issubclass(MissingLibrary, ImportError) and issubclass(MissingLibrary, ValueError)
