"""A blind relay, for parties that may only dial out."""
