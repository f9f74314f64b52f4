"""Draw the pictures of docs/accountant-in-pictures.md.

python tools/pictures_accountant.py
"""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.patches import Patch
from scipy.stats import norm

import inca
from inca._base.palette import BASELINE, COLLUDER, GROUND, HIGH, HONEST, INK, LINE, LOW, OWN, SOFT, shades
from inca._base.plotting import LineEnd, canvas, label_ends, look, save
from inca.privacy.attack import single_noise_term

FOLDER = Path(__file__).parents[1] / "docs" / "pictures"
PARTIES, ROUNDS, PARTY_THAT_COLLUDES = 4, 3, 3
LEVEL = 0.5
"""The level of the independent noise on the page."""
_SIGNS = LinearSegmentedColormap.from_list("signs", [HIGH, GROUND, LOW])


def tiny(injection: inca.Injection) -> inca.View:
    """Return what party 3 knows of four parties: in round t everyone sends to the party t places further."""
    receivers = [[[(i + t) % PARTIES] for i in range(PARTIES)] for t in range(1, ROUNDS + 1)]
    execution = inca.Execution(inca.ExplicitSchedule(receivers), injection)
    return inca.View(execution, inca.Adversary(colluding=[PARTY_THAT_COLLUDES]))


def draw_messages(path: Path) -> None:
    """Show all messages of the tiny execution, who is sent them, and which of them are seen."""
    view = tiny(inca.incremental_injection(ROUNDS))
    figure, axes = canvas(7.4, 3.5)
    for party in range(PARTIES):
        axes.plot([0, ROUNDS], [party, party], color=LINE, lw=1.2, zorder=1)
    for t in range(1, ROUNDS + 1):
        receivers = view.execution.sends(t).receivers[:, 0]
        for i, j in enumerate(receivers.tolist()):
            colour = INK if i == PARTY_THAT_COLLUDES else COLLUDER if view.seen[t - 1, i] else HONEST
            axes.annotate(
                "", (t, j), (t - 1, i), zorder=2,
                arrowprops={"arrowstyle": "-|>", "color": colour, "lw": 1.5, "shrinkA": 13, "shrinkB": 13,
                            "ls": "-" if colour != HONEST else (0, (4, 2))},
            )  # fmt: skip
    for t in range(ROUNDS + 1):
        for i in range(PARTIES):
            theirs, seen = i == PARTY_THAT_COLLUDES, view.seen[t, i]
            fill = INK if theirs else COLLUDER if seen else GROUND
            edge = INK if theirs else COLLUDER if seen else HONEST
            axes.scatter(t, i, s=620, marker="s" if theirs else "o", color=fill, edgecolors=edge, lw=1.8, zorder=3)
            text = f"$y_{{{i}}}^{{({t})}}$"
            axes.text(t, i, text, ha="center", va="center", fontsize=9, zorder=4, color=GROUND if seen else HONEST)
    names = [f"party {i}" for i in range(PARTIES - 1)] + ["party 3\ncolludes"]
    axes.set_yticks(range(PARTIES), names)
    axes.set_xticks(range(ROUNDS + 1), ["round 0", *(f"round {t}" for t in range(1, ROUNDS)), "round 3\npublished"])
    axes.set(ylim=(PARTIES - 0.5, -0.5), xlim=(-0.35, ROUNDS + 0.35))
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
    patches = [
        Patch(facecolor=COLLUDER, label="seen"),
        Patch(facecolor=GROUND, edgecolor=HONEST, lw=1.5, label="hidden"),
        Patch(facecolor=INK, label="the colluder's own"),
    ]
    figure.legend(handles=patches, loc="outside upper center", ncols=3, frameon=False)
    save(figure, path)


def draw_system(path: Path) -> None:
    """Show the linear system that the adversary has: one row per seen message, one column per unknown."""
    view = tiny(inca.incremental_injection(ROUNDS))
    figure, axes = canvas(8.6, 3.5)
    draw_matrix(axes, view, view.noise, [f"$\\eta_{{{i},{k + 1}}}$" for i in range(3) for k in range(ROUNDS)])
    for left, text in ((-0.5, "B: values in a message"), (3.0, "A: noise terms in a message")):
        axes.text(left, -1.25, text, color=INK, fontsize=10)
    save(figure, path)


