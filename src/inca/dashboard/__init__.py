"""A local web application: plan, watch a run, see the adversary's view of it, follow a node's sessions.

Internal: everything here is reached through `inca dashboard`.
"""
