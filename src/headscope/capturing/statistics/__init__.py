"""Statistics of attention calls, in tiles, so that the weights of a layer are never all there at
once.
"""

from headscope.capturing.statistics._engine import fill_weights, statistics_of_call, weights_of_rows
from headscope.capturing.statistics._plan import StatisticsPlan

__all__ = ["StatisticsPlan", "fill_weights", "statistics_of_call", "weights_of_rows"]
