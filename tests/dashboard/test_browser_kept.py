"""In a real browser: what was computed or opened is there again after a reload, and after going back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from helpers.browser import Watched
from helpers.dashboard_documents import certificates, proven_plan
from helpers.dashboard_server import Dashboard, running
from inca.dashboard.kept_documents import MAX_KEPT


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    proven_plan().write(tmp_path / "plan.json")
    return tmp_path / "plan.json"


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running() as dashboard:
        yield dashboard


def test_slow_mechanisms_that_were_computed_are_there_after_a_reload(window: Watched) -> None:
    page = window.visit("/plan?parties=8&epsilon=5&dropout=0&colluding=0")
    chart = page.locator(".comparison svg")
    page.get_by_role("button", name="Compute them, too").click()
    expect(page.get_by_text("They are in the chart above.")).to_be_visible(timeout=120_000)
    expect(chart).to_contain_text("GOPA")
    window.requests.clear()
    page.reload()
    expect(chart).to_contain_text("GOPA")
    expect(page.get_by_text("They are in the chart above.")).to_be_visible()
    assert not [url for url in window.requests if "/api/slow-mechanisms?" in url]


def test_an_opened_file_is_there_after_a_reload_and_after_going_back(
    window: Watched, board: Dashboard, tmp_path: Path, plan_file: Path
) -> None:
    certificates()["within"].write(tmp_path / "certificate.json")
    page, others = window.page, [file["name"] for file in board.ask("files")["files"]]
    for place in (tmp_path / "certificate.json", plan_file):
        window.visit("/file")
        page.locator("input[type=file]").set_input_files(place)
        expect(page).to_have_url(re.compile(r"file=[0-9a-f]{16}"))
        expect(page.get_by_role("heading", level=1)).to_have_text(place.name)
    page.reload()
    expect(page.get_by_role("region", name="Plan for")).to_be_visible()
    listed = page.get_by_role("region", name="Recently").get_by_role("link")
    expect(listed).to_have_text(["plan.json", "certificate.json", *others])
    listed.nth(1).click()
    expect(page.get_by_role("region", name="Certificate of privacy")).to_be_visible()
    page.go_back()
    page.get_by_role("link", name="Open in Plan").click()
    expect(page.get_by_label("Parties", exact=True)).to_have_value("60")
    expect(page.locator(".answer")).to_contain_text("7 rounds, 8 messages a party")
    page.go_back()
    expect(page.get_by_role("region", name="Plan for")).to_be_visible()
    expect(page.get_by_text(f"keeps the last {MAX_KEPT}, with at most 64 MiB together")).to_be_visible()


def test_a_file_that_was_dropped_is_called_that(window: Watched, board: Dashboard, plan_file: Path) -> None:
    first, *_ = (
        board.post(f"/api/open?name={number}.json", plan_file.read_bytes()).json["id"] for number in range(MAX_KEPT + 1)
    )
    page = window.visit(f"/file?file={first}")
    alert = page.get_by_role("alert").filter(has_text="not kept any more")
    expect(alert).to_have_text(
        "This file is not kept any more: only the last 16 are, with at most 64 MiB together, until the program ends."
    )
    window.errors[:] = [error for error in window.errors if "status of 400" not in error]


def test_what_a_view_consists_of_is_not_asked_for_again(window: Watched) -> None:
    page = window.visit("/story")
    expect(page.locator("main h1")).to_be_visible()
    page.reload()
    expect(page.locator("main h1")).to_be_visible()
    sizes = page.evaluate(
        """() => performance.getEntriesByType("resource").filter((file) => file.name.includes("/static/"))
          .map((file) => [file.name, file.transferSize])"""
    )
    assert len(sizes) > 20 and not [name for name, size in sizes if size > 0]
