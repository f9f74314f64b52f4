"""What must be durable before what is said: parties that are killed right before and right after every write.

The journals are those of nodes, on a disk. `RoomOnDisk` holds everything that is said against them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.ledgers import with_topup
from helpers.lying_dealer import LyingDealer
from helpers.parties import PACED
from helpers.rooms_on_disk import Doom, RoomOnDisk, When
from inca.network.node import payload_files
from inca.network.protocol.context import Effects
from inca.network.protocol.messages import Propose
from inca.network.protocol.records import (
    Accepted,
    Decided,
    Kept,
    Left,
    Opened,
    Promised,
    Record,
    Sealed,
    Secret,
    Signed,
    Voted,
)
from inca.network.protocol.session import SessionConfig

N, KILLED, REFUSING = 4, 1, 3
SMALL = with_topup(replace(PACED, parties=N, rounds=2, min_participants=3))
MakeRoom = Callable[..., RoomOnDisk]


@pytest.fixture
def make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeRoom]:
    monkeypatch.setattr(payload_files, "LARGE_BYTES", 16)  # values, shares and sealed messages are in files
    rooms: list[RoomOnDisk] = []

    def make(doom: Doom = lambda i, records: None, *, session: SessionConfig = SMALL, **options: Any) -> RoomOnDisk:
        rooms.append(RoomOnDisk(session, tmp_path / f"{len(rooms)}", doom, **options))
        return rooms[-1]

    yield make
    for room in rooms:
        room.close()


def once(party: int, when: When, is_last: Callable[[Sequence[Record]], bool]) -> Doom:
    """Let a party die at its first such write."""
    over = False

    def doom(i: int, records: Sequence[Record]) -> When | None:
        nonlocal over
        if over or i != party or not is_last(records):
            return None
        over = True
        return when

    return doom


def has(*kinds: type[Record], **fields: Any) -> Callable[[Sequence[Record]], bool]:
    """Whether a write has a record of some kind, about an item, a step or a cohort."""

    def fits(record: Record) -> bool:
        match record:
            case Signed(item=item):
                about: dict[str, Any] = {"kind": item.kind}
            case Accepted(lock=lock):
                about = {"step": lock.proposal.step}
            case Decided(decision=decision):
                about = {"step": decision.proposal.step}
            case Secret(cohort=cohort):
                about = {"cohort": cohort}
            case Kept(items=items):
                about = {"kind": items[0].kind if items else ""}
            case _:
                about = {}
        return isinstance(record, kinds) and fields.items() <= about.items()

    return lambda records: any(map(fits, records))


ROWS: dict[str, Callable[[Sequence[Record]], bool]] = {
    "the keys of cohorts": has(Opened),
    "the balance": has(Sealed),
    "the digest": has(Signed, kind="digest"),
    "the deposit": has(Signed, kind="deposit"),
    "a vote": has(Voted),
    "the acceptance of a cohort": has(Accepted, step="cohort"),
    "the acceptance of commit": has(Accepted, step="commit"),
    "the decision on a cohort": has(Decided, step="cohort"),
    "the decision to commit": has(Decided, step="commit"),
    "the keys that opened": has(Kept, kind="key"),
}
SHRINKING: dict[str, Callable[[Sequence[Record]], bool]] = {
    "the deposit for the first cohort": has(Signed, kind="deposit"),
    "the smaller cohort": has(Secret, cohort=1),
}
each_kill = pytest.mark.parametrize(
    ("when", "all_die"),
    [
        pytest.param("before", False, id="one before"),
        pytest.param("after", True, id="all after"),
        pytest.param("before", True, id="all before", marks=pytest.mark.slow),
        pytest.param("after", False, id="one after", marks=pytest.mark.slow),
    ],
)


def assert_one_result(room: RoomOnDisk, cohort: set[int]) -> None:
    """All have the one exact result of these; nobody has lost a journal, or has left."""
    stages = {i: (party.stage, party.reason) for i, party in room.parties.items()}
    assert all(stage == "over" for stage, _ in stages.values()) and len(stages) == room.session.parties, stages
    result = room.check(but=room.killed if not room.all_die else set())
    assert result.realized.cohort == cohort
    assert not any(isinstance(record, Left) for journal in room.journals.values() for record in journal)


@each_kill
@pytest.mark.parametrize("row", ROWS)
def test_a_kill_at_a_row_of_the_table_takes_nothing_from_anybody(
    make_room: MakeRoom, row: str, when: When, all_die: bool
) -> None:
    room = make_room(once(KILLED, when, ROWS[row]), all_die=all_die)
    room.open().run()
    assert room.kills == 1
    assert_one_result(room, set(range(N)))


@each_kill
@pytest.mark.parametrize("row", SHRINKING)
def test_a_kill_at_a_smaller_cohort_keeps_it_smaller(make_room: MakeRoom, row: str, when: When, all_die: bool) -> None:
    """Whoever is killed is in the smaller cohort, or is the one that is left out."""
    for killed in (KILLED, *([REFUSING] if row == "the smaller cohort" else [])):
        room = make_room(once(killed, when, SHRINKING[row]), all_die=all_die)
        room.refusals[REFUSING] = "its loss must be smaller"
        room.open().run()
        assert room.kills == 1
        assert_one_result(room, set(range(N)) - {REFUSING})


@each_kill
def test_a_refusal_is_durable_before_it_is_said(make_room: MakeRoom, when: When, all_die: bool) -> None:
    """Though it would not refuse again: what has been said counts."""
    room = make_room(once(REFUSING, when, has(Signed, kind="refusal")), all_die=all_die)
    room.refusals[REFUSING] = "its loss must be smaller"
    room.open()
    for _ in room.steps(until=60.0):
        if room.kills and when == "after":
            room.refusals.clear()
    assert room.kills == 1
    assert_one_result(room, set(range(N)) - {REFUSING})


@each_kill
def test_a_promise_is_durable_before_it_is_given(make_room: MakeRoom, when: When, all_die: bool) -> None:
    """The first proposals are lost, so that others propose, who ask for promises."""
    room = make_room(once(KILLED, when, has(Promised)), all_die=all_die)
    room.drops = lambda sender, to, message: isinstance(message, Propose) and message.ballot == N
    room.open().run()
    assert room.kills == 1
    assert_one_result(room, set(range(N)))


class RoomWithALiar(RoomOnDisk):
    """Party 4 deals garbage."""

    def make(self, i: int) -> Any:
        honest = super().make(i)
        if i != REFUSING:
            return honest
        signs = honest.context.signed_items
        self.parties[i] = LyingDealer(self.session, i, sign=signs._sign, verify=signs._verify, rng=honest.context.rng)
        return self.parties[i]


@each_kill
def test_a_kill_at_the_outcome_keeps_the_evidence(tmp_path: Path, when: When, all_die: bool) -> None:
    room = RoomWithALiar(SMALL, tmp_path, once(KILLED, when, has(Kept, kind="key")), all_die=all_die)
    room.open().run()
    assert room.kills == 1
    for party in room.parties.values():
        assert party.stage == "over" and party.result is None
        assert party.finalization.lie is not None and party.finalization.lie.party == REFUSING
    room.close()


# --- each write -----------------------------------------------------------------------------------------------------


def writes_by_stage(make_room: MakeRoom, refusing: bool) -> list[str]:
    """Return the stage in which party 1 is at each of its writes."""
    stages: list[str] = []

    def note(i: int, records: Sequence[Record]) -> None:
        if i == KILLED:
            stages.append(room.parties[i].stage)

    room = make_room(note)
    if refusing:
        room.refusals[REFUSING] = "its loss must be smaller"
    room.open().run()
    return stages


def nth(number: int) -> Callable[[Sequence[Record]], bool]:
    """Whether so many writes were asked about before."""
    asked = 0

    def is_last(_: Sequence[Record]) -> bool:
        nonlocal asked
        asked += 1
        return asked == number + 1

    return is_last


@pytest.mark.slow
@pytest.mark.parametrize("refusing", [False, True], ids=["", "shrinking"])
@each_kill
def test_a_kill_at_any_write_in_any_stage_takes_nothing_from_anybody(
    make_room: MakeRoom, when: When, all_die: bool, refusing: bool
) -> None:
    stages = writes_by_stage(make_room, refusing)
    later = {"assessing"} if refusing else set()  # in the first cohort the loss is known before it is decided
    assert {"gathering", "rounds", "digests", "agreeing", "opening", *later} <= set(stages)
    for number in range(len(stages)):
        room = make_room(once(KILLED, when, nth(number)), all_die=all_die)
        if refusing:
            room.refusals[REFUSING] = "its loss must be smaller"
        room.open().run()
        assert room.kills == 1
        assert_one_result(room, set(range(N)) - ({REFUSING} if refusing else set()))
        room.close()


# --- the own loss ---------------------------------------------------------------------------------------------------


class CountingRoom(RoomOnDisk):
    """Counts how often the own loss of each party was asked for."""

    asked: Counter[tuple[int, frozenset[int]]]

    def perform(self, i: int, effects: Effects) -> None:
        if effects.assess is not None:
            self.asked[i, effects.assess.cohort] += 1
        super().perform(i, effects)


@pytest.mark.parametrize("refusing", [False, True], ids=["", "shrinking"])
def test_the_own_loss_is_worked_out_once_for_each_cohort(tmp_path: Path, refusing: bool) -> None:
    """While others are still deciding on the first cohort; for a smaller one, when it is decided."""
    room = CountingRoom(SMALL, tmp_path)
    room.asked = Counter()
    if refusing:
        room.refusals[REFUSING] = "its loss must be smaller"
    room.open().run()
    room.close()
    everyone = frozenset(range(N))
    smaller = {(i, everyone - {REFUSING}): 1 for i in everyone - {REFUSING}} if refusing else {}
    assert room.asked == {(i, everyone): 1 for i in everyone} | smaller
