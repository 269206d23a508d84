"""Why a model said a word, as a page: the way back from the answer through layers and heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from headscope.views.why_contract import WhyColumn, WhyGraph, WhyLine, WhyPicture

EACH_TOKEN = 60
"""Tokens of a text up to which each has a column."""
BY_LOOKING = 0.5
"""Part of a measured change from which on a line is said to act through where later heads look."""


def why_picture(why: Any, options: Mapping[str, Any]) -> WhyPicture:
    """What the page of a `headscope.why.Why` draws."""
    shown = [] if why.refusal else why.lines(len(why.graphs) - 1)
    columns = _columns(why, shown)
    column_of = np.zeros(len(why.tokens), int)
    for number, column in enumerate(columns):
        column_of[slice(*column["tokens"])] = number
    return {
        "title": str(options.get("title") or f"Why “{why.answer}”, not “{why.instead}”?"),
        "theme": options.get("theme", "auto"),
        "model": why.model,
        "answer": why.answer,
        "instead": why.instead,
        "probability": why.probability,
        "lead": why.lead,
        "says": why.sentences,
        "refusal": why.refusal,
        "rows": ["words", *dict.fromkeys(_row_name(why, cell) for cell in why.cells)],
        "columns": columns,
        "at": int(column_of[why.position]),
        "biases": float(why.words[-1] / why.lead),
        "lines": [_line(why, at, column_of) for at in shown],
        "graphs": _graphs(why),
        "chosen": -1 if why.chosen is None or why.refusal else why.chosen,
        "error": why.errors[0],
        "tables": why._repr_html_().partition("\n")[2],
    }


def _row_name(why: Any, cell: tuple[str, int]) -> str:
    stack = {"encoder": "encoder "}.get(cell[0], "decoder ") if why.sources else "layer "
    return f"{stack}{cell[1]}"


def _rows_of(why: Any, cell: tuple[str, int]) -> tuple[int, int]:
    """The rows that the links of a layer come from, and go to."""
    below = sum(stack == "encoder" for stack, _ in why.cells)
    names = list(dict.fromkeys(_row_name(why, each) for each in why.cells))
    row = 1 + names.index(_row_name(why, cell))
    return (below if cell[0] == "cross" else row - 1), row


def _columns(why: Any, shown: Sequence[int]) -> list[WhyColumn]:
    """Each token, or of a long text its parts, and tokens that lines touch, alone."""
    count, touched = len(why.tokens), {why.position, *why.links[list(shown), 2:].flat}
    part_of = _parts_of_tokens(why)
    is_single = [count <= EACH_TOKEN or (at in touched and part_of[at] < 0) for at in range(count)]
    groups = np.where(is_single, np.arange(count) + len(why.parts), part_of)
    is_first = np.r_[True, groups[1:] != groups[:-1]]
    is_first[why.sources] = True
    starts = np.flatnonzero(is_first).tolist()
    below = sum(stack == "encoder" for stack, _ in why.cells)
    columns: list[WhyColumn] = []
    for start, stop in pairwise([*starts, count]):
        part = part_of[start]
        label = why.tokens[start] if is_single[start] else "…"
        columns.append(
            {
                "label": why.parts[part].name if part >= 0 else label,
                "tokens": [start, stop],
                "is_gap": touched.isdisjoint(range(start, stop)),
                "carried": float(why.words[start:stop].sum() / why.lead),
                "bottom": below if why.sources and start >= why.sources else 0,
            }
        )
    return columns


def _parts_of_tokens(why: Any) -> np.ndarray:
    """The innermost part that each token of a long text is in; -1 where there is none."""
    part_of = np.full(len(why.tokens), -1)
    if len(part_of) > EACH_TOKEN:
        for number in sorted(range(len(why.parts)), key=lambda at: why.parts[at].level):
            part_of[list(why.parts[number].tokens)] = number
        part_of[why.position] = -1
    return part_of


def _line(why: Any, link: int, column_of: np.ndarray) -> WhyLine:
    index, head, query, key = why.links[link].tolist()
    stack, layer = why.cells[index]
    key_row, query_row = _rows_of(why, why.cells[index])
    weight, *amounts = why.numbers[link, :4].tolist()
    carried, estimate, measured = (amount / why.lead for amount in amounts)
    later = float(why.later_looking[link] / why.lead)
    return {
        "stack": stack,
        "layer": layer,
        "head": head,
        "name": why.name_of(link),
        "kind": why.kind_of(link),
        "key": int(column_of[key]),
        "query": int(column_of[query]),
        "key_token": key,
        "query_token": query,
        "words": [why.tokens[key], why.tokens[query]],
        "key_row": key_row,
        "query_row": query_row,
        "weight": weight,
        "carried": carried,
        "estimate": estimate,
        "measured": measured,
        "later": later,
        "acts_by_looking": abs(later) > BY_LOOKING * abs(measured) and abs(measured) > abs(carried),
        "graph": int(np.argmax(why.graphs[:, link])),
    }


def _graphs(why: Any) -> list[WhyGraph]:
    keeps, drawn = why.keeps(why.kept), why.keeps(why.drawn)
    return [
        {
            "lines": lines,
            "keeps": float(keeps[number]),
            "drawn": np.quantile(drawn[:, number], (0.05, 0.5, 0.95)).tolist(),
        }
        for number, lines in enumerate(why.sizes)
    ]
