"""Which page is where in the documentation site: four groups by what a reader wants, and one for those who change inca.

Tutorials are followed, how-tos get something done, explanations are read, and in the reference one looks things up. A
page is in the group where most of it belongs; `build` refuses to begin if one is in none or in two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

START = "index"

GROUPS: dict[str, tuple[str, ...]] = {
    "Tutorials": (
        "first-ten-minutes",
        "tutorial-researcher",
        "tutorial-consortium",
        "tutorial-engineer",
        "tour",
    ),
    "How-to": (
        "installing",
        "dashboard",
        "network",
        "relay",
        "learning",
        "studies",
        "pytorch",
        "extending",
    ),
    "Explanation": (
        "privacy-promise",
        "accountant-in-pictures",
        "accounting",
        "settlement",
        "conditions",
        "failure-probability",
        "rounding",
        "noise-design",
        "planner",
        "growth",
        "attack",
        "baselines",
        "learning-compared",
        "reproduction",
        "errata",
    ),
    "Reference": (
        "reference/index",
        "command-line",
        "format",
        "golden",
        "glossary",
        "notation",
        "stated-losses",
        "performance",
    ),
    "Project": (
        "contributing",
        "architecture",
        "mutants",
        "dependencies",
        "changelog",
    ),
}
"""Pages without their suffix, in the order in which the menu shows them."""

PYTHON = ("average", "protocol", "privacy", "planning", "baselines", "learning", "network", "files")
"""The pages below reference/index, which the menu shows when one of them is read."""

SHORT = {
    "failure-probability": "The probability of failure",
    "settlement": "Settlement: leavers undone",
    "conditions": "When bounded noise is enough",
    "reproduction": "The paper's figures",
    "network": "Parties on a network",
    "relay": "Relays, for parties behind firewalls",
}
"""Titles in the menu, where a page's own is too long for it."""


def listed() -> list[str]:
    """Return every page of the menu, once for every time that it is there."""
    return [*(page for pages in GROUPS.values() for page in pages), *(f"reference/{page}" for page in PYTHON)]


def menu_errors(pages: Iterable[str]) -> list[str]:
    """Return a sentence for every page that is not exactly once in the menu.

    >>> menu_errors([*listed(), "index"]), menu_errors([*listed(), "index", "poems"])
    ([], ['poems must be in one group of the menu, is in 0'])
    """
    count = Counter(listed())
    wanted = set(pages) - {START}
    wrong = sorted(page for page in wanted | set(count) if count[page] != 1 or page not in wanted)
    return [
        f"{page} must be in one group of the menu, is in {count[page]}"
        if page in wanted
        else f"the menu must list pages that exist, got {page}"
        for page in wrong
    ]


def menu() -> str:
    """Return the menu as the site generator reads it, to be put at the end of the start page.

    >>> menu().splitlines()[:5]
    ['```{toctree}', ':hidden:', ':caption: Tutorials', '', 'first-ten-minutes']
    """
    return "\n\n".join(
        _tree([f"{SHORT[page]} <{page}>" if page in SHORT else page for page in pages], f":caption: {caption}")
        for caption, pages in GROUPS.items()
    )


def python_menu() -> str:
    """Return the same for the pages below reference/index."""
    return _tree(PYTHON)


def _tree(lines: Iterable[str], *options: str) -> str:
    return "\n".join(["```{toctree}", ":hidden:", *options, "", *lines, "```"])
