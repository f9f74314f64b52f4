"""Verbs on a real terminal of 80 columns: no line is longer, and no word is broken."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from helpers.command_line import Capture, call
from helpers.paths import ROOT
from helpers.transcripts import COLUMNS, Step, take

RATES = "--dropout 0 --dropout 0.15 --dropout 0.3 --runs 2"  # errors with what was measured beside them: long cells
COMMANDS = {
    "plan": "inca plan --parties 16 --epsilon 1 --messages 8 --colluding 0.1",
    "compare": f"inca compare --parties 8 --epsilon 1 --messages 4 --views 2 {RATES}",
    "audit": f"inca audit {ROOT / 'examples' / 'consortium.json'}",
    "keygen": "inca node keygen anna --host 127.0.0.1 --port 7001 --out anna",
    "roster": "inca node roster init trial --rounds 20 --sigma-independent 75.2 --sigma-cancelling 80.3 --epsilon 4 "
    "--min-participants 4 --domain 0 100 --start 2090-01-15T08:00:00Z --out roster.json",
    "refusal": "inca average --domain 0 1 /dev/null --epsilon 1",
}


@pytest.mark.parametrize("verb", COMMANDS)
def test_lines_fit_and_words_are_whole(
    verb: str, tmp_path: Path, programs: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = take(Step(COMMANDS[verb], ""), tmp_path, programs)
    assert shown and max(map(len, shown.splitlines())) <= COLUMNS, shown
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    _, piped, refusal = call(capsys, *shlex.split(COMMANDS[verb])[1:])
    result, _, _ = re.sub(r"\b[0-9a-f]{4}(-[0-9a-f]{4})+\b", "KEY", shown).partition("Next: ")
    assert set(result.split()) <= {*(piped + refusal).split(), "KEY"}
