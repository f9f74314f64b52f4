"""What a page says when something goes wrong, and what it keeps, in a real browser."""

from __future__ import annotations

import re
from contextlib import ExitStack

from playwright.sync_api import Browser, expect

from helpers.browser import Watched, watched
from helpers.dashboard_server import running


def test_a_program_that_has_ended_is_called_that(chromium: Browser) -> None:
    server = ExitStack()
    board = server.enter_context(running())
    with server, watched(chromium, board.root) as window:
        page = window.page
        page.goto(f"{board.root}/run?parties=5&rounds=4")
        expect(page.locator("main[data-step-ms]")).to_be_visible()
        server.close()
        page.get_by_role("button", name="Another seed").click()
        expect(page.get_by_role("alert").filter(has_text="does not answer")).to_contain_text(
            "start inca dashboard again"
        )


def test_what_is_wrong_with_a_number_stands_out_and_is_not_covered(window: Watched) -> None:
    page = window.visit("/run?parties=5&rounds=4")
    field = page.get_by_label("Rounds", exact=True)
    field.fill("0")
    problem = page.locator("#field-rounds-problem")
    expect(problem).to_contain_text("Rounds must be a whole number from 1 to 200.")
    wrong = page.evaluate("getComputedStyle(document.documentElement).getPropertyValue('--bad')").strip()
    colour = problem.evaluate("(element) => getComputedStyle(element).color")
    assert colour == page.evaluate(
        "(colour) => { const probe = document.createElement('p'); probe.style.color = colour;"
        " document.body.append(probe); const shown = getComputedStyle(probe).color; probe.remove();"
        " return shown; }",
        wrong,
    )
    ring = 5.0  # the outline of a field in focus, and its distance
    box, words = field.bounding_box(), problem.bounding_box()
    assert box is not None and words is not None
    assert words["y"] >= box["y"] + box["height"] + ring


def test_the_menu_keeps_the_run_and_the_plan(window: Watched) -> None:
    page, menu = window.page, window.page.get_by_role("navigation", name="Views")
    page.goto(f"{window.root}/plan?parties=44&epsilon=2&messages=6")
    expect(page.get_by_label("Parties", exact=True)).to_have_value("44")
    menu.get_by_role("link", name="Run").click()
    page.get_by_label("Parties", exact=True).fill("7")
    page.get_by_label("Who colludes").fill("2")
    page.get_by_label("Who colludes").press("Enter")
    expect(page).to_have_url(re.compile(r"/run\?.*parties=7.*colluding=2"))
    menu.get_by_role("link", name="Adversary").click()
    expect(page).to_have_url(re.compile(r"/adversary\?.*parties=7.*colluding=2"))
    expect(page.get_by_label("Parties", exact=True)).to_have_value("7")
    menu.get_by_role("link", name="Plan").click()
    expect(page.get_by_label("Parties", exact=True)).to_have_value("44")
    menu.get_by_role("link", name="Run").click()
    expect(page.get_by_label("Parties", exact=True)).to_have_value("7")
    menu.get_by_role("link", name="Run").click()  # its own link starts over
    expect(page.get_by_label("Parties", exact=True)).to_have_value("12")
