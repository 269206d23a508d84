"""Recipes: how a figure was made, for the metadata of its file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any, NotRequired, TypedDict

from headscope._version import __version__
from headscope.record import Record
from headscope.views.figures._frame import OF_ALL_LAYERS
from headscope.views.figures._options import FigurePlan

TOO_LONG = ("quantities", "evidence")
"""Options whose values are too long to be written into a call."""


class Recipe(TypedDict):
    """How a figure was made, and from which record."""

    call: str
    """The Python call that draws it again from the same record."""
    view: str
    stack: str
    layers: list[int]
    heads: list[int]
    query: int | None
    key: int | None
    quantity: str
    words: NotRequired[bool]
    """Whether pieces were joined to words."""
    mean_layers: NotRequired[list[int]]
    """The layers whose mean was drawn; empty for one layer."""
    mean_heads: NotRequired[bool]
    """Whether the mean of ``heads`` was drawn."""
    model: str
    revision: str | None
    model_type: str
    dtype: str
    text_sha256: str
    """Of the texts, or of the tokens where there are no texts, as one JSON list in UTF-8."""
    tokens: list[int]
    """Number of queries and of keys."""
    verified: float | None
    fonts: list[str]
    versions: dict[str, str]


def recipe_of(plan: FigurePlan, options: Mapping[str, Any]) -> Recipe:
    """The recipe of a planned figure."""
    model = plan.record.model
    arguments = ["record"]
    for name, value in options.items():
        if name not in TOO_LONG:
            arguments.append(f"{name}={_literal(value)}")
    arguments += [f"{name}=..." for name in TOO_LONG if name in options]
    combined = plan.shown.combined
    layers = [layer.layer for layer in combined.layers[plan.layer.layer]]
    heads, means = list(plan.heads), layers if len(layers) > 1 else []
    if plan.view in (*OF_ALL_LAYERS, "scatter"):
        layers, heads = [layer.layer for layer in plan.layers], list(range(plan.stack.heads))
    shows_mean = plan.view in ("matrix", "text", "texts") and len(plan.heads) > 1
    ours = {"headscope": __version__, "matplotlib": version("matplotlib")}
    return {
        "call": f"headscope.figure({', '.join(arguments)})",
        "view": "compare" if plan.panel is not None else plan.view,
        "stack": plan.stack.name,
        "layers": layers,
        "heads": heads,
        "query": plan.query,
        "key": plan.key,
        "quantity": plan.shown.name,
        "words": combined.words is not None,
        "mean_layers": means,
        "mean_heads": bool(combined.heads) or (shows_mean and not plan.shown.whole),
        "model": model.name,
        "revision": model.revision,
        "model_type": model.model_type,
        "dtype": model.dtype,
        "text_sha256": text_hash(plan.record),
        "tokens": [len(plan.stack.query), len(plan.stack.key)],
        "verified": plan.record.verified,
        "fonts": list(plan.style.families[:2]),
        "versions": {**model.versions, **ours},
    }


def _literal(value: Any) -> str:
    """A value as it is written in a call; another record in a tray becomes ``...``."""
    if isinstance(value, Record):
        return "..."
    if isinstance(value, Mapping):
        entries = ", ".join(f"{name!r}: {_literal(of)}" for name, of in value.items())
        return f"{{{entries}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, tuple):
        # A comma after the last entry, without which a tuple of one entry is not a tuple.
        entries = " ".join(f"{_literal(of)}," for of in value)
        return f"({entries})"
    return repr(value)


def text_hash(record: Record) -> str:
    """SHA-256 of the texts, or of the tokens where there are none, as one JSON list."""
    hashed: list[Any] = list(record.texts)
    if not hashed:
        for stack in record.stacks.values():
            hashed += [list(stack.query.pieces), list(stack.key.pieces)]
    return hashlib.sha256(json.dumps(hashed).encode()).hexdigest()


def metadata(recipe: Recipe, kind: str) -> dict[str, Any]:
    """The metadata of a file in the form of matplotlib's writers; without a date, so that files are
    the same each time.
    """
    document = json.dumps(recipe)
    title = f"Attention of {recipe['model'] or 'a model'}: view {recipe['view']}"
    if recipe["layers"]:
        first, last = recipe["layers"][0], recipe["layers"][-1]
        title += f", layer {first}" if first == last else f", layer {first}-{last}"
    # XML and PDF refuse control characters, which the name of a model may hold.
    title = "".join(character if character.isprintable() else "?" for character in title)
    made = f"headscope {__version__}"
    if kind == "svg":
        return {"Title": title, "Creator": made, "Description": document, "Date": None}
    if kind == "pdf":
        return {"Title": title, "Creator": made, "Subject": document, "CreationDate": None}
    return {"Title": title, "Software": made, "Description": document}
