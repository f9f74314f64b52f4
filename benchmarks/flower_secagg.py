"""Secure aggregation through a server: Flower's SecAgg+ on this machine, beside which sessions of inca are put.

    python benchmarks/flower_secagg.py [--parties 100] [--dimension 10000] [--dropped 10]

It needs `pip install 'flwr[simulation]'`, best in an environment of its own. One round of Flower's own simulation on
all cores: each party has a vector of that length and does no training; those that drop out share their keys, then fail
to send their masked vector, so that the server unmasks them. There are as many shares as parties, and half of them
recover a key. Seconds run from the start of the protocol to the sum, without Flower's own start.
"""

from __future__ import annotations

import argparse
import logging
import time
from typing import Any

import numpy as np


def main(options: argparse.Namespace) -> None:
    from flwr.client import NumPyClient
    from flwr.client.mod import secaggplus_mod
    from flwr.clientapp import ClientApp
    from flwr.common import ndarrays_to_parameters
    from flwr.server import LegacyContext, ServerApp, ServerConfig
    from flwr.server.strategy import FedAvg
    from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
    from flwr.simulation import run_simulation

    logging.getLogger("flwr").setLevel(logging.ERROR)
    n, d = options.parties, options.dimension
    averages: list[float] = []

    class Party(NumPyClient):
        def __init__(self, party: int) -> None:
            self._party = party

        def fit(self, parameters: Any, config: Any) -> tuple[list[Any], int, dict[str, Any]]:
            if self._party < options.dropped:
                raise RuntimeError("drops out")  # its keys are shared already, its masked vector never comes
            return [np.full(d, self._party / n)], 1, {}

    server = ServerApp()
    strategy = FedAvg(
        fraction_fit=1.0,
        fraction_evaluate=0.0,
        min_fit_clients=n,
        min_available_clients=n,
        initial_parameters=ndarrays_to_parameters([np.zeros(d)]),
        evaluate_fn=lambda number, parameters, config: averages.append(float(parameters[0].mean())),
    )

    secagg = SecAggPlusWorkflow(num_shares=1.0, reconstruction_threshold=0.5)
    times: list[float] = []

    def timed(grid: Any, context: Any) -> None:
        times.append(time.perf_counter())
        secagg(grid, context)
        times.append(time.perf_counter())

    @server.main()
    def _(grid: Any, context: Any) -> None:
        legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=1), strategy=strategy)
        DefaultWorkflow(fit_workflow=timed)(grid, legacy)

    parties = ClientApp(
        client_fn=lambda context: Party(int(context.node_config["partition-id"])).to_client(), mods=[secaggplus_mod]
    )
    run_simulation(server, parties, num_supernodes=n, backend_config={"client_resources": {"num_cpus": 1}})
    expected = np.mean(np.arange(options.dropped, n)) / n
    if abs(averages[-1] - expected) > 1e-3:
        raise SystemExit(f"the average must be {expected:.4f}, got {averages[-1]:.4f}")
    print(f"Flower SecAgg+, {n} parties, d = {d:,}, {options.dropped} dropped: {times[1] - times[0]:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parties", type=int, default=100)
    parser.add_argument("--dimension", type=int, default=10_000)
    parser.add_argument("--dropped", type=int, default=10)
    main(parser.parse_args())
