"""What each token adds to another: value norms and the sums of a whole block."""

from headscope.capturing.contributions._watch import known_norm_of as known_norm_of
