"""Word alignment of a translation model, by weight and by norm."""
