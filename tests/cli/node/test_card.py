from __future__ import annotations

import json
from pathlib import Path

from helpers.command_line import Capture, call, refused
from inca.network.membership.identity import Identity, read_card


def test_a_party_that_has_moved_signs_its_new_address(capsys: Capture, tmp_path: Path) -> None:
    folder = tmp_path / "anna"
    Identity.create("anna").write(folder, "old.example.org:7001")
    before = read_card(folder / "card.json")
    words = ["--identity", folder, "--host", "new.example.org", "--port", 7002]
    status, out, err = call(capsys, "node", "card", *words)
    after = read_card(folder / "card.json")
    assert (status, err) == (0, "") and after.addresses == ("new.example.org:7002",)
    assert after.certificate == before.certificate
    assert "The others reach it at new.example.org:7002." in out
    assert f"Its fingerprint is that of before: {before.fingerprint}" in out
    status, out, _ = call(capsys, "node", "card", *words, "--json")
    report = {"name": "anna", "addresses": ["new.example.org:7002"], "fingerprint": before.fingerprint}
    assert status == 0 and json.loads(out) == report | {"card": str(folder / "card.json")}


def test_an_address_that_cannot_be_one_changes_nothing(capsys: Capture, tmp_path: Path) -> None:
    Identity.create("anna").write(tmp_path / "anna", "old.example.org:7001")
    before = (tmp_path / "anna" / "card.json").read_bytes()
    for words, sentence in (
        (["--identity", tmp_path / "anna", "--host", "a b", "--port", 1], "host must be a host name or an IP address"),
        (
            ["--identity", tmp_path / "anna", "--host", "a", "--port", 0],
            "from 1 to 65535, got 0",
        ),
        (["--identity", tmp_path / "bert", "--host", "a", "--port", 1], "identity.pem cannot be read"),
    ):
        assert sentence in refused(capsys, "node", "card", *words)
    assert (tmp_path / "anna" / "card.json").read_bytes() == before


def test_keygen_where_there_is_an_identity_says_what_to_do(capsys: Capture, tmp_path: Path) -> None:
    Identity.create("anna").write(tmp_path / "anna", "old.example.org:7001")
    words = ["anna", "--host", "new.example.org", "--port", 7002, "--out", tmp_path / "anna"]
    assert "(`inca node card` gives it other addresses)" in refused(capsys, "node", "keygen", *words)
