"""Ports for many processes on one machine."""

from __future__ import annotations

import socket

from inca.network.testing.local_cluster import first_ephemeral_port, free_ports


def test_ports_are_free_different_and_none_that_an_outgoing_connection_may_take() -> None:
    ports = free_ports(300)
    assert len(set(ports)) == 300
    assert max(ports) < first_ephemeral_port() <= 65535
    for port in ports[:20]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", port))


def test_a_port_in_use_is_passed_over() -> None:
    taken = free_ports(50)
    sockets = [socket.socket() for _ in taken]
    try:
        for probe, port in zip(sockets, taken, strict=True):
            probe.bind(("127.0.0.1", port))
        assert not set(free_ports(300)) & set(taken)
    finally:
        for probe in sockets:
            probe.close()
