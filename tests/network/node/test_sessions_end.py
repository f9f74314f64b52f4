"""The end of a session of real processes: short cuts of all links, and parties that are killed and come back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from helpers.cut_links import EightProcesses, N
from inca.network.node.journal import Journal
from inca.network.protocol.records import Opened

pytestmark = [pytest.mark.slow, pytest.mark.real_time]
Agree = Callable[..., EightProcesses]


@pytest.fixture
def agree(tmp_path: Path) -> Iterator[Agree]:
    clusters: list[EightProcesses] = []

    def begin(**changes: Any) -> EightProcesses:
        clusters.append(EightProcesses.agree(tmp_path, **changes))
        return clusters[-1]

    yield begin
    for cluster in clusters:
        cluster.stop()


def assert_exact(cluster: EightProcesses, holder: int) -> None:
    """The result must be what the journals of its cohort give, to the unit."""
    result = cluster.result(holder)
    assert result["exact"] and result["contradictions"] == []
    assert cluster.expected_sum(holder) == [*result["total"], result["total_weight"]]


@pytest.mark.parametrize("stage", ["digests", "agreeing", "opening"])
def test_a_short_cut_of_all_links_costs_time_and_not_the_session(agree: Agree, stage: str) -> None:
    cluster = agree()
    cluster.start_all()
    cluster.wait_for_stage(stage)
    cluster.links.cut(1.2)
    assert cluster.finish() == list(range(N))
    assert_exact(cluster, 0)
    assert len(cluster.result(0)["cohort"]) == N


@pytest.mark.parametrize("stage", ["digests", "agreeing", "opening"])
def test_five_of_eight_killed_at_the_end_come_back_and_all_have_the_result(agree: Agree, stage: str) -> None:
    cluster = agree()
    cluster.start_all()
    cluster.wait_for_stage(stage)
    for i in range(5):
        cluster.kill(i)
    time.sleep(2.0)
    cluster.start_all(range(5))
    assert cluster.finish() == list(range(N))
    assert_exact(cluster, 0)
    for i in range(N):  # and whoever has forgotten its loss has worked it out again
        result = cluster.result(i)
        assert 0.0 < result["epsilon"] <= result["wanted"] and (cluster.session_folder(i) / "certificate.json").exists()


@pytest.mark.parametrize("stage", ["agreeing", "opening", "serving"])
def test_a_decision_survives_all_of_them_being_killed(agree: Agree, stage: str) -> None:
    """Seven come back: all hold the same result, or all say why there is none."""
    cluster = agree()
    cluster.start_all()
    cluster.wait_for_stage(stage)
    for i in range(N):
        cluster.kill(i)
    ended = [i for i in range(N) if cluster.result(i).get("estimate") is not None]
    cluster.start_all(range(1, N))
    holders = cluster.finish()
    assert set(holders) - {0} in ({*range(1, N)}, set()), [cluster.log_text(i)[-2000:] for i in range(N)]
    assert not ended or set(holders) >= {*range(1, N)}  # what one has, all have
    if holders:
        assert cluster.result(holders[0])["exact"]
    else:
        assert all(cluster.result(i)["reason"] for i in range(1, N))


def test_a_party_that_was_killed_and_shreds_at_the_end_leaves_no_copy_of_its_seed(agree: Agree) -> None:
    cluster = agree()
    kept = cluster.folder / "kept"
    kept.mkdir()

    def keep() -> None:
        for file in cluster.session_folder(0).glob("journal.db*"):
            with suppress(FileNotFoundError):  # a party that runs removes them
                copy = kept / f"{file.name} {file.stat().st_ino}"
                if not copy.exists():
                    os.link(file, copy)

    for i in range(N):
        cluster.start(i, shred=True)
    cluster.wait_for_stage("digests", parties=[0])
    keep()
    cluster.kill(0)
    keep()
    # A copy of both files is opened, so that the files themselves are as the kill has left them.
    other = cluster.folder / "copy"
    other.mkdir(mode=0o700)
    for file in cluster.session_folder(0).glob("journal.db*"):
        (other / file.name).write_bytes(file.read_bytes())
        (other / file.name).chmod(0o600)
    with closing(Journal(other / "journal.db", session=cluster.roster.session, party=0)) as journal:
        (opened,) = (record for record in journal.read() if isinstance(record, Opened))
    assert any(opened.masks in file.read_bytes() for file in kept.iterdir())
    cluster.start(0, shred=True)
    while 0 in cluster.running():
        keep()
        time.sleep(0.01)
    cluster.finish()
    files = [file for folder in (kept, cluster.session_folder(0)) for file in folder.iterdir()]
    assert len(list(kept.iterdir())) >= 2 and not list(cluster.session_folder(0).glob("journal.db*"))
    assert not [file.name for file in files if opened.masks in file.read_bytes()]
