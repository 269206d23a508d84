"""The public names of `headscope.evidence`, each once; `lazy_loader` reads them from here."""

from ._baselines import mean_map as mean_map
from ._baselines import orders_of_words as orders_of_words
from ._baselines import position_map as position_map
from ._baselines import rng_of as rng_of
from ._baselines import shuffled_orders as shuffled_orders
from ._baselines import shuffled_tokens as shuffled_tokens
from ._baselines import uniform_map as uniform_map
from ._interval import difference_interval as difference_interval
from ._interval import effect_size as effect_size
from ._interval import interval as interval
from ._interval import interval_of_sums as interval_of_sums
from ._interval import redrawn_interval as redrawn_interval
from ._interval import redrawn_ratios as redrawn_ratios
from ._interval import share_interval as share_interval
from ._interval import wilson as wilson
from .chance import benjamini_hochberg as benjamini_hochberg
from .chance import holm as holm
from .chance import judged as judged
from .chance import p_flipped as p_flipped
from .chance import p_text as p_text
from .groups import effective_groups as effective_groups
from .groups import group_of as group_of
from .groups import length_text as length_text
from .groups import median_of as median_of
from .groups import parse_groups as parse_groups
