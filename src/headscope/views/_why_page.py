"""Why a model said a word, as a picture: the way back from the answer through layers and heads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from headscope.views.why_contract import WhyPicture


def why_picture(why: Any, options: Mapping[str, Any]) -> WhyPicture:
    """What the page of a `headscope.why.Why` draws."""
    shown = [] if why.refusal else why.lines(len(why.graphs) - 1)
    part_of = np.full(len(why.tokens), -1)
    for part in sorted(why.parts, key=lambda part: part.level):
        part_of[list(part.tokens)] = why.parts.index(part)
    side = {"encoder": "encoder"} if why.sources else {"self": "layer"}
    names = [f"{side.get(stack, 'decoder')} {layer}" for stack, layer in why.cells]
    rows, below = [*dict.fromkeys(names)], sum(stack == "encoder" for stack, _ in why.cells)
    row_of = []
    for index in why.links[shown, 0].tolist():
        row = 1 + rows.index(names[index])
        row_of.append([below if why.cells[index][0] == "cross" else row - 1, row])
    shares = np.c_[why.numbers[shown, 1:4], why.later_looking[shown]] / why.lead
    bands = np.quantile(why.keeps(why.drawn), (0.05, 0.5, 0.95), axis=0)
    return {
        "title": str(options.get("title") or f"Why “{why.answer}”, not “{why.instead}”?"),
        "theme": options.get("theme", "auto"),
        "model": why.model,
        "answer": why.answer,
        "probability": why.probability,
        "says": why.sentences,
        "tokens": [*why.tokens],
        "position": why.position,
        "sources": why.sources,
        "words": (why.words / why.lead).tolist(),
        "parts": [part.name for part in why.parts],
        "part_of": part_of.tolist(),
        "rows": rows,
        "stages": [*why.cells],
        "links": why.links[shown].tolist(),
        "row_of": row_of,
        "names": [why.name_of(link) for link in shown],
        "kinds": [why.kind_of(link) for link in shown],
        "weights": why.numbers[shown, 0].tolist(),
        "shares": shares.tolist(),
        "graph_of": np.argmax(why.graphs[:, shown], axis=0).tolist() if shown else [],
        "sizes": why.sizes,
        "keeps": why.keeps(why.kept).tolist(),
        "drawn": bands.T.tolist(),
        "chosen": -1 if why.refusal else why.chosen,
        "tables": why._repr_html_().partition("\n")[2],
    }
