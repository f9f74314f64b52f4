"""Plans and adversaries in a real browser: what people do; no request leaves the machine, and nothing goes wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Page, expect

import inca
from helpers.browser import Watched, numbers
from helpers.dashboard_server import CONSORTIUM, Dashboard, running
from inca.reporting.plan import plan_content


@pytest.fixture(scope="module")
def board() -> Iterator[Dashboard]:
    with running(opened=[CONSORTIUM]) as dashboard:
        yield dashboard


# --- plan -------------------------------------------------------------------------------------------------------------

QUICK = "parties=30&epsilon=2&messages=8"


def own_words(**required: Any) -> str:
    """Return what a plan comes to, as `inca plan` words it."""
    return plan_content(inca.plan(inca.Requirements(**required)).document()).verdict[0].text


def planned(window: Watched, address: str) -> Page:
    """Open a plan, and wait until it can be downloaded."""
    page = window.visit(address)
    expect(page.locator(".next:not([inert])")).to_be_visible()
    return page


def test_moving_a_slider_changes_the_answer_and_the_address_while_no_server_answers(window: Watched) -> None:
    page = planned(window, f"/plan?{QUICK}")
    page.route("**/api/**", lambda route: None)  # never answered
    headline, chart = page.locator(".headline"), page.locator(".comparison svg")
    expect(headline).to_have_text(f"✓ OK: {own_words(parties=30, epsilon=2.0, messages=8)}")
    page.get_by_label("Epsilon, slider").evaluate(
        "slider => { slider.value = Math.log10(5); slider.dispatchEvent(new Event('input')); }"
    )
    expect(page).to_have_url(re.compile(r"epsilon=5"))
    expect(headline).to_have_text(f"✓ OK: {own_words(parties=30, epsilon=5.0, messages=8)}")
    error = inca.plan(inca.Requirements(30, 5.0, messages=8)).expected_mse ** 0.5
    expect(chart).to_have_attribute("aria-label", re.compile(rf"inca {error:.3g}\b"))
    for name in ("Central DP", "Local DP", "CorDP-DME", "secure aggregation"):
        expect(chart).to_contain_text(name)
    expect(page.locator(".next[inert]")).to_be_visible()  # the file would be the one before


def test_four_inputs_are_in_sight_and_the_rest_opens(window: Watched) -> None:
    page = planned(window, "/plan")
    fields = page.locator(".requirements input[type=number]:visible")
    expect(fields).to_have_count(4)
    assert page.locator("main .hint:visible").count() <= 8
    page.get_by_text("More", exact=True).click()
    expect(fields).to_have_count(7)
    expect(page.get_by_label("Messages per party", exact=True)).to_have_value("")
    page.get_by_label("Messages per party", exact=True).fill("6")
    expect(page.locator(".headline")).to_have_text("✗ There is no such plan.")
    expect(page.locator(".answer")).to_contain_text("5 rounds are too few to join every honest party with the others")
    page.get_by_label("Messages per party", exact=True).fill("")
    expect(page.locator(".headline")).to_contain_text("OK")
    assert "messages" not in page.url
    page.get_by_label("Delta", exact=True).fill("0.001")
    planned(window, "/plan?delta=0.001")
    expect(fields).to_have_count(7)  # what is not as usual is in sight


def test_the_usual_dropout_follows_the_parties_until_another_is_asked_for(window: Watched) -> None:
    page = planned(window, "/plan?epsilon=8")
    dropout, answer = page.get_by_label("Dropping out", exact=True), page.locator(".answer")
    expect(dropout).to_have_value("10")
    page.get_by_label("Parties", exact=True).fill("3")
    expect(dropout).to_have_value("0")
    expect(answer).to_contain_text("nobody may leave")
    page.get_by_label("Parties", exact=True).fill("40")
    expect(answer).to_contain_text("up to 4 may leave, at any time")
    dropout.fill("20")
    expect(page).to_have_url(re.compile("dropout=0.2"))
    page.get_by_label("Parties", exact=True).fill("50")
    expect(answer).to_contain_text("up to 10 may leave, at any time")
    page.get_by_role("button", name="Start over").click()
    expect(dropout).to_have_value("10")
    assert "dropout" not in page.url


def test_the_answer_comes_first_and_stays_in_sight_on_a_telephone(window: Watched) -> None:
    window.begin(width=1280, height=800)
    page = planned(window, "/plan")
    for part in (".headline", ".answer", ".comparison svg"):
        box = page.locator(part).bounding_box()
        assert box is not None and box["y"] + box["height"] <= 800
    window.begin(width=390, height=844)
    page = planned(window, "/plan")
    page.get_by_role("button", name="Compute them, too").scroll_into_view_if_needed()
    headline = page.locator(".headline")
    expect(headline).to_be_in_viewport(ratio=1)
    before = headline.inner_text()
    page.get_by_label("Epsilon", exact=True).focus()  # which must not end up below it
    boxes = [page.locator(part).bounding_box() for part in (".headline", "#field-epsilon")]
    assert boxes[0] is not None and boxes[1] is not None
    assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"]
    page.get_by_label("Epsilon", exact=True).fill("3")
    expect(headline).not_to_have_text(before)
    expect(headline).to_be_in_viewport(ratio=1)


def test_a_plan_is_downloaded_told_in_detail_and_watched(window: Watched, tmp_path: Path) -> None:
    page = planned(window, "/plan?parties=10&epsilon=4")
    with page.expect_download() as started:
        page.get_by_role("button", name="Download plan.json").click()
    started.value.save_as(tmp_path / "plan.json")
    assert inca.read_plan(tmp_path / "plan.json") == inca.plan(inca.Requirements(10, 4.0))
    page.get_by_text("Everything about it").click()
    expect(page.get_by_role("region", name="Plan for 10 parties")).to_contain_text("circle")
    page.get_by_label("Parties", exact=True).fill("12")
    expect(page.get_by_role("region", name="Plan for 12 parties")).to_be_visible()
    page.get_by_role("link", name="Watch a run of it").click()
    expect(page).to_have_url(re.compile(r"/run\?.*parties=12"))
    expect(page.get_by_role("heading", name="Watch a run")).to_be_visible()


def test_a_plan_that_is_no_better_than_a_guess_is_called_that(window: Watched) -> None:
    page = planned(window, "/plan?parties=30&epsilon=0.2")
    expect(page.locator(".headline")).to_contain_text("guessing its middle would do as well.")
    expect(page.locator(".comparison svg text").get_by_text("guessing 0.5 would do as well")).to_be_visible()
    page.get_by_label("Epsilon", exact=True).fill("8")
    expect(page.locator(".headline")).to_contain_text("OK")


def test_bad_input_is_named_and_the_page_goes_on(window: Watched) -> None:
    page = planned(window, f"/plan?{QUICK}&delta=7")
    expect(page.get_by_role("alert").filter(has_text="Delta must be from")).to_contain_text("1e-5 is taken instead")
    page.get_by_label("Parties", exact=True).fill("1")
    expect(page.get_by_text("Parties must be a whole number from 2")).to_be_visible()
    page.get_by_label("Parties", exact=True).fill("40")
    expect(page.get_by_text("Parties must be a whole number from 2")).to_be_hidden()
    expect(page).to_have_url(re.compile("parties=40"))
    page.get_by_label("Messages per party", exact=True).fill("1.5")
    expect(page.get_by_text("Messages per party must be a whole number from 2 to 1,000, or empty.")).to_be_visible()


def test_requirements_that_cannot_be_met_say_why(window: Watched) -> None:
    page = window.visit("/plan?parties=5&colluding=0.5&dropout=0.3")
    expect(page.locator(".headline")).to_have_text("✗ There is no such plan.")
    expect(page.locator(".answer")).to_contain_text("at least 7 parties are needed with as many, or use Local DP")
    expect(page.get_by_role("button", name="Download plan.json")).to_be_hidden()
    expect(page.locator(".comparison")).to_contain_text("Not possible here: secure aggregation, no server.")
    page.get_by_label("Colluding", exact=True).fill("20")
    expect(page.get_by_role("button", name="Download plan.json")).to_be_visible()


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
