"""Plans of the statistics of a call: facts about its tokens, in the layout of the call."""

from __future__ import annotations

import torch

from headscope.capturing.building._side_tokens import SideTokens
from headscope.capturing.calls.call import Call
from headscope.capturing.keep import KeepChoice
from headscope.capturing.statistics import ChosenRows, StatisticsPlan, statistics_of_call
from headscope.record import Statistics


class StatisticsPlans:
    """Statistics of the calls of a pass; those with the same tokens share a plan.

    Args:
        keeping: what to keep.
    """

    def __init__(self, keeping: KeepChoice) -> None:
        self._keeping = keeping
        self._known: dict[tuple, StatisticsPlan] = {}

    def statistics_of(
        self,
        call: Call,
        sides: tuple[SideTokens, SideTokens],
        chosen: ChosenRows | None = None,
    ) -> list[Statistics]:
        """The statistics of each text of a call; for ``chosen`` see `statistics_of_call`."""
        known = (*map(id, sides), call.size[2:])
        if known not in self._known:
            self._known[known] = _plan_of(call, sides, self._keeping)
        query, keys = (side.positions for side in sides)
        plan = self._known[known]
        return statistics_of_call(call, plan, kept_queries=query, kept_keys=keys, chosen=chosen)


def _plan_of(
    call: Call, sides: tuple[SideTokens, SideTokens], keeping: KeepChoice
) -> StatisticsPlan:
    """The plan of the statistics of a call with these tokens."""
    query, key = sides

    def spread(side: SideTokens, name: str, size: int) -> torch.Tensor | None:
        """``[batch position]`` of one fact about the tokens, padding included; None where it is not
        known of all.
        """
        if any(getattr(tokens, name) is None for tokens in side.tokens):
            return None
        numbers = torch.zeros(len(side.tokens), size, dtype=torch.long)
        for row, tokens, positions in zip(numbers, side.tokens, side.positions, strict=True):
            row[positions.cpu()] = torch.tensor(getattr(tokens, name), dtype=torch.long)
        return numbers.to(call.context.device)

    cross = query.tokens != key.tokens
    return StatisticsPlan(
        special=spread(key, "special", call.size[3]),
        segments=spread(key, "segments", call.size[3]),
        ids=spread(key, "ids", call.size[3]),
        query_ids=spread(query, "ids", call.size[2]) if cross else None,
        cross=cross,
        rows=keeping.rows,
        top=keeping.top,
    )
