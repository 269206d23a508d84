"""Which head looks from a mention at what it means."""
