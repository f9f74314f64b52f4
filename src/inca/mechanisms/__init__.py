"""Other ways to average privately, all of one shape, and inca behind the same shape."""
