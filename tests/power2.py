"""Points in which squared distances are the distances in a tree (Coenen et al. 2019, theorem 1)."""

import numpy as np

from headscope.linguistics import tree_depths


def power2_embedding(heads):
    """The root at 0, and each child one step from its parent, in a direction of its own."""
    points = np.zeros((len(heads), len(heads)))
    for word in np.argsort(tree_depths(heads), kind="stable"):
        if heads[word] >= 0:
            points[word] = points[heads[word]]
            points[word, word] = 1
    return points
