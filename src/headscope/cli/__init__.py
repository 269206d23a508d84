"""The command line."""

from headscope.cli._main import main, run

__all__ = ["main", "run"]
