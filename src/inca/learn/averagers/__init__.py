"""Ways to average the vectors of parties: simulated mechanisms, and sessions over the network."""
