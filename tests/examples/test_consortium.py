"""The example of ten clinics, with processes that only pretend: no straggler takes the answers of the others away."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from helpers.paths import ROOT

SLEEPS = "import time; time.sleep(60)"
ANSWERS = "import time; time.sleep(0.3); print('{\"coefficients\": 1}')"
FAILS = "raise SystemExit('inca: the others are gone')"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the example as a module, less patient than it is."""
    spec = importlib.util.spec_from_file_location("learning_consortium", ROOT / "examples" / "learning_consortium.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "PATIENCE_S", 5.0)
    return module


def processes(monkeypatch: pytest.MonkeyPatch, example: ModuleType, of: Callable[[str, int], str]) -> list[str]:
    """Let clinics be processes of programs by name and how often they were started; return the names as they start."""
    started: list[str] = []

    def begin(folder: Path, name: str) -> subprocess.Popen[str]:
        started.append(name)
        program = of(name, started.count(name))
        pipe = subprocess.PIPE
        return subprocess.Popen([sys.executable, "-c", program], cwd=folder, stdout=pipe, stderr=pipe, text=True)

    monkeypatch.setattr(example, "begin", begin)
    return started


def been_in(folder: Path, name: str, *sessions: int, asked: int = 0) -> None:
    """Leave what a clinic keeps of sessions that it was in, and of the last that it has asked for."""
    for number in sessions:
        (folder / name / "state" / "id" / f"{number:04}" / "sessions").mkdir(parents=True)
    if asked:
        place = folder / name / "state" / "id" / f"{asked:04}"
        place.mkdir(parents=True, exist_ok=True)
        (place / "asked.json").write_text("{}")


def test_a_killed_clinic_is_started_again_though_nobody_takes_part_in_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: ModuleType
) -> None:
    # On a busy machine the second session may last so long that all are too late for the third.
    been_in(tmp_path, "Cork", 1, 2)
    been_in(tmp_path, "Aachen", 1, 2, 5, asked=3)
    started = processes(monkeypatch, example, lambda name, times: SLEEPS if (name, times) == ("Cork", 1) else ANSWERS)
    answers, missing = example.learn(tmp_path)
    assert list(answers) == list(example.NAMES) and missing == {} and started.count("Cork") == 2


def test_a_clinic_without_an_answer_is_named_and_the_others_keep_theirs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: ModuleType
) -> None:
    programs = {"Aachen": FAILS, "Jena": SLEEPS}
    started = processes(monkeypatch, example, lambda name, times: programs.get(name, ANSWERS))
    monkeypatch.setattr(example, "PATIENCE_S", 2.0)
    answers, missing = example.learn(tmp_path)  # Cork was in no session: it is not killed
    assert missing == {"Aachen": "inca: the others are gone", "Jena": "it was not done after 2 s"}
    assert list(answers) == [name for name in example.NAMES if name not in missing]
    assert started.count("Aachen") == 2 and started.count("Cork") == 1


def test_a_clinic_that_fails_once_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, example: ModuleType
) -> None:
    processes(monkeypatch, example, lambda name, times: FAILS if (name, times) == ("Evora", 1) else ANSWERS)
    answers, missing = example.learn(tmp_path)
    assert "Evora" in answers and missing == {}
