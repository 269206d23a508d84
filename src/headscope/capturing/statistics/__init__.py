"""Statistics of attention calls, in tiles, so that the weights of a layer are never all there at
once.
"""

from headscope.capturing.statistics._engine import ChosenRows, statistics_of_call
from headscope.capturing.statistics._plan import StatisticsPlan

__all__ = ["ChosenRows", "StatisticsPlan", "statistics_of_call"]
