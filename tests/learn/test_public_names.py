"""What inca.learn exports, and what it leaves alone until it is used."""

from __future__ import annotations

import subprocess
import sys

import inca.learn


def test_every_public_name_is_there() -> None:
    assert all(getattr(inca.learn, name) is not None for name in inca.learn.__all__)
    assert set(inca.learn.__all__) <= set(dir(inca.learn))


def test_optional_packages_are_not_loaded_before_they_are_used() -> None:
    """Nor is scipy.stats, which takes longer than all else that a plan or a comparison loads."""
    program = (
        "import sys\n"
        "import inca.learn, inca.mechanisms, inca.planning.plan\n"
        "from inca.learn import Budget, Records, SimulatedAverager, TorchModel, moments, train\n"
        "print(sorted({'sklearn', 'torch', 'cryptography', 'scipy.stats'} & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
