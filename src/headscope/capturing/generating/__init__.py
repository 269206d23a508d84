"""Texts that the model writes, every step joined to one record."""
