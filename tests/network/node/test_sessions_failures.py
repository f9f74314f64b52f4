"""Sessions of twelve parties of which some fail, go, or come back."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from helpers.session_processes import LAST, PROCESS_LEAD, N, Scene, agreed, hold, load, nodes
from inca.network.node.node import Ended, Node


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    load()


# --- machines that fail ---------------------------------------------------------------------------------------------


def ended_by_itself(child: subprocess.Popen[str], seconds: float = 60.0) -> tuple[int, str]:
    """Return the status of a process and what it said."""
    try:
        said, _ = child.communicate(timeout=seconds)
    finally:
        child.kill()
    return child.returncode, said


@pytest.mark.slow
def test_full_disk_stops_one_party_cleanly(tmp_path: Path) -> None:
    # Its journal needs 16 kB for each share, but no file of this process may grow beyond 150 kB.
    full = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))"
    scene = Scene(tmp_path, dimension=2000, lead=PROCESS_LEAD, period=2.0)
    with scene.process(LAST, full) as child:
        ended = asyncio.run(hold(scene, nodes(scene, range(LAST))))
        status, said = ended_by_itself(child)
    result = agreed(scene, ended)
    assert result.finals == frozenset(range(LAST))
    assert 0 < result.realised.heard[LAST] < scene.setting.session.rounds
    assert status == 1
    assert len(said.splitlines()) == 1
    assert "journal" in said
    assert "Traceback" not in said


def test_clock_ten_seconds_off_is_refused(tmp_path: Path) -> None:
    ahead = "import time\nhonest = time.time\ntime.time = lambda: honest() + 10.0"
    scene = Scene(tmp_path, lead=7.0)
    with scene.process(LAST, ahead) as child:
        ended = asyncio.run(hold(scene, nodes(scene, range(LAST))))
        status, said = ended_by_itself(child)
    result = agreed(scene, ended)
    assert result.finals == frozenset(range(LAST))
    assert status == 2
    assert "clock" in said
    assert "+10.0" in said
    assert any(scene.told(i, "clock", LAST) for i in range(LAST))


# --- parties that go, and come back ---------------------------------------------------------------------------------


async def stop_and_come_back(scene: Scene, i: int, at: int, pause: float) -> Ended:
    """Stop a party cleanly in a round, and start it again after a while."""
    node: Node

    def listen(entry: dict[str, Any]) -> None:
        if entry["event"] == "round" and entry["round"] == at:
            node.stop()

    node = scene.node(i, echo=listen)
    first = await node.run()
    assert first.stopped
    assert first.result is None
    await asyncio.sleep(pause)
    return await scene.node(i).run()


@pytest.mark.slow
def test_party_that_was_stopped_comes_back(tmp_path: Path) -> None:
    scene = Scene(tmp_path, rounds=25, pace=0.2)
    runs = nodes(scene, range(LAST)) | {LAST: stop_and_come_back(scene, LAST, 5, 0.5)}
    result = agreed(scene, asyncio.run(hold(scene, runs)))
    assert result.finals == frozenset(range(N))
    assert any(entry["event"] == "comes back" for entry in scene.log(LAST))
    attended = sum(bool(result.realised.execution.presence.row(t)[LAST]) for t in range(1, 26))
    assert 5 < attended < 25


@pytest.mark.slow
def test_survivors_of_two_killed_parties_agree(tmp_path: Path) -> None:
    scene, victims = Scene(tmp_path, rounds=25, pace=0.2, lead=PROCESS_LEAD), (LAST - 1, LAST)
    children = [scene.process(i) for i in victims]

    def listen(entry: dict[str, Any]) -> None:
        if entry["event"] == "round" and entry["round"] in (7, 12):
            child = children[entry["round"] == 12]
            assert child.poll() is None
            child.send_signal(signal.SIGKILL)

    try:
        runs = nodes(scene, range(1, LAST - 1)) | {0: scene.node(0, echo=listen).run()}
        ended = asyncio.run(hold(scene, runs))
    finally:
        for child in children:
            child.kill()
            child.communicate()
    assert [child.returncode for child in children] == [-signal.SIGKILL] * 2
    survivors = frozenset(range(LAST - 1))
    # A share of the dead may have turned up without an account of it: then there is nothing to compare with.
    result = agreed(scene, ended, exact=ended[0].result is not None and ended[0].result.realised.exact)
    assert result.finals == survivors
    assert all(i in result.realised.heard for i in victims)
    assert all(scene.told(i, "down", victim) for i in survivors for victim in victims)
