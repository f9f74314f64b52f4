from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import inca
from helpers.command_line import call
from helpers.paths import ROOT
from inca.network.membership.identity import Identity, read_card
from inca.network.membership.roster import from_utc, read_roster

PLAN = ROOT / "examples" / "waiting-times-plan.json"
SEED = "00112233445566778899aabbccddeeff"
NOISE: list[object] = ["--sigma-independent", 3, "--sigma-cancelling", 30]
BY_HAND: list[object] = ["--rounds", 5, *NOISE, "--epsilon", 1, "--least-cohort", 3]
VALUES: list[object] = ["--domain", 0, 240]
WHEN: list[object] = ["--start", "2090-01-15T08:00:00Z"]
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parties")
    for i, name in enumerate(("anna", "bert", "cleo", "dora")):
        Identity.create(name).write(folder / name, "127.0.0.1", 7001 + i)
    return sorted(folder.glob("*/card.json"))


@pytest.fixture
def roster(capsys: Capture, tmp_path: Path) -> Path:
    path = tmp_path / "roster.json"
    assert call(capsys, "node", "roster", "init", "trial", *BY_HAND, *VALUES, *WHEN, "--out", path)[0] == 0
    return path


def test_keygen_makes_a_private_key_and_a_public_card(capsys: Capture, tmp_path: Path) -> None:
    folder = tmp_path / "anna"
    words = ["node", "keygen", "St. Anna", "--host", "anna.example.org", "--port", 7001]
    status, out, err = call(capsys, *words, "--out", folder)
    assert (status, err) == (0, "")
    assert [stat.S_IMODE(each.stat().st_mode) for each in (folder, folder / "identity.pem")] == [0o700, 0o600]
    card = read_card(folder / "card.json")
    assert (card.name, card.address) == ("St. Anna", "anna.example.org:7001")
    assert Identity.read(folder).certificate == card.certificate and card.fingerprint in out
    status, out, _ = call(capsys, *words, "--out", tmp_path / "again", "--json")
    report = json.loads(out)
    assert status == 0 and report["fingerprint"] != card.fingerprint
    assert report["card"] == str(tmp_path / "again" / "card.json") and report["port"] == 7001
    status, out, err = call(capsys, *words, "--out", folder)
    assert (status, out) == (2, "") and "an identity is never overwritten" in err and err.count("\n") == 1
    assert read_card(folder / "card.json") == card


KEYGEN: dict[str, tuple[list[object], str]] = {
    "host": (["anna", "--host", "a b", "--port", 1], "host is 'a b', but a host name or an IP address"),
    "everywhere": (["anna", "--host", "0.0.0.0", "--port", 1], "host is '0.0.0.0'"),
    "port": (["anna", "--host", "h", "--port", 70000], "port is 70000, but a whole number from 1 to 65535"),
    "not a port": (["anna", "--host", "h", "--port", "http"], "--port"),
    "name": (["", "--host", "h", "--port", 1], "name is '', but 1 to 64 bytes of printable text"),
    "no host": (["anna", "--port", 1], "Missing option '--host'"),
}


@pytest.mark.parametrize("case", KEYGEN)
def test_keygen_refuses_and_leaves_nothing(case: str, capsys: Capture, tmp_path: Path) -> None:
    words, sentence = KEYGEN[case]
    status, out, err = call(capsys, "node", "keygen", *words, "--out", tmp_path / "new")
    assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_roster_from_its_terms_to_its_last_party(capsys: Capture, roster: Path, cards: list[Path]) -> None:
    status, out, err = call(capsys, "node", "roster", "show", roster)
    assert (
        (status, err) == (1, "") and "the number of parties is 0, but at least 3" in out and "least_cohort is 3" in out
    )
    status, out, _ = call(capsys, "node", "roster", "add", roster, cards[0])
    assert status == 0 and "anna" in out and "Not complete:" in out
    status, out, _ = call(capsys, "node", "roster", "add", roster, *cards[1:3])
    assert status == 0 and "anna" not in out and "bert" in out and "Complete." in out
    made = read_roster(roster)
    assert made.names == ("anna", "bert", "cleo") and made.session.hex() in out
    made.check_complete()
    status, out, _ = call(capsys, "node", "roster", "show", roster)
    assert status == 0
    for card in made.parties:
        assert card.fingerprint in out and card.address in out
    for words in (
        "Roster trial: 3 parties",
        "one number in [0, 240]; two values of a party differ by at most 240",
        "5 rounds, 1 receiver each (random)",
        "sigma_independent 3, sigma_cancelling 30",
        "(1, 1e-05)-DP by the exact rule",
        "nobody colluding; every party checks 20 random coalitions",
        "from the final messages of 3 parties or more",
        "from 2090-01-15T08:00:00Z, rounds of at most 10 s: 50 s in all at most",
        "wrong by at most 1 s",
        "tossed by the parties",
        f"Session {made.session.hex()}\nComplete.\n",
    ):
        assert words in out


