from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import inca
from helpers.command_line import Capture, call, instead, refused
from helpers.paths import ROOT
from inca.network.membership.identity import Identity, read_card
from inca.network.membership.roster import read_roster
from inca.network.membership.terms import from_utc

PLAN = ROOT / "examples/waiting-times-plan.json"
SEED = "00112233445566778899aabbccddeeff"
NOISE: list[object] = ["--sigma-independent", 3, "--sigma-cancelling", 30]
BY_HAND: list[object] = ["--rounds", 5, *NOISE, "--epsilon", 1, "--min-participants", 3]
VALUES: list[object] = ["--domain", 0, 240]
WHEN: list[object] = ["--start", "2090-01-15T08:00:00Z"]


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("parties")
    for i, name in enumerate(("anna", "bert", "cleo", "dora")):
        Identity.create(name).write(folder / name, f"127.0.0.1:{7001 + i}")
    return sorted(folder.glob("*/card.json"))


@pytest.fixture
def roster(capsys: Capture, tmp_path: Path) -> Path:
    path = tmp_path / "roster.json"
    assert call(capsys, "node", "roster", "init", "trial", *BY_HAND, *VALUES, *WHEN, "--out", path)[0] == 0
    return path


def test_a_roster_from_its_terms_to_its_last_party(capsys: Capture, roster: Path, cards: list[Path]) -> None:
    status, out, err = call(capsys, "node", "roster", "show", roster)
    assert (status, err) == (1, "")
    assert "the number of parties must be at least 3, got 0" in out
    assert "min_participants must be at most the number of parties (0), got 3" in out
    status, out, _ = call(capsys, "node", "roster", "add", roster, cards[0])
    assert status == 0 and "anna" in out and "Not complete:" in out
    status, out, _ = call(capsys, "node", "roster", "add", roster, *cards[1:3])
    assert status == 0 and "anna" not in out and "bert" in out and "Complete." in out
    complete = read_roster(roster)
    assert complete.names == ("anna", "bert", "cleo") and complete.session.hex() in out
    complete.check_complete()
    status, out, _ = call(capsys, "node", "roster", "show", roster)
    assert status == 0
    for card in complete.parties:
        assert card.fingerprint in out and card.addresses[0] in out
    for words in (
        "Roster trial: 3 parties",
        "one number in [0, 240]; two values of a party differ by at most 240",
        "5 rounds (permutation)",
        "sigma_independent 3, sigma_cancelling 30",
        "(1, 1e-05 + an unknown probability of failure)-DP by the analytic rule, in a session",
        "0.1 of the parties colluding; every party checks its own loss before it hands anything over",
        "from the final messages of 3 parties or more",
        "from 2090-01-15T08:00:00Z, rounds of at most 10 s: 50 s in all at most",
        "wrong by at most 1 s",
        "drawn by a coin flip of the parties",
        f"Session {complete.session.hex()}\nComplete.\n",
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
        "addresses": ["127.0.0.1:7004"],
        "fingerprint": read_card(cards[3]).fingerprint,
    }


def test_all_terms_can_be_given_by_hand(capsys: Capture, tmp_path: Path) -> None:
    words = ["--rounds", 300, "--schedule", "permutation", *NOISE]
    words += ["--epsilon", 0.5, "--delta", 1e-6, "--rule", "classic", "--colluding", 0.2]
    words += ["--min-participants", 12, "--ball", 2.5, "--dimensions", 1000, "--distance", 0.5, "--period", "1.5m"]
    words += ["--min-round-duration", "2s", "--max-clock-skew", "500ms", "--public-seed", SEED]
    status, out, err = call(capsys, "node", "roster", "init", "trial", *words, *WHEN, "--out", tmp_path / "r.json")
    assert (status, err) == (0, "")
    for part in ("1,000 numbers, of length at most 2.5", "300 rounds (permutation)", "7 h 30 min", SEED):
        assert part in out
    assert "rounds of 2 to 90 s" in out and "protected if they differ by at most 0.5" in out
    terms = read_roster(tmp_path / "r.json").terms
    assert (terms.rounds, terms.schedule) == (300, "permutation")
    assert (terms.epsilon, terms.delta, terms.rule, terms.colluding) == (0.5, 1e-6, "classic", 0.2)
    assert (terms.min_participants, terms.dimension, terms.domain) == (12, 1000, inca.Ball(2.5))
    assert (terms.period, terms.min_round_duration, terms.max_clock_skew) == (90.0, 2.0, 0.5)
    assert (terms.distance, terms.seed) == (0.5, SEED)


