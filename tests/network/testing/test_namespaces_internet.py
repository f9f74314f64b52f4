"""The networks that other tests stand on: what a site's router lets through, and what not."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from helpers.netns.internet import DROPPED_S, PORT, Internet, NoNamespaces, Place, Process, need_namespaces, why_not
from helpers.netns.proxy import CREDENTIALS, start_proxy
from helpers.netns.proxy import PORT as PROXY_PORT

LISTEN = f"""
import socket
with socket.create_server(("0.0.0.0", {PORT}), backlog=20) as server:
    print("listens", flush=True)
    while True:
        taken, (origin, _) = server.accept()
        print("from", origin, flush=True)
        taken.sendall(b"welcome")
        taken.close()
"""
ASK = """
import base64, socket, sys
proxy, port, credentials, target = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4]
password = "Proxy-Authorization: Basic " + base64.b64encode(credentials.encode()).decode() + "\\r\\n"
with socket.create_connection((proxy, port), 60) as there:
    there.sendall(f"CONNECT {target} HTTP/1.1\\r\\n{password if credentials else ''}\\r\\n".encode())
    while piece := there.recv(999):
        print(piece.decode(), end="")
"""


@pytest.fixture
def net() -> Iterator[Internet]:
    need_namespaces()
    with Internet() as net:
        yield net


def listen(place: Place, folder: Path) -> Process:
    process = place.start([sys.executable, "-IS", "-c", LISTEN], folder / f"{place.name}.txt", os.environ)
    process.wait_for("listens")
    return process


def test_sites_connect_to_public_machines_and_nobody_connects_to_them(net: Internet, tmp_path: Path) -> None:
    public, first, second = net.host("public1", 10), net.site(1), net.site(2)
    listening = {place: listen(place, tmp_path) for place in (public, first, second)}
    assert first.dial(public.address) == second.dial(public.address) == "welcome"
    assert f"from {first.address}\nfrom {second.address}" in listening[public].said  # their routers', by NAT
    assert first.dial("127.0.0.1") == "welcome"  # it listens: what follows is the network's doing
    for place, number in ((public, 1), (second, 1), (first, 2)):
        before, target = net.refused(number), first if number == 1 else second
        assert place.dial(target.address, seconds=DROPPED_S) == "TimeoutError"  # without a word
        assert net.refused(number) > before
    assert second.dial("192.168.1.2") == "OSError"  # an address inside means nothing outside
    assert listening[first].said == "listens\nfrom 127.0.0.1\n" and listening[second].said == "listens\n"


def test_a_forwarded_port_and_no_other_lets_connections_in(net: Internet, tmp_path: Path) -> None:
    first, second = net.site(1, forwarded=PORT), net.site(2)
    listening = listen(first, tmp_path)
    assert second.dial(first.address) == "welcome"
    assert f"from {second.address}" in listening.said
    assert second.dial(first.address, PORT + 1, seconds=DROPPED_S) == "TimeoutError"


def test_behind_a_strict_firewall_only_the_proxy_is_reached_and_through_it_only_https(
    net: Internet, tmp_path: Path
) -> None:
    public, proxy = net.host("public1", 10), net.host("proxy", 20)
    site = net.site(1, only=proxy.address)
    listen(public, tmp_path)
    assert site.dial(public.address, seconds=DROPPED_S) == "TimeoutError"
    proxy.knows({"public.example.org": public.address})
    said = start_proxy(proxy, tmp_path / "proxy.txt")

    def ask(credentials: str, target: str = "public.example.org:443") -> str:
        return site.run(sys.executable, "-IS", "-c", ASK, proxy.address, PROXY_PORT, credentials, target).stdout

    assert ask("").startswith("HTTP/1.1 407 ") and ask("someone:else").startswith("HTTP/1.1 407 ")
    assert ask(CREDENTIALS, f"public.example.org:{PORT}").startswith("HTTP/1.1 403 ")
    assert ask(CREDENTIALS).startswith("HTTP/1.1 502 ")  # nothing listens there
    https = [sys.executable, "-IS", "-c", LISTEN.replace(str(PORT), "443")]
    public.start(https, tmp_path / "https.txt", os.environ).wait_for("listens")
    answer = ask(CREDENTIALS)
    assert answer.startswith("HTTP/1.1 200 ") and answer.endswith("welcome")
    assert said.said.splitlines()[-1] == "CONNECT public.example.org:443 200"


def test_a_link_can_be_slow(net: Internet) -> None:
    site = net.site(1, megabits=100.0)
    for end in (site.name, "router1"):
        assert "rate 100Mbit" in net.command(f"tc -n {end} qdisc show")


def test_whatever_fails_nothing_remains(tmp_path: Path) -> None:
    need_namespaces()
    with pytest.raises(ZeroDivisionError), Internet() as net:
        process = listen(net.host("public1", 10), tmp_path)
        assert process.status is None and process.cpu_seconds >= 0.0
        unshare = psutil.Process(net._driver.pid)
        started = [unshare, *unshare.children(recursive=True)]
        assert len(started) == 3  # with the driver, and what it has started
        raise ZeroDivisionError
    assert not any(process.is_running() for process in started)


def test_a_machine_that_cannot_make_them_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    why_not.cache_clear()
    with pytest.raises(pytest.skip.Exception, match=r"NOT TESTED: .*unshare: No such file or directory"):
        need_namespaces()
    why_not.cache_clear()
    with pytest.raises(NoNamespaces, match="unshare"):
        Internet().__enter__()
