"""`inca report`: pages of every kind of file say what the library says, with every caveat, and nothing more."""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import inca
from helpers.command_line import Capture, call, refused
from helpers.ended_sessions import write_session
from helpers.paths import ROOT
from inca.documents.certificate import ASSUMPTIONS, CertificateDocument
from inca.privacy.certificate import Certificate
from inca.reporting.parts import rounded_up
from inca.reporting.verdict import guarantee, meaning

OLD = ROOT / "tests" / "fixtures" / "version-0.1"
EXAMPLE = ROOT / "examples" / "consortium.json"


class PageText(HTMLParser):
    """The words of a page, one space between them, and its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data.split()

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def tags(self) -> set[str]:
        return {tag for tag, _ in self.elements}


def reported(capsys: Capture, tmp_path: Path, *words: object) -> PageText:
    out = tmp_path / "page.html"
    status, printed, err = call(capsys, "report", *words, "--out", out)
    assert (status, err) == (0, ""), err
    assert printed.endswith(f"The report is in {out}.\n")
    page = PageText(out.read_text())
    assert not page.tags & {"script", "link", "img", "iframe", "a", "form", "object"}
    assert "default-src 'none'" in out.read_text() and f"this page inca {inca.__version__}" in page.text
    return page


def sha256(path: Path) -> str:
    return f"sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}"


@pytest.fixture
def session(tmp_path: Path) -> Path:
    write_session(tmp_path / "state" / "0123")
    return tmp_path / "state" / "0123"


def certificate_of(path: Path, **changes: Any) -> Certificate:
    return inca.certify(inca.read_execution(path), **changes)


@pytest.mark.parametrize("path", [ROOT / f"examples/{name}-plan.json" for name in ("updates", "waiting-times")])
def test_a_plan_says_what_it_promises_and_its_error(path: Path, capsys: Capture, tmp_path: Path) -> None:
    plan, page = inca.read_plan(path), reported(capsys, tmp_path, path).text
    ratio = plan.expected_mse / plan.requirements.central_mse
    agreed, failure = plan.agreed, rounded_up(plan.failure_probability, 2)
    promised = guarantee(agreed.epsilon, agreed.delta, agreed.failure)
    assert f"{promised}, for each party; proven" in page
    assert f"off by about {math.sqrt(plan.expected_mse):.2g}" in page
    assert f"{plan.expected_mse:.4g}, {ratio:.3g} times that of Central DP" in page
    certain = "none: it holds against every coalition" in page
    assert certain is not (f"probability {failure} for a party" in page) and certain is (agreed.failure == 0.0)
    assert (plan.remark in page) if plan.remark else "uninformative" not in page
    for sentence in ASSUMPTIONS:
        assert sentence in page
    assert "Expected error beside other mechanisms" in page and "Where the error comes from" in page
    assert sha256(path) in page


def test_a_certificate_tells_the_larger_loss_and_leaves_open_what_was_agreed(capsys: Capture, tmp_path: Path) -> None:
    transcript = replace(inca.read_execution(EXAMPLE), agreed=None)
    certificate = inca.certify(transcript)
    certificate.write(tmp_path / "certificate.json")
    page = reported(capsys, tmp_path, tmp_path / "certificate.json").text
    document = certificate.document()
    worst, full = document.worst, document.full_attendance
    assert full is not None and certificate.worst_epsilon == full.epsilon
    assert f"Party {worst.party} loses most: epsilon {rounded_up(worst.epsilon)} at delta 1e-05." in page
    assert f"The larger loss, {rounded_up(full.epsilon)}, counts." in page
    assert meaning(float(full.mu or math.inf)) in page
    assert "does not say what was agreed" in page and "kept" not in page
    for sentence in document.assumptions:
        assert sentence in page


@pytest.mark.parametrize(("epsilon", "sentence"), [(8, "Every honest party loses"), (0.1, "An honest party loses")])
def test_what_audit_wrote_says_whether_a_guarantee_holds(
    epsilon: float, sentence: str, capsys: Capture, tmp_path: Path
) -> None:
    call(capsys, "audit", EXAMPLE, "--epsilon", epsilon, "--certificate", tmp_path / "audit.json")
    page = reported(capsys, tmp_path, tmp_path / "audit.json").text
    assert sentence in page and f"the required epsilon {epsilon:g} at delta 1e-05, against this adversary." in page
    assert "Conditions of the theorems" in page and "Theorem 2 does not apply: " in page


def test_an_execution_is_audited(capsys: Capture, tmp_path: Path) -> None:
    page, certificate = reported(capsys, tmp_path, EXAMPLE).text, certificate_of(EXAMPLE)
    loss = rounded_up(certificate.worst_epsilon)
    assert f"The larger loss, {loss}, counts." in page
    limit = "within the agreed epsilon 1 at delta 1e-05, against this adversary."
    assert f"Every honest party loses epsilon {loss} or less, {limit}" in page
    assert "How likely the plan of the noise fails is not known; it adds to delta." in page
    assert "5 of 60 parties are not in the result." in page and sha256(EXAMPLE) in page
    for title in ("The loss of every honest party", "Where the noise", "Who was present in which round"):
        assert title in page


def test_an_execution_of_unknown_sensitivity_claims_nothing(capsys: Capture, tmp_path: Path) -> None:
    fields = json.loads(EXAMPLE.read_text())
    del fields["sensitivity"]
    (tmp_path / "run.json").write_text(json.dumps(fields))
    page = reported(capsys, tmp_path, tmp_path / "run.json").text
    assert "What it revealed is not known: sensitivity must be known" in page
    assert "The parties agreed on (1, 1e-05" in page and "inca audit works the losses out" in page
    assert "kept" not in page and "worst loss" not in page


def test_losses_that_are_infinite_are_no_guarantee(capsys: Capture, tmp_path: Path) -> None:
    fields = json.loads(EXAMPLE.read_text()) | {"sigma_independent": 0.0, "sigma_cancelling": 0.0}
    (tmp_path / "run.json").write_text(json.dumps(fields))
    page = reported(capsys, tmp_path, tmp_path / "run.json").text
    assert "no guarantee" in page and " honest parties have an infinite loss." in page and "kept" not in page


def test_executions_in_numpy_files_have_pages_too(capsys: Capture, tmp_path: Path) -> None:
    assert sha256(OLD / "execution.npz") in reported(capsys, tmp_path, OLD / "execution.npz").text


def test_a_settled_execution_counts_leavers_as_colluders_too(session: Path, capsys: Capture, tmp_path: Path) -> None:
    first = reported(capsys, tmp_path, session / "execution.json").text
    assert "With leavers counted as colluders, every honest party that settled loses epsilon at most" in first
    assert "The file names no adversary: one of the agreed size was drawn, always the same for this file." in first
    assert reported(capsys, tmp_path, session / "execution.json").text == first


def test_a_session_joins_result_certificate_execution_and_log(session: Path, capsys: Capture, tmp_path: Path) -> None:
    fields = json.loads((session / "result.json").read_text())
    certificate = json.loads((session / "certificate.json").read_text())
    page = reported(capsys, tmp_path, session.parent, "--roster", session.parent / "roster.json").text
    low, high = fields["interval"]
    covers = f"The mean of all values lies in {low:.6g} to {high:.6g} with probability 0.95 at least."
    assert f"The estimated mean is 97. {covers}" in page
    assert f"{fields['standard_error']:.4g} standard error" in page
    over = f"against the worst of {fields['coalitions']} coalitions (all there are)."
    limit = "within the agreed epsilon 2 at delta 1e-05"
    assert f"clinic-a loses epsilon at most {rounded_up(fields['epsilon'])}, {limit} + 1e-06, {over}" in page
    assert "fails with probability 1e-06" in page  # of coalitions none is left out: the loss is a bound against all
    worst = f"epsilon at most {rounded_up(certificate['worst']['epsilon'])}"
    assert f"Party {certificate['worst']['party']} loses most: {worst} at delta 1e-05." in page
    assert "Losses are bounds, with leavers counted as colluders." in page
    whole = rounded_up(CertificateDocument.read(session / "certificate.json").worst_epsilon)
    assert f"Every honest party that settled loses epsilon at most {whole}, {limit}, against this adversary." in page
    assert "The domain is 0 to 240, as the roster says." in page and "round 8" in page
    assert "10.0.0.7" not in page, "addresses of the log are nobody's business"
    for name in ("result.json", "certificate.json", "execution.json", "log.jsonl"):
        assert sha256(session / name) in page
    assert all(sentence in page for sentence in (*ASSUMPTIONS, *fields["remarks"], *fields["cohort"]))


def test_a_session_whose_execution_was_exchanged_says_so(session: Path, capsys: Capture, tmp_path: Path) -> None:
    (session / "execution.json").write_bytes(EXAMPLE.read_bytes())
    assert "is not the one that the result names" in reported(capsys, tmp_path, session).text
    inca.certify(inca.read_execution(EXAMPLE)).write(session / "certificate.json")
    page = reported(capsys, tmp_path, session).text
    assert "The certificate in this folder is not of this result" in page and "Every honest party" not in page


def test_a_session_that_has_not_ended_has_no_result(capsys: Capture, tmp_path: Path) -> None:
    page = reported(capsys, tmp_path, OLD / "session" / "party-002" / "sessions").text
    assert "There is no result yet: cleo was at stage 'rounds', round 2 of 6" in page


def changed(path: Path, place: Path, **changes: Any) -> Path:
    place.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return place


def test_a_result_tells_what_is_not_known(session: Path, capsys: Capture, tmp_path: Path) -> None:
    unknown: dict[str, Any] = {
        "standard_error": None,
        "exact": False,
        "interval": [0.0, 240.0],
        "failure": None,
    }
    unknown |= {"contradictions": [[2, "clinic-d", "clinic-b", "acknowledged"]], "remarks": ["A guess would do."]}
    page = reported(capsys, tmp_path, changed(session / "result.json", tmp_path / "r.json", **unknown)).text
    assert "The error is unknown: contradictions left noise" in page and "A guess would do." in page
    assert "Not exact: clinic-d says that round 2 was acknowledged by clinic-b, who says the opposite." in page
    assert "fails is not known; it adds to delta" in page and "Adds up exactly no" in page
    none = {"estimate": None, "reason": "too few were left", "epsilon": None, "coalitions": None}
    none |= {"interval": None, "constrained": None}
    page = reported(capsys, tmp_path, changed(session / "result.json", tmp_path / "r.json", **none)).text
    assert "no result Too few were left." in page
    assert "The loss of clinic-a was not worked out (too few were left)." in page
    above = "clinic-a may lose epsilon at most 2.5, above the agreed epsilon 2"
    for epsilon, sentence in ((None, "The loss of clinic-a is infinite"), (2.5, above)):
        page = reported(capsys, tmp_path, changed(session / "result.json", tmp_path / "r.json", epsilon=epsilon)).text
        assert sentence in page and "within the agreed" not in page


def test_texts_of_files_do_not_direct_the_terminal(session: Path, capsys: Capture, tmp_path: Path) -> None:
    place = changed(session / "result.json", tmp_path / "r.json", remarks=["red \x1b[31m"])
    status, printed, _ = call(capsys, "report", place)
    assert status == 0 and "\x1b" not in printed and "red ?[31m" in printed
    changed(session / "result.json", place, remarks=["half a character: \ud800"])
    assert "must be a file that this version of inca writes" in refused(capsys, "report", place)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("anna,3\n", "must be a file that this version of inca writes (inca-certificate/2, inca-plan/2, "),
        ("[" * 100_000, "must be a file that this version of inca writes"),
        ('{"format": "inca-study/1"}', "must be a file that this version of inca writes"),
        ('{"format": "inca-plan/2"}', "cannot be read as a plan"),
        ('{"format": "inca-certificate/2"}', "cannot be read as a certificate"),
        ('{"format": "inca-certificate/1"}', "inca-certificate/1"),
        ('{"format": "inca-result/2"}', "cannot be read as a result"),
        ('{"format": "inca-execution/2"}', "execution"),
    ],
)
def test_foreign_files_are_refused_and_nothing_is_written(
    content: str, sentence: str, capsys: Capture, tmp_path: Path
) -> None:
    (tmp_path / "file.json").write_text(content)
    assert sentence in refused(capsys, "report", tmp_path / "file.json")
    assert [path.name for path in tmp_path.iterdir()] == ["file.json"]


def test_numbers_that_contradict_each_other_are_refused(session: Path, capsys: Capture, tmp_path: Path) -> None:
    """Otherwise a page could look better than the losses behind it."""
    certificate, place = tmp_path / "certificate.json", tmp_path / "c.json"
    inca.certify(inca.read_execution(EXAMPLE)).write(certificate)
    fields = json.loads(certificate.read_text())
    for changes, sentence in (
        ({"worst": fields["worst"] | {"epsilon": 0.01}}, "worst: epsilon must be the largest in epsilon"),
        (
            {"epsilon": [0.01] * len(fields["epsilon"]), "worst": fields["worst"] | {"epsilon": 0.01}},
            "epsilon: must follow from mu, delta and the rule",
        ),
        ({"full_attendance": fields["full_attendance"] | {"epsilon": 0.1}}, "epsilon: must follow from mu"),
        ({"honest": fields["honest"][1:]}, "must be lists of one length"),
        ({"rule": "kind"}, "rule: must be a value that the format knows, got 'kind'"),
    ):
        assert sentence in refused(capsys, "report", changed(certificate, place, **changes))
    for changes, sentence in (
        ({"interval": [0.0, 1.0]}, "interval: must hold the estimate"),
        ({"interval": [[0.0, 0.0], [1.0]]}, "interval: must be two numbers, or two lists"),
        ({"interval": ["low", "high"]}, "interval[0]: must be a number or a list, got text"),
    ):
        assert sentence in refused(capsys, "report", changed(session / "result.json", place, **changes))


def test_other_refusals_are_one_sentence(session: Path, capsys: Capture, tmp_path: Path) -> None:
    assert "No such file" in refused(capsys, "report", tmp_path / "nothing.json")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "is not the folder of a session: it has no result.json or status.json" in refused(
        capsys, "report", empty, "--out", tmp_path / "x"
    )
    assert "it is not an ordinary file" in refused(capsys, "report", "/dev/null", "--out", tmp_path / "x")
    assert "cannot be written" in refused(capsys, "report", "nothing.json", "--out", tmp_path / "no" / "page.html")
    assert "must be another file than FILE" in refused(capsys, "report", EXAMPLE, "--out", EXAMPLE)
    roster = ["--roster", session.parent / "roster.json", "--out", tmp_path / "x"]
    assert "--roster goes with a result or a session" in refused(capsys, "report", EXAMPLE, *roster)
    other = write_session(tmp_path / "other" / "4567", mean=50.0)
    sentence = refused(capsys, "report", session, "--roster", other, "--out", tmp_path / "x")
    assert "is the roster of another session" in sentence
    (tmp_path / "other" / "89ab").mkdir()
    (tmp_path / "other" / "89ab" / "status.json").write_text("[]")
    assert "has 2 sessions in it: name one of 4567, 89ab" in refused(capsys, "report", tmp_path / "other")
    assert "is not what a node writes" in refused(capsys, "report", tmp_path / "other" / "89ab")
    assert not (tmp_path / "x").exists()


def test_the_page_is_beside_the_file_unless_said_otherwise(session: Path, capsys: Capture) -> None:
    certificate = session / "certificate.json"
    before = certificate.read_bytes()
    assert call(capsys, "report", certificate)[0] == 0 and call(capsys, "report", session)[0] == 0
    assert (session / "certificate-report.html").exists() and (session.parent / "0123-report.html").exists()
    assert certificate.read_bytes() == before


def test_commands_make_files_that_have_pages(capsys: Capture, tmp_path: Path) -> None:
    values, plan, run, kept = (tmp_path / name for name in ("values.csv", "plan.json", "run.json", "certificate.json"))
    values.write_text("\n".join(f"{number:.3f}" for number in np.random.default_rng(1).uniform(20, 220, 50)))
    words = ["--parties", 50, "--epsilon", 1, "--colluding", 0.1, "--sensitivity", 240]
    assert call(capsys, "plan", *words, "--out", plan)[0] == 0
    words = ["--domain", 0, 240, "--plan", plan, "--seed", 1, "--transcript", run, "--certificate", kept]
    assert call(capsys, "average", values, *words)[0] == 0
    certificate = json.loads(kept.read_text())
    for path in (run, kept):
        page = reported(capsys, tmp_path, path).text
        worst = certificate["worst"]
        assert f"Party {worst['party']} loses most: epsilon {rounded_up(worst['epsilon'])} at delta 1e-05" in page
    assert "epsilon 1 at delta 1e-05, for each party; proven, certain" in reported(capsys, tmp_path, plan).text