def test_the_file_keeps_the_words_of_its_format(capsys: Capture, roster: Path) -> None:
    """Their hash names the session: `inca-roster/3` has the same bytes whatever options and attributes are called."""
    terms = json.loads(roster.read_text())["terms"]
    assert (terms["least_cohort"], terms["clock_bound"], terms["pace"], terms["rule"]) == (3, 1.0, 0.0, "exact")
    assert json.loads(call(capsys, "node", "roster", "show", roster, "--json")[1])["terms"] == terms


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
    wanted = inca.Requirements(4, 4.0, 1e-5, colluding=0.25, dropout=0.25, sensitivity=240.0)
    plan = inca.plan(wanted)
    plan.write(tmp_path / "plan.json")
    words: list[object] = ["--plan", tmp_path / "plan.json", "--out", tmp_path / "r.json", *WHEN]
    status, out, err = call(capsys, "node", "roster", "init", "trial", *words, *VALUES, "--period", "20s")
    assert (status, err) == (0, "") and "3 rounds (circle)" in out
    assert f"sigma_together {plan.topup.together:.6g}: if the honest parties of a cohort have less together" in out
    terms = read_roster(tmp_path / "r.json").terms
    assert terms.sigma_together == plan.topup.together
    assert terms.sigma_cancelling == plan.noise_levels.cancelling and terms.max_clock_skew == 2.0
    assert terms.min_participants == plan.requirements.survivors == 3
    assert call(capsys, "node", "roster", "add", tmp_path / "r.json", *cards)[0] == 0
    read_roster(tmp_path / "r.json").check_complete()
    words[3] = tmp_path / "s.json"
    status, _, _ = call(capsys, "node", "roster", "init", "trial", *words, "--ball", 120, "--min-participants", 2)
    assert status == 0 and read_roster(tmp_path / "s.json").terms.min_participants == 2


def test_plans_against_eavesdroppers_or_without_settlement_are_refused(capsys: Capture, tmp_path: Path) -> None:
    tapped = inca.plan(inca.Requirements(50, 1.0, colluding=0.1, eavesdropped=0.1, sensitivity=240.0))
    paper = inca.plan(inca.Requirements(20, 1.0, messages=8), inca.PlanOptions(recipe="paper", views=10))
    words = ["trial", "--plan", tmp_path / "plan.json", *VALUES, *WHEN, "--out", tmp_path / "r.json"]
    for plan, sentence in (
        (tapped, "the eavesdropped fraction of the plan must be 0: messages of a session are encrypted"),
        (paper, "the settlement of the plan must be settled, as sessions settle, got 'none'"),
    ):
        plan.write(tmp_path / "plan.json")
        assert sentence in refused(capsys, "node", "roster", "init", *words)
    assert not (tmp_path / "r.json").exists()


