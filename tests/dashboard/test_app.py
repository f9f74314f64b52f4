"""What the dashboard's pages ask, answered by a real server and compared with the library."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import inca
from helpers.command_line import call
from helpers.dashboard_server import Dashboard, running
from helpers.paths import ROOT
from inca._base.validation import InputError
from inca.dashboard.scene import Description
from inca.dashboard.serve import names
from inca.mechanisms.central_local import LocalDP

EXECUTION = ROOT / "examples" / "consortium.json"


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    state = tmp_path_factory.mktemp("state")
    place = state / "0123456789abcdef"
    place.mkdir()
    fields = {"session": "0123456789abcdef" * 4, "party": "anna", "stage": "rounds", "round": 3, "rounds": 20}
    fields |= {"attended": 3, "open_offers": 0, "connected": 4, "reason": "", "updated": 1.0, "process": 1}
    (place / "status.json").write_text(json.dumps(fields))
    (place / "result.json").write_text(json.dumps({"format": "inca-result/1", "estimate": 0.5}))
    (place / "journal.db").write_text("the private value is 0.123456")
    with running([state], [EXECUTION]) as made:
        yield made


# --- who may ask ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/plan", "/api/about", "/api/sessions", "/static/style.css", "/nothing"])
def test_another_host_name_is_refused(board: Dashboard, path: str) -> None:
    """A page elsewhere could give this machine's address a name of its own."""
    for host in ("evil.example", f"evil.example:{board.port}", "127.0.0.1", f"127.0.0.1:{board.port + 1}"):
        answer = board.get(path, {"Host": host})
        assert answer.status == 403 and answer.body == b"refused: the request names another host\n"


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"},
        {"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors"},
    ],
)
def test_other_sites_are_refused(board: Dashboard, headers: dict[str, str]) -> None:
    answer = board.get("/api/about", headers)
    assert answer.status == 403 and b"another site" in answer.body
    assert board.post("/api/open", b"{}", headers).status == 403


def test_a_file_from_nowhere_is_refused(board: Dashboard) -> None:
    request = board.post("/api/open?name=x.json", EXECUTION.read_bytes(), {"Origin": "http://127.0.0.1"})
    assert request.status == 403


def test_a_link_from_elsewhere_may_be_followed_and_its_page_loads_nothing_from_elsewhere(board: Dashboard) -> None:
    answer = board.get("/run", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert answer.status == 200 and b"<main" in answer.body
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "http" not in policy and "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff" and "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/static/../server.py", "/static/%2e%2e/server.py", "/static/..%2fserver.py"])
def test_only_static_files_are_served(board: Dashboard, path: str) -> None:
    assert board.get(path).status == 404


def test_all_pages_and_what_they_load_are_there(board: Dashboard) -> None:
    for page in ("/", "/plan", "/run", "/eyes", "/sessions", "/file"):
        assert b'src="/static/js/app.js"' in board.get(page).body
    for name in ("plan", "run", "eyes", "sessions", "file"):
        answer = board.get(f"/static/js/{name}.js")
        assert answer.status == 200 and "javascript" in answer.headers["content-type"]


# --- runs and adversaries ---------------------------------------------------------------------------------------------

RUN = {"parties": 7, "rounds": 6, "seed": 5, "sigma_independent": 0.5, "sigma_cancelling": 3.0, "absent": "2:3-4 5:5-"}


def executed() -> inca.Execution:
    present = np.ones((7, 7), dtype=bool)
    present[3:5, 2] = False
    present[5:, 5] = False
    schedule = inca.PermutationReceivers(7, rounds=6, seed=5)
    return inca.Execution(schedule, inca.incremental(6, quiet=2), inca.Presence.explicit(present))


def test_a_run_is_the_librarys(board: Dashboard) -> None:
    found, execution = board.ask("run", **RUN), executed()
    assert found["receivers"] == [execution.sends(t).receivers.tolist() for t in range(1, 7)]
    assert found["weight"] == execution.weight and found["published"] == [0, 1, 2, 3, 4, 6]
    values, messages = np.array(found["values"]), np.array(found["messages"])
    clean = inca.simulate(execution, values, 0.0, 0.0, np.random.default_rng(0), record=True)
    assert clean.history is not None
    np.testing.assert_allclose(found["clean"], clean.history, atol=1e-5)
    last = messages[-1][found["published"]].sum() / execution.weight
    assert found["estimates"][-1] == pytest.approx(last, rel=1e-4)
    assert found["truth"] == pytest.approx(values.mean(), rel=1e-5)
    budget = inca.expected_error(execution, 0.5, 3.0, values=values)
    assert found["error"]["cancelling"] == pytest.approx(budget.cancelling)


