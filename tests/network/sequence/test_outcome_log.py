"""Chains of outcomes on disk, and meetings over real TLS at which those who lack an outcome get it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.sequence_processes import SIZES, agreed
from inca._base.types import Array
from inca._base.validation import InputError
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.sequence.catch_up import Give, Heard, Meeting, Tell
from inca.network.sequence.outcome_log import NOTHING, Chain, digest, from_bytes, last_result, to_bytes

Outcomes = list[Array | None]


def chain_of(folder: Path, outcomes: Outcomes) -> Chain:
    chain = Chain(folder)
    for number, each in enumerate(outcomes, 1):
        chain.settle(number, each, None if each is None else 0.1 * number)
    return chain


def vector(number: float) -> Array:
    return np.array([number, -number / 3.0])


A, B, C, D = map(vector, (1.0, 2.0, 3.0, 4.0))

# --- on disk --------------------------------------------------------------------------------------------------------


def test_a_chain_is_found_again_and_goes_on(tmp_path: Path) -> None:
    first = chain_of(tmp_path, [A, None, C])
    again = Chain(tmp_path)
    assert again.outcomes == first.outcomes == [digest(A), NOTHING, digest(C)] and again.mark() == first.mark()
    found = again.average(1)
    assert found is not None and np.array_equal(found, A) and again.average(2) is None
    assert [again.noise(number) for number in (1, 2, 3)] == pytest.approx([0.1, None, 0.3])
    again.settle(4, None)
    assert again.settled == 4 and last_result(again.outcomes) == 3


def test_outcomes_come_one_after_the_other(tmp_path: Path) -> None:
    chain = chain_of(tmp_path, [A])
    with pytest.raises(InputError, match="number is 3, but 2, the first without outcome"):
        chain.settle(3, B)
    with pytest.raises(InputError, match="number is 2"):
        chain.average(2)
    (tmp_path / "0002").mkdir()  # a session that was begun has no outcome yet
    assert Chain(tmp_path).settled == 1


def test_marks_differ_whenever_outcomes_do(tmp_path: Path) -> None:
    chains: list[Outcomes] = [[], [A], [B], [None], [A, None], [None, A], [A, B], [None, None]]
    marks = {chain_of(tmp_path / str(i), each).mark() for i, each in enumerate(chains)}
    assert len(marks) == len(chains)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.booleans(), max_size=6), st.lists(st.booleans(), max_size=6))
def test_taking_over_a_later_chain_makes_them_equal_up_to_its_last_result(
    tmp_path_factory: pytest.TempPathFactory, mine: list[bool], theirs: list[bool]
) -> None:
    folder = tmp_path_factory.mktemp("chains")
    own = chain_of(folder / "own", [vector(i) if has else None for i, has in enumerate(mine)])
    other = chain_of(folder / "other", [vector(i) if has else None for i, has in enumerate(theirs)])
    last = last_result(other.outcomes)
    before = own.outcomes
    averages = {number: (found, 0.5) for number in range(1, last + 1) if (found := other.average(number)) is not None}
    changed = own.adopt(other.outcomes[:last], averages)
    assert own.outcomes[:last] == other.outcomes[:last] and own.outcomes[last:] == before[last:]
    assert changed == (before[:last] != other.outcomes[: len(before[:last])])
    assert Chain(folder / "own").outcomes == own.outcomes


def test_an_average_that_is_not_what_was_said_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the digest of an average"):
        Chain(tmp_path).adopt([digest(A)], {1: (B, None)})
    assert Chain(tmp_path).settled == 0


@pytest.mark.parametrize("payload", [b"", b"nonsense", to_bytes(np.ones((2, 2))), to_bytes(np.array([np.nan]))])
def test_bytes_that_are_no_average_are_refused(payload: bytes) -> None:
    with pytest.raises((ValueError, EOFError)):
        from_bytes(payload)


# --- at meetings ----------------------------------------------------------------------------------------------------


class Scene:
    """Parties of a roster, each with a chain."""

    def __init__(self, folder: Path, chains: list[Outcomes]) -> None:
        self.roster: Roster = agreed(folder, lead=100.0)
        self.identities = [Identity.read(folder / str(i)) for i in range(len(SIZES))]
        self.chains = [chain_of(folder / str(i) / "course", each) for i, each in enumerate(chains)]

    async def meet(
        self, expected: int, seconds: float = 1.5, kinds: dict[int, type[Meeting]] | None = None
    ) -> list[Heard]:
        """Let all of them meet before session `expected`; some may be meetings of another kind."""
        until = time.time() + seconds
        return await asyncio.gather(
            *(
                (kinds or {}).get(i, Meeting)(self.roster, i, chain, expected).hold(self.identities[i], until)
                for i, chain in enumerate(self.chains)
            )
        )


def test_who_lacks_outcomes_gets_them_and_nobody_else_asks(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A, None, C], [A, None, C], [A], [], [A, None, None]])
    heard = asyncio.run(scene.meet(expected=4))
    assert all(chain.outcomes[:3] == scene.chains[0].outcomes for chain in scene.chains)
    assert all(chain.noise(3) == pytest.approx(0.3) for chain in scene.chains)
    assert [each.adopted is not None for each in heard] == [False, False, True, True, True]
    assert [bool(each.peers) for each in heard] == [False, False, True, True, True]
    # Only the last one had settled, without a result, what others had a result of: its program must begin again.
    assert [each.changed for each in heard] == [False, False, False, False, True]


def test_what_nobody_has_a_result_of_stays_open(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A], [A], [A], [A], [A]])
    heard = asyncio.run(scene.meet(expected=3))
    assert all(chain.settled == 1 for chain in scene.chains)
    assert all(len(each.peers) == len(SIZES) - 1 and each.adopted is None for each in heard)


def test_the_later_last_result_wins_over_more_results(tmp_path: Path) -> None:
    """Party 3 alone has a result of session 2; more than half went on without it and have one of session 3."""
    scene = Scene(tmp_path, [[A, None, C], [A, None, C], [A, None, C], [A, B], [A, None, C]])
    heard = asyncio.run(scene.meet(expected=4))
    assert all(chain.outcomes == [digest(A), NOTHING, digest(C)] for chain in scene.chains)
    assert heard[3].changed and Chain(scene.chains[3].folder).average(2) is None


class Liar(Meeting):
    """Says that it has a later result than it has, and gives another one."""

    def _send(self, peer: int, message: object) -> None:
        if isinstance(message, Tell):
            message = Tell([*message.outcomes, digest(D)], message.ask)
        elif isinstance(message, Give):
            message = Give(message.number, to_bytes(B), None)
        super()._send(peer, message)  # type: ignore[arg-type]

    def _give(self, peer: int, message: object) -> None:
        self._send(peer, Give(message.number, b"", None))  # type: ignore[attr-defined]


def test_who_does_not_have_what_it_says_is_not_believed(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A, B], [A, B], [A], [A, B], [A, B]])
    heard = asyncio.run(scene.meet(expected=3, kinds={1: Liar}))
    assert scene.chains[2].outcomes == [digest(A), digest(B)] and heard[2].adopted != 1


def test_a_party_alone_at_a_meeting_learns_nothing_and_does_not_hang(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[]])
    began = time.monotonic()
    (heard,) = asyncio.run(scene.meet(expected=2, seconds=0.5))
    assert not heard.peers and heard.adopted is None and time.monotonic() - began < 10.0


def test_nonsense_at_a_meeting_is_not_answered(tmp_path: Path) -> None:
    scene = Scene(tmp_path, [[A]])
    meeting = Meeting(scene.roster, 0, scene.chains[0], 2)
    for frame in (b"", b"\xc1", b"\x93\xa4tell\x91\xc4\x01x\xc3"):
        meeting.received(1, frame)  # would raise, as it has no transport to answer with
    assert not meeting._told
