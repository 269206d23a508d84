"""What makes a number believable: statistics that add up exactly, intervals, effect sizes,
corrections, baselines.
"""

from headscope.evidence._baselines import (
    orders_of_words,
    rng_of,
    shuffled_orders,
    shuffled_tokens,
    uniform_map,
)
from headscope.evidence._effect import (
    difference_interval,
    effect_of_sums,
    effect_size,
    p_above,
    p_above_of_sums,
)
from headscope.evidence._interval import interval, interval_of_sums, p_text, wilson
from headscope.evidence._lengths import length_text, median_of
from headscope.evidence._map_sum import MapSum, position_map
from headscope.evidence._ratio import (
    redrawn_interval,
    redrawn_ratios,
    share_interval,
)
from headscope.evidence._statistic import Statistic, least_p, load_beside, load_statistic, p_flipped
from headscope.evidence.correction import benjamini_hochberg, holm
from headscope.evidence.groups import effective_groups, group_of, parse_groups

__all__ = [
    "MapSum",
    "Statistic",
    "benjamini_hochberg",
    "difference_interval",
    "effect_of_sums",
    "effect_size",
    "effective_groups",
    "group_of",
    "holm",
    "interval",
    "interval_of_sums",
    "least_p",
    "length_text",
    "load_beside",
    "load_statistic",
    "median_of",
    "orders_of_words",
    "p_above",
    "p_above_of_sums",
    "p_flipped",
    "p_text",
    "parse_groups",
    "position_map",
    "redrawn_interval",
    "redrawn_ratios",
    "rng_of",
    "share_interval",
    "shuffled_orders",
    "shuffled_tokens",
    "uniform_map",
    "wilson",
]
