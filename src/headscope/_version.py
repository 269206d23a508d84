"""The version, where nothing else needs to be imported for it."""

__version__ = "0.1.0"
