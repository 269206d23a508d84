"""Pictures and sound, and which of their parts became which position."""
