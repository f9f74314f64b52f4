"""Ways to average privately with one interface: the baselines, and inca behind the same interface."""
