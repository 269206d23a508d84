"""Seeing attention while a model runs: hooks, the attention interface, torch's operators."""
