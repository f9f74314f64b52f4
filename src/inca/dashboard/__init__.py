"""A local web application: plan, watch a run, look through an adversary's eyes, follow a node's sessions."""
