"""What `inca node doctor` says at sites that nobody can connect to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.netns.internet import Internet, need_namespaces
from helpers.netns.parties import N, Parties, hidden_seat, mistaken_seat, open_seat
from helpers.netns.proxy import proxy_url, start_proxy
from helpers.netns.relays import Relay
from helpers.pace import allowance

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

LATER_S = 3600.0
SOON_S, PATIENCE_S = 8.0, 60.0  # for peers that never come, and for those that start at the same time
HIDDEN, MISTAKEN, PROXIED, LOCKED, OPEN = range(N)


@pytest.fixture
def net() -> Iterator[Internet]:
    need_namespaces()
    with Internet() as net:
        yield net


@pytest.fixture
def parties(net: Internet, tmp_path: Path) -> Parties:
    """Five sites, each of another kind, one relay and a proxy."""
    relay, proxy = Relay(net, 1, tmp_path), net.host("proxy", 20)
    proxy.knows({relay.name: relay.place.address})
    start_proxy(proxy, tmp_path / "proxy.txt")
    settings = {"HTTPS_PROXY": proxy_url(proxy)}
    seats = [
        hidden_seat(net, HIDDEN, [relay]),
        mistaken_seat(net, MISTAKEN, [relay]),
        hidden_seat(net, PROXIED, [relay], only=proxy.address, environment=settings),
        hidden_seat(net, LOCKED, [relay], only=proxy.address),  # and nobody has told it of the proxy
        open_seat(net, OPEN, [relay]),
    ]
    parties = Parties.agree(tmp_path, seats, lead=LATER_S)
    relay.start("--allow", tmp_path / "roster.json")
    return parties


def start_doctor(parties: Parties, i: int, seconds: float) -> None:
    words = ("--timeout", seconds * allowance(), "--json")
    parties.runs[i] = parties.command(i, "doctor", *words, output="doctor.json")


def report(parties: Parties, i: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a doctor has found: its report, and the checks by what they are about."""
    status, found = parties.runs[i].wait(), json.loads(parties.runs[i].said)
    assert status == int(not found["well"])
    return found, {check["what"]: check for check in found["checks"] + found["peers"]}


def test_alone_the_others_are_not_there_yet(parties: Parties) -> None:
    start_doctor(parties, HIDDEN, SOON_S)
    found, checks = report(parties, HIDDEN)
    assert found["well"] and checks["address"]["text"] == "connects outwards only"
    assert checks["relay"]["text"] == "registered at wss://relay1.example.org/inca"
    assert found["absent"] == list(parties.names[1:]) and not found["apart"]
    for i in (PROXIED, LOCKED):
        assert checks[parties.names[i]]["text"] == "not registered at wss://relay1.example.org/inca yet"


def test_together_they_say_how_each_is_reached_and_who_is_locked_in(parties: Parties) -> None:
    for i in range(N):
        start_doctor(parties, i, PATIENCE_S)
    reports = [report(parties, i) for i in range(N)]
    there = [HIDDEN, MISTAKEN, PROXIED, OPEN]
    for i in there:
        found, checks = reports[i]
        assert found["well"] and found["absent"] == [parties.names[LOCKED]]
        for peer in there:
            if peer != i:
                text = checks[parties.names[peer]]["text"]
                assert text.startswith("through wss://relay1.example.org/inca") or (
                    text.startswith("directly") and OPEN in (i, peer)
                )
    found, checks = reports[LOCKED]
    assert not found["well"]
    assert checks["relay"]["state"] == "no relay" and "HTTPS_PROXY" in checks["relay"]["text"]
