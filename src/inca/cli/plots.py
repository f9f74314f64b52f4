"""Plots that verbs make on request; they need matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inca._base.extras import require_extra
from inca._base.files import check_writable
from inca._base.plotting import ACCENT, SERIES, canvas, save
from inca._base.validation import refuse
from inca.privacy.gaussian import epsilon_for

if TYPE_CHECKING:
    from inca import Certificate, Requirements
    from inca.learn.comparison.compare import ComparisonScore, ComparisonTask
    from inca.mechanisms.compare import ComparisonEntry


def check_plot(path: Path, option: str = "--plot") -> None:
    """Refuse a file name that no plot can have, before the work is done that it would show."""
    if path.suffix not in (".png", ".svg"):
        refuse(option, str(path), "a file name that ends in .png or .svg")
    require_extra(option, "plots")
    check_writable(path)


def plot_mechanisms(requirements: Requirements, entries: list[ComparisonEntry], path: Path) -> None:
    """Plot every mechanism's error over dropout rates, as multiples of Central DP's with everyone present.

    A dashed line is at the error of guessing the middle of the domain: what is above it says nothing. Variants of one
    mechanism have one colour, and hollow markers of different shapes: those of equal error lie on each other.
    """
    from inca.mechanisms.compare import guess_mse

    figure, axes = canvas(8, 5)
    families: dict[str, list[str]] = {}
    for name in dict.fromkeys(entry.mechanism for entry in entries):
        family = families.setdefault(name.split(",")[0], [])
        family.append(name)
        row = [entry for entry in entries if entry.mechanism == name and entry.relative is not None]
        if not row:
            continue
        weaker = row[0].weaker
        axes.plot(
            [entry.dropout for entry in row],
            [entry.relative for entry in row],
            color=f"C{list(families.values()).index(family)}",
            marker="os^Dv"[(len(family) - 1) % 5],
            fillstyle="none",
            linewidth=3 if name.startswith("inca") else 1.2,
            linestyle="--" if weaker else "-",
            label=name + (" (weaker promise)" if weaker else ""),
        )
        for entry in row:
            if entry.measured is not None and entry.mse:
                scale = (entry.relative or 0.0) / entry.mse
                three_sigma = 3 * entry.measured.standard_error * scale
                axes.errorbar(entry.dropout, entry.measured.mse * scale, three_sigma, color="black")
    guess = guess_mse(requirements) / requirements.central_mse
    axes.axhline(guess, linestyle="--", color="black", linewidth=1.5, label="guessing the middle of the domain")
    axes.set_yscale("log")
    axes.set(xlabel="fraction of parties that leave", ylabel="mean squared error / Central DP, everyone present")
    axes.set_title(
        f"{requirements.parties:,} parties, {requirements.agreed}, "
        f"{requirements.colluding:.0%} colluding, {requirements.messages} messages each"
    )
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)


def plot_losses(certificate: Certificate, path: Path) -> None:
    """Plot every honest party's epsilon, sorted, between what Central and Local DP would give with the same noise."""
    epsilon = np.sort(certificate.epsilon)
    finite = epsilon[np.isfinite(epsilon)]
    figure, axes = canvas(7, 4)
    axes.plot(np.arange(1, finite.size + 1), finite, ".", label="this execution, exact")
    sigma = certificate.transcript.sigma_independent
    if sigma:
        shifts = certificate.sensitivity / sigma * np.array([1.0, 1.0 / np.sqrt(epsilon.size)])
        local, central = epsilon_for(shifts, certificate.delta, certificate.rule)
        for level, name, style in ((local, "all messages seen (Local DP)", "--"), (central, "only the sum seen", ":")):
            if np.isfinite(level) and level > 0:
                axes.axhline(level, linestyle=style, color="grey", label=f"{name}: {level:.3g}")
    if finite.size and finite[0] > 0:
        axes.set_yscale("log")
    axes.set(xlabel="honest parties, sorted by loss", ylabel=f"epsilon at delta = {certificate.delta:g}")
    unprotected = epsilon.size - finite.size
    axes.set_title(f"What the adversary learns{f'; {unprotected} parties have no guarantee' if unprotected else ''}")
    axes.legend()
    save(figure, path)


def plot_accuracies(task: ComparisonTask, scores: list[ComparisonScore], path: Path) -> None:
    """Plot accuracy over dropout rates, one panel per epsilon; bars are two standard errors to either side."""
    epsilons = list(dict.fromkeys(score.epsilon for score in scores))
    names = list(dict.fromkeys(score.averager for score in scores))
    colours = {"inca": ACCENT} | dict(zip((name for name in names if name != "inca"), SERIES, strict=False))
    figure, panels = canvas(3.2 * len(epsilons) + 1.5, 3.6, columns=len(epsilons))
    panels = [panels] if len(epsilons) == 1 else list(panels)
    for axes, epsilon in zip(panels, epsilons, strict=True):
        for name in names:
            row = [score for score in scores if (score.averager, score.epsilon) == (name, epsilon) and score.accuracies]
            axes.errorbar(
                [score.dropout for score in row],
                [score.accuracy for score in row],
                [2.0 * (score.standard_error or 0.0) for score in row],
                color=colours[name],
                linewidth=2.5 if name == "inca" else 1.2,
                capsize=3,
                label=name,
            )
        axes.set(title=f"epsilon {epsilon:g}", xlabel="fraction that leaves in every step", ylim=(0.0, 1.0))
    panels[0].set_ylabel(f"accuracy on {task.data}, {task.parties} parties")
    panels[-1].legend(fontsize="small", loc="center left", bbox_to_anchor=(1.0, 0.5))
    save(figure, path)
