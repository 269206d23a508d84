"""From what was seen to the layers of a record, checked against the model's own numbers."""
