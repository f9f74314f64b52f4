"""A simulated network with faults, and real processes on one machine."""
