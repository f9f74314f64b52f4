"""The command line: one file per verb, put together in `inca.cli.app`."""

from inca.cli.app import main

__all__ = ["main"]
