"""Pictures that commands draw on request; they need matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from inca.privacy.gaussian import epsilon_for
from inca.transcript import write_whole
from inca.validation import InputError

if TYPE_CHECKING:
    from inca import Certificate


def draw_losses(made: Certificate, path: Path) -> None:
    """Draw every honest party's epsilon, sorted, between what Central and Local DP would give with the same noise."""
    if path.suffix not in (".png", ".svg"):
        raise InputError(f"--picture is {str(path)!r}, but a name that ends in .png or .svg was expected")
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("--picture needs matplotlib: pip install 'inca[plots]'") from None
    epsilon = np.sort(made.epsilon)
    finite = epsilon[np.isfinite(epsilon)]
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
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
    with mpl.rc_context({"svg.hashsalt": "inca"}):  # the same picture from the same input
        write_whole(path, lambda file: figure.savefig(file, format=path.suffix[1:], dpi=120, metadata=_undated(path)))


def _undated(path: Path) -> dict[str, None] | None:
    return {"Date": None} if path.suffix == ".svg" else None
