"""`inca relay`: what it refuses, and a real process that is reloaded and stopped by signals."""

from __future__ import annotations

import json
import signal
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import trustme

from helpers.command_line import MAIN, Capture, call, refused
from helpers.pace import allowance
from helpers.rosters import terms
from inca.cli.relay import allowed
from inca.network.membership.identity import Identity
from inca.network.membership.roster import Roster
from inca.network.testing.local_cluster import free_ports

FINGERPRINT = "722a-bd12-e99a-5367-f375-aeb9-672a-8e07"
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with certificates, good and bad, and rosters."""
    folder = tmp_path_factory.mktemp("relay")
    authority = trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    past, future = datetime(2020, 1, 1, tzinfo=UTC), datetime.now(UTC) + timedelta(days=9)
    for name, first, last in (
        ("relay", past, future),
        ("other", past, future),
        ("old", past - timedelta(days=1), past),
        ("early", future, future + timedelta(days=1)),
    ):
        issued = authority.issue_cert("127.0.0.1", "localhost", not_before=first, not_after=last)
        issued.cert_chain_pems[0].write_to_path(folder / f"{name}.crt")
        issued.private_key_pem.write_to_path(folder / f"{name}.key")
    (folder / "none.crt").write_text("nothing")
    Roster("empty", terms()).write(folder / "empty.json")
    write_roster(folder / "roster.json", "anna", "bert")
    return folder


def write_roster(path: Path, *names: str) -> frozenset[str]:
    cards = tuple(Identity.create(name).card() for name in names)
    Roster("trial", terms(), cards, ("wss://relay.example.org/inca",)).write(path)
    return frozenset(card.fingerprint for card in cards)


REFUSED: dict[str, tuple[list[str], str]] = {
    "nothing": (
        [],
        "--certificate FILE is required; only behind a reverse proxy that ends TLS give --name",
    ),
    "a key alone": (["--key", "relay.key", "--name", "h"], "--key must come with --certificate"),
    "no file": (["--certificate", "no.crt"], "--certificate no.crt cannot be read: No such file or directory"),
    "no certificate": (["--certificate", "none.crt"], "--certificate none.crt: it must be a certificate in PEM"),
    "expired": (["--certificate", "old.crt"], "--certificate old.crt: it expired on 2020-01-01; renew it"),
    "early": (["--certificate", "early.crt"], "check this machine's clock"),
    "another's key": (["--certificate", "relay.crt", "--key", "other.key"], "they do not belong together"),
    "no key": (["--certificate", "relay.crt"], "relay.crt cannot be used"),
    "a key that is not there": (["--certificate", "relay.crt", "--key", "no.key"], "No such file"),
    "path": (["--name", "h", "--path", "inca"], "path must be a path that begins with /, got 'inca'"),
    "port": (["--name", "h", "--port", "70000"], "port must be from 0 to 65535, got 70000"),
    "proxy": (["--name", "h", "--trusted-proxy", "caddy"], "trusted_proxies must be an address or a network"),
    "allow": (
        ["--name", "h", "--allow", "xyz"],
        "--allow must be a file with a roster, or a fingerprint (2a4f-...)",
    ),
    "a card": (["--name", "h", "--allow", "relay.crt"], "relay.crt is not a valid inca-roster/3 file"),
    "an empty roster": (
        ["--name", "h", "--allow", "empty.json"],
        "empty.json: the roster has no parties; add them",
    ),
    "host": (["--name", "h", "--port", "0", "--host", "no.such.host.invalid"], "--host no.such.host.invalid: "),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_in_one_sentence(case: str, files: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    words, sentence = REFUSED[case]
    monkeypatch.chdir(files)
    assert sentence in refused(capsys, "relay", *words)


def test_a_port_in_use_is_worth_another_try(files: Path, capsys: Capture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, out, err = call(capsys, "relay", "--name", "h", "--port", port)
    assert (status, out) == (75, "") and "already in use" in err and f"{port}" in err


def test_the_allow_list_is_of_keys_and_of_rosters(tmp_path: Path) -> None:
    fingerprints = write_roster(tmp_path / "roster.json", "anna", "bert")
    assert allowed([]) is None
    assert allowed([FINGERPRINT, str(tmp_path / "roster.json")]) == fingerprints | {FINGERPRINT}


class RelayProcess:
    """A relay that runs, its log and its port."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self.process, self._log = process, log

    def wait_for(self, event: str, count: int = 1) -> dict[str, Any]:
        """Return what the log says of an event, once it has happened so many times."""
        deadline = time.monotonic() + PATIENCE_S * allowance()
        while len(found := [entry for entry in self.log() if entry["event"] == event]) < count:
            assert time.monotonic() < deadline and self.process.poll() is None, self._log.read_text()
            time.sleep(0.05)
        return found[-1]

    def log(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._log.read_text().splitlines()]


@contextmanager
def running(folder: Path, *words: object) -> Iterator[RelayProcess]:
    log = folder / "log.txt"
    command = [*MAIN, "relay", *map(str, words)]  # no fork of another: it gets its signals itself
    with log.open("w") as errors:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        relay = RelayProcess(process, log)
        relay.wait_for("listening")
        yield relay
    finally:
        process.kill()
        process.communicate()


def get(url: str, context: ssl.SSLContext | None = None) -> str:
    with urllib.request.urlopen(url, timeout=PATIENCE_S, context=context) as answer:
        return str(answer.read().decode())


@pytest.mark.real_time
def test_a_relay_is_reloaded_by_sighup_and_ends_by_sigterm(files: Path, tmp_path: Path) -> None:
    roster, (port, metrics) = tmp_path / "roster.json", free_ports(2)
    write_roster(roster, "anna", "bert")
    words = ["--host", "127.0.0.1", "--port", port, "--certificate", files / "relay.crt", "--key", files / "relay.key"]
    with running(tmp_path, *words, "--allow", roster, "--metrics-port", metrics) as relay:
        context = ssl.create_default_context(cafile=files / "ca.pem")
        assert get(f"https://127.0.0.1:{port}/healthz", context) == "ok\n"
        assert "inca_relay_registered 0.0" in get(f"http://127.0.0.1:{metrics}/metrics")
        write_roster(roster, "anna", "bert", "cleo")
        relay.process.send_signal(signal.SIGHUP)
        assert relay.wait_for("reloaded")["allowed"] == 3
        roster.write_text("nonsense")
        relay.process.send_signal(signal.SIGHUP)
        assert "roster.json is not a valid inca-roster/3 file" in relay.wait_for("reload failed")["reason"]
        relay.process.send_signal(signal.SIGTERM)
        out, _ = relay.process.communicate(timeout=PATIENCE_S)
    assert relay.process.returncode == 0
    assert out == f"The relay listens on 127.0.0.1:{port}, path /inca, for 2 parties.\n"
    assert [entry["event"] for entry in relay.log()][-2:] == ["draining", "stopped"]
    assert all(abs(entry["time"] - time.time()) < 10 * PATIENCE_S for entry in relay.log())
