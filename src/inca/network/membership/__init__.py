"""Who takes part: keys, the roster and its terms, and TLS contexts that trust exactly its parties."""
