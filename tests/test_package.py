"""The package as others get it: what it holds, its description, and every command once from an empty environment."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from email.parser import Parser
from pathlib import Path
from typing import Any
from urllib.parse import urljoin
from urllib.request import urlopen

import pytest

from helpers.command_examples import ANSWERS_NO, COMMANDS, ENDLESS, write_inputs
from helpers.paths import ROOT

LOCAL = re.compile(r"\]\((?!https?:)")
MADE = re.compile(r"PKG-INFO|setup\.cfg|src/inca\.egg-info/.*")
NOT_SHIPPED = re.compile(r"\.ci/.*")
BUILD = "import sys; from setuptools import build_meta as b; to = sys.argv[1]; b.build_sdist(to); b.build_wheel(to)"
TIMEOUT_S = 600

_IMPORTED = re.compile(r'^(?:import|\}).* from "(\.[^"]+)";$', flags=re.MULTILINE)  # not in comments, which name types
_LINKED = re.compile(r'(?:href|src)="([^"#:]+)"')


def test_the_description_stands_alone() -> None:
    """An index shows it without the files beside it; pictures become the words that describe them."""
    description = runpy.run_path(str(ROOT / "setup.py"))["description"]
    readme = (ROOT / "README.md").read_text()
    text = description(readme)
    assert LOCAL.search(readme) and not LOCAL.search(text)
    assert "*Left: the messages of 40 parties" in text and "its errata mended" in text
    assert re.findall(r"```.*?```", text, re.DOTALL) == re.findall(r"```.*?```", readme, re.DOTALL)
    kept = "![a](https://a.example/b.png) [c](http://d.example)"
    assert description(kept) == kept


def tracked() -> set[str]:
    """Return the files of the repository, without what is ignored."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is no checkout, and only git knows what belongs to the repository")
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for name in names if (ROOT / name).is_file()}


class Environment:
    """A virtual environment of its own, with no package but pip."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.bin = folder / "bin"
        # Nothing of the environment that runs the tests is seen from this one.
        hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
        self.variables = {name: text for name, text in os.environ.items() if name not in hidden}

    def run(self, program: str, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / program), *map(str, words)]
        return subprocess.run(
            command, cwd=cwd, env=self.variables, capture_output=True, text=True, check=False, timeout=TIMEOUT_S
        )

    def install(self, *requirements: str) -> None:
        pins = ROOT / "constraints.txt"
        done = self.run("python", "-m", "pip", "install", "--quiet", "-c", pins, *requirements, cwd=self.bin)
        if "No matching distribution found" in done.stderr:
            pytest.skip(f"NOT TESTED: pip found no package index with {' '.join(requirements)}")
        assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build both distributions from a copy of the tree, with something in it that must stay out."""
    tree, out = tmp_path_factory.mktemp("tree"), tmp_path_factory.mktemp("dist")
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)
    for rubbish in ("src/inca/__pycache__/a.cpython-311.pyc", ".hypothesis/b", "docs/reproduction/fig1/c.html"):
        (tree / rubbish).parent.mkdir(parents=True, exist_ok=True)
        (tree / rubbish).write_text("")
    builder = Environment(tmp_path_factory.mktemp("builder"))
    builder.install(*tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"])
    done = builder.run("python", "-c", BUILD, out, cwd=tree)
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.slow
def test_the_source_distribution_is_the_repository(built: Path) -> None:
    """Docs, examples, golden vectors, tests and tools are in it, so that all of `make` works from it."""
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as file:
        names = {member.name.partition("/")[2] for member in file.getmembers() if member.isfile()}
    assert {name for name in names if not MADE.fullmatch(name)} == {
        name for name in tracked() if not NOT_SHIPPED.fullmatch(name)
    }


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(built: Path) -> None:
    (archive,) = built.glob("*.whl")
    with zipfile.ZipFile(archive) as file:
        names = {name for name in file.namelist() if ".dist-info/" not in name}
        (metadata,) = (name for name in file.namelist() if name.endswith("METADATA"))
        description = Parser().parsestr(file.read(metadata).decode())
    assert names == {name.removeprefix("src/") for name in tracked() if name.startswith("src/")}
    assert description["Description-Content-Type"] == "text/markdown"
    assert not LOCAL.search(str(description.get_payload()))


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory, built: Path) -> Environment:
    """An environment with the wheel and no extra."""
    environment = Environment(tmp_path_factory.mktemp("environment"))
    environment.install(str(next(built.glob("*.whl"))))
    return environment


