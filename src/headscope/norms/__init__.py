"""What also needs values: how much each token adds, and where it comes from through the layers.

Pure functions of arrays in float64. A `Block` holds what one attention block computes with, as
NumPy arrays or as tensors on the model's own device; `headscope.capture` with ``keep="norms"``
finds all of it in the running model and keeps the maps.
"""

from headscope.norms._block import Block
from headscope.norms._contributions import (
    attention_norms,
    effective_weights,
    expansion_rate,
    globenc_norms,
    head_norms,
    mixing,
    output_norms,
    own_norms,
    residual_norms,
    value_norms,
)
from headscope.norms._flow import alti, flow, rollout
from headscope.norms._maps import Quantity
from headscope.norms._norm import Norm
from headscope.norms._vectors import (
    ContributionVectors,
    attention_vectors,
    globenc_vectors,
    output_vectors,
    residual_vectors,
)

__all__ = [
    "Block",
    "ContributionVectors",
    "Norm",
    "Quantity",
    "alti",
    "attention_norms",
    "attention_vectors",
    "effective_weights",
    "expansion_rate",
    "flow",
    "globenc_norms",
    "globenc_vectors",
    "head_norms",
    "mixing",
    "output_norms",
    "output_vectors",
    "own_norms",
    "residual_norms",
    "residual_vectors",
    "rollout",
    "value_norms",
]
