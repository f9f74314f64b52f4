"""What a session is said to cost, beside what a real one takes, and what its status says on the way."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers.ledgers import SESSION
from helpers.pace import allowance
from helpers.sequence_processes import agree
from inca.network.membership.identity import Identity
from inca.network.node.node import Node
from inca.network.node.payload_files import PayloadFile
from inca.network.node.report import write_report
from inca.network.node.session_cost import MachineSeconds, session_bytes, session_seconds
from inca.network.node.session_setup import SessionSetup

D, ROUNDS = 20_000, 2


@pytest.mark.real_time
def test_a_real_session_sends_and_keeps_what_is_said_and_its_status_tells_how_far_it_is(tmp_path: Path) -> None:
    pace = allowance()
    times: dict[str, Any] = {"lead": 2.0 * pace, "rounds": ROUNDS, "period": pace, "max_clock_skew": 0.4 * pace}
    roster = agree(tmp_path, **times, dimension=D, sigma_independent=100.0, sigma_cancelling=1000.0)
    setup, told = SessionSetup(roster), list[dict[str, Any]]()
    nodes = [
        Node(setup, identity, tmp_path / "state" / identity.name, lambda: np.full(D, 0.5), on_event=listener)
        for i in range(len(roster.parties))
        for identity, listener in [(Identity.read(tmp_path / str(i)), told.append if i == 0 else None)]
    ]

    async def hold() -> list[Any]:
        return await asyncio.gather(*(node.run() for node in nodes))

    ends = asyncio.run(hold())
    assert ends[0].result is not None, ends[0].reason
    folder, cost = nodes[0].folder, session_bytes(setup.session)
    write_report(folder, setup, 0, ends[0])
    status = json.loads((folder / "status.json").read_text())
    assert cost.traffic - 2**14 <= status["bytes_received"] < 1.2 * cost.traffic == 1.2 * status["bytes_expected"]
    assert (status["deposits"], status["expected"], status["seconds_left"]) == (5, 5, None)
    for node in nodes:  # final messages of others were written as they came, and nobody holds one in memory
        deposits = node._party.signed_items.by_kind["deposit"]
        assert node.journal._payloads._ahead.keys() <= {(item.party, item.hash) for item in deposits.values()}
        held: list[object] = [item.sealed for item in deposits.values()]
        assert node.journal._payloads._ahead and all(isinstance(sealed, PayloadFile) for sealed in held)
    kept = sum(file.stat().st_size for file in folder.iterdir())
    assert 0.5 * cost.disk < kept + 2**20 < cost.disk
    stages = [event["stage"] for event in told if event["event"] == "status"]
    assert stages[0] == "drawing" and stages[-1] == status["stage"] == "over"
    assert "status" not in (folder / "log.jsonl").read_text()


MACHINE = MachineSeconds(draw=0.03, take=0.04, write=0.03, unseal=0.04, verify=2e-4, assess=0.01)


def test_times_grow_with_what_there_is_to_do() -> None:
    session = replace(SESSION, parties=12, rounds=3, dimension=10**6)
    base = session_seconds(session, MACHINE, 1e7, 0.1)
    assert base.total > base.round * 3 + base.deposits + base.opening
    # Eleven final messages of eight megabytes, at ten megabytes a second.
    assert 8.8 < base.deposits < 8.8 + 12 * (0.04 + 0.03) + 1e-3
    for other, machine, link, trip in (
        (replace(session, parties=24), MACHINE, 1e7, 0.1),
        (replace(session, rounds=4), MACHINE, 1e7, 0.1),
        (replace(session, min_round_duration=4.0), MACHINE, 1e7, 0.1),
        (session, replace(MACHINE, assess=0.5), 1e7, 0.1),
        (session, MACHINE, 0.5e7, 0.1),
        (session, MACHINE, 1e7, 0.5),
    ):
        assert session_seconds(other, machine, link, trip).total > 1.01 * base.total
    assert session_bytes(replace(session, parties=24)).memory > session_bytes(session).memory + 12 * 8 * 10**6
