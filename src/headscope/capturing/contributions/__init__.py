"""What each token adds to another: value norms and the sums of a whole block."""
