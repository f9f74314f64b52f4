from __future__ import annotations

import json
from pathlib import Path

import pytest

import inca
from helpers.command_line import Capture, call, instead, refused

REQUIREMENTS: list[object] = ["--parties", 50, "--epsilon", 1]


def test_a_plan_is_eight_lines(capsys: Capture) -> None:
    status, out, _ = call(capsys, "plan", *REQUIREMENTS)
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert status == 0 and [name for name, _ in lines] == [
        *("OK", "Compare", "Privacy", "Against", "Dropouts", "Cost", "Next", "More")
    ]
    said = dict(lines)
    assert said["OK"].startswith("the mean will be off by about 0.089 ")
    assert said["Compare"] == "a trusted server: 0.075; everyone alone: 0.53"
    assert said["Privacy"] == "epsilon 1 at delta 1e-05, for each party; proven, certain"
    assert said["Against"] == "any 5 of the 50 pooling what they see"
    assert said["Dropouts"] == "up to 5 may leave, at any time"
    assert said["Cost"] == "6 rounds, 7 messages a party"
    assert said["Next"] == "--out plan.json, then inca average VALUES --plan plan.json"
    assert said["More"] == "--details, --compare"


def test_plan_prints_json_with_all_that_was_promised(capsys: Capture, tmp_path: Path) -> None:
    status, out, err = call(capsys, "plan", *REQUIREMENTS, "--json", "--out", tmp_path / "plan.json")
    assert (status, err) == (0, "")
    fields = json.loads(out)
    assert (fields["schedule"], fields["rounds"], fields["receivers"], fields["settlement"]) == (
        "circle",
        6,
        1,
        "settled",
    )
    assert fields["central_mse"] < fields["expected_mse"] < fields["local_mse"]
    assert fields["failure_probability"] == 0.0 and fields["sampled"] is None and fields["baselines"] == []
    assert fields["sigma_cancelling"] > 1000 * fields["sigma_independent"] > 0 and fields["injection"]
    assert fields["session"]["sentence"]
    assert inca.read_plan(tmp_path / "plan.json").expected_mse == pytest.approx(fields["expected_mse"])


def test_others_are_compared_on_request_and_details_explain(capsys: Capture, tmp_path: Path) -> None:
    few = instead(REQUIREMENTS, "--parties", 20)
    status, out, _ = call(capsys, "plan", *few, "--compare")
    assert status == 0 and "More               --details\n" in out
    for part in ("x this plan", "Central DP *", "GOPA, no leaver late", "Local DP", "* a weaker promise"):
        assert part in out
    fields = json.loads(call(capsys, "plan", *few, "--compare", "--json")[1])
    weaker = {baseline["mechanism"] for baseline in fields["baselines"] if baseline["weaker"]}
    assert weaker == {"Central DP", "Muffliato, regular"}
    details = call(capsys, "plan", *few, "--details", "--out", tmp_path / "plan.json")[1]
    parts = ("independent noise, ", "lost values", "Recipe             best\n", "times that of Central DP")
    for part in (*parts, "A plan is a forecast", "Assumptions", "All parties follow", "11 of 20 trustees open"):
        assert part in details and part not in out
    assert f"The plan is in {tmp_path / 'plan.json'}.\n" in details and details.endswith(
        "More               --compare\n"
    )


def test_the_papers_recipe_says_that_it_is_sampled(capsys: Capture) -> None:
    words = [*instead(REQUIREMENTS, "--parties", 20), "--messages", 11, "--recipe", "paper", "--views", 4]
    status, out, _ = call(capsys, "plan", *words)
    shown = " ".join(out.split())
    assert status == 0 and "+ 0.2, for each party; sampled: the most that a party needed in 4 views" in shown
    assert "10 rounds, 11 messages a party" in out and "In a session" not in out


def test_a_plan_that_is_no_better_than_a_guess_says_so(capsys: Capture) -> None:
    """As it did not for values in [0, 1] with an error of about 0.3."""
    words: list[object] = ["plan", "--parties", 12, "--epsilon", 1]
    status, out, _ = call(capsys, *words)
    shown = " ".join(out.split())
    assert status == 0 and shown.startswith("Uninformative The expected error 0.4")
    assert "is a large part of a range of 1: if all values lie in one, guessing its middle would do as well. " in shown
    assert "Uninformative" not in call(capsys, *instead(words, "--epsilon", 4))[1]


def test_requirements_that_cannot_be_met_are_status_1(capsys: Capture, tmp_path: Path) -> None:
    out_file = ["--out", tmp_path / "plan.json"]
    for more, sentence in (
        (["--messages", 3], "2 rounds are too few to join every honest party with the others: 6 are needed, that is 7"),
        (["--parties", 3, "--dropout", 0.1], "of 3 parties 1 may collude and 1 may leave"),
    ):
        status, out, err = call(capsys, "plan", *instead(REQUIREMENTS, *more), *out_file)
        assert (status, out) == (1, "") and err.startswith(f"inca: {sentence}") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


REFUSED: dict[str, tuple[list[object], str]] = {
    "delta": (["--delta", 0], "delta must be between 0 and 1"),
    "epsilon": (["--epsilon", -1], "epsilon must be above 0, got -1.0"),
    "parties": (["--parties", 1], "parties must be from 2 to 2147483647, got 1"),
    "all colluding": (["--colluding", 1], "colluding must be "),
    "all leaving": (["--dropout", 1], "dropout must be "),
    "rule": (["--rule", "exact"], "--rule must be analytic or classic, got 'exact'"),
    "recipe": (["--recipe", "cake"], "recipe must be "),
    "failure": (["--failure", 0], "failure must be "),
    "views": (["--views", 0], "views must be "),
    "receivers": (["--receivers", 2], "receivers must be 1, but for recipe paper"),
    "out": (["--out", "/no/such/folder/plan.json", "--epsilon", -1], "plan.json cannot be written"),  # before any work
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_status_2(case: str, capsys: Capture) -> None:
    words, sentence = REFUSED[case]
    assert sentence in refused(capsys, "plan", *instead(REQUIREMENTS, *words))
