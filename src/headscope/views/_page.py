"""A record as one self-contained page."""

from __future__ import annotations

import html
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, TypedDict

from typing_extensions import Unpack

from headscope._version import __version__
from headscope.axes import HEAD, KEY, QUERY
from headscope.errors import PageError
from headscope.record import Layer, Record, Stack, Tokens
from headscope.storage import written_whole
from headscope.views._contract import PAGE_FORMAT, Page, PageLayer, PageStack, PageTokens
from headscope.views._html import page_html
from headscope.views._quantise import quantise

LARGEST = 128 * 2**20
"""Weights that a page may hold, one byte each; larger pages are slow to open."""

Theme = Literal["auto", "light", "dark"]


class PageOptions(TypedDict, total=False):
    """Options of `page`."""

    stack: str
    """Stack that is shown first; by default the first one."""
    layer: int
    """Layer that is shown first; by default the first one."""
    heads: Sequence[int]
    """Heads that are shown first; by default all."""
    layers: Sequence[int]
    """Layers that the page holds; by default all."""
    theme: Theme
    """``"light"``, ``"dark"``, or ``"auto"`` (default) for what the reader's system says."""
    title: str
    """Title of the page; by default the text."""


@dataclass(frozen=True)
class ViewerPage:
    """A page with the viewer and all it shows: inert, offline, opens from disk.

    In a notebook the page shows itself, in a frame of its own.
    """

    header: Page
    chunks: dict[str, bytes]

    @cached_property
    def html(self) -> str:
        """The file as text."""
        return page_html(self.header, self.chunks)

    def save(self, path: str | os.PathLike) -> Path:
        """Write the page, whole or not at all.

        Raises:
            FileError: where it cannot be written.
        """
        text = self.html
        with written_whole(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
        return Path(path)

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" sandbox="allow-scripts" title="headscope" '
            'style="width:100%;height:720px;border:0"></iframe>'
        )


def page(record: Record, **options: Unpack[PageOptions]) -> ViewerPage:
    """The viewer with this record in it, as one self-contained HTML page.

    Weights travel as one byte each, on a square-root scale; the page states the error.

    Args:
        record: what to show.
        **options: see `PageOptions`.

    Raises:
        PageError: an unknown option, a theme there is not, or more weights than a page can hold.
        RecordError: a stack, layer or head that the record does not have.

    Example:
        >>> page(record, layer=2, heads=[0]).save("page.html")
    """
    for name in options:
        if name not in PageOptions.__annotations__:
            raise PageError(f"page has no option {name!r}; there are {', '.join(PageOptions.__annotations__)}")
    theme = options.get("theme", "auto")
    if theme not in ("auto", "light", "dark"):
        raise PageError(f"theme must be 'auto', 'light' or 'dark', not {theme!r}")
    shown = _shown(record, options.get("layers"))
    _check_size(shown)
    chunks: dict[str, bytes] = {}
    stacks = [_stack(record[name], layers, chunks) for name, layers in shown.items()]
    first = record[options.get("stack", next(iter(shown)))]
    header: Page = {
        "format": PAGE_FORMAT,
        "headscope": __version__,
        "title": options.get("title") or _title(record),
        "model": {"name": record.model.name, "model_type": record.model.model_type},
        "verified": record.verified,
        "stacks": stacks,
        "selection": {
            "stack": first.name,
            "layer": _first_layer(shown[first.name], options.get("layer"), first),
            "heads": _heads(first, options.get("heads")),
            "theme": theme,
        },
    }
    return ViewerPage(header, chunks)


def _shown(record: Record, numbers: Sequence[int] | None) -> dict[str, list[Layer]]:
    """The layers that go into the page, by stack; stacks without any of them are left out."""
    if numbers is None:
        return {name: list(stack) for name, stack in record.stacks.items()}
    known = {layer.layer for stack in record.stacks.values() for layer in stack}
    missing = sorted(set(numbers) - known)
    if missing or not numbers:
        raise PageError(
            f"layers={list(numbers)}: this record has the layers {sorted(known)}; choose at least one of them"
        )
    found = {name: [layer for layer in stack if layer.layer in numbers] for name, stack in record.stacks.items()}
    return {name: layers for name, layers in found.items() if layers}


def _check_size(shown: dict[str, list[Layer]]) -> None:
    layers = [layer for layers in shown.values() for layer in layers]
    size = sum(layer.heads * layer.size[0] * layer.size[1] for layer in layers)
    if size > LARGEST:
        fits = max(1, len(layers) * LARGEST // size)
        raise PageError(
            f"The page would hold {size / 2**20:,.0f} MiB of weights, and more than {LARGEST / 2**20:.0f} MiB are slow "
            f"to open; choose about {fits} of its {len(layers)} layers with layers= (--layers), or a shorter text"
        )


def _stack(stack: Stack, layers: list[Layer], chunks: dict[str, bytes]) -> PageStack:
    return {
        "name": stack.name,
        "heads": stack.heads,
        "query": _tokens(stack.query),
        "key": _tokens(stack.key),
        "layers": [_layer(stack.name, layer, chunks) for layer in layers],
    }


def _layer(stack: str, layer: Layer, chunks: dict[str, bytes]) -> PageLayer:
    stored, error = quantise(layer.weights_of())
    chunk = f"weights/{stack}/{layer.layer}"
    chunks[chunk] = stored.tobytes()
    return {
        "layer": layer.layer,
        "kind": layer.kind,
        "row_sums": "one" if layer.sinks is None else "less",
        "weights": {
            "chunk": chunk,
            "axes": [HEAD, QUERY, KEY],
            "shape": list(stored.shape),
            "dtype": "uint8",
            "encoding": "sqrt",
            "error": error,
        },
    }


def _tokens(tokens: Tokens) -> PageTokens:
    return {
        "pieces": [_valid(piece) for piece in tokens.pieces],
        "labels": [_valid(label) for label in tokens.labels],
        "continues": list(tokens.continues),
        "special": list(tokens.special),
        "segments": list(tokens.segments),
    }


def _valid(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 file can hold."""
    return text.encode("utf-8", "replace").decode()


def _first_layer(layers: list[Layer], wanted: int | None, stack: Stack) -> int:
    if wanted is None:
        return layers[0].layer
    if wanted not in {layer.layer for layer in layers}:
        stack.layer(wanted)
        raise PageError(f"layer={wanted} is shown first, but layers= leaves it out")
    return wanted


def _heads(stack: Stack, wanted: Sequence[int] | None) -> list[int] | None:
    if wanted is None:
        return None
    if not wanted or min(wanted) < 0 or max(wanted) >= stack.heads:
        raise PageError(
            f"heads={list(wanted)}: stack {stack.name!r} has heads 0 to {stack.heads - 1}; choose at least one"
        )
    return sorted(set(wanted))


def _title(record: Record) -> str:
    return " / ".join(record.texts) or record.model.name or "Attention"
