"""Secure aggregation without a server: what cryptography alone buys, if messages reach everyone.

The server of secure aggregation passes messages on and adds up. Where what a party publishes reaches everyone, as is
assumed for inca, nobody needs it: parties share masks and keys on a sparse graph (`mask_graph`), publish their masked
values, agree on who has published, and in one recovery round publish the shares that take off the masks that remain.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from inca._base.validation import refuse
from inca.mechanisms.base import MeanEstimate
from inca.mechanisms.mask_graph import MaskGraph, least_mask_graph
from inca.mechanisms.secure_aggregation import SecureAggregation
from inca.planning.requirements import Requirements


class ServerlessAggregation(SecureAggregation):
    """Masked values are published; a quorum of each party's neighbours restores the masks that do not cancel.

    Its error is that of ideal secure aggregation, the least that noise shared among distrusting parties can have. What
    it takes: a public key of everyone that all others trust, agreement on who has published before the first share is
    shown (shares of both secrets of a party would unmask it), and a quorum of the neighbours of every party, leavers
    included. If one quorum is missing there is no result at all: the masks that remain are as large as the numbers go.

    Leavers go before they publish, which costs most, and are gone in the recovery round.

    Args:
        requirements: The guarantee, the colluders and the dropout rate.
        assumed_dropout: The fraction of the parties that may leave; by default the required dropout rate.
        graph: Who shares masks, and how many restore them; by default the fewest neighbours with which exposure and
            splits, and failing recovery, each have a probability of at most the required failure.

    Raises:
        InvalidInput: If the graph is for another number of parties, or no quorum keeps colluders out.

    Example:
        >>> requirements = Requirements(200, 0.2, 1e-5, colluding=0.1, dropout=0.1)
        >>> own = ServerlessAggregation(requirements)
        >>> own.messages, round(own.expected_error(0.1).mse / requirements.central_mse, 2)
        (57.0, 1.4)
        >>> f"{own.recovery_failure(0.1):.1g}", f"{own.recovery_failure(0.2):.1g}"
        ('6e-09', '0.003')
    """

    name = "secure aggregation, no server"
    promise = (
        "colluders who see all that is published, as long as the cryptography holds; needs keys of all parties, "
        "agreement on who has published, and a quorum of every party's neighbours"
    )

    def __init__(
        self, requirements: Requirements, assumed_dropout: float | None = None, graph: MaskGraph | None = None
    ) -> None:
        self.graph = least_mask_graph(requirements) if graph is None else graph
        super().__init__(requirements, assumed_dropout, self.graph.neighbours)
        if self.graph.parties != (n := requirements.parties):
            refuse("the number of parties of graph", self.graph.parties, f"the required number ({n})")

    @property
    def messages(self) -> float:
        """One large one, the masked value, and two short ones for every neighbour.

        To each neighbour a share of the keys, and for each neighbour a share shown in the recovery round. Public keys
        are there before.
        """
        return 2.0 * self.neighbours + 1.0

    def recovery_failure(self, dropout: float) -> float:
        """Return a bound on how likely there is no result, since some party's masks cannot be restored.

        Args:
            dropout: The fraction of the parties that is gone in the recovery round.
        """
        return self.graph.recovery_failure(self._leavers(dropout))

    def run(self, values: ArrayLike, rng: np.random.Generator, dropout: float = 0.0) -> MeanEstimate:
        """Run once; None if too few survive or recovery fails. The cryptography is taken to be ideal."""
        table, leavers = self._validate(values, rng, dropout)
        present = np.ones(len(table), dtype=np.bool_)
        present[rng.permutation(len(table))[:leavers]] = False
        return self._sum_over(values, table, present, rng) if self.graph.recovers(present, rng) else None