def draw_matrix(axes: Any, view: inca.View, noise: Any, names: list[str]) -> None:
    """Show B and A side by side, entries as fractions."""
    gap = 0.5
    table = [(0.0, view.value), (view.value.shape[1] + gap, noise)]
    for left, part in table:
        rows, columns = part.shape
        extent = (left - 0.5, left + columns - 0.5, rows - 0.5, -0.5)
        axes.imshow(part, cmap=_SIGNS, vmin=-1.3, vmax=1.3, extent=extent, aspect="auto")
        for row in range(rows):
            for column in range(columns):
                entry = Fraction(float(part[row, column])).limit_denominator(48)
                if entry:
                    text = str(entry).replace("-", "\N{MINUS SIGN}")
                    axes.text(left + column, row, text, ha="center", va="center", fontsize=8.5, color=INK)
        axes.hlines(np.arange(rows + 1) - 0.5, extent[0], extent[1], color=LINE, lw=0.5)
        axes.vlines(left + np.arange(columns + 1) - 0.5, -0.5, rows - 0.5, color=LINE, lw=0.5)
    places = np.concatenate([left + np.arange(part.shape[1]) for left, part in table])
    axes.set_xticks(places, [f"$u_{{{i}}}$" for i in view.honest] + names)
    axes.set_yticks(range(len(view.rows)), [f"$y_{{{i}}}^{{({t})}}$" for t, i in view.rows])
    axes.set(xlim=(-0.6, places[-1] + 0.6), ylim=(len(view.rows) - 0.4, -0.6))
    axes.xaxis.tick_top()
    axes.tick_params(length=0, labelsize=10)
    for spine in axes.spines.values():
        spine.set_visible(False)


def draw_curves(path: Path) -> None:
    """Show the two bell curves of one party, for an adversary that sees little and one that sees everything."""
    view = tiny(inca.incremental_injection(ROUNDS))
    everything = [(t, i) for t in range(ROUNDS) for i in range(PARTIES)]
    all_seen = inca.View(view.execution, inca.Adversary([PARTY_THAT_COLLUDES], everything))
    figure, panels = canvas(8.6, 3.0, columns=2)
    x = np.linspace(-3.6, 5.6, 400)
    titles = ("party 3 colludes", "every message is observed")
    for axes, seen, title in zip(panels, (view, all_seen), titles, strict=True):
        mu = float(inca.account(seen, inca.NoiseLevels(independent=LEVEL, cancelling=5.0), sensitivity=1.0).mu[0])
        axes.fill_between(x, np.minimum(norm.pdf(x), norm.pdf(x - mu)), color=LINE, alpha=0.7, lw=0)
        axes.plot(x, norm.pdf(x), color=LOW, lw=2, label="$x_0 = 0$")
        axes.plot(x, norm.pdf(x - mu), color=HIGH, lw=2, label="$x_0 = 1$")
        axes.vlines(mu / 2, 0.11, norm.pdf(mu / 2), color=INK, lw=0.8, ls=":")
        axes.annotate("", (0, 0.425), (mu, 0.425), arrowprops={"arrowstyle": "<|-|>", "color": INK, "lw": 1})
        axes.text(mu / 2, 0.44, f"$\\mu_0$ = {mu:.2f}", ha="center", va="bottom", color=INK)
        axes.text(mu / 2, 0.06, f"wrong in\n{norm.cdf(-mu / 2):.0%}", ha="center", va="center", color=INK, fontsize=8)
        axes.set(
            title=title, xlabel="what the best test looks at, in standard deviations", ylim=(0, 0.5), xlim=(-3.6, 5.6)
        )
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.legend(frameon=False, loc="upper right")
    save(figure, path)


