"""`inca node`: a real party on a real network, one file per verb."""
