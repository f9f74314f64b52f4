"""The protocol: who sends what to whom, and what comes out (Algorithms 1 and 2)."""