def test_show_prints_json(capsys: Capture, roster: Path, cards: list[Path]) -> None:
    status, out, _ = call(capsys, "node", "roster", "show", roster, "--json")
    report = json.loads(out)
    assert status == 1 and report["complete"] is False and len(report["missing"]) == 2 and report["parties"] == []
    status, out, _ = call(capsys, "node", "roster", "add", roster, *cards, "--json")
    assert status == 0 and json.loads(out)["complete"] is True
    status, again, _ = call(capsys, "node", "roster", "show", roster, "--json")
    report = json.loads(again)
    assert status == 0 and again == out and report["missing"] == []
    assert report["session"] == read_roster(roster).session.hex() and report["terms"]["start"] == "2090-01-15T08:00:00Z"
    assert report["parties"][3] == {
        "name": "dora",
        "host": "127.0.0.1",
        "port": 7004,
        "fingerprint": read_card(cards[3]).fingerprint,
    }


def test_all_terms_can_be_given_by_hand(capsys: Capture, tmp_path: Path) -> None:
    words = ["--rounds", 300, "--receivers", 2, "--schedule", "permutation", "--quiet", 3, *NOISE, "--epsilon", 0.5]
    words += ["--delta", 1e-6, "--rule", "classic", "--colluding", 0.2, "--coalitions", 7, "--least-cohort", 12]
    words += ["--ball", 2.5, "--dimension", 1000, "--period", "1.5m", "--clock-bound", "500ms", "--seed", SEED]
    status, out, err = call(capsys, "node", "roster", "init", "trial", *words, *WHEN, "--out", tmp_path / "r.json")
    assert (status, err) == (0, "")
    for part in ("1,000 numbers, of length at most 2.5", "2 receivers each", "the last 3 without", "7 h 30 min", SEED):
        assert part in out
    made = read_roster(tmp_path / "r.json").terms
    assert (made.rounds, made.receivers, made.schedule, made.quiet_rounds) == (300, 2, "permutation", 3)
    assert (made.epsilon, made.delta, made.rule, made.colluding) == (0.5, 1e-6, "classic", 0.2)
    assert (made.coalitions, made.least_cohort, made.dimension, made.domain) == (7, 12, 1000, inca.Ball(2.5))
    assert (made.period, made.clock_bound, made.seed) == (90.0, 0.5, SEED)


@pytest.mark.parametrize(("text", "seconds"), [("+10m", 600), ("+2h", 7200), ("+90", 90), ("+1.5d", 129600)])
def test_a_run_can_start_some_time_from_now(capsys: Capture, tmp_path: Path, text: str, seconds: float) -> None:
    words = ["trial", *BY_HAND, *VALUES, "--start", text, "--out", tmp_path / "r.json", "--json"]
    before = time.time()
    status, out, _ = call(capsys, "node", "roster", "init", *words)
    start = from_utc(json.loads(out)["terms"]["start"])
    assert status == 0 and before + seconds <= start <= time.time() + seconds + 1 and start.is_integer()


def test_a_start_with_another_offset_is_kept_in_utc(capsys: Capture, tmp_path: Path) -> None:
    words = ["trial", *BY_HAND, *VALUES, "--start", "2090-01-15T08:00:00+02:00", "--out", tmp_path / "r.json"]
    assert call(capsys, "node", "roster", "init", *words)[0] == 0
    assert '"2090-01-15T06:00:00Z"' in (tmp_path / "r.json").read_text()


