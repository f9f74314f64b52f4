"""inca: private averages without a server.

The protocol of "Dropout-Robust Mechanisms for Differentially Private and Fully Decentralized Mean Estimation":
parties inject their values bit by bit, hidden in noise that they cancel later, and gossip.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from inca.version import __version__

if TYPE_CHECKING:
    from inca.domain import Ball, Domain, Interval
    from inca.error import ErrorBudget, expected_error
    from inca.execution import Execution
    from inca.injection import Injection, early, incremental
    from inca.planning.plan import Plan, read_plan
    from inca.planning.search import plan
    from inca.planning.shapes import CannotMeet
    from inca.planning.wish import Wish
    from inca.presence import Presence
    from inca.privacy.accountant import Losses, account, compose
    from inca.privacy.adversary import Adversary
    from inca.privacy.calibrate import Calibration, Tradeoff, calibrate
    from inca.privacy.certificate import Certificate, certify
    from inca.privacy.gaussian import delta_for, epsilon_for, mu_for
    from inca.privacy.view import View
    from inca.randomness import PublicSeed, SystemNormals
    from inca.schedule import (
        ExplicitSchedule,
        PermutationReceivers,
        RandomReceivers,
        Schedule,
        StaticGraph,
        UnrepeatedReceivers,
        complete,
        hypercube,
        random_schedule,
    )
    from inca.simulation import Noise, Outcome, draw_noise, simulate
    from inca.transcript import Transcript, read_execution, write_execution
    from inca.validation import InputError

# Names are loaded when they are first used, so that the command line answers at once.
_HOMES = {
    "domain": ("Ball", "Domain", "Interval"),
    "error": ("ErrorBudget", "expected_error"),
    "execution": ("Execution",),
    "injection": ("Injection", "early", "incremental"),
    "planning.plan": ("Plan", "read_plan"),
    "planning.search": ("plan",),
    "planning.shapes": ("CannotMeet",),
    "planning.wish": ("Wish",),
    "presence": ("Presence",),
    "privacy.accountant": ("Losses", "account", "compose"),
    "privacy.adversary": ("Adversary",),
    "privacy.calibrate": ("Calibration", "Tradeoff", "calibrate"),
    "privacy.certificate": ("Certificate", "certify"),
    "privacy.gaussian": ("delta_for", "epsilon_for", "mu_for"),
    "privacy.view": ("View",),
    "randomness": ("PublicSeed", "SystemNormals"),
    "schedule": (
        "ExplicitSchedule",
        "PermutationReceivers",
        "RandomReceivers",
        "Schedule",
        "StaticGraph",
        "UnrepeatedReceivers",
        "complete",
        "hypercube",
        "random_schedule",
    ),
    "simulation": ("Noise", "Outcome", "draw_noise", "simulate"),
    "transcript": ("Transcript", "read_execution", "write_execution"),
    "validation": ("InputError",),
}

__all__ = [
    "Adversary",
    "Ball",
    "Calibration",
    "CannotMeet",
    "Certificate",
    "Domain",
    "ErrorBudget",
    "Execution",
    "ExplicitSchedule",
    "Injection",
    "InputError",
    "Interval",
    "Losses",
    "Noise",
    "Outcome",
    "PermutationReceivers",
    "Plan",
    "Presence",
    "PublicSeed",
    "RandomReceivers",
    "Schedule",
    "StaticGraph",
    "SystemNormals",
    "Tradeoff",
    "Transcript",
    "UnrepeatedReceivers",
    "View",
    "Wish",
    "__version__",
    "account",
    "calibrate",
    "certify",
    "complete",
    "compose",
    "delta_for",
    "draw_noise",
    "early",
    "epsilon_for",
    "expected_error",
    "hypercube",
    "incremental",
    "mu_for",
    "plan",
    "random_schedule",
    "read_execution",
    "read_plan",
    "simulate",
    "write_execution",
]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            value = globals()[name] = getattr(import_module(f"inca.{module}"), name)
            return value
    raise AttributeError(f"module 'inca' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
