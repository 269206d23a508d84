"""What also needs values: how much each token adds, and where it comes from through the layers.

Pure functions of arrays, in float64. A `Block` holds what one attention block computes with;
`headscope.capture` with ``keep="norms"`` finds all of it in the running model and keeps the maps.
"""

from headscope.norms._alti import alti
from headscope.norms._block import Block
from headscope.norms._contributions import (
    attention_norms,
    globenc_norms,
    head_norms,
    mixing,
    output_norms,
    own_norms,
    residual_norms,
    value_norms,
)
from headscope.norms._effective import effective_weights
from headscope.norms._expansion import expansion_rate
from headscope.norms._flow import flow
from headscope.norms._maps import Quantity
from headscope.norms._norm import Norm
from headscope.norms._pieces import (
    Pieces,
    attention_pieces,
    globenc_pieces,
    output_pieces,
    residual_pieces,
)
from headscope.norms._rollout import rollout

__all__ = [
    "Block",
    "Norm",
    "Pieces",
    "Quantity",
    "alti",
    "attention_norms",
    "attention_pieces",
    "effective_weights",
    "expansion_rate",
    "flow",
    "globenc_norms",
    "globenc_pieces",
    "head_norms",
    "mixing",
    "output_norms",
    "output_pieces",
    "own_norms",
    "residual_norms",
    "residual_pieces",
    "rollout",
    "value_norms",
]
