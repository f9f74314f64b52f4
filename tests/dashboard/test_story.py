"""The first page in a real browser: six steps, whose numbers are the library's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Page, expect

from helpers.browser import Watched
from helpers.dashboard_server import Dashboard, running


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running() as dashboard:
        yield dashboard


def opened(window: Watched) -> Page:
    page = window.visit("/story")
    expect(page.locator("main[data-ready]")).to_be_visible()
    return page


def settings_of(page: Page, step: int) -> dict[str, str]:
    """Return what "Try it yourself" leads to: the very run that the step shows."""
    link = page.locator(f"#step-{step}").get_by_role("link", name="Try it yourself").get_attribute("href")
    settings = dict(parse_qsl(urlsplit(link or "").query))
    settings.pop("t", None)  # the round that the page shows
    return settings


def test_the_first_page_has_six_steps_that_end_in_trying_it(window: Watched, board: Dashboard) -> None:
    page = window.page
    page.goto(f"{window.root}/")
    expect(page.locator("main[data-ready]")).to_be_visible()
    assert page.url.endswith("/story")
    expect(page.locator(".story-step")).to_have_count(6)
    for step in range(1, 7):
        assert board.ask("run", **settings_of(page, step))["parties"] == 5


def test_what_is_said_of_the_result_is_the_librarys(window: Watched, board: Dashboard) -> None:
    page = opened(window)
    for step in (3, 4, 5):
        answer = board.ask("run", **settings_of(page, step))
        simulation = answer["simulation"]
        stayed = [simulation["values"][party] for party in answer["published"]]
        truth = sum(stayed) / len(stayed)
        said = page.locator(f"#step-{step}").inner_text()
        result, mean, off = map(
            float,
            re.findall(r"The result is ([\d.]+) minutes; the .*? is ([\d.]+)\. It is off by ([\d.]+) of 240", said)[0],
        )
        assert result == pytest.approx(simulation["result"]["estimate"], rel=5e-3)
        assert mean == pytest.approx(truth, rel=5e-3)
        assert off == pytest.approx(abs(simulation["result"]["estimate"] - truth), rel=0.06)
    assert len(stayed) == 4  # the one who vanished is not in the mean any more


def test_the_neighbour_knows_a_number_that_is_sent_plainly_and_not_one_that_is_hidden(
    window: Watched, board: Dashboard
) -> None:
    page = opened(window)
    expect(page.locator("#step-2")).to_contain_text(re.compile(r"where the truth is \d+: exactly\."))
    expect(page.locator("#step-6")).to_contain_text("give or take")
    loss = board.ask("adversary", **settings_of(page, 6))["worst"]["epsilon"]
    expect(page.locator("#step-6")).to_contain_text(f"epsilon {loss:.2g} at delta")
    assert loss < 1.5


def test_arrow_keys_go_from_step_to_step_and_the_address_keeps_the_step(window: Watched) -> None:
    page = opened(window)
    page.get_by_role("button", name="Begin").click()
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    expect(page.locator("#step-3")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#step-2")).to_be_focused()
    assert page.url.endswith("step=2")
    page.reload()
    expect(page.locator("#step-2")).to_be_focused()


def test_the_pot_ends_with_a_sliver_of_noise(window: Watched, board: Dashboard) -> None:
    page = opened(window)
    step = page.locator("#step-4")
    noise = []
    for place in range(9):
        step.get_by_role("slider", name="Round").fill(str(place))
        words = step.locator(".pot [role=status]").inner_text()
        noise.append(abs(float(re.findall(r"(-?[\d.]+) of noise", words)[0])))
    simulation = board.ask("run", **settings_of(page, 4))["simulation"]
    assert noise[-1] == pytest.approx(abs(simulation["result"]["estimate"] - simulation["true_mean"]), rel=0.06)
    assert noise[-1] < max(noise) / 5


@pytest.mark.parametrize("dark", [False, True])
def test_it_fits_a_telephone(window: Watched, dark: bool) -> None:
    window.begin(width=390, height=800, dark=dark)
    assert opened(window).evaluate("document.documentElement.scrollWidth") <= 390