def test_terms_with_which_no_mean_would_say_anything_say_so(
    capsys: Capture, tmp_path: Path, roster: Path, cards: list[Path]
) -> None:
    assert "would do as well" not in call(capsys, "node", "roster", "show", roster)[1]
    words = instead(["trial", *BY_HAND, *VALUES, *WHEN], "--sigma-independent", 120, "--out", tmp_path / "noisy.json")
    status, out, _ = call(capsys, "node", "roster", "init", *words)
    assert status == 0 and "  error      a standard error of 69.3 if 3 parties take part and nobody leaves\n" in out
    sentence = (
        "The standard error 69.3 is a large part of the range [0, 240]: guessing 120, the middle, would do as well."
    )
    assert f"\n{sentence}\n" in out
    assert call(capsys, "node", "roster", "add", tmp_path / "noisy.json", *cards)[0] == 0
    status, out, _ = call(capsys, "node", "roster", "show", tmp_path / "noisy.json")
    assert status == 0 and "a standard error of 60 if 4 parties take part and nobody leaves" in out
    report = json.loads(call(capsys, "node", "roster", "show", tmp_path / "noisy.json", "--json")[1])
    assert report["expected_error"] == 60.0 and report["remarks"] == [sentence.replace("69.3", "60")]


def test_a_plan_says_what_its_leavers_add_to_the_error(capsys: Capture, tmp_path: Path) -> None:
    plan = inca.read_plan(PLAN)
    noisy = dataclasses.replace(plan, budget=dataclasses.replace(plan.budget, cancelling=100.0**2))
    noisy.write(tmp_path / "plan.json")
    words = ["trial", "--plan", tmp_path / "plan.json", *VALUES, *WHEN, "--out", tmp_path / "r.json"]
    status, out, _ = call(capsys, "node", "roster", "init", *words)
    assert status == 0 and "  error      about 100, as planned\n" in out
    assert "The expected error 100 is a large part of the range [0, 240]: guessing 120, the middle, would do" in out


INIT: dict[str, tuple[list[Any], str]] = {
    "no terms": (
        [*VALUES, *WHEN],
        "without --plan, --rounds, --sigma-independent, --sigma-cancelling, --epsilon, --min-participants must be",
    ),
    "no participants": ([*BY_HAND[:-2], *VALUES, *WHEN], "without --plan, --min-participants must be given"),
    "no domain": ([*BY_HAND, *WHEN], "--domain LOW HIGH or --ball RADIUS is required"),
    "two domains": ([*BY_HAND, *WHEN, *VALUES, "--ball", 1], "--ball cannot be combined with --domain"),
    "empty domain": ([*BY_HAND, *WHEN, "--domain", 1, 0], "high must be above low (1.0), got 0.0"),
    "both": ([*WHEN, *VALUES, "--plan", PLAN, "--rounds", 5], "--rounds cannot be combined with --plan"),
    "both noises": (
        [*WHEN, *VALUES, "--plan", PLAN, *NOISE],
        "--sigma-independent cannot be combined with --plan",
    ),
    "a default that is typed": (
        [*WHEN, *VALUES, "--plan", PLAN, "--colluding", 0],
        "--colluding cannot be combined with --plan",
    ),
    "no plan": ([*WHEN, *VALUES, "--plan", "none.json"], "none.json cannot be read as a plan"),
    "sensitivity": ([*WHEN, "--domain", 0, 1, "--plan", PLAN], "sensitivity"),
    "no start": ([*BY_HAND, *VALUES], "missing option --start"),
    "start": ([*BY_HAND, *VALUES, "--start", "soon"], "--start must be a time to come such as 2030-01-15T08:00:00Z"),
    "past": ([*BY_HAND, *VALUES, "--start", "2020-01-01T00:00:00Z"], "--start must be a time to come such as"),
    "local": ([*BY_HAND, *VALUES, "--start", "2090-01-01T00:00:00"], "(with a Z for UTC)"),
    "far": ([*BY_HAND, *VALUES, "--start", "+99999d"], "start must be from 0 to 4.1"),
    "no delay": ([*BY_HAND, *VALUES, "--start", "+soon"], "--start must be a length of time such as 10s"),
    "period": ([*BY_HAND, *VALUES, *WHEN, "--period", "1 week"], "--period must be a length of time such as 10s"),
    "no period": ([*BY_HAND, *VALUES, *WHEN, "--period", "0s"], "period must be above 0, got 0.0"),
    "clocks": (
        [*BY_HAND, *VALUES, *WHEN, "--max-clock-skew", "5s"],
        "max_clock_skew must be less than half of period (10 s), got 5.0",
    ),
    "duration": (
        [*BY_HAND, *VALUES, *WHEN, "--min-round-duration", "9s"],
        "min_round_duration must be from 0 to 5, got 9.0",
    ),
    "seed": ([*BY_HAND, *VALUES, *WHEN, "--public-seed", "7"], "seed must be None, or 32 to 128 hexadecimal digits"),
    "rule": ([*BY_HAND, *VALUES, *WHEN, "--rule", "loose"], "--rule must be analytic or classic, got 'loose'"),
}


