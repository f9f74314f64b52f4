"""Who sends to whom, in which round and which fraction: random, from graphs, or given."""

from inca.schedule.base import Round, Schedule
from inca.schedule.given import ExplicitSchedule
from inca.schedule.graphs import StaticGraph, complete, hypercube
from inca.schedule.random import PermutationReceivers, RandomReceivers, UnrepeatedReceivers, random_schedule

__all__ = [
    "ExplicitSchedule",
    "PermutationReceivers",
    "RandomReceivers",
    "Round",
    "Schedule",
    "StaticGraph",
    "UnrepeatedReceivers",
    "complete",
    "hypercube",
    "random_schedule",
]
