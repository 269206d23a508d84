"""What the page of a `headscope.why.Why` draws, as JSON, declared here once;
``frontend/src/contract/why.ts`` holds the TypeScript types.
"""

from __future__ import annotations

from typing import TypedDict


class WhyColumn(TypedDict):
    """A token, a part of a long text, or tokens of which no line comes."""

    label: str
    tokens: list[int]
    """First and stop of its tokens."""
    is_gap: bool
    """Whether no line begins or ends in it."""
    carried: float
    """What its tokens carry of the lead, as a part of it; all columns and ``biases`` sum to 1."""
    bottom: int
    """The row where it begins: 0, or above an encoder."""


class WhyLine(TypedDict):
    """What one head takes from a token to another. Amounts are parts of the lead."""

    stack: str
    layer: int
    head: int
    name: str
    kind: str
    """Of its head on this text; none where no pattern was seen."""
    key: int
    """Column from which it comes."""
    query: int
    """Column to which it goes."""
    key_token: int
    query_token: int
    words: list[str]
    """Label of the token it comes from, and of the one it goes to."""
    key_row: int
    query_row: int
    weight: float
    carried: float
    """Its width; below 0 against the answer."""
    estimate: float
    measured: float
    """The number on it: change of the lead when it is cut."""
    later: float
    """What of that goes when all later heads attend as before: the way through where they look."""
    acts_by_looking: bool
    """Whether most of what cutting it changes goes through where later heads look: dashed."""
    graph: int
    """The smallest graph that has it; every larger one has it too."""


class WhyGraph(TypedDict):
    """What is left of what attention does with all other links cut at once."""

    lines: int
    keeps: float
    drawn: list[float]
    """The same of as many lines drawn by weight: the 5th, 50th and 95th of 100."""


class WhyPicture(TypedDict):
    """All that the page draws."""

    title: str
    theme: str
    """auto, light or dark."""
    model: str
    answer: str
    instead: str
    probability: float
    lead: float
    """In logits."""
    says: list[str]
    """Sentences: the lead; what the chosen graph keeps, or why there is no picture."""
    refusal: str
    """Why there is no picture, in one sentence; empty where there is one."""
    rows: list[str]
    """Names of the rows, from below."""
    columns: list[WhyColumn]
    at: int
    """Column of the answer, which stands above its highest row."""
    biases: float
    lines: list[WhyLine]
    """The strongest first; none where there is no picture."""
    graphs: list[WhyGraph]
    """Rising in size: the stops of the slider, and the curve."""
    chosen: int
    """The graph that is shown first; -1 where there is no picture."""
    error: float
    """How far what is carried is from the lead in sum, relative to it."""
    tables: str
    """Tables and notes as HTML, every text in it escaped."""
