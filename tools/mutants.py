"""Change the code on purpose, one place at a time, and see whether the quick tests of that file notice.

    make mutants                                            # all files below, an hour or more on one core
    make mutants FILES="planning/plan.py learn/budget.py"
    python tools/mutants.py --list                          # the files, and what tests each of them

cosmic-ray finds the places and makes the changes (`mutation_operators.py` adds some that matter here); everything runs
in a copy of the tree. Each change is tried in a process of its own, forked off one that has imported NumPy, SciPy and
Numba already, so that most changes take a second. All changes of all files would take days, so of each file at most
`--at-most` are tried, one per place, drawn by a fixed hash of the place: the same ones every time as long as the line
stands as it is. What was tried is kept in build/mutants and not tried again until the file or its tests change.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import logging
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "build" / "mutants"
COPIED = ("src", "tests", "examples", "golden", "README.md", "pyproject.toml")
SEED = b"inca-mutants/1"
MAX_MEMORY_BYTES = 8 << 30
MIN_LIMIT_S, BASELINES_PER_LIMIT = 20.0, 6  # a change is given six times what the tests take without it
_QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # of what was imported before pytest began
PRELOADED = (
    *("numpy", "scipy.linalg", "scipy.optimize", "scipy.sparse.csgraph", "scipy.special", "scipy.stats", "numba"),
    *("cryptography.hazmat.primitives.asymmetric.ed25519", "cryptography.x509", "hypothesis.extra.numpy", "msgspec"),
    *("pytest", "threadpoolctl", "sqlite3", "asyncio", "ssl"),
)

WITHOUT_EFFECT = ("check_finite", "frozen")
"""Arguments by name that change no result: only how long something takes, and whether a record may be assigned to."""

TESTS: dict[str, list[str]] = tomllib.loads((Path(__file__).parent / "mutants.toml").read_text())
"""The quick tests of each file, beside the examples in it; those that notice most come first."""


@dataclass(frozen=True)
class Mutant:
    """One change: what is done where, and the line before and after."""

    key: str
    operator: str
    occurrence: int
    line: int
    function: str
    before: str
    after: str


@dataclass
class FileReport:
    """What became of the changes to one file."""

    file: str
    changes: int
    """How many there are in all, before any are drawn."""
    places: int
    tried: int
    noticed: int
    too_long: int
    """How many of those were noticed only since the tests went on for ever, or nearly."""
    survivors: list[Mutant]


# --- What is changed -------------------------------------------------------------------------------------------------


def _operators() -> Iterator[tuple[str, Any]]:
    import cosmic_ray.plugins

    from mutation_operators import Provider

    cosmic_ray.plugins.OPERATOR_PROVIDERS["inca"] = Provider()
    for name in cosmic_ray.plugins.operator_names():
        kind = cosmic_ray.plugins.get_operator(name)
        if not kind.arguments():  # what needs arguments replaces variables by others, of which there is no end
            yield name, kind()


def _is_said_or_typed(node: Any) -> bool:
    """Return whether a node is part of an annotation, of a signature's marks, of a sentence, or of a decorator.

    Annotations are never evaluated, f-strings are what messages say, and what decorators are given is that dataclasses
    are frozen and not compared.
    """
    below = node
    while (above := below.parent) is not None:
        if above.type in ("annassign", "tfpdef", "fstring", "decorator"):
            # An assignment with an annotation has the value in the same node, after the equals sign.
            return above.type != "annassign" or below is not above.children[-1] or len(above.children) < 4
        if above.type == "param":
            return above.default is None or not (above.default.start_pos <= node.start_pos < above.default.end_pos)
        if above.type in ("parameters", "import_from", "import_name"):
            return True
        if above.type == "funcdef" and above.annotation is below:
            return True
        below = above
    return False


def _is_without_effect(node: Any, code: str) -> bool:
    """Return whether a node is part of an argument that changes no result, or `code` begins with one."""
    while node is not None:
        if node.type == "argument" and node.children[0].get_code(include_prefix=False) in WITHOUT_EFFECT:
            return True
        node = node.parent
    return code.startswith(tuple(f"{name}=" for name in WITHOUT_EFFECT))


def _draw(key: str) -> str:
    return hashlib.sha256(SEED + key.encode()).hexdigest()


def mutants_of(file: str, source: str, at_most: int) -> tuple[list[Mutant], int, int]:
    """Return the drawn changes to a file, how many there are in all, and at how many places."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.mutating import mutate_code

    lines, tree, original = source.splitlines(), get_ast(source), ast.dump(ast.parse(source))
    places: dict[str, list[tuple[str, str, Any, int, int, str]]] = {}
    changes = 0
    for name, operator in _operators():
        occurrence = -1
        for node in ast_nodes(tree):
            for start, end in operator.mutation_positions(node):
                occurrence += 1
                if _is_said_or_typed(node) or _is_without_effect(node, lines[start[0] - 1][start[1] :]):
                    continue
                changes += 1
                family = name.split("/")[1].split("_")[0]
                text = lines[start[0] - 1].strip()
                function = _function_of(node)
                # The place is named by what stands there, not by the line's number, which changes with every edit.
                place = f"{file}|{function}|{text}|{start[1]}|{end[1]}|{family}"
                same = f"{place}|{name}"
                places.setdefault(place, []).append((_draw(same), name, operator, occurrence, start[0], function))
    drawn: list[Mutant] = []
    for place in sorted(places, key=_draw):
        for _, name, operator, occurrence, line, function in sorted(places[place], key=lambda choice: choice[0]):
            # Some places are no code any more when they are changed; and names with a dot confuse ExceptionReplacer.
            with contextlib.suppress(SyntaxError, AttributeError):
                mutated = mutate_code(source, operator, occurrence)
                if mutated is not None and ast.dump(ast.parse(mutated)) != original:
                    before, after = _difference(source, mutated)
                    key = _draw(f"{file}|{function}|{name}|{before}|{after}|{occurrence}")[:16]
                    drawn.append(Mutant(key, name, occurrence, line, function, before, after))
                    break
        if len(drawn) == at_most:
            break
    return sorted(drawn, key=lambda mutant: (mutant.line, mutant.operator)), changes, len(places)


