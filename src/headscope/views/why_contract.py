"""What the page of a `headscope.why.Why` draws, as JSON, declared here once;
``frontend/types/why.ts`` holds the TypeScript types.
"""

from __future__ import annotations

from typing import TypedDict


class WhyPicture(TypedDict):
    """All that the page draws. Amounts are parts of the lead."""

    title: str
    theme: str
    """auto, light or dark."""
    model: str
    answer: str
    probability: float
    says: list[str]
    """Sentences: the lead; what the chosen graph keeps, or why there is no picture."""
    tokens: list[str]
    position: int
    """Of the token that the answer stands above."""
    sources: int
    """How many tokens an encoder reads, before those of its decoder; else 0."""
    words: list[float]
    """What each token carries; behind them, what biases carry. They sum to 1."""
    parts: list[str]
    part_of: list[int]
    """The innermost part that each token is in; -1 where there is none."""
    rows: list[str]
    """Names of the layers, from below; a decoder's two are one."""
    stages: list[tuple[str, int]]
    """Stack and number of each layer that links name."""
    links: list[list[int]]
    """Layer and head, query and key of each line, the strongest first; none of a refusal."""
    row_of: list[list[int]]
    """The row that each line comes from, 0 for words, and the one it goes to."""
    names: list[str]
    kinds: list[str]
    """Of each line's head on this text; none where no pattern was seen."""
    weights: list[float]
    shares: list[list[float]]
    """What each line carries, the estimate of its cut, the measured change, and what of that goes
    when all later heads attend as before.
    """
    graph_of: list[int]
    """The smallest graph that has each line; every larger one has it too."""
    sizes: list[int]
    """Lines of each graph."""
    keeps: list[float]
    """What is left of what attention does with all links outside a graph cut at once."""
    drawn: list[list[float]]
    """The same of as many lines drawn by weight: their quantiles .05, .5 and .95."""
    chosen: int
    """The graph that is shown first; -1 where there is no picture."""
    tables: str
    """Tables and notes as HTML, every text in it escaped."""
