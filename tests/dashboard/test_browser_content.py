"""What inca.reporting says of a document, as a page shows it, in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from playwright.sync_api import Page, expect

from helpers.browser import Watched
from helpers.dashboard_documents import SESSION, certificates, proven_plan, unbounded, write_ended_session
from helpers.dashboard_server import CONSORTIUM, Dashboard, running
from inca.documents.document import Document
from inca.documents.result import ResultDocument
from inca.reporting import certificate
from inca.reporting.content import content
from inca.reporting.parts import Content, RowOf
from inca.reporting.verdict import Worded, verdict

SIGNS = {"good": "✓ ", "bad": "✗ ", "unknown": "? ", "plain": ""}


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("state")
    write_ended_session(folder)
    return folder


@pytest.fixture(scope="module")
def board(state: Path) -> Iterator[Dashboard]:
    with running([state], [CONSORTIUM]) as dashboard:
        yield dashboard


def opened(window: Watched, board: Dashboard, folder: Path, document: Document) -> Page:
    """Show a document among the files."""
    document.write(folder / "document.json")
    answer = board.post("/api/open?name=document.json", (folder / "document.json").read_bytes())
    return window.visit(f"/file?file={answer.json['id']}")


def assert_shown(page: Page, said: Content) -> None:
    """All that is said of a document is in its card, the verdict first."""
    card = page.get_by_role("region", name=said.title, exact=True)
    lines = [f"{SIGNS[part.standing]}{part.badge}{part.text}" for part in said.verdict]
    expect(card.locator(".findings li")).to_have_text(lines)
    words = card.text_content() or ""
    for row in said.rows:
        assert row.name in words and row.value in words, row
    for sentence in (*said.caveats, *said.assumptions):
        assert sentence in words
    for figure in said.figures:
        assert figure.caption in words and all(name in words for _, name in figure.legend)
    expect(card.locator("figure svg[role=img]")).to_have_count(len(said.figures))
    for drawing in card.locator("figure svg[role=img]").all():
        box = drawing.bounding_box()
        assert box is not None and box["width"] > 200 and box["height"] > 50
    assert all(cell in words for table in said.tables for row in table.rows for cell in row)


@pytest.mark.parametrize("why", certificates())
def test_a_certificate_has_the_same_verdict_on_a_page(
    window: Watched, board: Dashboard, tmp_path: Path, why: str
) -> None:
    document = certificates()[why]
    page = opened(window, board, tmp_path, document)
    sentence = verdict(document).sentence
    first = page.locator(".findings li").first
    expect(first).to_have_text(f"{SIGNS[sentence.standing]}{sentence.badge}{sentence.text}")
    assert_shown(page, content(document))


def documents(state: Path) -> dict[str, Worded]:
    result = ResultDocument.read(state / SESSION[:16] / "result.json")
    contradictions = ((2, "dora", "bert", "acknowledged"),)
    inexact = replace(result, contradictions=contradictions, exact=False, standard_error=None)
    none = replace(result, estimate=None, interval=None, cohort=None, coalition=None, coalitions=None, reason="too few")
    return {
        "a result": result,
        "an unbounded result": unbounded(result),
        "an inexact result": inexact,
        "no result": none,
        "a plan": proven_plan(),
    }


@pytest.mark.parametrize("which", ["a result", "an unbounded result", "an inexact result", "no result", "a plan"])
def test_other_documents_have_the_same_verdict_on_a_page(
    window: Watched, board: Dashboard, state: Path, tmp_path: Path, which: str
) -> None:
    document = documents(state)[which]
    page = opened(window, board, tmp_path, document)
    if which != "a plan":  # which promises something of runs to come: its content says first how far off it will be
        expect(page.locator(".findings")).to_contain_text(verdict(document).text)
    assert_shown(page, content(document))


def test_a_new_row_needs_no_change_of_the_page(
    window: Watched, board: Dashboard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    added = (
        RowOf("route", "A fact of tomorrow", lambda document: "said once, in Python", detail=False),
        RowOf("rounds", "Another", group="A new group"),
    )
    monkeypatch.setattr(certificate, "ROWS", (*certificate.ROWS, *added))
    page = opened(window, board, tmp_path, certificates()["above"])
    expect(page.get_by_text("said once, in Python")).to_be_visible()
    page.get_by_role("button", name="What is A fact of tomorrow?").click()
    expect(page.get_by_text("The method that worked the losses out.").first).to_be_visible()
    page.get_by_text("A new group").click()
    expect(page.get_by_text("Another")).to_be_visible()


def test_a_session_that_has_ended_is_shown_by_the_same_card(window: Watched, board: Dashboard) -> None:
    identity = f"{SESSION[:16]}.anna"
    page = window.visit(f"/sessions?session={identity}")
    card = page.get_by_role("region", name="Session “waiting times”")
    expect(card.locator(".findings")).to_contain_text("The estimated mean is 97.")
    expect(card.locator("figure svg")).to_have_count(2)
    expect(page.get_by_text("Updated every 2 seconds")).to_be_visible()
    page.evaluate("document.querySelector('.findings').dataset.first = 'yes'")
    page.wait_for_timeout(2500)
    expect(page.locator(".findings[data-first]")).to_be_visible()  # it is drawn once


def test_an_execution_leads_to_its_run(window: Watched, board: Dashboard) -> None:
    (opened,) = (file for file in board.ask("files")["files"] if file["name"] == CONSORTIUM.name)
    page = window.visit(f"/file?file={opened['id']}")
    expect(page.get_by_role("status").filter(has_text="This is an execution.")).to_be_visible()
    page.get_by_role("link", name="Watch the run").click()
    expect(page.get_by_role("heading", name="Watch a run")).to_be_visible()