def _function_of(node: Any) -> str:
    from cosmic_ray.ast.ast_query import ASTQuery

    return ASTQuery(node).get_definition_name() or ""


def _difference(source: str, mutated: str) -> tuple[str, str]:
    """Return the lines that differ, before and after."""
    old, new = source.splitlines(), mutated.splitlines()
    start = next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))
    end = next(
        (i for i, (a, b) in enumerate(zip(reversed(old), reversed(new), strict=False)) if a != b),
        min(len(old), len(new)),
    )
    end = min(end, len(old) - start, len(new) - start)
    return tuple(" ".join(line.strip() for line in part[start : len(part) - end]) for part in (old, new))  # type: ignore[return-value]


# --- Trying a change -------------------------------------------------------------------------------------------------


def copy_tree(folder: Path) -> None:
    """Copy what tests need, with the times of the files, so that what Python and Numba have compiled stays valid."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        elif source.exists():
            shutil.copy2(source, folder / name)


def run_tests(folder: Path, tests: Iterable[str], log: Path, limit_s: float, *, keep_bytecode: bool) -> str:
    """Run tests in a forked process of its own; return "passed", "failed", or "too long"."""
    if (child := os.fork()) == 0:
        _in_child(folder, list(tests), log, keep_bytecode)  # does not return
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            _kill_group(child)  # whatever the tests have started and left
            return "passed" if os.waitstatus_to_exitcode(status) == 0 else "failed"
        time.sleep(0.01)
    _kill_group(child)
    os.waitpid(child, 0)
    return "too long"


def _kill_group(leader: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _in_child(folder: Path, tests: list[str], log: Path, keep_bytecode: bool) -> None:
    code = 1
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
        with log.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(folder)
        sys.path[:0] = [str(folder / "src"), str(folder / "tests")]
        os.environ["PYTHONPATH"] = str(folder / "src")
        # A changed file may have the size and, to the second, the time of the one before: no bytecode is kept of it.
        sys.dont_write_bytecode = not keep_bytecode
        os.environ["PYTHONDONTWRITEBYTECODE"] = "" if keep_bytecode else "1"
        import pytest
        from hypothesis import HealthCheck, Phase, settings

        # As the quick profile of tests/conftest.py, but a failure need not be made small: that it fails is all.
        settings.register_profile(
            "mutants",
            deadline=None,
            derandomize=True,
            max_examples=40,
            suppress_health_check=[HealthCheck.too_slow],
            phases=[Phase.explicit, Phase.generate],
        )
        code = int(
            pytest.main(
                [
                    "-x",
                    "-m",
                    "not slow",
                    "--no-header",
                    "-p",
                    "no:xdist",
                    "--hypothesis-profile",
                    "mutants",
                    *_QUIET,
                    *tests,
                ]
            )
        )
    except BaseException as error:  # whatever it is, the child must not go on as its parent
        print(repr(error), file=sys.stderr)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# --- One file after the other ----------------------------------------------------------------------------------------


def _digest(paths: Iterable[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths if path.exists())).hexdigest()[:16]


class Session:
    """What was tried of one file, in cosmic-ray's own format: `cr-report` and `cr-html` read it, too."""

    def __init__(
        self, file: str, mutants: list[Mutant], source: Path, tests: Iterable[Path], *, survivors: bool
    ) -> None:
        from cosmic_ray.work_db import WorkDB
        from cosmic_ray.work_item import MutationSpec, WorkItem

        RESULTS.mkdir(parents=True, exist_ok=True)
        name = file.removesuffix(".py").replace("/", ".")
        state_path, database = RESULTS / f"{name}.state", RESULTS / f"{name}.sqlite"
        state = {"source": _digest([source]), "tests": _digest(tests)}
        before = json.loads(state_path.read_text()) if state_path.exists() and database.exists() else {}
        kept: dict[str, Any] = {}
        if before.get("source") == state["source"] and (survivors or before.get("tests") == state["tests"]):
            db = WorkDB(str(database), WorkDB.Mode.open)
            # With changed tests, only what they had noticed is kept, and only where that was asked for.
            same_tests = before["tests"] == state["tests"]
            kept = {key: result for key, result in db.results if result.is_killed or (same_tests and not survivors)}
            db.close()
        database.unlink(missing_ok=True)
        self._db = WorkDB(str(database), WorkDB.Mode.create)
        self._db.add_work_items(
            WorkItem.single(
                mutant.key,
                MutationSpec(
                    source.relative_to(ROOT),
                    mutant.operator,
                    mutant.occurrence,
                    (mutant.line, 0),
                    (mutant.line, 1),
                    definition_name=mutant.function,
                ),
            )
            for mutant in mutants
        )
        for mutant in mutants:
            if mutant.key in kept:
                self._db.set_result(mutant.key, kept[mutant.key])
        state_path.write_text(json.dumps(state))

    @property
    def too_long(self) -> set[str]:
        """The changes with which the tests did not end in time."""
        return {key for key, result in self._db.results if result.output == "too long"}

    @property
    def noticed(self) -> dict[str, bool]:
        """Whether each change that was tried was noticed."""
        return {key: bool(result.is_killed) for key, result in self._db.results}

    def add(self, mutant: Mutant, outcome: str) -> None:
        from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult

        tested = TestOutcome.SURVIVED if outcome == "passed" else TestOutcome.KILLED
        diff = f"-{mutant.before}\n+{mutant.after}"
        self._db.set_result(mutant.key, WorkResult(WorkerOutcome.NORMAL, outcome, tested, diff))

    def close(self) -> None:
        self._db.close()


