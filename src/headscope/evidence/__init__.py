"""What makes a number believable: intervals, effect sizes, tests, corrections, baselines."""

from headscope.evidence._baselines import (
    MapSum,
    orders_of_words,
    position_map,
    rng_of,
    shuffled_orders,
    shuffled_tokens,
    uniform_map,
)
from headscope.evidence._interval import (
    difference_interval,
    effect_size,
    interval,
    interval_of_sums,
    redrawn_interval,
    redrawn_ratios,
    share_interval,
    wilson,
)
from headscope.evidence.chance import benjamini_hochberg, holm, judged, p_flipped, p_text
from headscope.evidence.groups import (
    effective_groups,
    group_of,
    length_text,
    median_of,
    parse_groups,
)

__all__ = [
    "MapSum",
    "benjamini_hochberg",
    "difference_interval",
    "effect_size",
    "effective_groups",
    "group_of",
    "holm",
    "interval",
    "interval_of_sums",
    "judged",
    "length_text",
    "median_of",
    "orders_of_words",
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
