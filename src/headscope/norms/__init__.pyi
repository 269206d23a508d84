"""The public names of `headscope.norms`, each once; `lazy_loader` reads them from here."""

from ._block import Block as Block
from ._contributions import attention_norms as attention_norms
from ._contributions import effective_weights as effective_weights
from ._contributions import expansion_rate as expansion_rate
from ._contributions import globenc_norms as globenc_norms
from ._contributions import mixing as mixing
from ._contributions import output_norms as output_norms
from ._contributions import own_norms as own_norms
from ._contributions import residual_norms as residual_norms
from ._contributions import value_norms as value_norms
from ._flow import Quantity as Quantity
from ._flow import alti as alti
from ._flow import flow as flow
from ._flow import maps_of as maps_of
from ._flow import rollout as rollout
from ._norm import Norm as Norm
from ._vectors import ContributionVectors as ContributionVectors
from ._vectors import attention_vectors as attention_vectors
from ._vectors import globenc_vectors as globenc_vectors
from ._vectors import output_vectors as output_vectors
from ._vectors import residual_vectors as residual_vectors
