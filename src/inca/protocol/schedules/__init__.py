"""Who sends to whom, in which round and which fraction: random, on a circle, from graphs, or given."""

from inca.protocol.schedules.base import Round, Schedule
from inca.protocol.schedules.circle import CircleSchedule
from inca.protocol.schedules.explicit import ExplicitSchedule
from inca.protocol.schedules.graphs import StaticGraph, complete_graph, hypercube_graph
from inca.protocol.schedules.kinds import SCHEDULE_KINDS, schedule_of_kind
from inca.protocol.schedules.random import PermutationReceivers, RandomReceivers, UnrepeatedReceivers, random_schedule

__all__ = [
    "SCHEDULE_KINDS",
    "CircleSchedule",
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
    "schedule_of_kind",
]
