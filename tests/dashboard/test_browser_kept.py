"""In a real browser: what was planned or opened is there again after a reload, and after going back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from helpers.browser import Watched
from helpers.dashboard_documents import certificates
from helpers.dashboard_server import Dashboard, running
from helpers.paths import FIXTURES
from inca.dashboard.kept_documents import MAX_KEPT

PLAN = FIXTURES / "version-0.1" / "plan.json"


def asked(epsilon: int) -> str:
    """Return where something is asked that is quickly computed."""
    return f"/plan?parties=10&epsilon={epsilon}&messages=6&dropout=0&colluding=0"


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running() as dashboard:
        yield dashboard


def planned(window: Watched, epsilon: int) -> Page:
    """Make a plan that was not made before, and return its page."""
    page = window.visit(asked(epsilon))
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_text("Plan for 10 parties")).to_be_visible()
    return page


def test_a_finished_plan_is_there_after_a_reload(window: Watched) -> None:
    page = planned(window, 3)
    text = page.get_by_role("region", name="Plan for 10 parties").inner_text()
    window.requests.clear()
    page.reload()
    expect(page.get_by_role("region", name="Plan for 10 parties")).to_have_text(text, use_inner_text=True)
    expect(page.get_by_role("button", name="Make the plan")).to_be_disabled()
    expect(page.locator(".shown svg[role=img]").first).to_contain_text("inca, planned")
    assert not [url for url in window.requests if "/api/plan?" in url]  # it was not made again


def test_slow_mechanisms_that_were_computed_are_there_after_a_reload(window: Watched) -> None:
    page = window.visit(asked(5))
    chart = page.locator(".shown svg[role=img]").first
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    page.get_by_role("button", name="Compute them, too").click()
    expect(page.get_by_text("They are in the chart above.")).to_be_visible(timeout=120_000)
    expect(chart).to_contain_text("GOPA")
    window.requests.clear()
    page.reload()
    expect(chart).to_contain_text("GOPA")
    expect(page.get_by_text("They are in the chart above.")).to_be_visible()
    assert not [url for url in window.requests if "/api/slow-mechanisms?" in url]


def test_a_finished_plan_is_listed_and_leads_back_to_its_requirements(window: Watched) -> None:
    page = planned(window, 4)
    page.get_by_role("link", name="see the list").click()
    page.get_by_role("region", name="Recently").get_by_role("link", name="Plan for 10 parties, epsilon 4").click()
    expect(page).to_have_url(re.compile(r"/file\?file=[0-9a-f]{16}$"))
    expect(page.get_by_role("region", name="Plan for 10 parties")).to_contain_text("epsilon 4 at delta")
    page.reload()
    expect(page.get_by_role("region", name="Plan for 10 parties")).to_contain_text("epsilon 4 at delta")
    page.get_by_role("link", name="Open in Plan").click()
    expect(page.get_by_text("The plan for these requirements is made.")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("region", name="Plan for")).to_be_visible()


def test_an_opened_file_is_there_after_a_reload_and_after_going_back(
    window: Watched, board: Dashboard, tmp_path: Path
) -> None:
    certificates()["within"].write(tmp_path / "certificate.json")
    page, others = window.page, [file["name"] for file in board.ask("files")["files"]]
    for place in (tmp_path / "certificate.json", PLAN):
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
    expect(page.get_by_role("region", name="Plan for")).to_be_visible()
    expect(page.get_by_text(f"keeps the last {MAX_KEPT}, with at most 64 MiB together")).to_be_visible()


def test_a_file_that_was_dropped_is_called_that(window: Watched, board: Dashboard) -> None:
    first, *_ = (
        board.post(f"/api/open?name={number}.json", PLAN.read_bytes()).json["id"] for number in range(MAX_KEPT + 1)
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
