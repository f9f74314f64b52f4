"""Plans and adversaries in a real browser: what people do; no request leaves the machine, and nothing goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import expect

import inca
from helpers.browser import Watched, numbers
from helpers.dashboard_server import CONSORTIUM, Dashboard, running


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running(opened=[CONSORTIUM]) as dashboard:
        yield dashboard


# --- plan -------------------------------------------------------------------------------------------------------------

QUICK = "parties=30&epsilon=2&messages=8"


def test_moving_a_slider_changes_the_error_and_the_address(window: Watched) -> None:
    page = window.visit(f"/plan?{QUICK}")
    outcome = page.locator(".outcome")
    expect(outcome).to_contain_text("off")
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    before = numbers(outcome.inner_text())[0]
    page.get_by_label("Epsilon", exact=True).fill("0.2")
    expect(page).to_have_url(re.compile(r"epsilon=0\.2"))
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    expect(outcome).not_to_contain_text(str(before))
    assert numbers(outcome.inner_text())[0] > 3 * before
    for name in ("Central DP", "Local DP", "CorDP-DME", "inca, quick estimate"):
        expect(page.locator("svg[role=img]").first).to_contain_text(name)


def test_a_plan_is_made_downloaded_and_watched(window: Watched, tmp_path: Path) -> None:
    page = window.visit("/plan?parties=10&epsilon=4&messages=6&dropout=0&colluding=0")
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()  # until then the button moves as the chart grows
    page.get_by_role("button", name="Make the plan").click()
    expect(page.get_by_text("Plan for 10 parties")).to_be_visible()
    with page.expect_download() as started:
        page.get_by_role("button", name=re.compile("Download plan")).click()
    started.value.save_as(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json").requirements.parties == 10
    page.get_by_role("button", name=re.compile("Watch a run of (it|the plan)")).first.click()
    expect(page).to_have_url(re.compile(r"/run\?.*parties=10"))
    expect(page.get_by_role("heading", name="Watch a run")).to_be_visible()


def test_a_plan_that_is_no_better_than_a_guess_is_called_that(window: Watched) -> None:
    page = window.visit("/plan?parties=30&epsilon=0.2&messages=8")
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    expect(page.locator(".outcome .warn")).to_contain_text("guessing its middle would do as well.")
    expect(page.locator(".shown svg[role=img] text").get_by_text("guessing 0.5, the middle")).to_be_visible()
    page.get_by_label("Epsilon", exact=True).fill("8")
    expect(page.locator(".shown[aria-busy=false]")).to_be_visible()
    expect(page.locator(".outcome .warn")).to_have_count(0)


def test_bad_input_is_named_and_the_page_goes_on(window: Watched) -> None:
    page = window.visit(f"/plan?{QUICK}")
    expect(page.locator(".outcome")).to_contain_text("off")
    page.get_by_label("Parties", exact=True).fill("1")
    expect(page.get_by_text("Parties must be a whole number from 2")).to_be_visible()
    page.get_by_label("Parties", exact=True).fill("40")
    expect(page.get_by_text("Parties must be a whole number from 2")).to_be_hidden()
    expect(page).to_have_url(re.compile("parties=40"))


def test_requirements_that_cannot_be_met_say_why(window: Watched) -> None:
    page = window.visit("/plan?parties=30&messages=1&colluding=0.3")
    expect(page.get_by_text(re.compile("cannot meet these requirements", re.I)).first).to_be_visible()


# --- the adversary's view ---------------------------------------------------------------------------------------------


def test_switching_the_adversary_changes_what_is_lost(window: Watched, board: Dashboard) -> None:
    page = window.visit("/adversary?parties=10&rounds=6&sigma_cancelling=8&colluding=1")
    expect(page.get_by_text("worst privacy loss")).to_be_visible()
    one = board.ask("adversary", parties=10, rounds=6, sigma_cancelling=8, colluding="1")["worst"]["epsilon"]
    expect(page.get_by_text(f"{one:.3g}", exact=True).first).to_be_visible()
    page.get_by_role("button", name="All but one").click()
    expect(page).to_have_url(re.compile(r"colluding="))
    all_but_one = numbers(page.url.split("colluding=")[1].split("&")[0].replace("+", " "))
    assert len(all_but_one) == 9
    ids = " ".join(str(int(party)) for party in all_but_one)
    more = board.ask("adversary", parties=10, rounds=6, sigma_cancelling=8, colluding=ids)["worst"]["epsilon"]
    expect(page.get_by_text(f"{more:.3g}", exact=True).first).to_be_visible()
    assert more > one


def test_nobody_can_be_chosen_instead_of_the_adversary_of_a_file(window: Watched, board: Dashboard) -> None:
    (opened,) = (file for file in board.ask("files")["files"] if file["name"] == "consortium.json")
    page = window.visit(f"/adversary?file={opened['id']}")
    own = board.ask("adversary", file=opened["id"])["worst"]["epsilon"]
    expect(page.get_by_text(f"{own:.3g}", exact=True).first).to_be_visible()
    page.get_by_role("button", name="Nobody colludes").click()
    expect(page).to_have_url(re.compile("colluding=none"))
    expect(page.get_by_text("It sees only the final messages")).to_be_visible()
    page.get_by_role("button", name="The file's own adversary").click()
    expect(page.get_by_text("It sees only the final messages")).to_be_hidden()
    expect(page.get_by_text(f"{own:.3g}", exact=True).first).to_be_visible()


def test_curves_in_the_page_are_the_librarys(window: Watched) -> None:
    page = window.visit("/file")
    asked = [(mu, epsilon) for mu in (0.05, 0.5, 2.0, 5.0) for epsilon in (0.0, 0.1, 1.0, 5.0)]
    script = """async (asked) => {
      const { deltaFor } = await import(new URL("lib/normal_distribution.js", document.scripts[0].src));
      return asked.map(([mu, epsilon]) => deltaFor(mu, epsilon));
    }"""
    exact = [float(inca.delta_for(mu, epsilon)) for mu, epsilon in asked]
    np.testing.assert_allclose(page.evaluate(script, asked), exact, rtol=1e-4, atol=1e-9)


def test_the_broken_variant_is_worse(window: Watched) -> None:
    page = window.visit(
        "/adversary?parties=8&rounds=6&sigma_independent=0.3&sigma_cancelling=50&eavesdropped=0:*+1:*+2:*+3:*+4:*",
    )
    page.get_by_role("button", name=re.compile("Compare with one noise term")).click()
    row = page.get_by_role("row").filter(has_text=re.compile("one noise term", re.I)).first
    expect(page.locator("figure").filter(has_text="One noise term for all rounds").locator("svg")).to_be_visible()
    protocol = page.get_by_role("row").filter(has_text=re.compile("protocol|in shares", re.I)).first
    expect(protocol).to_be_visible()
    expect(row).to_contain_text(re.compile(r"\d"))
    expect(protocol).to_contain_text(re.compile(r"\d"))
    assert numbers(row.inner_text())[0] > 1.2 * numbers(protocol.inner_text())[0]


# --- all views --------------------------------------------------------------------------------------------------------

OF_A_RUN = ("/run?parties=12&rounds=8&seed=3", "/adversary?parties=9&colluding=2")
ADDRESSES = ("/story", f"/plan?{QUICK}", *OF_A_RUN, "/sessions", "/file")
NAMELESS = """() => [...document.querySelectorAll("button, a, input, select, canvas, svg[role=img], progress")]
    .filter((control) => control.checkVisibility() && !(control.getAttribute("aria-label")
        || control.labels?.length || control.getAttribute("aria-labelledby") || control.textContent.trim()))
    .map((control) => control.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("dark", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_a_view_fits_a_telephone_in_light_and_dark_and_all_in_it_has_a_name(
    window: Watched, address: str, dark: bool
) -> None:
    """Every control has a name for screen readers, labels belong to fields, and there is one main heading."""
    page = window.page
    window.begin(width=390, height=800, dark=dark)
    page.goto(window.root + address)
    expect(page.locator("main h1")).to_have_count(1)
    expect(page.locator("main h1")).to_be_visible()
    page.wait_for_load_state("networkidle")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    theme = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(numbers(theme)) < 200) is dark
    for width in (390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(NAMELESS) == []
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"


def test_the_theme_can_be_changed_and_stays(window: Watched) -> None:
    page = window.visit("/plan")
    page.get_by_role("button", name="Change to dark").click()
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    window.forget()  # or it would be dark in the next test


def test_without_sessions_it_says_how_to_watch_some(window: Watched) -> None:
    page = window.visit("/sessions")
    expect(page.get_by_text("--sessions").first).to_be_visible()