def test_noise_cancels_to_nothing_when_all_are_present(board: Dashboard) -> None:
    found = board.ask("run", parties=9, rounds=5, sigma_independent=0, sigma_cancelling=50)
    assert found["estimates"][-1] == pytest.approx(found["truth"], abs=1e-4)
    assert abs(found["estimates"][1] - found["truth"]) > 0.1


def test_who_leaves_changes_nobody_elses_noise(board: Dashboard) -> None:
    """Else a party that is killed in the picture would seem to change the past."""
    before = np.array(board.ask("run", **RUN | {"absent": ""})["messages"])
    after = np.array(board.ask("run", **RUN | {"absent": "5:4-"})["messages"])
    np.testing.assert_array_equal(before[:4], after[:4])
    assert (before[4:] != after[4:]).any()


def test_losses_are_the_accountants(board: Dashboard) -> None:
    found = board.ask("eyes", **RUN, colluding="1 4", tapped="2:0", delta=1e-6)
    view = inca.View(executed(), inca.Adversary([1, 4], [(2, 0)]))
    losses = inca.account(view, 0.5, 3.0)
    assert found["honest"] == losses.honest.tolist() and found["seen"] == view.seen.astype(int).tolist()
    np.testing.assert_allclose(found["mu"], losses.mu, rtol=1e-12)
    np.testing.assert_allclose(found["epsilon"], losses.epsilon(1e-6), rtol=1e-12)
    assert found["worst"]["party"] == losses.worst[0]
    errors = np.array(found["guesses"]["informed_error"])
    np.testing.assert_allclose(errors, 1.0 / losses.mu, rtol=1e-6)
    values = board.ask("run", **RUN)["values"]
    np.testing.assert_allclose(found["guesses"]["truth"], np.array(values)[losses.honest], rtol=1e-5)


def test_one_noise_term_is_broken_and_said_to_be(board: Dashboard) -> None:
    many = {
        "parties": 8,
        "rounds": 6,
        "sigma_independent": 0.3,
        "sigma_cancelling": 100,
        "tapped": "0:* 1:* 2:* 3:* 4:*",
    }
    good, broken = (board.ask("eyes", **many, injection=kind) for kind in ("incremental", "single"))
    np.testing.assert_allclose(broken["mu"], 1 / 0.3, rtol=1e-6)  # as if the cancelling noise were not there
    assert max(good["mu"]) < 0.75 / 0.3


def test_enough_noise_is_enough(board: Dashboard) -> None:
    asked = RUN | {"sigma_independent": 1.0, "colluding": "1", "epsilon": 4.0, "delta": 1e-5}
    level = board.ask("enough", **asked)["sigma_cancelling"]
    worst = board.ask("eyes", **asked | {"sigma_cancelling": level * (1 + 1e-6)})["worst"]["epsilon"]
    assert worst == pytest.approx(4.0, rel=1e-3) and worst <= 4.0 * (1 + 1e-4)


def test_an_address_decides_everything(board: Dashboard) -> None:
    assert board.get("/api/run", **RUN).body == board.get("/api/run", **RUN).body