def test_a_plan_gives_the_terms(capsys: Capture, tmp_path: Path, cards: list[Path]) -> None:
    plan = inca.read_plan(PLAN)
    small = dataclasses.replace(plan, wish=dataclasses.replace(plan.wish, parties=4, dropout=0.25))
    small.write(tmp_path / "plan.json")
    words: list[object] = ["--plan", tmp_path / "plan.json", "--out", tmp_path / "r.json", *WHEN]
    status, out, err = call(capsys, "node", "roster", "init", "trial", *words, *VALUES, "--period", "20s")
    assert (status, err) == (0, "") and "30 rounds, 1 receiver each (permutation), the last 2 without" in out
    made = read_roster(tmp_path / "r.json").terms
    assert made.sigma_cancelling == plan.sigma_cancelling and made.clock_bound == 2.0
    assert made.least_cohort == small.wish.survivors == 3
    assert call(capsys, "node", "roster", "add", tmp_path / "r.json", *cards)[0] == 0
    read_roster(tmp_path / "r.json").check_complete()
    words[3] = tmp_path / "s.json"
    status, _, _ = call(capsys, "node", "roster", "init", "trial", *words, "--ball", 120, "--least-cohort", 2)
    assert status == 0 and read_roster(tmp_path / "s.json").terms.least_cohort == 2


INIT: dict[str, tuple[list[Any], str]] = {
    "no terms": ([*VALUES, *WHEN], "--plan is not given, so --rounds, --sigma-independent, --sigma-cancelling, --epsi"),
    "no cohort": ([*BY_HAND[:-2], *VALUES, *WHEN], "--plan is not given, so --least-cohort must be"),
    "no domain": ([*BY_HAND, *WHEN], "--domain LOW HIGH or --ball RADIUS is needed"),
    "two domains": ([*BY_HAND, *WHEN, *VALUES, "--ball", 1], "and only one"),
    "empty domain": ([*BY_HAND, *WHEN, "--domain", 1, 0], "upper is 0.0, but a number above lower (1)"),
    "both": (
        [*WHEN, *VALUES, "--plan", PLAN, "--rounds", 5],
        "--rounds is 5, but nothing, as the plan decides it, was",
    ),
    "both noises": ([*WHEN, *VALUES, "--plan", PLAN, *NOISE], "--sigma-independent is 3.0, but nothing, as the plan"),
    "no plan": ([*WHEN, *VALUES, "--plan", "none.json"], "none.json cannot be read as a plan"),
    "sensitivity": ([*WHEN, "--domain", 0, 1, "--plan", PLAN], "the plan's sensitivity is 240.0, but the domain's (1)"),
    "no start": ([*BY_HAND, *VALUES], "Missing option '--start'"),
    "start": ([*BY_HAND, *VALUES, "--start", "soon"], "--start is 'soon', but a time to come such as"),
    "past": ([*BY_HAND, *VALUES, "--start", "2020-01-01T00:00:00Z"], "but a time to come such as"),
    "local": ([*BY_HAND, *VALUES, "--start", "2090-01-01T00:00:00"], "(with a Z for UTC)"),
    "far": ([*BY_HAND, *VALUES, "--start", "+99999d"], "start is"),
    "no delay": ([*BY_HAND, *VALUES, "--start", "+soon"], "--start is 'soon', but a length of time such as 10s"),
    "period": ([*BY_HAND, *VALUES, *WHEN, "--period", "1 week"], "--period is '1 week', but a length of time such as"),
    "no period": ([*BY_HAND, *VALUES, *WHEN, "--period", "0s"], "period is 0.0, but a finite number above 0"),
    "clocks": ([*BY_HAND, *VALUES, *WHEN, "--clock-bound", "5s"], "clock_bound is 5.0, but less than half of period"),
    "seed": ([*BY_HAND, *VALUES, *WHEN, "--seed", "7"], "seed is '7', but None, or 32 to 128 hexadecimal digits"),
    "rule": ([*BY_HAND, *VALUES, *WHEN, "--rule", "loose"], "rule is 'loose'"),
    "quiet": ([*BY_HAND, *VALUES, *WHEN, "--quiet", 6], "quiet_rounds is 6, but a whole number from 0 to 5"),
}


