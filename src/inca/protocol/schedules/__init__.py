"""Who sends to whom, in which round and which fraction: random, from graphs, or given."""

from inca.protocol.schedules.base import Round, Schedule
from inca.protocol.schedules.explicit import ExplicitSchedule
from inca.protocol.schedules.graphs import StaticGraph, complete_graph, hypercube_graph
from inca.protocol.schedules.random import PermutationReceivers, RandomReceivers, UnrepeatedReceivers, random_schedule

__all__ = [
    "ExplicitSchedule",
    "PermutationReceivers",
    "RandomReceivers",
    "Round",
    "Schedule",
    "StaticGraph",
    "UnrepeatedReceivers",
    "complete_graph",
    "hypercube_graph",
    "random_schedule",
]
