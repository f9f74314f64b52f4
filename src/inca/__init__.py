"""inca: private averages without a server.

The protocol of "Dropout-Robust Mechanisms for Differentially Private and Fully Decentralized Mean Estimation":
parties inject their values bit by bit, hidden in noise that they cancel later, and gossip.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from inca._base.version import __version__

if TYPE_CHECKING:
    from inca._base.randomness import PublicSeed, SystemNormals
    from inca._base.validation import InputError
    from inca.planning.designs import CannotMeet
    from inca.planning.plan import Plan, read_plan
    from inca.planning.requirements import Wish
    from inca.planning.search import plan
    from inca.privacy.accountant import Losses, account, compose
    from inca.privacy.calibration import Calibration, Tradeoff, calibrate
    from inca.privacy.certificate import Certificate, certify
    from inca.privacy.gaussian import delta_for, epsilon_for, mu_for
    from inca.privacy.view import View
    from inca.protocol.adversary import Adversary
    from inca.protocol.domain import Ball, Domain, Interval
    from inca.protocol.execution import Execution
    from inca.protocol.expected_error import ErrorBudget, expected_error
    from inca.protocol.injection import Injection, early, incremental
    from inca.protocol.presence import Presence
    from inca.protocol.schedules import (
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
    from inca.protocol.simulation import Noise, Outcome, draw_noise, simulate
    from inca.protocol.transcript import Transcript, read_execution, write_execution

# Names are loaded when they are first used, so that the command line answers at once.
_HOMES = {
    "protocol.domain": ("Ball", "Domain", "Interval"),
    "protocol.expected_error": ("ErrorBudget", "expected_error"),
    "protocol.execution": ("Execution",),
    "protocol.injection": ("Injection", "early", "incremental"),
    "planning.plan": ("Plan", "read_plan"),
    "planning.search": ("plan",),
    "planning.designs": ("CannotMeet",),
    "planning.requirements": ("Wish",),
    "protocol.presence": ("Presence",),
    "privacy.accountant": ("Losses", "account", "compose"),
    "protocol.adversary": ("Adversary",),
    "privacy.calibration": ("Calibration", "Tradeoff", "calibrate"),
    "privacy.certificate": ("Certificate", "certify"),
    "privacy.gaussian": ("delta_for", "epsilon_for", "mu_for"),
    "privacy.view": ("View",),
    "_base.randomness": ("PublicSeed", "SystemNormals"),
    "protocol.schedules": (
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
    "protocol.simulation": ("Noise", "Outcome", "draw_noise", "simulate"),
    "protocol.transcript": ("Transcript", "read_execution", "write_execution"),
    "_base.validation": ("InputError",),
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
