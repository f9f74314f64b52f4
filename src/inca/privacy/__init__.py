"""What an adversary sees of an execution, what it learns of each honest party, and how much noise is enough."""