@pytest.mark.parametrize("case", INIT)
def test_init_refuses_and_leaves_nothing(
    case: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, sentence = INIT[case]
    monkeypatch.chdir(tmp_path)
    assert sentence in refused(capsys, "node", "roster", "init", "trial", *words, "--out", "r.json")
    assert list(tmp_path.iterdir()) == []


def test_init_does_not_overwrite(capsys: Capture, roster: Path) -> None:
    before = roster.read_bytes()
    words = ["other", *BY_HAND, *VALUES, *WHEN, "--out", roster]
    sentence = refused(capsys, "node", "roster", "init", *words)
    assert sentence.startswith("--out must be a file that does not exist yet, got ")
    assert roster.read_bytes() == before


def test_add_is_all_or_nothing(capsys: Capture, roster: Path, cards: list[Path], tmp_path: Path) -> None:
    assert call(capsys, "node", "roster", "add", roster, cards[0])[0] == 0
    before = roster.read_bytes()
    (tmp_path / "bad.json").write_text("{}")
    Identity.create("emil").write(tmp_path / "emil", "127.0.0.1:7001")
    for words, part in (
        ([cards[1], cards[0]], "the name of party 2 ('anna') must "),
        ([cards[1], cards[1]], "the name of party 2 ('bert') must "),
        ([cards[1], tmp_path / "emil" / "card.json"], "the address of party 2 ('emil') must "),
        ([cards[1], tmp_path / "bad.json"], "bad.json is not a valid inca-card/3 file: format must be inca-card/3"),
        ([cards[1], tmp_path / "none.json"], "none.json cannot be read: No such file"),
        ([cards[1], tmp_path / "emil" / "identity.pem"], "identity.pem is not a valid inca-card/3 file"),
        ([], "missing argument CARD..."),
    ):
        sentence = refused(capsys, "node", "roster", "add", roster, *words)
        assert part in sentence and "PRIVATE" not in sentence
    assert roster.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "emil", "roster.json"]


def test_what_is_no_roster_is_refused(capsys: Capture, tmp_path: Path, cards: list[Path]) -> None:
    for path, sentence in (
        (tmp_path / "none.json", "none.json cannot be read"),
        (cards[0], "format must be inca-roster/3, got 'inca-card/3'"),
    ):
        for words in (["show", path], ["add", path, cards[1]]):
            assert sentence in refused(capsys, "node", "roster", *words)


def test_without_cryptography_it_says_what_is_needed(
    capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    sentence = refused(capsys, "node", "roster", "show", tmp_path / "r.json")
    assert sentence == "inca node roster show needs cryptography and websockets: pip install 'inca[network]'"


@pytest.mark.parametrize(
    ("verb", "parts"),
    [
        ("init", ["Example:", "By hand:", "--min-participants", "+10m", "coin flip"]),
        ("add", ["Example:", "all of them or none"]),
        ("show", ["Example:", "status 1"]),
    ],
)
def test_help_teaches(verb: str, parts: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    _, out, _ = call(capsys, "node", "roster", verb, "--help")
    assert all(part in out for part in parts), out