def examine(file: str, folder: Path, at_most: int, *, survivors: bool) -> FileReport:
    """Try the drawn changes of one file, but for those that have been."""
    from cosmic_ray.mutating import mutate_code

    original, copied = ROOT / "src" / "inca" / file, folder / "src" / "inca" / file
    source = copied.read_text()
    mutants, changes, places = mutants_of(file, source, at_most)
    test_files = [folder / test.split("::")[0] for test in TESTS[file] if not test.startswith("-")]
    session = Session(file, mutants, original, test_files, survivors=survivors)
    operators = dict(_operators())
    log = folder / "log.txt"

    def mutated(mutant: Mutant) -> str:
        return str(mutate_code(source, operators[mutant.operator], mutant.occurrence))

    tests = [*TESTS[file], str(copied.relative_to(folder))]
    try:
        waiting = [mutant for mutant in mutants if mutant.key not in session.noticed]
        if waiting:
            _try_all(waiting, session, mutated, copied, folder, tests, log)
        noticed, too_long = session.noticed, session.too_long
    finally:
        copied.write_text(source)
        session.close()
    survived = [mutant for mutant in mutants if not noticed[mutant.key]]
    return FileReport(file, changes, places, len(mutants), len(mutants) - len(survived), len(too_long), survived)


def _try_all(
    waiting: list[Mutant],
    session: Session,
    mutated: Callable[[Mutant], str],
    copied: Path,
    folder: Path,
    tests: list[str],
    log: Path,
) -> None:
    started = time.monotonic()
    if run_tests(folder, tests, log, 600.0, keep_bytecode=True) != "passed":
        raise SystemExit(f"{copied}: its tests fail without any change\n{log.read_text()[-4000:]}")
    limit_s = max(MIN_LIMIT_S, BASELINES_PER_LIMIT * (time.monotonic() - started))
    for mutant in waiting:
        for compiled in (copied.parent / "__pycache__").glob(f"{copied.stem}.*"):
            compiled.unlink()
        copied.write_text(mutated(mutant))
        outcome = run_tests(folder, tests, log, limit_s, keep_bytecode=False)
        session.add(mutant, outcome)
        if outcome == "passed":
            print(f"  survived  {mutant.line:4d}  {mutant.before}\n                  {mutant.after}", flush=True)


