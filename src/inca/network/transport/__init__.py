"""Frames between parties over TLS. Knows nothing of what they mean."""
