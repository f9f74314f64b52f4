"""What a party holds in memory when it comes back: no more than when it began, however much its journal has."""

from __future__ import annotations

import shutil
import tracemalloc
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from helpers.parties import PACED, Room, masks, noisy, secret
from helpers.rooms_on_disk import RoomOnDisk
from helpers.trustee_keys import sealing
from inca.network.node.journal import Journal
from inca.network.protocol.context import Effects
from inca.network.protocol.records import Record

N, ME, D = 12, 1, 60_000
SESSION = replace(PACED, parties=N, rounds=3, min_participants=3, dimension=D, schedule="permutation")


def peak(work: Callable[[], object]) -> float:
    """Return the most memory that something takes beyond what was there before, in vectors."""
    tracemalloc.start()
    try:
        kept = work()
        most = tracemalloc.get_traced_memory()[1]
        del kept
    finally:
        tracemalloc.stop()
    return most / (8 * (D + 1))


def test_a_party_that_comes_back_holds_no_more_than_one_that_begins(tmp_path: Path) -> None:
    """Its journal has 19 vectors: the value, shares out and in, and the final messages of all."""
    room = RoomOnDisk(SESSION, tmp_path / "room")
    room.open().at_stage(ME, "opening")
    folder = tmp_path / "left"
    shutil.copytree(room.home(ME), folder)
    room.close()
    fresh, value, secrets = Room(SESSION), noisy(SESSION, ME), (masks(ME), secret(ME), sealing(ME))

    def begin() -> Effects:
        with closing(Journal(tmp_path / f"{fresh.incarnations[ME]}.db", session=SESSION.id, party=ME)) as journal:
            effects = fresh.make(ME).open(room.now, value, *secrets)
            journal.append(effects.records)
            return effects

    def come_back() -> list[Record]:
        with closing(Journal(folder / "journal.db", session=SESSION.id, party=ME)) as journal:
            records = journal.read()
            fresh.make(ME).recover(room.now, records)
            return records

    assert len(list(folder.glob("*-payload-*"))) == 1 + 2 * SESSION.rounds + N
    begin()  # what is compiled, and loaded, is for both
    came_back, began = peak(come_back), peak(begin)
    assert fresh.parties[ME].ledger.opened is not None
    assert came_back < began + 1.0, (came_back, began)
