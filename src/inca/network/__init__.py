"""Real parties on a real network: the protocol as a state machine, its ledger, journal and transport."""