def table(reports: Iterable[FileReport]) -> str:
    """Return the figures of each file in the form in which docs/mutants.md shows them."""
    rows = [
        "| file | changes there are | tried | noticed | survived | share noticed |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    total = [0, 0, 0]
    for report in reports:
        rows.append(_row(f"`{report.file}`", report.changes, report.tried, report.noticed))
        total = [a + b for a, b in zip(total, (report.changes, report.tried, report.noticed), strict=True)]
    return "\n".join([*rows, _row("all", *total)])


def _row(name: str, changes: int, tried: int, noticed: int) -> str:
    share = f"{100 * noticed // tried} %" if tried else "-"
    return f"| {name} | {changes} | {tried} | {noticed} | {tried - noticed} | {share} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="source files, below src/inca; all that are listed if none is named")
    parser.add_argument("--at-most", type=int, default=40, help="how many changes are tried in a file (default 40)")
    parser.add_argument("--survivors", action="store_true", help="after new tests: try again what survived, no more")
    parser.add_argument("--list", action="store_true", help="say which tests are run for which file, and end")
    parser.add_argument("--report", type=Path, default=RESULTS / "report.json", help="where the survivors are written")
    arguments = parser.parse_args()
    files = [name.removeprefix("src/inca/") for name in arguments.files] or list(TESTS)
    if unknown := [file for file in files if file not in TESTS]:
        parser.error(f"no tests are known for {', '.join(unknown)}")
    if arguments.list:
        print("\n".join(f"{file}: {' '.join(TESTS[file])}" for file in files))
        return
    logging.disable(logging.INFO)
    os.nice(10)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # before NumPy is there, and no thread must run when a process is forked
    os.environ["NUMBA_NUM_THREADS"] = "1"
    sys.path.insert(0, str(Path(__file__).parent))
    for name in PRELOADED:
        __import__(name)
    reports: list[FileReport] = []
    with tempfile.TemporaryDirectory(prefix="inca-mutants-") as name:
        folder = Path(name)
        copy_tree(folder)
        for file in files:
            print(f"{file}: {' '.join(TESTS[file])}", flush=True)
            reports.append(examine(file, folder, arguments.at_most, survivors=arguments.survivors))
            arguments.report.parent.mkdir(parents=True, exist_ok=True)
            arguments.report.write_text(json.dumps([asdict(report) for report in reports], indent=1) + "\n")
    print(f"\n{table(reports)}\n\nSurvivors: {arguments.report}")


if __name__ == "__main__":
    main()
