"""The colours of all pictures and pages, by purpose: the same as in the dashboard's css/base.css, light and dark.

What a picture is about is in colour, and what it is compared with in grey. Colours that stand side by side differ for
colour-blind eyes too: OWN, CANCELLING and DATA; COLLUDER and OWN; all of them and INK. Some eyes see OWN and a grey as
nearly the same, so lines of inca are also thicker than all others, and every line has its name at its end. What has an
order, such as a number of receivers, has shades of one colour from light to dark.
"""

from __future__ import annotations

LIGHT = {
    "paper": "#fbfaf7",
    "card": "#ffffff",
    "ink": "#1d2327",
    "soft": "#5a6570",
    "line": "#d9d6cf",
    "focus": "#0b57d0",
    "own": "#0b6e6e",
    "independent": "#0b6e6e",
    "cancelling": "#c9772c",
    "data": "#7a5ea8",
    "baseline": "#7d8790",
    "colluder": "#c0362c",
    "honest": "#0b6e6e",
    "absent": "#b9b4a9",
    "good": "#1c7c3c",
    "bad": "#b3261e",
    "warn": "#8a5a00",
    "low": "#2b6cb0",
    "high": "#c9772c",
}
DARK = {
    "paper": "#14181b",
    "card": "#1d2327",
    "ink": "#eceff1",
    "soft": "#a3adb6",
    "line": "#39424a",
    "focus": "#8ab4f8",
    "own": "#4dc4bd",
    "independent": "#4dc4bd",
    "cancelling": "#f0a35e",
    "data": "#b79ce6",
    "baseline": "#8e99a3",
    "colluder": "#ff8a80",
    "honest": "#4dc4bd",
    "absent": "#59626b",
    "good": "#7bd88f",
    "bad": "#ff8a80",
    "warn": "#f2c46d",
    "low": "#7db3ec",
    "high": "#f0a35e",
}

GROUND, INK, SOFT, LINE = (LIGHT[purpose] for purpose in ("card", "ink", "soft", "line"))
"""The ground of pictures, what is written on it, what is written beside it, and lines that only guide the eye."""
OWN, BASELINE, ABSENT = (LIGHT[purpose] for purpose in ("own", "baseline", "absent"))
"""inca, what it is compared with, and who is not there."""
INDEPENDENT, CANCELLING, DATA = (LIGHT[purpose] for purpose in ("independent", "cancelling", "data"))
"""The parts of an error: noise that stays, noise that leavers did not cancel, values lost with them."""
HONEST, COLLUDER, LOW, HIGH = (LIGHT[purpose] for purpose in ("honest", "colluder", "low", "high"))
"""Honest parties, what the adversary has or what says nothing, and the two ends of a scale."""


def shades(count: int) -> list[str]:
    """Return shades of our own colour from light to dark, for what has an order; the last is the colour itself.

    Example:
        >>> shades(3)
        ['#aacccc', '#5a9d9d', '#0b6e6e']
    """
    own, ground = ([int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in (OWN, GROUND))
    parts = [0.65 * (count - 1 - number) / max(1, count - 1) for number in range(count)]
    return [
        "#" + "".join(f"{round(one + part * (other - one)):02x}" for one, other in zip(own, ground, strict=True))
        for part in parts
    ]
