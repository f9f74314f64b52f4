"""What the commands that take an execution share: the options that name its adversary and its noise."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from inca import Transcript

ADVERSARY, NOISE = "Adversary (default: the one in the file)", "Noise and values"

File = Annotated[Path, typer.Argument(help="An execution: inca-execution/1 as .json or .npz.")]
Wanted = Annotated[float | None, typer.Option(help="The guarantee that is wanted; status 1 if it does not hold.")]
Delta = Annotated[float, typer.Option(help="The chance that the guarantee may fail with.")]
Colluding = Annotated[
    float | None, typer.Option(help="Fraction of parties that collude, at random.", rich_help_panel=ADVERSARY)
]
Eavesdropped = Annotated[
    float | None, typer.Option(help="Fraction of each round's messages, at random.", rich_help_panel=ADVERSARY)
]
Level = Annotated[float | None, typer.Option(help="Instead of the level in the file.", rich_help_panel=NOISE)]
Bounds = Annotated[
    tuple[float, float], typer.Option(help="LOW HIGH: every coordinate lies between.", rich_help_panel=NOISE)
]


def chosen(
    transcript: Transcript,
    colluding: float | None,
    eavesdropped: float | None,
    seed: int | None,
    sigma_independent: float | None,
    sigma_cancelling: float | None,
) -> Transcript:
    """Return the transcript with the adversary and the noise levels that the options name instead of its own."""
    from dataclasses import replace

    import numpy as np

    import inca
    from inca._base.validation import refuse, whole

    if seed is not None:
        if colluding is None and eavesdropped is None:
            raise refuse("--seed", seed, "--colluding or --eavesdropped beside it, for a random adversary,")
        whole("--seed", seed)
    if colluding is not None or eavesdropped is not None:
        execution, rng = transcript.execution, np.random.default_rng(seed)
        drawn = inca.Adversary.random(execution.parties, execution.rounds, rng, colluding or 0.0, eavesdropped or 0.0)
        transcript = replace(transcript, colluding=drawn.colluding, eavesdropped=drawn.eavesdropped)
    if sigma_independent is not None:
        transcript = replace(transcript, sigma_independent=sigma_independent)
    if sigma_cancelling is not None:
        transcript = replace(transcript, sigma_cancelling=sigma_cancelling)
    return transcript
