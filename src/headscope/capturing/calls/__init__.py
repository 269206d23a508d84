"""One call of attention: what goes in, how it is laid out, what may be seen."""
