"""Files that are opened."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import pytest

import inca
from helpers.dashboard_documents import as_json, certificates, proven_plan
from helpers.dashboard_server import CONSORTIUM, Dashboard
from helpers.paths import FIXTURES
from inca.dashboard.questions import PlanQuestion
from inca.documents.document import Document
from inca.reporting.content import content
from inca.reporting.execution import execution_content
from inca.reporting.verdict import verdict


def test_an_execution_is_opened_and_looked_at(board: Dashboard, tmp_path: Path) -> None:
    opened = board.post("/api/open?name=run.json", CONSORTIUM.read_bytes()).json
    assert opened["kind"] == "an execution"
    run = board.ask("run", file=opened["id"])
    assert run["simulation"] is None
    transcript = inca.read_execution(CONSORTIUM)
    colluding = transcript.known_adversary.colluding
    assert run["parties"] == transcript.execution.parties and tuple(run["colluding"]) == colluding
    view = board.ask("adversary", file=opened["id"])
    assert tuple(view["colluding"]) == colluding
    assert view["guesses"] is None and "only a simulation" in view["why_no_guesses"]
    inca.write_execution(tmp_path / "same.npz", transcript)
    packed = board.post("/api/open?name=same.npz", (tmp_path / "same.npz").read_bytes()).json
    assert board.ask("adversary", file=packed["id"])["mu"] == view["mu"]


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


def test_a_plan_that_is_no_better_than_a_guess_says_so(board: Dashboard) -> None:
    fields = proven_plan().as_fields()
    for mse, count in ((1e-4, 0), (0.09, 1), (None, 1)):
        content = json.dumps(fields | {"expected_mse": mse}).encode()
        identity = board.post("/api/open?name=plan.json", content).json["id"]
        verdict = board.ask("file", file=identity)["content"]["verdict"]
        remarks = [sentence["text"] for sentence in verdict if sentence["badge"] == "uninformative"]
        assert len(remarks) == count and all(words.endswith(" would do as well.") for words in remarks)


def test_files_at_the_start_are_open(board: Dashboard) -> None:
    assert "consortium.json" in [opened["name"] for opened in board.ask("files")["files"]]
    (opened, *_) = board.ask("files")["files"]
    assert board.ask("file", file=opened["id"])["name"] == opened["name"]


def opened(board: Dashboard, folder: Path, **changes: Any) -> str:
    """Open the example with something changed, and return its id."""
    inca.write_execution(folder / "run.json", replace(inca.read_execution(CONSORTIUM), **changes))
    return str(board.post("/api/open?name=run.json", (folder / "run.json").read_bytes()).json["id"])


def test_losses_of_a_file_need_a_sensitivity_that_is_no_less_than_its_own(board: Dashboard, tmp_path: Path) -> None:
    unit = board.ask("adversary", file=opened(board, tmp_path))
    silent = opened(board, tmp_path, sensitivity=None)
    for verb, more in (("adversary", {}), ("sufficient-noise", {"epsilon": 2})):
        answer = board.get(f"/api/{verb}", file=silent, **more)
        assert answer.status == 400 and "sensitivity must be stated on this page" in answer.json["error"]
    stated = board.ask("adversary", file=silent, sensitivity=100)
    assert stated["mu"] == pytest.approx([100 * mu for mu in unit["mu"]])
    assert stated["epsilon_independent_only"] > unit["epsilon_independent_only"]
    assert board.ask("adversary", file=opened(board, tmp_path, sensitivity=100.0))["mu"] == pytest.approx(stated["mu"])
    answer = board.get("/api/adversary", file=opened(board, tmp_path, sensitivity=100.0), sensitivity=1)
    assert answer.status == 400 and "sensitivity must be at least 100, as the file says" in answer.json["error"]


def test_losses_of_a_file_need_an_adversary(board: Dashboard, tmp_path: Path) -> None:
    agreed = board.ask("adversary", file=opened(board, tmp_path, adversary=None))
    assert len(agreed["colluding"]) == 6  # as many as were agreed
    silent = opened(board, tmp_path, adversary=None, agreed=None)
    answer = board.get("/api/adversary", file=silent)
    assert answer.status == 400 and "the adversary must be chosen on this page" in answer.json["error"]
    assert board.ask("adversary", file=silent, colluding="none")["colluding"] == []
    assert board.ask("run", file=silent)["colluding"] == []  # without any loss


HOSTILE = ["x" * 300 + ".json", "a%00b.json", "%2E%2E/..", "%20", "a%E2%80%AEnosj.json", "a%0Ab.json"]


@pytest.mark.parametrize("name", [*HOSTILE, "%ED%A0%80.json", "q%3F%26.npz"])
def test_whatever_a_file_is_called_it_is_opened_or_refused_in_a_sentence(board: Dashboard, name: str) -> None:
    answer = board.post(f"/api/open?name={name}", CONSORTIUM.read_bytes())
    assert answer.status in (200, 400), answer
    assert (answer.status == 400) == (name.endswith(".npz") or name in HOSTILE)
    assert "error" in answer.json or answer.json["kind"] == "an execution"
    if name in HOSTILE:
        assert answer.json["error"].startswith("the name of a file must be")


@pytest.mark.parametrize(
    ("content", "wrong"),
    [
        (b'{"format": "inca-result/2"}', "as a result: inca: is missing"),
        (b'{"format": "inca-certificate/2", "parties": 3}', "as a certificate: inca: is missing"),
    ],
)
def test_an_empty_file_is_not_shown_as_a_verdict(board: Dashboard, content: bytes, wrong: str) -> None:
    answer = board.post("/api/open?name=empty.json", content)
    assert answer.status == 400 and answer.json["error"] == f"empty.json cannot be read {wrong}"


@pytest.mark.parametrize("name", ["certificate.json", "session/party-001/sessions/8bb0349916f7a6f6/result.json"])
def test_files_of_versions_before_any_release_are_refused_in_a_sentence(board: Dashboard, name: str) -> None:
    answer = board.post("/api/open?name=old.json", (FIXTURES / "version-0.1" / name).read_bytes())
    assert answer.status == 400 and "old.json: must be a file that this version of inca writes" in answer.json["error"]


def test_a_certificate_that_contradicts_itself_is_refused_in_a_sentence(board: Dashboard) -> None:
    fields = certificates()["within"].as_fields()
    fields |= {"mu": [2.0 * mu for mu in fields["mu"]], "worst": fields["worst"] | {"mu": 2.0 * fields["worst"]["mu"]}}
    answer = board.post("/api/open?name=x.json", json.dumps(fields).encode())
    assert answer.status == 400
    assert answer.json["error"].startswith("x.json cannot be read as a certificate: epsilon: must follow from mu")


def shown(board: Dashboard, document: Document) -> dict[str, Any]:
    """Return what is shown of a document."""
    data = msgspec.json.encode(document.as_fields())
    identity = board.post("/api/open?name=x.json", data).json["id"]
    return dict(board.ask("file", file=identity))


@pytest.mark.parametrize("why", certificates())
def test_a_certificate_is_shown_as_reporting_words_it(board: Dashboard, why: str) -> None:
    document = certificates()[why]
    answer = shown(board, document)
    assert verdict(document).why == why and answer["content"]["verdict"][0]["text"] == verdict(document).text
    assert answer["kind"] == "a certificate" and answer["links"] == []
    assert answer["content"] == as_json(content(document))


def test_an_execution_is_shown_without_accounting(board: Dashboard) -> None:
    identity = board.post("/api/open?name=run.json", CONSORTIUM.read_bytes()).json["id"]
    answer = board.ask("file", file=identity)
    assert answer["content"] == as_json(execution_content(inca.read_execution(CONSORTIUM)))
    assert answer["content"]["verdict"][0]["standing"] == "unknown"
    for words, place in (("Watch the run", "/run"), ("See the adversary's view", "/adversary")):
        assert [words, f"{place}?file={identity}"] in answer["links"]
        assert board.get(place, file=identity).status == 200
    assert board.ask("run", file=identity)["simulation"] is None


def test_a_plan_leads_to_the_plan_view_and_to_a_run_of_it(board: Dashboard) -> None:
    plan = proven_plan()
    links = {words: parse_qs(href.partition("?")[2]) for words, href in shown(board, plan)["links"]}
    asked = {name: params[0] for name, params in links["Open in Plan"].items()}
    requirements = PlanQuestion.parse(asked).requirements
    assert all(getattr(requirements, name) == getattr(plan.requirements, name) for name in asked) and len(asked) == 7
    uncapped = dict(shown(board, inca.plan(inca.Requirements(60, 1.0)).document())["links"])["Open in Plan"]
    assert "messages" in asked and "messages" not in uncapped
    run = {name: params[0] for name, params in links["Watch a run of it"].items()}
    answer = board.ask("run", **run)
    assert (answer["parties"], answer["rounds"]) == (plan.requirements.parties, plan.rounds)
    assert answer["injection"]["value"] == [pytest.approx(1 / (plan.rounds + 1))] * (plan.rounds + 1)
    # A record moves a value of a simulated run by 240 minutes over 60 patients; a value of the plan can move by 1.
    assert answer["sigma_independent"] == pytest.approx(4.0 * plan.sigma_independent, rel=1e-5)
    assert answer["sigma_cancelling"] == pytest.approx(4.0 * plan.sigma_cancelling, rel=1e-5)


def test_a_plan_for_more_parties_than_can_be_looked_at_leads_to_a_run_of_fewer(board: Dashboard) -> None:
    requirements = msgspec.structs.replace(proven_plan().requirements, parties=1_000_000)
    links = shown(board, msgspec.structs.replace(proven_plan(), requirements=requirements))["links"]
    (run,) = (href for words, href in links if words == "Watch a run of it with 5,000 parties")
    assert parse_qs(run.partition("?")[2])["parties"] == ["5000"]
