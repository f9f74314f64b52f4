"""A process that holds one session after the other keeps nothing of those that have ended."""

from __future__ import annotations

import asyncio
import gc
import json
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from helpers.pace import allowance
from helpers.sequence_processes import SESSIONS_IN_A_ROW, agree, hold_in_a_row
from inca.network.membership.identity import Identity
from inca.network.node.node import Node, SessionEnd
from inca.network.node.session_setup import SessionSetup
from inca.network.node.warm_up import warm_up
from inca.network.testing.fork_server import FORK_SERVER

pytestmark = pytest.mark.real_time
PATIENCE_S = 600.0
N = 3
MAX_GROWTH_BYTES = 2**25  # over 25 sessions or so, of which each used to leave 8 MB


@pytest.fixture(scope="module", autouse=True)
def loaded() -> None:
    warm_up()


def test_nothing_refers_to_a_node_whose_session_has_ended(tmp_path: Path) -> None:
    """What a node holds is many megabytes, and a sequence has hundreds of sessions."""
    pace = allowance()
    roster = agree(tmp_path, lead=1.5 * pace, rounds=2, period=0.5 * pace, max_clock_skew=0.2 * pace)
    setup = SessionSetup(roster)

    async def hold(nodes: list[Node]) -> list[SessionEnd]:
        return await asyncio.gather(*(node.run() for node in nodes))

    def session() -> list[weakref.ref[Node]]:
        identities = [Identity.read(tmp_path / str(i)) for i in range(len(roster.parties))]
        nodes = [
            Node(setup, identity, tmp_path / "state" / identity.name, lambda: np.array([0.5]))
            for identity in identities
        ]
        assert all(end.result is not None for end in asyncio.run(hold(nodes)))
        return [weakref.ref(node) for node in nodes]

    before = psutil.Process().num_fds()
    nodes = session()
    gc.collect()
    assert [node() for node in nodes] == [None] * len(nodes)
    assert psutil.Process().num_fds() == before


@pytest.mark.slow
def test_thirty_sessions_in_a_row_keep_memory_descriptors_and_disk_flat(tmp_path: Path) -> None:
    pace = allowance()
    roster = agree(tmp_path, lead=8.0 * pace, rounds=2, period=1.0 * pace, max_clock_skew=0.4 * pace)
    replace(roster, parties=roster.parties[:N]).write(tmp_path / "three.json")
    processes = [
        FORK_SERVER.Process(target=hold_in_a_row, args=(str(tmp_path), i, pace), daemon=True) for i in range(N)
    ]
    for process in processes:
        process.start()
    deadline = time.monotonic() + PATIENCE_S * pace
    for process in processes:
        process.join(max(0.0, deadline - time.monotonic()))
        process.kill()
    for i in range(len(processes)):
        rows: list[dict[str, Any]] = json.loads((tmp_path / str(i) / "in_a_row.json").read_text())
        assert len(rows) == SESSIONS_IN_A_ROW
        held = [row for row in rows if row["result"]]
        assert len(held) >= SESSIONS_IN_A_ROW / 2  # on a busy machine a session may begin without a party
        # The first few sessions compile and load.
        grown = max(row["memory"] for row in held[5:]) - max(row["memory"] for row in held[:5])
        assert grown < MAX_GROWTH_BYTES, [row["memory"] for row in held]
        assert len({row["descriptors"] for row in held[5:]}) == 1
        # A session leaves its result on the disk, which is as long as the one before, and no journal.
        assert max(row["disk"] for row in held) < 1.1 * min(row["disk"] for row in held)
        assert not any(row["private"] for row in rows)
