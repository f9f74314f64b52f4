from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import inca
from helpers.command_line import Capture, call, instead, refused

REQUIREMENTS: list[object] = ["--parties", 20, "--epsilon", 1, "--colluding", 0.1, "--dropout", 0.1, "--messages", 10]
FEW = ["--views", 4]


def test_plan_prints_json_with_all_that_was_promised(capsys: Capture, tmp_path: Path) -> None:
    status, out, err = call(capsys, "plan", *REQUIREMENTS, *FEW, "--json", "--out", tmp_path / "plan.json")
    assert (status, err) == (0, "")
    fields = json.loads(out)
    assert fields["rounds"] * fields["receivers"] <= 10 and fields["schedule"] in ("random", "distinct", "permutation")
    assert fields["central_mse"] < fields["expected_mse"] < fields["local_mse"]
    assert 0 < fields["failure_probability"] <= 1e-6
    assert fields["settlement"] == "settled"
    assert fields["sigma_independent"] > 0 and fields["sigma_cancelling"] > 0 and fields["injection"]
    weaker = {baseline["mechanism"] for baseline in fields["baselines"] if baseline["weaker"]}
    assert weaker == {"Central DP", "Muffliato, regular"}
    assert inca.read_plan(tmp_path / "plan.json").expected_mse == pytest.approx(fields["expected_mse"])


def test_plan_explains_itself(capsys: Capture, tmp_path: Path) -> None:
    status, out, _ = call(capsys, "plan", *REQUIREMENTS, *FEW, "--recipe", "paper")
    assert (
        status == 0
        and "Promise            No honest party of any run loses more than epsilon 1 at delta 1e-05 + " in out
    )
    for part in ("times that of Central DP", "with a trusted server", "GOPA", "weaker promise"):
        assert part in out
    details = call(capsys, "plan", *REQUIREMENTS, *FEW, "--recipe", "paper", "--details")[1]
    parts = ("independent noise, ", "cancelling noise that is left, ", "lost values", "Recipe             paper\n")
    for part in (*parts, "A plan is a forecast", "Assumptions", "All parties follow the protocol"):
        assert part in details and part not in out
    words = [*REQUIREMENTS, *FEW, "--no-baselines", "--rounds", 9, "--out", tmp_path / "plan.json"]
    status, out, _ = call(capsys, "plan", *words)
    assert status == 0 and out.startswith("Plan for 20 parties   9 rounds, ") and ", 1 receiver, " in out
    assert "GOPA" not in out
    assert "11 of 20 trustees open them.\n" in out and out.endswith(f"The plan is in {tmp_path / 'plan.json'}.\n")


def test_a_plan_that_is_no_better_than_a_guess_says_so(capsys: Capture) -> None:
    """As it did not for values in [0, 1] with an error of about 0.3."""
    words: list[object] = ["plan", "--parties", 12, "--epsilon", 1, "--messages", 10, *FEW, "--no-baselines"]
    status, out, _ = call(capsys, *words)
    assert status == 0 and "; mean squared 0.09" in out
    sentence = r"The expected error 0\.31\d* is a large part of a range of 1: if all values "
    sentence += r"lie in one, guessing its middle would do as well\."
    assert re.search(f" Uninformative {sentence} What it means ", " ".join(out.split()))
    assert "Uninformative" not in call(capsys, *instead(words, "--epsilon", 4))[1]


def test_requirements_that_cannot_be_met_are_status_1(capsys: Capture, tmp_path: Path) -> None:
    status, out, err = call(capsys, "plan", *REQUIREMENTS[:-1], 2, "--out", tmp_path / "plan.json")
    assert (status, out) == (1, "") and err.startswith("inca: messages ") and err.count("\n") == 1
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
    "out": (["--out", "/no/such/folder/plan.json", "--epsilon", -1], "plan.json cannot be written"),  # before any work
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_input_is_status_2(case: str, capsys: Capture) -> None:
    words, sentence = REFUSED[case]
    assert sentence in refused(capsys, "plan", *instead(REQUIREMENTS, *words))
