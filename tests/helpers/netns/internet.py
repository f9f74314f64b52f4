"""A public network and sites behind NAT and a firewall, in network namespaces of this machine, made without root.

    with Internet() as net:
        relay = net.host("relay", 10)
        site = net.site(1)
        site.run("ping", relay.address)

A site is a machine behind a router of its own. The router lets connections out under its own address, and what answers
them in; all else from outside is dropped without a word, as firewalls do.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from helpers.pace import allowance

_DRIVER = Path(__file__).with_name("driver.py")
_UNSHARE = ("unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child")
_PUBLIC = "203.0.113"  # kept for documentation (RFC 5737)
_FIRST_SITE = 100
_POLL_S = 0.02
_END_S = 5.0
PATIENCE_S = 120.0  # a busy machine takes longer, a process that hangs for ever

PORT = 7001  # of parties that listen
DROPPED_S = 0.5  # after which a connection whose packets are dropped is given up

_DIAL = """
import socket, sys
host, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
try:
    with socket.create_connection((host, port), seconds) as there:
        print(there.recv(99).decode())
except OSError as error:
    print(type(error).__name__)
"""

# What a router does. Connections that one of its own machines began are let through, with all that belongs to them.
_ROUTER = """
table ip site {{
  counter refused {{ }}
  chain nat_out {{
    type nat hook postrouting priority srcnat
    oifname "out" masquerade
  }}
  chain nat_in {{
    type nat hook prerouting priority dstnat
    {forwarding}
  }}
  chain through {{
    type filter hook forward priority filter; policy drop;
    ct state established,related accept
    {allowed}
    counter name refused
  }}
  chain to_router {{
    type filter hook input priority filter; policy drop;
    ct state established,related accept
    counter name refused
  }}
}}
"""


class NoNamespaces(Exception):
    """This machine cannot make such networks, and why."""


class Process:
    """A process in a place of such a network."""

    def __init__(self, net: Internet, pid: int, output: Path) -> None:
        self._net, self.pid, self.output = net, pid, output

    @property
    def status(self) -> int | None:
        """How it ended; None while it runs."""
        status: int | None = self._net.ask("look", pid=self.pid)["status"]
        return status

    @property
    def cpu_seconds(self) -> float:
        """The seconds of CPU it has taken so far; it must run."""
        return self._taken("cpu_seconds")

    @property
    def peak_mib(self) -> float:
        """The most memory it has had so far; it must run."""
        return self._taken("peak_mib")

    def _taken(self, what: str) -> float:
        look = self._net.ask("look", pid=self.pid)
        assert look["status"] is None, self.said
        return float(look[what])

    @property
    def said(self) -> str:
        """What it has printed, to both streams."""
        return self.output.read_text() if self.output.exists() else ""

    def send(self, signal: int) -> None:
        """Send it a signal."""
        self._net.ask("signal", pid=self.pid, number=signal)

    def kill(self) -> None:
        """Kill it without warning, and wait until it is gone."""
        self.send(9)
        self.wait()

    def wait(self, seconds: float = PATIENCE_S) -> int:
        """Wait for its end; return its status."""
        deadline = time.monotonic() + seconds * allowance()
        while (status := self.status) is None:
            assert time.monotonic() < deadline, self.said
            time.sleep(_POLL_S)
        return status

    def wait_for(self, words: str, times: int = 1) -> None:
        """Wait until these words have been printed so many times."""
        deadline = time.monotonic() + PATIENCE_S * allowance()
        while self.said.count(words) < times:
            assert self.status is None and time.monotonic() < deadline, self.said
            time.sleep(_POLL_S)


class Place:
    """A machine of such a network, and how the public network knows it: of a site, by its router's address."""

    def __init__(self, net: Internet, name: str, address: str) -> None:
        self.net, self.name, self.address = net, name, address

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run a command here to its end, and return what came of it."""
        command = list(map(str, words))
        done = self.net.ask("run", words=command, place=self.name, text="")
        return subprocess.CompletedProcess(command, done["status"], done["out"], done["err"])

    def start(self, words: Sequence[object], output: Path, environment: Mapping[str, str]) -> Process:
        """Start a program here, which prints into a file."""
        pid = self.net.ask(
            "start",
            words=list(map(str, words)),
            place=self.name,
            output=str(output),
            environment=dict(environment),
        )
        return Process(self.net, pid, output)

    def dial(self, address: str, port: int = PORT, *, seconds: float = PATIENCE_S) -> str:
        """Connect from here; return how whoever listens there welcomes us, or the name of the error."""
        done = self.run(sys.executable, "-IS", "-c", _DIAL, address, port, seconds)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def knows(self, names: Mapping[str, str]) -> None:
        """Let names stand for addresses here: there is no name service."""
        lines = "".join(f"{address} {name}\n" for name, address in {"localhost": "127.0.0.1", **names}.items())
        self.net.command(f"cat > /run/hosts-{self.name}", lines)


class Internet:
    """The whole network; to be used as a context, after which nothing of it is left."""

    def __enter__(self) -> Internet:
        """Begin with the public network, and nobody there."""
        try:
            self._driver = subprocess.Popen(
                [*_UNSHARE, "--mount-proc", sys.executable, "-IS", str(_DRIVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as error:
            raise NoNamespaces(f"unshare: {error.strerror}") from None
        try:
            self.ask("begin")
            self.command("ip link set lo up && ip link add public type bridge && ip link set public up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        """End the driver, and with it all processes and namespaces."""
        try:
            self._driver.communicate(timeout=_END_S)
        except subprocess.TimeoutExpired:  # it waits for a command
            self._driver.kill()
            self._driver.communicate()

    def ask(self, verb: str, **arguments: Any) -> Any:
        """Have the driver do something; return what came of it."""
        channel, answers = self._driver.stdin, self._driver.stdout
        assert channel is not None and answers is not None and self._driver.stderr is not None
        try:
            channel.write(json.dumps([verb, arguments]) + "\n")
            channel.flush()
            line = answers.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise NoNamespaces(self._driver.stderr.read().strip().splitlines()[-1])
        answer = json.loads(line)
        if "error" in answer:
            raise NoNamespaces(answer["error"])
        return answer["answer"]

    def command(self, command: str, text: str = "") -> str:
        """Run a shell command outside all places; what it must not do is fail."""
        done = self.ask("run", words=["sh", "-ec", command], place=None, text=text)
        if done["status"]:
            raise NoNamespaces(f"`{command}` fails: {done['err'].strip().partition(chr(10))[0]}")
        return str(done["out"])

    def host(self, name: str, number: int) -> Place:
        """Add a machine to the public network: everybody may connect to it."""
        place = Place(self, name, f"{_PUBLIC}.{number}")
        self.command(
            f"ip netns add {name}; ip -n {name} link set lo up;"
            f"ip link add {name} type veth peer name out netns {name}; ip link set {name} master public up;"
            f"ip -n {name} addr add {place.address}/24 dev out; ip -n {name} link set out up"
        )
        place.knows({})
        return place

    def site(
        self, number: int, *, forwarded: int | None = None, only: str | None = None, megabits: float | None = None
    ) -> Place:
        """Add a site: a machine that reaches the public network through NAT, and that nobody outside can connect to.

        Args:
            number: Of the site; its router has the public address that ends in 100 and so many.
            forwarded: A port at which connections from outside are passed on to the site's machine.
            only: The one address of the public network that may be connected to; by default all may.
            megabits: A second, in either direction, on the link between the machine and its router.
        """
        name, inside = f"site{number}", f"192.168.{number}"
        router = self.host(f"router{number}", _FIRST_SITE + number)
        self.command(
            f"ip netns add {name}; ip -n {name} link set lo up;"
            f"ip -n {name} link add out type veth peer name in netns {router.name};"
            f"ip -n {router.name} addr add {inside}.1/24 dev in; ip -n {router.name} link set in up;"
            f"ip -n {name} addr add {inside}.2/24 dev out; ip -n {name} link set out up;"
            f"ip -n {name} route add default via {inside}.1;"
            f"ip netns exec {router.name} sysctl -qw net.ipv4.ip_forward=1"
        )
        allowed = 'iifname "in" accept' if only is None else f'iifname "in" ip daddr {only} accept'
        forwarding = ""
        if forwarded is not None:
            forwarding = f'iifname "out" tcp dport {forwarded} dnat to {inside}.2'
            allowed += "\n    ct status dnat accept"
        rules = _ROUTER.format(allowed=allowed, forwarding=forwarding)
        self.command(f"ip netns exec {router.name} nft -f -", rules)
        if megabits is not None:
            for end, device in ((name, "out"), (router.name, "in")):
                self.command(
                    f"tc -n {end} qdisc add dev {device} root tbf rate {megabits}mbit burst 256kb latency 50ms"
                )
        place = Place(self, name, router.address)
        place.knows({})
        return place

    def refused(self, number: int) -> int:
        """Return how many packets the router of a site has dropped."""
        listing = self.command(f"ip netns exec router{number} nft --json list counter ip site refused")
        counters = [entry["counter"] for entry in json.loads(listing)["nftables"] if "counter" in entry]
        return int(counters[0]["packets"])

    def carried(self, place: Place) -> tuple[int, int]:
        """Return how many bytes a public machine has sent and received."""
        links = json.loads(self.command(f"ip -n {place.name} -statistics -json link show out"))
        return int(links[0]["stats64"]["tx"]["bytes"]), int(links[0]["stats64"]["rx"]["bytes"])


@cache
def why_not() -> str:
    """Return why this machine cannot make such networks; empty if it can."""
    try:
        with Internet() as net:
            net.site(1, forwarded=7001, only=f"{_PUBLIC}.1", megabits=100.0)
    except NoNamespaces as error:
        return str(error)
    return ""


def need_namespaces() -> None:
    """Skip, loudly, where such networks cannot be made."""
    if reason := why_not():
        pytest.skip(f"NOT TESTED: sessions across NAT and firewalls, as namespaces cannot be made here: {reason}")
