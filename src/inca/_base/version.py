"""The version, which the files that inca writes carry."""

__version__ = "0.1.0"
