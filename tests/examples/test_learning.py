"""The examples of learning run as they are, and what they print is what they promise."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys

import numpy as np
import pytest
from numpy.typing import NDArray

import inca
from helpers.paths import ROOT
from inca.learn import SimulatedAverager

FOLDER = ROOT / "examples"


def printed(name: str, *options: str) -> list[str]:
    done = subprocess.run([sys.executable, str(FOLDER / name), *options], check=True, capture_output=True, text=True)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_an_averager_of_ones_own_has_the_noise_that_it_says() -> None:
    """A mean of 40,000 squares has a relative standard error of sqrt(2 / 40,000); five are a false alarm of 6e-7."""
    own = runpy.run_path(str(FOLDER / "learning_researcher.py"))["Cautious"](
        inca.Requirements(20, 1.0, 1e-5, colluding=0.0, dropout=0.0)
    )
    averager, vectors = SimulatedAverager(own, dropout=0.25), np.full((20, 40_000), 3.0)
    average = averager.average(vectors, sensitivity=2.0, mu=0.5, rng=np.random.default_rng(1))
    assert average.estimate is not None and average.var_noise == pytest.approx(4 * (2.0 / (15 * 0.5)) ** 2)
    assert abs(np.mean((average.estimate - 3.0) ** 2) / average.var_noise - 1.0) < 5 * (2 / 40_000) ** 0.5


def test_the_gradient_of_ones_own_model_is_the_slope_of_its_loss() -> None:
    network = runpy.run_path(str(FOLDER / "learning_engineer.py"))["Network"](3, 4)
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((9, 3)), rng.integers(0, 4, 9)
    theta, direction = rng.standard_normal((2, network.parameters.size))

    def loss(parameters: NDArray[np.float64]) -> float:
        first, second = network.layers(parameters)
        scores = np.tanh(x @ first) @ second
        return float(np.mean(np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(9), y]))

    slope = (loss(theta + 1e-6 * direction) - loss(theta - 1e-6 * direction)) / 2e-6
    assert float(network.gradient(theta, x, y) @ direction) == pytest.approx(slope, rel=1e-6)


@pytest.mark.slow
def test_the_researchers_example() -> None:
    """Seeds are fixed, so this is what it prints; noise is exact, and Local DP is five standard errors behind."""
    table = printed("learning_researcher.py")[3:]
    rows = {line[:28].strip(): [float(number) for number in re.findall(r"[\d.]+", line[28:])] for line in table}
    assert len(rows) == 6 and rows["Central DP, twice the noise"][0] == 4.0
    noise, accuracy = rows["inca"][:2]
    for baseline in ("GOPA", "CorDP-DME", "Local DP"):
        assert noise < rows[baseline][0] / 4
    assert accuracy > rows["Local DP"][1] + 0.1


@pytest.mark.slow
def test_the_engineers_example() -> None:
    """Seeds are fixed, so this is what it prints."""
    rows = {
        line.split()[0]: [float(number) for number in line.split()[1:]] for line in printed("learning_engineer.py")[2:]
    }
    for name, frequent in (("breast_cancer", 0.65), ("digits", 0.11)):
        _, estimator, own, reference = rows[name]
        assert frequent + 0.1 < estimator < reference and frequent + 0.1 < own < reference


@pytest.mark.slow
def test_the_example_with_pytorch() -> None:
    """Private training with little noise is far from guessing and below training as usual; Local DP learns little."""
    pytest.importorskip("torch", reason="PyTorch is not installed: pip install 'inca[torch]'")
    rows = {
        line[:68].strip(): float(line[68:].split()[0]) for line in printed("learning_pytorch.py", "--seeds", "1")[2:]
    }
    assert len(rows) == 5
    for name in ("inca", "Central DP"):
        assert 0.6 < rows[name] < rows["as usual, not private"]
    assert rows["Local DP"] < 0.5
