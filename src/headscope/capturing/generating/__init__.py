"""Texts that the model writes, each read once more in one pass that is captured."""