@pytest.fixture(scope="module")
def full(empty: Environment) -> Iterator[Environment]:
    """The same with all extras, as the sentences say they are got: pip must not look for inca on an index."""
    empty.install("inca[all]")
    yield empty


def walk(environment: Environment, folder: Path) -> Iterator[tuple[str, subprocess.CompletedProcess[str]]]:
    """Run the example of every command, in order, in a folder outside the repository."""
    write_inputs(folder)
    demo = "demo-was-refused"
    for name, words in COMMANDS.items():
        if name in ENDLESS:
            continue
        done = environment.run("inca", *name.split(), *words.replace("{demo}", demo).split(), cwd=folder)
        assert "Traceback" not in done.stderr, f"{name}: {done.stderr}"
        if name == "demo" and done.returncode == 0:
            demo = json.loads(done.stdout)["folder"]
        yield name, done
    shutil.rmtree(demo, ignore_errors=True)


@pytest.mark.slow
def test_every_command_without_extras(empty: Environment, tmp_path: Path) -> None:
    refused = {}
    for name, done in walk(empty, tmp_path):
        if done.returncode:
            assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), f"{name}: {done.stderr}"
            refused[name] = re.findall(r"^inca: inca .* needs .*: pip install 'inca\[(\w+)\]'$", done.stderr, re.M)
    assert refused == {name: [extra] for name, extra in _needed().items() if name not in ENDLESS}


def _needed() -> dict[str, str]:
    from inca.cli.app import NEEDED_EXTRA

    pairs = [(name, start, extra) for name in COMMANDS for start, extra in NEEDED_EXTRA.items()]
    return {name: extra for name, start, extra in pairs if f"inca {name} ".startswith(f"{start} ")}


@pytest.mark.slow
def test_every_command_with_all_extras(full: Environment, tmp_path: Path) -> None:
    for name, done in walk(full, tmp_path):
        assert (done.returncode == 0) != (name in ANSWERS_NO), f"{name}: {done.stderr}"


@pytest.mark.slow
def test_the_dashboard_has_all_that_it_loads(full: Environment, tmp_path: Path) -> None:
    write_inputs(tmp_path)
    words = ["dashboard", "--no-browser", "--port", "0"]
    command: list[Any] = [full.bin / "inca", *words]
    # A shell's background jobs ignore Ctrl-C, and so would what they start.
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", code, *map(str, command)]
    with subprocess.Popen(command, cwd=tmp_path, env=full.variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
            assert _loaded(address) >= 50
        finally:
            process.send_signal(signal.SIGINT)
    assert process.returncode in (0, 130)


@pytest.mark.slow
def test_the_relay_has_all_that_it_loads(full: Environment, tmp_path: Path) -> None:
    words = ["relay", "--name", "localhost", "--port", "0", "--metrics-port", "0"]
    command: list[Any] = [full.bin / "inca", *words]
    with subprocess.Popen(command, cwd=tmp_path, env=full.variables, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None and "The relay listens on 127.0.0.1:" in process.stdout.readline()
        finally:
            process.terminate()
    assert process.returncode == 0


def _loaded(address: str) -> int:
    """Fetch a page and all that it and its scripts and styles name; return how many files there are."""
    views = list((ROOT / "src/inca/dashboard/static/js/views").glob("*.js"))
    waiting, done = [address], set[str]()
    while waiting:
        url = waiting.pop()
        if url in done or not url.startswith(address.partition("?")[0].rstrip("/")):
            continue
        done.add(url)
        with urlopen(url, timeout=30) as answer:
            text = answer.read().decode()
        pattern = _IMPORTED if url.endswith(".js") else _LINKED
        waiting += [urljoin(url, name) for name in pattern.findall(text)]
        if url.endswith("/js/app.js"):  # which loads them by their names
            waiting += [urljoin(url, f"views/{view.name}") for view in views]
    return len(done)
