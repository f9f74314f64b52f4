"""The checks of `inca node doctor` before a session."""
