"""The public names of `headscope.foreign`, each once; `lazy_loader` reads them from here."""

from ._from_nnsight import from_nnsight as from_nnsight
from ._from_queries_keys import from_queries_keys as from_queries_keys
from ._from_transformer_lens import from_transformer_lens as from_transformer_lens
