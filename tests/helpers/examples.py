"""How many random cases a property is tried on."""

from __future__ import annotations

from hypothesis import settings

PROFILES = {"thorough": 200, "quick": 10}
"""Random cases of a property that says nothing else, by the name of the profile."""


def cases(quick: int, thorough: int) -> int:
    """Return how many cases a test tries that is dear, and how many in `make test-all`.

    The number for all other properties tells which profile is in force.
    """
    return thorough if settings().max_examples > PROFILES["quick"] else quick


def examples(quick: int, thorough: int) -> settings:
    """Return the settings of a property that is dear, or needs more cases than others."""
    return settings(max_examples=cases(quick, thorough))
