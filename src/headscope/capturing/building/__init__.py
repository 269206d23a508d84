"""Layers of a record from watched calls, checked against the model's own numbers."""
