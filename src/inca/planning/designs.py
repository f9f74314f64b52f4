"""The designs that a plan chooses among: everything about a run but its noise levels."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from inca._base.validation import InputError, whole
from inca.planning.requirements import Wish
from inca.privacy.theorems.failure_bounds import SCHEDULES, least_rounds, log_failure_bound
from inca.protocol.injection import Injection, early, incremental
from inca.protocol.schedules import Schedule, random_schedule

QUIET = (1, 2, 3, 4)
"""Numbers of last rounds without a share of the value that are tried."""
MOST_RECEIVERS = 3
"""Receivers per round that are tried: under collusion fewer are better (the paper's Figures 2c and 4a)."""


class CannotMeet(InputError):
    """A wish that cannot be met; the message says why, and what could be done."""

    status = 1


@dataclass(frozen=True)
class Shape:
    """Schedule kind, rounds T, receivers k per round, injection, and quiet rounds at its end.

    >>> Shape("permutation", rounds=20, quiet=3).messages
    20
    """

    schedule: str
    rounds: int
    receivers: int = 1
    quiet: int = 0
    kind: str = "incremental"

    @property
    def messages(self) -> int:
        """How many messages each party sends."""
        return self.rounds * self.receivers

    def injection(self) -> Injection:
        """Return (c, Z): how values and noise enter."""
        return early(self.rounds) if self.kind == "early" else incremental(self.rounds, self.quiet)

    def draw(self, parties: int, seed: int) -> Schedule:
        """Return who sends to whom, drawn from a seed."""
        return random_schedule(self.schedule, parties, self.rounds, self.receivers, seed=seed)

    def longer(self, rounds: int) -> Shape:
        """Return the same design with so many more rounds."""
        return replace(self, rounds=self.rounds + rounds)

    def log_failure(self, wish: Wish) -> float:
        """Return the log of the proven bound on the chance that messages do not hide enough (Theorem 2's rank)."""
        return log_failure_bound(
            wish.parties, wish.colluders, self.rounds, self.receivers, self.schedule, wish.eavesdropped
        )

    def hides(self, wish: Wish) -> bool:
        """Whether that bound is at most half of the wished chance of failure."""
        return self.log_failure(wish) <= math.log(wish.failure / 2.0)

    def __str__(self) -> str:
        """Say it in a few words."""
        receivers = "1 receiver" if self.receivers == 1 else f"{self.receivers} receivers"
        tail = f", last {self.quiet} quiet" if self.quiet else ""
        value = "value at once" if self.kind == "early" else f"value in shares{tail}"
        return f"{self.schedule}, {self.rounds} rounds, {receivers}, {value}"


def shapes(wish: Wish, rounds: int | None = None, receivers: int | None = None) -> list[Shape]:
    """Return the kinds of design within the message budget whose messages hide enough; see `with_quiet_rounds`.

    They may fail to hide enough with half of the wished chance of failure. `rounds` and `receivers` may be fixed.
    Refuse, with what could be done, if there are none.

    >>> for shape in shapes(Wish(200, 0.2, 1e-5, colluding=0.1, messages=20), receivers=1):
    ...     print(shape)
    random, 20 rounds, 1 receiver, value in shares, last 2 quiet
    random, 20 rounds, 1 receiver, value at once
    distinct, 20 rounds, 1 receiver, value in shares, last 2 quiet
    distinct, 20 rounds, 1 receiver, value at once
    permutation, 20 rounds, 1 receiver, value in shares, last 2 quiet
    permutation, 20 rounds, 1 receiver, value at once
    """
    n = wish.parties
    ks = range(1, MOST_RECEIVERS + 1) if receivers is None else [whole("receivers", receivers, 1, n - 1)]
    found: list[Shape] = []
    for k in ks:
        longest = wish.messages // k if rounds is None else whole("rounds", rounds, least=1)
        if k >= n or longest < 1 or longest * k > wish.messages:
            continue
        for schedule in SCHEDULES:
            if (schedule == "permutation" and k > 1) or (schedule == "distinct" and k * longest >= n):
                continue  # no bound is known; nobody is left to send to
            base = Shape(schedule, longest, k)
            found += [replace(base, quiet=min(2, longest - 1)), replace(base, kind="early")]
    return check_hiding(wish, found, rounds, receivers)


def check_hiding(
    wish: Wish, found: list[Shape], rounds: int | None = None, receivers: int | None = None
) -> list[Shape]:
    """Return the designs whose messages hide enough; refuse, with what could be done, if there are none."""
    enough = [shape for shape in found if shape.hides(wish)]
    if not enough:
        raise CannotMeet(_why(wish, rounds, receivers))
    return enough


def with_quiet_rounds(shape: Shape) -> list[Shape]:
    """Return the design with all numbers of quiet rounds that are tried, itself among them."""
    if shape.kind == "early":
        return [shape]
    return [replace(shape, quiet=quiet) for quiet in QUIET if quiet < shape.rounds]


def _why(wish: Wish, rounds: int | None, receivers: int | None) -> str:
    """Say why no design within the budget will do, and what would."""
    local = f"Local DP needs no hiding, at a mean squared error of {wish.local_mse:.3g}"
    if rounds is not None and rounds * (receivers or 1) > wish.messages:
        return (
            f"rounds is {rounds}, but at most messages ({wish.messages}) by receivers ({receivers or 1}) was expected"
        )
    if wish.eavesdropped * wish.parties > wish.parties - 1:
        return f"eavesdropped is {wish.eavesdropped:g}, but if all messages are tapped none can hide a value; {local}"
    k = receivers or 1
    schedule = "permutation" if k == 1 else "random"
    bound = math.exp(Shape(schedule, max(1, wish.messages // k), k).log_failure(wish))
    why = f"messages is {wish.messages}, but then the hidden messages fail to protect someone with chance {bound:.2g}"
    try:
        enough = k * least_rounds(
            wish.parties, wish.colluders, wish.failure / 2.0, k, schedule, wish.eavesdropped, most=1000
        )
    except InputError:
        return f"{why}, more than {wish.failure:g}, and more messages would not help; {local}"
    return f"{why}, more than {wish.failure:g}: at least {enough} messages were expected; {local}"
