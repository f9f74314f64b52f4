"""Real data, and the same task with every averager."""
