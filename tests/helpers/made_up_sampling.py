"""Sampling that is made up, so that what planning makes of it can be worked out again by hand."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import inca
from inca._base.types import Array
from inca.planning.designs import ProtocolDesign
from inca.planning.sampling import CancellingNoiseSample, ErrorSample


class MadeUpSampling:
    """Stands for the sampling in a module: needs fall with the factor, in proportion to the scale of each dropout rate.

    Needs are sampled in `needs_in`, if that is another module. It writes down with what it was asked for: `calls`, and
    `error_calls` of (parties, dropout, runs).
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        module: ModuleType,
        scales: dict[float, float],
        *,
        parties: int,
        errors: ErrorSample,
        needs_in: ModuleType | None = None,
    ) -> None:
        self._scales, self._parties, self._errors = scales, parties, errors
        self.samples: list[CancellingNoiseSample] = []
        self.calls: list[dict[str, Any]] = []
        self.error_calls: list[tuple[int, float, int]] = []
        monkeypatch.setattr(needs_in or module, "sample_cancelling_noise", self._needs)
        monkeypatch.setattr(module, "sample_error", self._error)

    def _needs(
        self,
        requirements: inca.Requirements,
        design: ProtocolDesign,
        parties: int,
        attendance: tuple[float, float],
        seeds: Iterable[int],
        factors: Array,
        on_view_sampled: Any = None,
        *,
        settled: bool = False,
    ) -> CancellingNoiseSample:
        assert not settled
        self.calls.append({"parties": parties, "attendance": attendance, "seeds": list(seeds)})
        views = []
        for seed in self.calls[-1]["seeds"]:
            drawn = np.random.default_rng(seed).exponential(size=(1, self._parties))
            views.append(self._scales[attendance[0]] * drawn / factors[:, np.newaxis])
            if on_view_sampled is not None:
                on_view_sampled()
        self.samples.append(CancellingNoiseSample(factors, tuple(views)))
        return self.samples[-1]

    def _error(self, requirements: inca.Requirements, design: ProtocolDesign, dropout: float, runs: int) -> ErrorSample:
        self.error_calls.append((requirements.parties, dropout, runs))
        return self._errors
