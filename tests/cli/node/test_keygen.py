from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from helpers.command_line import Capture, call, refused
from inca.network.membership.identity import Identity, read_card

WORDS: list[object] = ["node", "keygen", "St. Anna", "--host", "anna.example.org", "--port", 7001]


def test_it_makes_a_private_key_and_a_public_card(capsys: Capture, tmp_path: Path) -> None:
    folder = tmp_path / "anna"
    status, out, err = call(capsys, *WORDS, "--out", folder)
    assert (status, err) == (0, "")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder / "identity.pem")] == [0o700, 0o600]
    card = read_card(folder / "card.json")
    assert (card.name, card.addresses) == ("St. Anna", ("anna.example.org:7001",))
    assert Identity.read(folder).certificate == card.certificate and card.fingerprint in out


def test_it_prints_json(capsys: Capture, tmp_path: Path) -> None:
    status, out, _ = call(capsys, *WORDS, "--out", tmp_path / "anna", "--json")
    report = json.loads(out)
    assert status == 0 and report["fingerprint"] == read_card(tmp_path / "anna" / "card.json").fingerprint
    assert report["card"] == str(tmp_path / "anna" / "card.json") and report["addresses"] == ["anna.example.org:7001"]


@pytest.mark.parametrize(
    ("words", "addresses", "sentence"),
    [
        (["--relay", "wss://r:443/", "--relay", "wss://s/a"], ("wss://r", "wss://s/a"), "at wss://r, then wss://s/a."),
        (["--host", "H", "--port", 1, "--relay", "wss://r"], ("h:1", "wss://r"), "reach it at h:1, then wss://r."),
        ([], (), "It has no address: the roster must name a relay (`inca node roster init --relay`)."),
    ],
)
def test_a_party_that_may_only_connect_outwards_names_relays(
    capsys: Capture, tmp_path: Path, words: list[object], addresses: tuple[str, ...], sentence: str
) -> None:
    status, out, err = call(capsys, "node", "keygen", "anna", *words, "--out", tmp_path / "anna")
    assert (status, err) == (0, "") and sentence in out
    assert read_card(tmp_path / "anna" / "card.json").addresses == addresses


def test_two_calls_make_two_keys(capsys: Capture, tmp_path: Path) -> None:
    cards = []
    for name in ("one", "two"):
        assert call(capsys, *WORDS, "--out", tmp_path / name)[0] == 0
        cards.append(read_card(tmp_path / name / "card.json"))
    assert cards[0].fingerprint != cards[1].fingerprint


def test_it_never_overwrites(capsys: Capture, tmp_path: Path) -> None:
    assert call(capsys, *WORDS, "--out", tmp_path / "anna")[0] == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "anna").iterdir()}
    assert "never overwritten" in refused(capsys, *WORDS, "--out", tmp_path / "anna")
    assert {path.name: path.read_bytes() for path in (tmp_path / "anna").iterdir()} == before


REFUSED: dict[str, tuple[list[object], str]] = {
    "host": (["anna", "--host", "a b", "--port", 1], "host must be a host name or an IP address"),
    "everywhere": (["anna", "--host", "0.0.0.0", "--port", 1], "got '0.0.0.0'"),
    "port": (["anna", "--host", "h", "--port", 70000], "port must be an integer from 1 to 65535, got 70000"),
    "not a port": (["anna", "--host", "h", "--port", "http"], "--port"),
    "name": (["", "--host", "h", "--port", 1], "name must be 1 to 64 bytes of printable text"),
    "no host": (["anna", "--port", 1], "--port must come with --host: the others need both to connect"),
    "no port": (["anna", "--host", "h"], "--host must come with --port: the others need both to connect"),
    "no relay": (["anna", "--relay", "h:1"], "--relay must be the address of a relay, wss://HOST/PATH, got 'h:1'"),
    "a page": (["anna", "--relay", "https://h/"], "an address must be HOST:PORT, or wss://HOST/PATH of a relay, got"),
    "one twice": (["anna", *(2 * ["--relay", "wss://r"])], "addresses must be of different places, not twice of one"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_it_refuses_and_leaves_nothing(case: str, capsys: Capture, tmp_path: Path) -> None:
    words, sentence = REFUSED[case]
    assert sentence in refused(capsys, "node", "keygen", *words, "--out", tmp_path / "new")
    assert list(tmp_path.iterdir()) == []
