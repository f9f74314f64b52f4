"""Pictures that commands draw on request; they need matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inca._base.plotting import canvas, check_matplotlib, save
from inca._base.validation import InputError
from inca.privacy.gaussian import epsilon_for

if TYPE_CHECKING:
    from inca import Certificate, Wish
    from inca.mechanisms.compare import Entry


def check_picture(path: Path) -> None:
    """Refuse a name that no picture can have, before the work is done that it would show."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"--picture is {str(path)!r}, but a name that ends in .png or .svg was expected")
    check_matplotlib("--picture")


def draw_comparison(wish: Wish, entries: list[Entry], path: Path) -> None:
    """Draw every mechanism's error over the dropout rates, as multiples of Central DP's with everyone present."""
    check_picture(path)
    figure, axes = canvas(8, 5)
    for name in dict.fromkeys(each.mechanism for each in entries):
        row = [each for each in entries if each.mechanism == name and each.relative is not None]
        if not row:
            continue
        own, weaker = name.startswith("inca"), row[0].weaker
        axes.plot(
            [each.dropout for each in row],
            [each.relative for each in row],
            marker="o",
            linewidth=3 if own else 1.2,
            linestyle="--" if weaker else "-",
            label=name + (" (weaker promise)" if weaker else ""),
        )
        for each in row:
            if each.measured is not None and each.mse:
                scale = (each.relative or 0.0) / each.mse
                axes.errorbar(
                    each.dropout, each.measured.mse * scale, 3 * each.measured.standard_error * scale, color="black"
                )
    axes.set_yscale("log")
    axes.set(xlabel="fraction of parties that leave", ylabel="mean squared error / Central DP, everyone present")
    axes.set_title(
        f"{wish.parties:,} parties, ({wish.epsilon:g}, {wish.delta:g})-DP, {wish.colluding:.0%} colluding, "
        f"{wish.messages} messages each"
    )
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)


def draw_losses(made: Certificate, path: Path) -> None:
    """Draw every honest party's epsilon, sorted, between what Central and Local DP would give with the same noise."""
    check_picture(path)
    epsilon = np.sort(made.epsilon)
    finite = epsilon[np.isfinite(epsilon)]
    figure, axes = canvas(7, 4)
    axes.plot(np.arange(1, finite.size + 1), finite, ".", label="this execution, exact")
    noise = made.transcript.sigma_independent
    if noise:
        shifts = made.sensitivity / noise * np.array([1.0, 1.0 / np.sqrt(epsilon.size)])
        local, central = epsilon_for(shifts, made.delta, made.rule)
        for level, name, style in ((local, "all messages seen (Local DP)", "--"), (central, "only the sum seen", ":")):
            if np.isfinite(level) and level > 0:
                axes.axhline(level, linestyle=style, color="grey", label=f"{name}: {level:.3g}")
    if finite.size and finite[0] > 0:
        axes.set_yscale("log")
    axes.set(xlabel="honest parties, sorted by loss", ylabel=f"epsilon at delta = {made.delta:g}")
    lost = epsilon.size - finite.size
    axes.set_title(f"What the adversary learns{f'; {lost} parties have no guarantee' if lost else ''}")
    axes.legend()
    save(figure, path)