def test_n_of_two_thousand_opens(board: Dashboard) -> None:
    found = board.ask("run", parties=2000, rounds=40)
    assert np.array(found["messages"]).shape == (41, 2000)


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        ("run", {"parties": "many"}, "parties is 'many', but a whole number was expected"),
        ("run", {"parties": 1}, "parties is 1, but a whole number from 2 to 5000 was expected"),
        ("run", {"rounds": 0}, "rounds is 0, but a whole number from 1 to 200 was expected"),
        ("run", {"parties": 5, "receivers": 5}, "receivers is 5"),
        ("run", {"schedule": "star"}, "schedule is 'star', but one of permutation"),
        ("run", {"injection": "none"}, "injection is 'none'"),
        ("run", {"sigma_cancelling": "nan"}, "sigma_cancelling is nan"),
        ("run", {"sigma_independent": "-1"}, "sigma_independent is -1"),
        ("run", {"sigma_independent": "inf"}, "sigma_independent is inf"),
        ("run", {"absent": "3"}, "an entry of absent is '3'"),
        ("run", {"absent": "99:1-"}, "a party in absent is 99"),
        ("run", {"absent": "1:5-2"}, "a last round in absent is 2"),
        ("run", {"parties": 5000, "rounds": 200}, "parties x rounds x receivers is 1000000"),
        ("run", {"file": "nothing"}, "file is 'nothing', but no such file is open here"),
        ("run", {"colluding": "99"}, "an id in colluding is 99"),
        ("run", {"tapped": "99:1"}, "a message in eavesdropped is (99, 1)"),
        ("eyes", {"colluding": "1 x"}, "an id in colluding is 'x'"),
        ("eyes", {"colluding": "1 1"}, "colluding is [1, 1]"),
        ("eyes", {"colluding": "99"}, "an id in colluding is 99"),
        ("eyes", {"parties": 3, "colluding": "0 1 2"}, "the number of colluding parties is 3"),
        ("eyes", {"tapped": "one"}, "an entry of tapped is 'one'"),
        ("eyes", {"delta": 2}, "delta is 2"),
        ("enough", {"epsilon": 0}, "epsilon is 0"),
        ("enough", {"epsilon": "x"}, "epsilon is 'x'"),
        ("sessions", {"session": "nothing"}, "session is 'nothing', but there is none of this name"),
        ("file", {}, "file is ''"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(
    board: Dashboard, name: str, params: dict[str, object], sentence: str
) -> None:
    assert sentence in board.refusal(name, **params)


def test_everyone_absent_has_no_estimate(board: Dashboard) -> None:
    found = board.ask("run", parties=3, rounds=4, absent="0:3- 1:2- 2:4-")
    assert found["estimates"][-1] is None and found["published"] == [] and found["error"] is None


@given(st.text(alphabet="0123456789:- x", max_size=20))
def test_any_absence_is_read_or_refused(text: str) -> None:
    try:
        present = Description(parties=5, rounds=6, absent=text).presence()
    except InputError as error:
        assert "absent" in str(error)
    else:
        assert present.row(0).all()


# --- plans ------------------------------------------------------------------------------------------------------------

WISH = {"parties": 30, "epsilon": 2.0, "delta": 1e-5, "colluding": 0.1, "dropout": 0.1, "messages": 8}


def test_estimates_come_one_by_one(board: Dashboard) -> None:
    first, *rest = board.get("/api/estimate", **WISH).lines
    wish = inca.Wish(30, 2.0, 1e-5, colluding=0.1, dropout=0.1, messages=8)
    assert first["central_mse"] == wish.central_mse and first["leavers"] == 3
    entries = {each["entry"]["mechanism"]: each["entry"] for each in rest}
    assert entries["Local DP"]["mse"] == LocalDP(wish).expected_error(0.1).mse
    own = entries["inca, first idea"]
    assert sum(own["parts"].values()) == pytest.approx(own["mse"])
    assert entries["Central DP"]["mse"] < own["mse"] < entries["Local DP"]["mse"]


def test_a_plan_is_told_with_progress_and_can_be_used(board: Dashboard, tmp_path: Path) -> None:
    *progress, last = board.get("/api/plan", **WISH | {"parties": 12, "views": 10}).lines
    assert progress and progress[-1]["progress"][0] == progress[-1]["progress"][1]
    (tmp_path / "plan.json").write_text(json.dumps(last["plan"]))
    made = inca.read_plan(tmp_path / "plan.json")
    assert made.wish.parties == 12 and last["entry"]["mse"] == pytest.approx(made.expected_mse)


def test_wishes_that_cannot_be_met_are_answered(board: Dashboard) -> None:
    *_, last = board.get("/api/estimate", **WISH | {"messages": 1}).lines
    assert last["entry"]["mse"] is None and "hid" in last["entry"]["why_not"]
    (refused,) = board.get("/api/plan", **WISH | {"epsilon": 0}).lines
    assert "epsilon is 0" in refused["error"]


# --- files and sessions -----------------------------------------------------------------------------------------------


def test_an_execution_is_opened_and_looked_at(board: Dashboard, tmp_path: Path) -> None:
    opened = board.post("/api/open?name=run.json", EXECUTION.read_bytes()).json
    assert opened["kind"] == "execution"
    found = board.ask("run", file=opened["id"])
    assert not found["simulated"] and found["messages"] is None and found["values"] is None
    transcript = inca.read_execution(EXECUTION)
    assert found["parties"] == transcript.execution.parties and tuple(found["colluding"]) == transcript.colluding
    eyes = board.ask("eyes", file=opened["id"])
    assert tuple(eyes["colluding"]) == transcript.colluding and "simulation only" in eyes["guesses"]["why_not"]
    inca.write_execution(tmp_path / "same.npz", transcript)
    packed = board.post("/api/open?name=same.npz", (tmp_path / "same.npz").read_bytes()).json
    assert board.ask("eyes", file=packed["id"])["mu"] == eyes["mu"]


def test_a_run_can_be_downloaded_and_audited(board: Dashboard, tmp_path: Path) -> None:
    answer = board.get("/api/execution", **RUN, colluding="1")
    (tmp_path / "run.json").write_bytes(answer.body)
    transcript = inca.read_execution(tmp_path / "run.json")
    view = inca.View(transcript.execution, inca.Adversary(transcript.colluding))
    assert transcript.sigma_independent is not None and transcript.sigma_cancelling is not None
    mu = inca.account(view, transcript.sigma_independent, transcript.sigma_cancelling).mu
    np.testing.assert_allclose(board.ask("eyes", **RUN, colluding="1")["mu"], mu, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.json", b""),
        ("x.json", b"[]"),
        ("x.json", b"[" * 100_000),
        ("x.json", b'{"format": "other/1"}'),
        ("x.json", b'{"format": "inca-execution/1", "parties": 3}'),
        ("x.npz", b"PK nonsense"),
        ("../../x.json", b"{}"),
        ("x.json", b"\xff\xfe"),
    ],
)
def test_files_that_are_none_of_ours_are_refused(board: Dashboard, name: str, content: bytes) -> None:
    answer = board.post(f"/api/open?name={name}", content)
    assert answer.status == 400 and answer.json["error"].startswith("x.")
    assert "/tmp" not in answer.json["error"] and "Traceback" not in answer.json["error"]


