"""The options that say what is wanted, shared by the commands that plan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from inca.privacy.gaussian import Rule as KnownRule

WISH, LIMITS = "What is wanted", "What may happen and what may be spent"

Parties = Annotated[int, typer.Option(help="Number of parties n.", rich_help_panel=WISH)]
Epsilon = Annotated[float, typer.Option(help="The wanted epsilon, for every honest party.", rich_help_panel=WISH)]
Delta = Annotated[float, typer.Option(help="The wanted delta, between 0 and 1.", rich_help_panel=WISH)]
Rule = Annotated[str, typer.Option(help="exact, or classic: the paper's constant.", rich_help_panel=WISH)]
Sensitivity = Annotated[
    float, typer.Option(help="Largest distance between two values of a party.", rich_help_panel=WISH)
]
Colluding = Annotated[float, typer.Option(help="Fraction of parties that collude.", rich_help_panel=LIMITS)]
Eavesdropped = Annotated[
    float, typer.Option(help="Fraction of each round's messages that are tapped.", rich_help_panel=LIMITS)
]
Dropout = Annotated[float, typer.Option(help="Fraction of parties that may leave for good.", rich_help_panel=LIMITS)]
Messages = Annotated[int, typer.Option(help="Messages that a party may send.", rich_help_panel=LIMITS)]
Failure = Annotated[
    float, typer.Option(help="Chance, over schedules and adversaries, that it may fail.", rich_help_panel=LIMITS)
]
Views = Annotated[int, typer.Option(help="Random views sampled per dropout rate: more is surer and slower.")]


def known_rule(rule: str) -> KnownRule:
    """Return the rule that --rule names, or refuse it."""
    from inca._base.validation import refuse

    if rule not in ("exact", "classic"):
        raise refuse("--rule", rule, "exact or classic")
    return cast("KnownRule", rule)
