from __future__ import annotations

import math
from pathlib import Path

import pytest

from inca._base.files import check_writable, write_json, write_whole
from inca.errors import InvalidInput


def test_what_can_be_written_is_left_as_it_was(tmp_path: Path) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text("kept")
    check_writable(old, None, new)
    assert old.read_text() == "kept" and list(tmp_path.iterdir()) == [old]


@pytest.mark.parametrize("place", ["missing/plan.json", "folder", "file/plan.json"])
def test_what_cannot_be_written_is_refused_before_and_after_the_work(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match=r"cannot be written: [A-Z][a-z ]+$"):
        check_writable(tmp_path / place)
    with pytest.raises(InvalidInput, match=r"cannot be written: [A-Z][a-z ]+$"):
        write_json(tmp_path / place, {})
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "file"}


def test_nothing_half_written_remains(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    path.write_text("the result before")

    def fail(file: object) -> None:
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError):
        write_whole(path, fail)
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"epsilon": math.inf})
    assert path.read_text() == "the result before" and list(tmp_path.iterdir()) == [path]
