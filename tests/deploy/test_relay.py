"""What deploys a relay, as far as can be told without Docker: the unit, the images, and what is in front of it."""

from __future__ import annotations

import asyncio
import configparser
import re
import shutil
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from helpers.blind_relays import RelayNetwork, registered
from helpers.command_line import Capture, call
from helpers.paths import ROOT
from helpers.transports import run
from inca.cli.app import STATUS_MEANING
from inca.cli.usage import TEMPORARY
from inca.network.addresses import Address

FOLDER = ROOT / "deploy" / "relay"
NAME = "relay.example.org"
PROXY = "127.0.0.9"  # where nginx connects from: an address of this machine that no party has


def words(text: str) -> list[str]:
    return re.findall(r"--[a-z-]+", text)


@pytest.fixture(scope="module")
def service() -> configparser.SectionProxy:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]  # names as they stand there
    unit.read(FOLDER / "inca-relay.service")
    return unit["Service"]


@pytest.fixture(scope="module")
def compose() -> Any:
    return import_module("yaml").safe_load((FOLDER / "compose.yaml").read_text())


def test_every_option_that_is_named_exists(capsys: Capture, service: configparser.SectionProxy, compose: Any) -> None:
    known = set(words(call(capsys, "relay", "--help")[1]))
    commands = [service["ExecStart"], " ".join(compose["services"]["relay"]["command"])]
    for name in ("Containerfile", "nginx.conf"):
        lines = [line.partition("#")[2] for line in (FOLDER / name).read_text().splitlines()]
        commands += re.findall(r"inca[ -]relay((?: --\S+(?: [^-]\S*)?)+)", " ".join(" ".join(lines).split()))
    assert len(commands) == 4
    for command in commands:
        assert set(words(command)) <= known, command


def test_the_unit_is_restarted_after_what_may_pass_and_has_no_right_but_one(
    service: configparser.SectionProxy,
) -> None:
    assert service["Restart"] == "on-failure" and service["RestartPreventExitStatus"] == "2"
    assert {2, TEMPORARY} < set(STATUS_MEANING)
    assert service["DynamicUser"] == "yes" and service["ProtectSystem"] == "strict"
    assert service["CapabilityBoundingSet"] == service["AmbientCapabilities"] == "CAP_NET_BIND_SERVICE"
    assert "HUP" in service["ExecReload"] and service["KillSignal"] == "SIGTERM"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd here")
def test_systemd_understands_every_line_of_the_unit_and_calls_it_safe() -> None:
    unit = FOLDER / "inca-relay.service"
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False, timeout=60)
    said = [line for line in done.stderr.splitlines() if unit.name in line]
    assert [line for line in said if "is not executable" not in line] == []  # inca is not installed for all here
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=25", str(unit)]
    rated = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert rated.returncode == 0, rated.stdout[-500:]


def test_the_image_is_built_of_files_that_exist() -> None:
    text = (FOLDER / "Containerfile").read_text()
    copied = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY")]
    assert copied and all((ROOT / name).exists() for names in copied for name in names)
    assert 'ENTRYPOINT ["inca", "relay"]' in text and "STOPSIGNAL SIGTERM" in text
    assert re.search(r"^USER \d+$", text, re.MULTILINE)


def test_the_parts_of_the_compose_file_fit_together(compose: Any) -> None:
    relay, caddy = (compose["services"][name] for name in ("relay", "caddy"))
    assert (FOLDER / relay["build"]["context"] / relay["build"]["dockerfile"]).resolve() == FOLDER / "Containerfile"
    options = dict(word.removeprefix("--").split("=") for word in relay["command"])
    assert options["name"] == NAME and options["host"] == "0.0.0.0"
    subnet = compose["networks"]["relay"]["ipam"]["config"][0]["subnet"]
    assert ip_network(options["trusted-proxy"]) == ip_network(subnet)
    assert relay["networks"] == caddy["networks"] == ["relay"] and "ports" not in relay
    assert relay["read_only"] and relay["cap_drop"] == ["ALL"]
    folder = relay["volumes"][0].split(":")[1]
    assert options["allow"].startswith(f"{folder}/")
    proxied = (FOLDER / "Caddyfile").read_text()
    assert f"\n{NAME} {{" in proxied and f"reverse_proxy /inca relay:{options['port']} " in proxied


@asynccontextmanager
async def nginx(folder: Path, network: RelayNetwork, relay: int) -> AsyncIterator[int]:
    """Run nginx as its file says, in front of the relay at that port; yields its own."""
    from inca.network.testing.local_cluster import free_ports

    port = free_ports(1)[0]
    text = (FOLDER / "nginx.conf").read_text()
    text = re.sub(r"listen 443 ssl;", f"listen 127.0.0.1:{port} ssl;", text)
    text = text.replace("proxy_pass", f"proxy_bind {PROXY}; proxy_pass")
    text = re.sub(r"/etc/letsencrypt/\S+;", f"{network.certificate};", text).replace(":8080;", f":{relay};")
    (folder / "relay.conf").write_text(text)
    places = "".join(f"{kind}_temp_path {folder}; " for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log stderr; events {{}}\n"
        f"http {{ access_log off; {places} include {folder}/relay.conf; }}\n"
    )
    command = ["nginx", "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
    tested = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False, timeout=60)
    assert tested.returncode == 0, tested.stderr
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    try:
        yield port
    finally:
        process.terminate()
        await process.wait()


@pytest.mark.real_time
@pytest.mark.skipif(shutil.which("nginx") is None, reason="there is no nginx here")
def test_parties_reach_each_other_through_nginx(tmp_path: Path) -> None:
    network = RelayNetwork(tmp_path)
    frame = bytes(range(256)) * 4000
    (tmp_path / "nginx").mkdir()

    async def main() -> None:
        proxied: dict[str, Any] = {"certificate": None, "names": ("127.0.0.1",), "log_addresses": True}
        proxied["trusted_proxies"] = (PROXY,)
        async with (
            network.relay(0, 1, **proxied) as relay,
            nginx(tmp_path / "nginx", network, relay.address[1]) as port,
        ):
            for party in (0, 1):
                network.addresses[party] = [Address("127.0.0.1", port, "/inca")]
            async with network.node(0) as (a, _), network.node(1) as (_, log):
                await registered(relay, 2)
                # Where they come from, and not the port of the proxy's connection.
                assert {link.origin for link in relay.switchboard.registered.values()} == {"127.0.0.1"}
                a.send(1, frame)
                await log.reach(1)
            assert [received for _, received in log.frames] == [frame]

    run(main())