@pytest.mark.parametrize("case", INIT)
def test_init_refuses_and_leaves_nothing(
    case: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, sentence = INIT[case]
    monkeypatch.chdir(tmp_path)
    status, out, err = call(capsys, "node", "roster", "init", "trial", *words, "--out", "r.json")
    assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_init_does_not_overwrite(capsys: Capture, roster: Path) -> None:
    before = roster.read_bytes()
    words = ["other", *BY_HAND, *VALUES, *WHEN, "--out", roster]
    status, out, err = call(capsys, "node", "roster", "init", *words)
    assert (status, out) == (2, "") and "but a file that is not there yet was expected" in err
    assert roster.read_bytes() == before


def test_add_is_all_or_nothing(capsys: Capture, roster: Path, cards: list[Path], tmp_path: Path) -> None:
    assert call(capsys, "node", "roster", "add", roster, cards[0])[0] == 0
    before = roster.read_bytes()
    (tmp_path / "bad.json").write_text("{}")
    Identity.create("emil").write(tmp_path / "emil", "127.0.0.1", 7001)
    for words, sentence in (
        ([cards[1], cards[0]], "the name of party 2 ('anna') is 'anna', but another than that of party 0 ('anna')"),
        ([cards[1], cards[1]], "the name of party 2 ('bert')"),
        ([cards[1], tmp_path / "emil" / "card.json"], "the address of party 2 ('emil') is ('127.0.0.1', 7001)"),
        ([cards[1], tmp_path / "bad.json"], "bad.json is not a valid inca-card/1 file: format is None"),
        ([cards[1], tmp_path / "none.json"], "none.json cannot be read: No such file"),
        ([cards[1], tmp_path / "emil" / "identity.pem"], "identity.pem is not a valid inca-card/1 file"),
        ([], "Missing argument"),
    ):
        status, out, err = call(capsys, "node", "roster", "add", roster, *words)
        assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1
        assert "PRIVATE" not in err
    assert roster.read_bytes() == before
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bad.json", "emil", "roster.json"]


def test_what_is_no_roster_is_refused(capsys: Capture, tmp_path: Path, cards: list[Path]) -> None:
    for path, sentence in (
        (tmp_path / "none.json", "cannot be read"),
        (cards[0], "format is 'inca-card/1', but inca-r"),
    ):
        for words in (["show", path], ["add", path, cards[1]]):
            status, out, err = call(capsys, "node", "roster", *words)
            assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1


def test_without_cryptography_it_says_what_is_needed(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    status, out, err = call(capsys, "node", "roster", "show", tmp_path / "r.json")
    assert (status, out) == (2, "") and err == "inca: inca node needs cryptography: pip install 'inca[network]'\n"


def test_help_teaches_and_nothing_heavy_is_imported_for_it() -> None:
    pages: dict[str, list[str]] = {
        "": ["keygen", "roster"],
        "keygen": ["Example:", "fingerprint", "telephone", "--host"],
        "roster": ["init", "add", "show", "names the session"],
        "roster init": ["Example:", "By hand:", "--least-cohort", "+10m", "--quiet"],
        "roster show": ["Example:", "status 1"],
    }
    # One process for all pages: what one of them imports is seen in the last line of it and of all that follow.
    code = (
        "import sys, inca.cli\n"
        "for words in sys.argv[1:]:\n"
        " sys.argv = ['inca', 'node', *words.split(), '--help']\n"
        " try: inca.cli.main()\n"
        " except SystemExit: pass\n"
        " print(sorted({'numba', 'cryptography', 'msgspec'} & sys.modules.keys()), end='\\f')\n"
    )
    command = [sys.executable, "-c", code, *pages]
    env = os.environ | {"COLUMNS": "120"}
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60, env=env)
    shown = done.stdout.split("\f")[:-1]
    for text, parts in zip(shown, pages.values(), strict=True):
        assert all(part in text for part in parts), text
        assert text.splitlines()[-1] == "[]"
