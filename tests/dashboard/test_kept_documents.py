"""What the program keeps in its memory: opened files, so many and no more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from helpers.dashboard_documents import certificates, proven_plan
from helpers.dashboard_server import CONSORTIUM, Dashboard, running
from inca.dashboard.api import DashboardApi
from inca.dashboard.kept_documents import MAX_KEPT, KeptDocuments
from inca.errors import InvalidInput

PLAN = msgspec.json.encode(proven_plan().as_fields())


@pytest.fixture
def own_board() -> Iterator[Dashboard]:
    with running() as dashboard:
        yield dashboard


def test_only_the_last_are_kept_and_what_is_looked_at_stays() -> None:
    kept = KeptDocuments(most=3)
    first, second, third = (kept.open(f"{number}.json", PLAN).id for number in range(3))
    assert kept[first].name == "0.json"
    kept.open("3.json", PLAN)
    assert [file["name"] for file in kept.summary()["files"]] == ["3.json", "0.json", "2.json"]
    with pytest.raises(InvalidInput, match="this file is not kept any more: only the last 3 are, with at most 64 MiB"):
        kept[second]
    assert kept[third].name == "2.json"


def test_what_is_kept_is_bounded_by_its_size() -> None:
    kept = KeptDocuments(most_bytes=5 * len(PLAN) // 2)
    for number in range(5):
        kept.open(f"{number}.json", PLAN)
        assert sum(file.size for file in kept._kept.values()) <= 5 * len(PLAN) // 2
    assert [file["name"] for file in kept.summary()["files"]] == ["4.json", "3.json"]
    alone = KeptDocuments(most_bytes=10)  # the one that is being looked at is kept whatever its size
    assert alone.open("large.json", PLAN).id == alone.summary()["files"][0]["id"]


@pytest.mark.parametrize("hostile", ["", "../secret", "0" * 15, "0" * 17, "G" * 16, "ABCDEF0123456789", "\x00" * 16])
def test_an_id_that_is_none_is_refused(own_board: Dashboard, hostile: str) -> None:
    assert own_board.refusal("file", file=hostile).startswith("file must be the id of a file that is open here, 16 hex")
    assert own_board.refusal("run", file=hostile).startswith("file must be the id of a file that is open here, 16 hex")


def test_a_server_forgets_the_oldest_and_says_so(own_board: Dashboard) -> None:
    opened = [own_board.post(f"/api/open?name={number}.json", PLAN).json["id"] for number in range(MAX_KEPT + 4)]
    answer = own_board.ask("files")
    assert [file["id"] for file in answer["files"]] == opened[:3:-1] and answer["most"] == MAX_KEPT
    sentence = own_board.refusal("file", file=opened[0])
    assert sentence == (
        "this file is not kept any more: only the last 16 are, with at most 64 MiB together, until the program ends"
    )


@pytest.mark.parametrize("added", [{"values": [0.123456]}, {"note": "0.123456"}])
def test_a_field_that_no_format_has_is_refused_and_nothing_of_it_is_kept(
    own_board: Dashboard, added: dict[str, object]
) -> None:
    """It may be private."""
    documents = (json.loads(PLAN), certificates()["within"].as_fields(), json.loads(CONSORTIUM.read_bytes()))
    for fields in documents:
        answer = own_board.post("/api/open?name=x.json", json.dumps(fields | added).encode())
        (name,) = added
        assert answer.status == 400 and answer.json["error"].endswith(f": {name}: is not a field of this format")
        assert b"0.123456" not in answer.body
    assert own_board.ask("files")["files"] == []


def test_what_is_kept_of_a_file_does_not_show_itself() -> None:
    kept = KeptDocuments()
    file = kept.open("plan.json", PLAN)
    assert repr(file) == f"OpenedFile(id='{file.id}', name='plan.json', kind='a plan')" and repr(file) in repr(kept)


def test_other_sites_learn_nothing_of_what_is_kept(own_board: Dashboard) -> None:
    own_board.post("/api/open?name=plan.json", PLAN)
    answer = own_board.get("/api/files", {"Origin": "http://elsewhere.example"})
    assert answer.status == 403 and b"plan.json" not in answer.body
    assert own_board.get("/api/files", {"Host": "elsewhere.example"}).status == 403


def test_nothing_is_written_to_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    api: Any = DashboardApi((), [CONSORTIUM])
    api.open("plan.json", PLAN)
    assert len(api.files()["files"]) == 2 and list(tmp_path.rglob("*")) == []
