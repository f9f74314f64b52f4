"""Sessions of twelve parties of which some fail, go, or come back."""

from __future__ import annotations

import asyncio
import re
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from helpers.session_processes import (
    LAST,
    PARTY,
    PROCESS_LEAD_S,
    N,
    TwelveParties,
    common_result,
    hold,
    nodes,
    on_round,
    prepared,
)
from inca.errors import InvalidInput
from inca.network.node.node import Node, NodeOptions, SessionEnd
from inca.network.node.warm_up import warm_up

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    warm_up()


# --- machines that fail ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_full_disk_stops_one_party_cleanly(tmp_path: Path) -> None:
    # Its journal needs about 50 kB for each share, but no file of this process may grow beyond 400 kB.
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))\ninca.cli.main()"
    with prepared(work=full) as (process,):
        parties = TwelveParties(tmp_path, dimension=2000, lead=PROCESS_LEAD_S, period=2.0)
        process.start(parties.arguments(LAST))
        ends = asyncio.run(hold(parties, nodes(parties, range(LAST))))
        status, said = process.ending()
    result = common_result(parties, ends)
    assert result.realized.cohort == frozenset(range(LAST))
    assert result.realized.cohort == frozenset(range(LAST))
    assert 0 < parties.ledger(LAST).round < parties.setup.session.rounds
    assert status == 1
    assert len(said.splitlines()) == 1
    assert "journal" in said
    assert "Traceback" not in said


def skew_in(sentence: str) -> float:
    """Return by how much a clock was wrong, in the sentence that refuses it."""
    match = re.search(r"this machine's clock cannot be trusted: .* got ([+-][0-9.]+) s by those of ", sentence)
    assert match is not None, sentence
    return float(match[1])


@pytest.mark.slow
def test_clock_ten_seconds_off_is_refused(tmp_path: Path) -> None:
    ahead = "import time\nhonest = time.time\ntime.time = lambda: honest() + 10.0"
    with prepared(load=ahead + PARTY) as (process,):
        parties = TwelveParties(tmp_path, lead=PROCESS_LEAD_S)
        process.start(parties.arguments(LAST))
        ends = asyncio.run(hold(parties, nodes(parties, range(LAST))))
        status, said = process.ending()
    result = common_result(parties, ends)
    assert result.realized.cohort == frozenset(range(LAST))
    assert status == 2
    assert skew_in(said) == pytest.approx(10.0, abs=1.0)  # a round trip takes its time on a busy machine
    assert any(parties.logged(i, "clock", LAST) for i in range(LAST))


@pytest.mark.slow
@pytest.mark.parametrize("offset", [-10.0, 10.0])
def test_a_wrong_clock_is_refused_whichever_way_it_is_wrong(tmp_path: Path, offset: float) -> None:
    parties = TwelveParties(tmp_path)

    async def refused() -> None:
        with pytest.raises(InvalidInput) as caught:
            await parties.node(LAST, options=NodeOptions(clock=lambda: time.time() + offset)).run()
        assert skew_in(str(caught.value)) == pytest.approx(offset, abs=1.0)

    async def main() -> dict[int, SessionEnd]:
        _, ends = await asyncio.gather(refused(), hold(parties, nodes(parties, range(LAST))))
        return ends

    assert common_result(parties, asyncio.run(main())).realized.cohort == frozenset(range(LAST))


SET_BACK = """
import os, time
honest, wrong = time.time, os.environ["WRONG"]
time.time = lambda: honest() - (3600.0 if os.path.exists(wrong) else 0.0)
"""


@pytest.mark.slow
def test_a_wall_clock_that_is_set_back_by_an_hour_keeps_nobody_in_its_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong"
    monkeypatch.setenv("WRONG", str(wrong))
    with prepared(load=SET_BACK + PARTY) as (process,):
        parties = TwelveParties(tmp_path, rounds=6, min_round_duration=0.2, lead=PROCESS_LEAD_S)
        process.start(parties.arguments(LAST))
        runs = nodes(parties, range(1, LAST)) | {0: parties.node(0, on_event=on_round(3, wrong.touch)).run()}
        ends = asyncio.run(hold(parties, runs))
        status, said = process.ending()
    assert status == 0, said
    result = common_result(parties, ends)
    assert result.realized.cohort == frozenset(range(N))
    # It was in all rounds in time, those after the change included.
    assert all(result.realized.execution.presence.row(t)[LAST] for t in range(1, 7))
    # Its log, written for people, tells the time of the wall clock: this one was changed indeed.
    times = [entry["time"] for entry in parties.log(LAST)]
    assert min(times) < max(times) - 3000.0


# --- parties that go, and come back ---------------------------------------------------------------------------------


async def stop_and_come_back(parties: TwelveParties, i: int, t: int, pause: float) -> SessionEnd:
    """Stop a party cleanly in a round, and start it again after a while."""
    node: Node

    def stop() -> None:
        node.stop()

    node = parties.node(i, on_event=on_round(t, stop))
    first = await node.run()
    assert first.result is None
    await asyncio.sleep(pause)
    return await parties.node(i).run()


@pytest.mark.slow
def test_party_that_was_stopped_comes_back(tmp_path: Path) -> None:
    parties = TwelveParties(tmp_path, rounds=25, min_round_duration=0.2)
    runs = nodes(parties, range(LAST)) | {LAST: stop_and_come_back(parties, LAST, 5, 0.5)}
    result = common_result(parties, asyncio.run(hold(parties, runs)))
    assert result.realized.cohort == frozenset(range(N))
    assert any(entry["event"] == "comes back" for entry in parties.log(LAST))
    attended = sum(bool(result.realized.execution.presence.row(t)[LAST]) for t in range(1, 26))
    assert 5 < attended < 25


@pytest.mark.slow
def test_survivors_of_two_killed_parties_agree(tmp_path: Path) -> None:
    victims = (LAST - 1, LAST)
    with prepared(2) as processes:
        parties = TwelveParties(tmp_path, rounds=25, min_round_duration=0.2, lead=PROCESS_LEAD_S)
        for process, i in zip(processes, victims, strict=True):
            process.start(parties.arguments(i))

        def kill(entry: dict[str, Any]) -> None:
            if entry["event"] == "round" and entry["round"] in (7, 12):
                victim = processes[entry["round"] == 12].process
                assert victim.poll() is None
                victim.send_signal(signal.SIGKILL)

        runs = nodes(parties, range(1, LAST - 1)) | {0: parties.node(0, on_event=kill).run()}
        ends = asyncio.run(hold(parties, runs))
    assert [process.process.returncode for process in processes] == [-signal.SIGKILL] * 2
    survivors = frozenset(range(LAST - 1))
    result = common_result(parties, ends)  # whatever the dead had exchanged is undone
    assert result.realized.cohort == survivors
    assert all(parties.ledger(i).round > 0 for i in victims)
    assert all(parties.logged(i, "down", victim) for i in survivors for victim in victims)