def draw_hiding(path: Path) -> None:
    """Show the worst loss among 60 parties as more messages are hidden, for three levels of cancelling noise."""
    figure, axes = canvas(7.4, 3.5)
    shares = np.array([0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0])
    styles = zip((2.0, 10.0, 50.0), shades(3), "os^", strict=True)
    for level, colour, marker in styles:
        worst = [hidden_share(share, level).max() for share in shares]
        axes.plot(100 * shares, worst, color=colour, lw=2, marker=marker, ms=4, label=f"$\\sigma_\\Delta$ = {level:g}")
    levels = ((1.0, "Local DP: the party's\nown noise alone"), (60**-0.5, "the sum alone"))
    for height, _ in levels:
        axes.axhline(height, color=BASELINE, lw=1.2, ls="--", zorder=1)
    axes.set(
        xlabel="messages that are hidden, % (final ones are always public)", ylabel="worst loss $\\mu$", xlim=(-2, 102)
    )
    axes.set(ylim=(0, 1.12))
    axes.legend(frameon=False, loc="center right", title="cancelling noise")
    axes.set_title("The more noise cancels, the fewer hidden messages suffice", loc="left")
    label_ends({axes: [LineEnd(name, 102, height, SOFT) for height, name in levels]})
    save(figure, path)


def hidden_share(share: float, sigma_cancelling: float, n: int = 60, rounds: int = 12) -> Any:
    """Return all losses if that share of the messages, the first in one random order, is hidden; sigma_* = 1."""
    execution = inca.Execution(inca.PermutationReceivers(n, rounds, seed=1), inca.incremental_injection(rounds))
    messages = [(t, i) for t in range(rounds) for i in range(n)]
    order = np.random.default_rng(1).permutation(len(messages))
    eavesdropped = [messages[place] for place in order[round(share * len(messages)) :]]
    levels = inca.NoiseLevels(independent=1.0, cancelling=sigma_cancelling)
    return inca.account(inca.View(execution, inca.Adversary(eavesdropped=eavesdropped)), levels, sensitivity=1.0).mu


def draw_one_term(path: Path) -> None:
    """Show what is seen if each party has one noise term only, and that more noise does not help then."""
    single = tiny(single_noise_term(ROUNDS))
    figure, (left, right) = canvas(8.6, 3.4, columns=2)
    draw_matrix(left, single, single.noise[:, ::ROUNDS], [f"$\\eta_{{{i}}}$" for i in range(3)])
    left.set_title("one noise term each: party 2 is determined", pad=26, fontsize=9.5)
    levels = np.geomspace(0.05, 50, 25)
    for name, view, colour in (
        ("one noise term", single, HIGH),
        ("a fresh term every round", tiny(inca.incremental_injection(ROUNDS)), OWN),
    ):
        noise_levels = [inca.NoiseLevels(independent=LEVEL, cancelling=level) for level in levels]
        losses = [inca.account(view, both, sensitivity=1.0).mu[2] for both in noise_levels]
        right.plot(levels, losses, color=colour, lw=2, label=name)
    for height, name in ((1 / LEVEL, "Local DP"), (1 / LEVEL / 3**0.5, "the sum alone")):
        right.axhline(height, color=BASELINE, lw=1, ls="--", zorder=0)
        right.text(50, height + 0.02, name, color=INK, fontsize=8, va="bottom", ha="right")
    right.set(
        xscale="log", xlabel="level of the cancelling noise $\\sigma_\\Delta$", ylabel="loss $\\mu_2$", ylim=(0.9, 2.25)
    )
    right.set_title("the loss of party 2", fontsize=9.5)
    right.legend(frameon=False, loc="center right", bbox_to_anchor=(1.0, 0.62))
    save(figure, path)


def main() -> None:
    """Draw and save all."""
    with look():
        for name, draw in {
            "accountant-messages": draw_messages,
            "accountant-system": draw_system,
            "accountant-curves": draw_curves,
            "accountant-hiding": draw_hiding,
            "accountant-one-term": draw_one_term,
        }.items():
            draw(FOLDER / f"{name}.png")
            print(f"wrote {FOLDER.name}/{name}.png")


if __name__ == "__main__":
    main()
