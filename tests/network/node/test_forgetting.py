"""Only its operator's word makes a party forget that has accepted commit; and then nothing of its secrets is left."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.command_line import Capture, call
from helpers.parties import START, Room
from helpers.rooms_on_disk import RoomOnDisk
from helpers.rosters import SEED, terms
from helpers.state_folders import cohorts_in
from inca._base.types import Array
from inca.errors import InvalidInput
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.node.journal import Journal
from inca.network.node.node import SessionEnd
from inca.network.node.report import kept_result, write_report
from inca.network.node.runner import forget_session, run_party
from inca.network.node.session_setup import SessionSetup
from inca.network.protocol.messages import Decisions, Items, Message, Yes
from inca.network.protocol.records import Left

N, ME = 4, 1
IDENTITIES = [Identity.create(f"clinic-{letter}") for letter in "abcd"]
CARDS = tuple(identity.card(f"127.0.0.1:{7001 + i}") for i, identity in enumerate(IDENTITIES))
ROSTER = Roster("trial", terms(seed=SEED, rounds=2), CARDS)
SETUP = SessionSetup(ROSTER)


def without_keys(sender: int, to: int, message: Message) -> bool:
    return isinstance(message, Items) and any(item.kind == "key" for item in message.items)


def without_a_decision(sender: int, to: int, message: Message) -> bool:
    """Commit is accepted, and nobody hears that a quorum has."""
    return (
        isinstance(message, Yes | Decisions) and (message.instance if isinstance(message, Yes) else message.first) > 0
    )


def no_value() -> Array:
    raise AssertionError("the value is asked for")


@pytest.fixture
def folder_at(tmp_path: Path) -> Callable[..., Path]:
    """The folder of a party that has just died, once something holds of its room."""

    def folder(holds: Callable[[Room], bool], drops: Any = lambda *_: False) -> Path:
        paced: Any = {"start": START, "period": 1.0, "min_round_duration": 0.4}
        room = RoomOnDisk(replace(SETUP.session, **paced), tmp_path / "room")
        room.drops = drops
        room.open()
        for _ in room.steps(until=100.0):
            if holds(room):
                break
        else:
            raise AssertionError("it never holds")
        room.kill(ME)
        room.close()
        return room.home(ME)

    return folder


def is_unfinished(room: Room) -> bool:
    return room.parties[ME].stage == "serving" and room.parties[ME].finalization.unfinished


@pytest.mark.parametrize("drops", [without_keys, without_a_decision], ids=["keys are missing", "in doubt"])
def test_a_party_forgets_at_its_operators_word(folder_at: Callable[..., Path], drops: Any) -> None:
    folder = folder_at(is_unfinished, drops)
    assert cohorts_in(folder, ME) == [0]
    document = forget_session(SETUP, IDENTITIES[ME], folder)
    assert cohorts_in(folder, ME) == []
    assert document.estimate is None and document.reason.startswith("its operator has made this party forget")
    assert kept_result(folder) == document
    assert json.loads((folder / "ended.json").read_text())["reason"] == document.reason
    journal = Journal(folder / "journal.db", session=SETUP.session.id, party=ME)
    assert any(isinstance(record, Left) for record in journal.read())
    journal.close()
    assert run_party(SETUP, IDENTITIES[ME], folder, no_value) == document
    with pytest.raises(InvalidInput, match="the session has ended here"):
        forget_session(SETUP, IDENTITIES[ME], folder)


def test_a_party_that_has_accepted_nothing_has_nothing_to_forget(folder_at: Callable[..., Path]) -> None:
    folder = folder_at(lambda room: room.parties[ME].stage == "agreeing")
    with pytest.raises(InvalidInput, match=r"has not accepted to open the final messages: .* it ends by itself"):
        forget_session(SETUP, IDENTITIES[ME], folder)
    assert cohorts_in(folder, ME) == [0] and not (folder / "ended.json").exists()


def test_a_party_that_has_the_keys_keeps_them(folder_at: Callable[..., Path]) -> None:
    folder = folder_at(lambda room: room.parties[ME].result is not None)
    with pytest.raises(InvalidInput, match="has the keys that open the final messages"):
        forget_session(SETUP, IDENTITIES[ME], folder)


def test_nobody_else_can_make_it_forget(folder_at: Callable[..., Path]) -> None:
    folder = folder_at(is_unfinished, without_keys)
    with pytest.raises(InvalidInput, match="'zoe' is not in the roster"):
        forget_session(SETUP, Identity.create("zoe"), folder)
    with pytest.raises(InvalidInput, match="belongs to another session or party"):
        forget_session(SETUP, IDENTITIES[0], folder)
    assert cohorts_in(folder, ME) == [0]


def test_the_command_forgets_says_so_and_shreds(
    folder_at: Callable[..., Path], capsys: Capture, tmp_path: Path
) -> None:
    before = folder_at(is_unfinished, without_keys)
    folder = tmp_path / "sessions" / ROSTER.session.hex()[:16]
    folder.parent.mkdir()
    before.rename(folder)
    ROSTER.write(tmp_path / "roster.json")
    IDENTITIES[ME].write(tmp_path / "me", "127.0.0.1:7002")
    words = ["run", tmp_path / "roster.json", "--identity", tmp_path / "me", "--state", tmp_path / "sessions"]
    status, out, err = call(capsys, "node", *words, "--forget", "--shred")
    assert (status, err) == (3, "") and "Its operator has made this party forget an unfinished session" in " ".join(
        out.split()
    )
    assert not (folder / "journal.db").exists()
    assert call(capsys, "node", *words)[0] == 3


def test_secrets_that_a_killed_party_has_left_are_erased_at_the_next_start(folder_at: Callable[..., Path]) -> None:
    """It had given up, and said so, while it still served others."""
    folder = folder_at(lambda room: room.parties[ME].stage == "agreeing")
    document = write_report(folder, SETUP, ME, SessionEnd(None, "no agreement on the result"))
    assert cohorts_in(folder, ME) == [0]
    assert run_party(SETUP, IDENTITIES[ME], folder, no_value) == document
    assert cohorts_in(folder, ME) == []
