from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import inca
from helpers.command_line import call

WISH = ["--parties", 20, "--epsilon", 1, "--colluding", 0.1, "--dropout", 0.1, "--messages", 10]
FEW = ["--views", 10]


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    wish = inca.Wish(parties=20, epsilon=1.0, delta=1e-5, colluding=0.1, dropout=0.1, messages=10, sensitivity=2.0)
    inca.plan(wish, views=10).write(path)
    return path


@pytest.fixture
def values(tmp_path: Path) -> Path:
    np.save(tmp_path / "v.npy", np.random.default_rng(1).random(20) * 2)
    return tmp_path / "v.npy"


def test_plan_prints_json_with_all_that_was_promised(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    status, out, err = call(capsys, "plan", *WISH, *FEW, "--json", "--out", tmp_path / "plan.json")
    assert (status, err) == (0, "")
    fields = json.loads(out)
    assert fields["rounds"] * fields["receivers"] <= 10 and fields["schedule"] in ("random", "distinct", "permutation")
    assert fields["central_mse"] < fields["expected_mse"] < fields["local_mse"]
    assert 0 < fields["failure_probability"] <= 1e-6
    assert fields["sigma_independent"] > 0 and fields["sigma_cancelling"] > 0 and fields["injection"]
    weaker = {each["mechanism"] for each in fields["rivals"] if each["weaker"]}
    assert weaker == {"Central DP", "Muffliato, regular"}
    assert inca.read_plan(tmp_path / "plan.json").expected_mse == pytest.approx(fields["expected_mse"])


def test_plan_explains_itself(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = call(capsys, "plan", *WISH, *FEW, "--recipe", "paper")
    assert status == 0
    for part in ("independent noise", "noise left by leavers", "lost values", "x Central DP", "GOPA", "weaker promise"):
        assert part in out
    status, out, _ = call(capsys, "plan", *WISH, *FEW, "--no-rivals")
    assert status == 0 and "with  11 messages" in out and "GOPA" not in out


def test_a_wish_that_cannot_be_met_is_status_1_and_nonsense_status_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    status, out, err = call(capsys, "plan", *WISH[:-1], 2, "--out", tmp_path / "plan.json")
    assert (status, out) == (1, "") and err.startswith("inca: messages is 2, but then") and err.count("\n") == 1
    status, out, err = call(capsys, "plan", *WISH, "--delta", 0, "--out", tmp_path / "plan.json")
    assert (status, out) == (2, "") and err.startswith("inca: delta is 0.0, but") and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_plan_drives_a_run_its_certificate_and_its_audit(
    capsys: pytest.CaptureFixture[str], plan_file: Path, values: Path, tmp_path: Path
) -> None:
    run, proof = tmp_path / "run.json", tmp_path / "proof.json"
    words = ["--domain", 0, 2, "--plan", plan_file, "--dropout", 0.1, "--transcript", run, "--certificate", proof]
    status, out, err = call(capsys, "average", values, *words, "--json")
    assert (status, err) == (0, "")
    report = json.loads(out)
    assert report["present"] == 18 and report["met"] is True and 0 < report["epsilon"] <= report["wanted"] == 1.0
    assert json.loads(proof.read_text())["worst"]["epsilon"] <= report["epsilon"]
    assert len(inca.read_execution(run).colluding) == 2
    status, out, _ = call(capsys, "audit", run, "--plan", plan_file)
    assert status == 0 and "(1, 1e-05)-DP holds" in out
    status, out, _ = call(capsys, "average", values, *words, "--seed", 1)
    assert status == 0 and "by audit   wanted 1 at delta 1e-05" in out and "2 of 20 parties collude" in out


def test_an_epsilon_is_planned_for(capsys: pytest.CaptureFixture[str], values: Path) -> None:
    words = ["--domain", 0, 2, "--epsilon", 2, "--messages", 16, "--receivers", 1, *FEW]
    status, out, _ = call(capsys, "average", values, *words, "--json")
    report = json.loads(out)
    assert status == 0 and report["epsilon"] <= 2.0 and report["delta"] == 1e-5
    wish = inca.Wish(parties=20, epsilon=2.0, delta=1e-5, sensitivity=2.0)
    # Nobody leaves or colludes: Central DP's error but for the factor of at most 1.05.
    assert report["standard_error"] == pytest.approx(wish.central_mse**0.5, rel=0.03)


def test_a_guarantee_that_an_execution_breaks_is_status_1(
    capsys: pytest.CaptureFixture[str], plan_file: Path, values: Path, tmp_path: Path
) -> None:
    fields = json.loads(plan_file.read_text())
    fields["wish"]["epsilon"] = 0.01  # the noise stays as it was
    broken = tmp_path / "broken.json"
    broken.write_text(json.dumps(fields))
    status, out, _ = call(capsys, "average", values, "--domain", 0, 2, "--plan", broken)
    assert status == 1 and out.startswith("no estimate: the guarantee does not hold for this execution (epsilon 0.")
    status, out, _ = call(capsys, "average", values, "--domain", 0, 2, "--plan", broken, "--json")
    report = json.loads(out)
    assert status == 1 and report["estimate"] is None and report["met"] is False and report["epsilon"] > 0.01


REFUSALS = {
    "no noise": ([], "--epsilon, --plan, or both --sigma-independent and --sigma-cancelling are needed"),
    "half of the noise": (["--sigma-independent", 1], "--epsilon, --plan, or both"),
    "epsilon and noise": (["--epsilon", 1, "--sigma-independent", 1], "--sigma-independent is 1.0, but nothing"),
    "epsilon and schedule": (["--epsilon", 1, "--schedule", "random"], "--schedule is 'random', but nothing"),
    "certificate of what": (["--sigma-independent", 1, "--sigma-cancelling", 1, "--certificate", "x"], "--certificate"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_options_that_do_not_go_together_are_refused(
    case: str, capsys: pytest.CaptureFixture[str], values: Path
) -> None:
    words, sentence = REFUSALS[case]
    status, out, err = call(capsys, "average", values, "--domain", 0, 2, *words)
    assert (status, out) == (2, "") and sentence in err and err.count("\n") == 1


def test_a_plan_for_others_is_refused(capsys: pytest.CaptureFixture[str], plan_file: Path, tmp_path: Path) -> None:
    np.save(tmp_path / "few.npy", np.ones(15))
    np.save(tmp_path / "wide.npy", np.ones(20))
    for name, domain, sentence in (
        ("few.npy", (0, 2), "the number of parties in --plan is 20, but one per row of values (15) was expected"),
        ("wide.npy", (0, 3), "the sensitivity in --plan is 2.0, but at least that of the domain (3) was expected"),
    ):
        status, _, err = call(capsys, "average", tmp_path / name, "--domain", *domain, "--plan", plan_file)
        assert status == 2 and sentence in err
    status, _, err = call(
        capsys, "average", tmp_path / "wide.npy", "--domain", 0, 2, "--plan", plan_file, "--epsilon", 1
    )
    assert status == 2 and "--epsilon is 1.0, but nothing, as the plan decides it, was expected" in err


def test_compare_prints_a_table_and_draws_a_picture(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    setting = ["--parties", 16, "--epsilon", 1, "--messages", 8, "--dropout", 0.1, "--views", 4]
    picture = tmp_path / "compare.svg"
    status, out, err = call(capsys, "compare", *setting, "--picture", picture, "--runs", 20)
    assert (status, err) == (0, "")
    assert "inca, planned" in out and "Muffliato, hypercube *" in out and "+-" in out
    assert picture.read_text().startswith("<?xml") and "weaker promise" in picture.read_text()
    status, out, _ = call(capsys, "compare", *setting, "--json")
    assert status == 0 and len(json.loads(out)["entries"]) == 10
    status, out, err = call(capsys, "compare", *setting, "--picture", tmp_path / "x.pdf")
    assert (status, out) == (2, "") and "ends in .png or .svg" in err
