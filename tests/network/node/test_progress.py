"""What a party says of a large frame while it arrives, which takes a slow link minutes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers.pace import allowance
from helpers.sequence_processes import agree
from helpers.transports import raw, run, until
from inca.network.membership.identity import Identity
from inca.network.membership.tls import client_context
from inca.network.node.node import Node, NodeOptions
from inca.network.node.progress import TimeLeft, here_of
from inca.network.node.session_setup import SessionSetup
from inca.network.node.transport_setup import NetworkAccess
from inca.network.protocol.traffic import Traffic
from inca.network.transport.frames import DATA, HEADER

D = 100_000
HERE = NetworkAccess(listen=("127.0.0.1", 0))


@given(st.integers(0, 11), st.lists(st.integers(0, 10**10), max_size=11))
def test_what_peers_send_instead_of_final_messages_never_makes_them_more_than_there_will_be(
    have: int, arriving: list[int]
) -> None:
    assert have <= here_of(have, 12, arriving, 8 * D) <= min(12, have + len(arriving))


def test_the_time_left_counts_parts_of_messages_and_begins_anew_if_one_is_lost() -> None:
    left = TimeLeft()
    assert left.look(0.0, 1.0, 5) is None
    assert left.look(10.0, 1.5, 5) == 70  # twenty seconds for each of three and a half
    assert left.look(20.0, 3.0, 5) == 20
    assert left.look(21.0, 0.5, 5) is None and left.look(22.0, 1.0, 5) == 8


@pytest.mark.real_time
def test_the_status_counts_bytes_of_a_frame_that_is_not_whole(tmp_path: Path) -> None:
    """Nothing else happens meanwhile: a round lasts an hour, and nobody else is there."""
    roster = agree(tmp_path, lead=4.0 * allowance(), period=3600.0, dimension=D, sigma_independent=100.0)
    identities = [Identity.read(tmp_path / str(i)) for i in range(2)]
    setup, folder = SessionSetup(roster), tmp_path / "state"
    half = Traffic(setup.session).sealed_bytes // 2

    def status() -> dict[str, Any]:
        path = folder / "status.json"
        return json.loads(path.read_text()) if path.exists() else {}

    async def main() -> None:
        node = Node(setup, identities[0], folder, lambda: np.zeros(D), NodeOptions(access=HERE))
        task = asyncio.create_task(node.run())
        await until(lambda: status().get("stage") == "rounds")
        async with raw(node._transport.address, client_context(identities[1], roster)) as other:
            await other.greet(1, b"l" * 16, session=roster.session)
            await until(lambda: 1 in node._transport.connected)
            before = status()["bytes_received"]
            other.writer.write(HEADER.pack(2 * half, DATA) + bytes(half))
            await until(lambda: status()["bytes_received"] >= before + half - 2**15)
            assert node._transport.arriving == [half]
        await until(lambda: not node._transport.arriving)
        node.stop()
        await task

    run(main())
