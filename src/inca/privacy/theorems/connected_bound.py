"""What honest parties can lose at most if hidden messages connect them, whoever sent to whom: proven, at any number.

Hidden messages, with senders and receivers as ends, make a graph among the honest parties. If it is connected, let the
value of party i change by 1 and every honest party's independent noise take up 1/n of it, along a tree of hidden
messages that hangs from i: the message between j and its parent carries what j and all below it take up, at most
phi_j = (parties from j downwards) / n. A party then never holds more than phi_j, in either direction, and masks make up
for it: phi_j^2 a round at most, and 6 phi_j^2 in all for the messages that carry something. The sizes below the
parties of a tree add up to no more than those of a path, so by Lemma 2

    mu_i^2 <= s^2 [ 1 / (n sigma_*^2) + (T + 6) (n + 1) (2n + 1) / (6n) / sigma_Delta^2 ].

The proof is in docs/settlement.md. It asks for one receiver a round and masks of one variance; how likely hidden
messages connect all honest parties is bounded in `inca.privacy.theorems.failure_bounds`.
"""

from __future__ import annotations

from inca._base.validation import finite_float, integer, refuse


def connected_cost(honest: int, rounds: int) -> float:
    """Return the squared changes of masks that suffice for any honest party: (T + 6) (n + 1) (2n + 1) / (6n).

    Example:
        >>> connected_cost(1, 20), round(connected_cost(160, 20), 1)
        (0.0, 1399.7)
    """
    n, total = integer("honest parties", honest, min=1), integer("rounds", rounds, min=1)
    return 0.0 if n == 1 else (total + 6) * (n + 1) * (2 * n + 1) / (6 * n)


def connected_level(honest: int, rounds: int, factor: float) -> float:
    """Return a level of cancelling noise that suffices for every honest party if hidden messages connect them.

    Levels are in units of (s / mu)^2, and all honest parties together have `factor` of them as independent noise.

    Example:
        >>> round(connected_level(160, 20, factor=1.05))
        29394
    """
    if not finite_float("factor", factor) > 1.0:
        refuse("factor", factor, "above 1")
    return connected_cost(honest, rounds) / (1.0 - 1.0 / factor)