def test_files_at_the_start_are_open(board: Dashboard) -> None:
    (opened,) = board.ask("about")["opened"]
    assert board.ask("file", file=opened["id"])["name"] == "consortium.json"


def test_sessions_show_what_is_public_and_nothing_else(board: Dashboard) -> None:
    (listed,) = board.ask("sessions")["sessions"]
    assert (listed["party"], listed["round"]) == ("anna", 3)
    one = board.get("/api/sessions", session=listed["id"])
    assert one.json["result"]["estimate"] == 0.5 and one.json["certificate"] is None
    assert b"0.123456" not in one.body  # the journal


# --- the command ------------------------------------------------------------------------------------------------------


def test_names_of_this_machine_only() -> None:
    assert names("127.0.0.1", 1) == names("localhost", 1)
    assert names("10.0.0.1", 80) == ["10.0.0.1:80"] and names("fe80::1", 80) == ["[fe80::1]:80"]


def test_the_command_serves_until_it_is_interrupted(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inca", "dashboard", "--no-browser", "--port", "0", str(EXECUTION)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stderr is not None
        words = process.stdout.readline()
        port = int(words.split("127.0.0.1:")[1].split("/")[0])
        assert Dashboard(port).ask("about")["opened"][0]["name"] == "consortium.json"
        process.send_signal(signal.SIGINT)
        began = time.monotonic()
        assert process.wait(timeout=30) in (0, 130)
        assert time.monotonic() - began < 20 and "Traceback" not in process.stderr.read()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nothing.json"], "nothing.json cannot be read: No such file or directory"),
        (["--sessions", "nowhere"], "--sessions is 'nowhere', but there is no such folder"),
        (["--host", "no.such.host.invalid"], "cannot listen on no.such.host.invalid:8765"),
        (["--port", "70000"], "--port is 70000, but a whole number from 0 to 65535 was expected"),
    ],
)
def test_the_command_refuses_bad_input(
    arguments: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = call(capsys, "dashboard", "--no-browser", *arguments)
    assert status == 2 and sentence in err and err.count("\n") == 1


def test_the_command_refuses_as_a_process_of_its_own(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "inca", "dashboard", "--no-browser", "nothing.json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == 2 and "nothing.json cannot be read" in done.stderr and done.stderr.count("\n") == 1


def test_without_its_libraries_it_says_what_to_install() -> None:
    code = (
        "import importlib.util as u, sys; found = u.find_spec; "
        "u.find_spec = lambda name, *more: None if name == 'starlette' else found(name, *more); "
        "sys.argv = ['inca', 'dashboard']; from inca.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and "pip install 'inca[dashboard]'" in done.stderr
