"""An answer as a page: its words, the prompt part by part with two bars each, and the heads that
look at what was needed; and the page of why a word was said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from headscope.errors import PageError
from headscope.patterns import COLUMNS, KINDS, text_facts
from headscope.record import Stack
from headscope.results import shows
from headscope.views._checked_options import check_options
from headscope.views._head_pictures import head_pictures
from headscope.views._html import FramedPage, page_html
from headscope.views._page import page_parts
from headscope.views._thumbs import packed, png_address, quantise
from headscope.views._why_page import why_picture
from headscope.views.answer_contract import AnswerPart, AnswerPicture, AnswerShown
from headscope.views.options import PageOptions
from headscope.views.why_contract import WhyPicture

MOST_HEADS, FEW_HEADS = 64, 24
"""Heads up to which all are tiles, and those that look most at what was needed where there are
more.
"""
INK = 2**21
"""Bytes of attention to single tokens in a page; of some heads there is none beyond."""
ROOM = 2**28
"""Weights that the attention of parts to parts is measured on; of longer prompts tokens are drawn
evenly from each part.
"""
Cell = tuple[int, int]


@dataclass(frozen=True, repr=False)
class AnswerPage(FramedPage):
    """Page of an answer, or of why a word was said: it shows itself in a notebook, saves itself as
    one file, and opens in a browser. Made by `view`.

    Args:
        answer: a `headscope.answering.Answer` or a `headscope.why.Why`.
        options: ``theme`` and ``title``.
    """

    answer: Any
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        if unknown := [name for name in self.options if name not in ("theme", "title")]:
            raise PageError(f"The page of an answer has theme and title, no option {unknown[0]!r}")
        check_options(self.options)

    @cached_property
    def picture(self) -> AnswerPicture | WhyPicture:
        """All that the page draws."""
        draw = {"answer": _picture, "why": why_picture}[self.answer.KIND]
        return draw(self.answer, self.options)

    @cached_property
    def html(self) -> str:
        """The page as one self-contained file: inert, offline, opens from disk."""
        record = self.answer.record if self.answer.KIND == "why" else None
        with suppress(PageError):  # more attention than a page can hold
            if record is not None:
                header, chunks = page_parts(record, PageOptions(**self.options))
                header["why"] = why_picture(self.answer, self.options)
                return page_html(header, chunks)
        return page_html(self.picture, {}, "answer.js")

    def __repr__(self) -> str:
        return f"<Page of {self.answer!r}>"


@shows("answer")
@shows("why")
def answer_page(answer: Any, **options: Any) -> AnswerPage:
    """The page of an answer, or of why a word was said.

    Args:
        answer: a `headscope.answering.Answer` or a `headscope.why.Why`.
        **options: ``theme`` (``"auto"``, ``"light"`` or ``"dark"``) and ``title``.

    Raises:
        PageError: an unknown option.
    """
    return AnswerPage(answer, options)


def _picture(answer: Any, options: Mapping[str, Any]) -> AnswerPicture:
    """What the page of an answer draws."""
    there = np.argwhere(np.isfinite(answer.shares[..., 0]).all(axis=0)).tolist()
    heads = _heads(answer, there)
    mean, total = _by_word(answer)
    shares, even = _means(answer, heads, mean)
    drawn: Any = answer.drawn or _of_record(answer, heads, mean)
    needs, needed = zip(answer.verdict, *map(answer.needs, range(len(answer.words))), strict=True)
    logs = [total @ answer.whole, total @ answer.none, *(answer.without @ total.T)]
    return {
        "title": str(options.get("title") or answer.question or answer.prompt),
        "theme": options.get("theme", "auto"),
        "model": str(options.get("title") or answer.model),
        "facts": f"{len(answer.layers)} layers · {answer.shares.shape[2]} heads",
        "question": answer.question,
        "says": answer.sentences,
        "quantity": answer.shares_of,
        "mean": answer.mean_of,
        "needs": [*needs],
        "needed": [*map(list, needed)],
        "targets": [*answer.targets],
        "gone": answer.gone,
        "words": [word.text for word in answer.words],
        "pieces": [*answer.pieces],
        "parts": _parts(answer),
        "candidates": [*answer.candidates],
        "heads": [f"{layer}-{head}" for layer, head in heads],
        "columns": 0 if len(heads) < len(there) else answer.shares.shape[2],
        "shares": packed(shares),
        "even_shares": packed(even),
        "logs": packed(np.array([*logs, *(answer.alone @ total.T)])),
        **drawn,
        "pictures": _pictures(answer),
        "sinks": np.array(answer.patches, int)[answer.is_sink & (not answer.keep_sinks)].tolist(),
        "tables": answer._repr_html_().partition("\n")[2],
    }


def _of_record(answer: Any, heads: Sequence[Cell], mean: np.ndarray) -> dict[str, Any]:
    """What the record of an answer is drawn from; a file of the answer holds it."""
    ink = _ink(answer, heads, len(answer.pieces), mean)
    most = np.maximum(ink.max(axis=-1, initial=0.0), 1e-12)
    drawn = {"ink": quantise(ink / most[..., None]), "tops": most, "between": _between(answer)}
    return {name: packed(of) for name, of in drawn.items()} | {"kinds": _kinds(answer, heads)}


def _by_word(answer: Any) -> tuple[np.ndarray, np.ndarray]:
    """What makes means over the tokens of each word, and sums: axes word, token."""
    places = np.arange(len(answer.tokens))
    own = [np.isin(places, word.tokens) for word in answer.words]
    total = np.array(own, float).reshape(-1, len(places))
    return total / total.sum(axis=-1, keepdims=True), total


def _means(answer: Any, heads: Sequence[Cell], mean: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Shares of words, mean over the chosen heads and then of each head; and of even rows."""
    layers = [answer.layers.index(layer) for layer, _ in answer.chosen]
    chosen = _shares(answer, answer.chosen).mean(axis=0)
    shares = np.einsum("wt,htp->hwp", mean, np.array([chosen, *_shares(answer, heads)]))
    return shares, mean @ answer.even[:, layers].mean(axis=1)


def _shares(answer: Any, cells: Sequence[Cell]) -> np.ndarray:
    """Shares of these heads: axes head, token, part."""
    layers = [answer.layers.index(layer) for layer, _ in cells]
    return answer.shares[:, layers, [head for _, head in cells]].swapaxes(0, 1)


def _heads(answer: Any, there: list[list[int]]) -> list[Cell]:
    """The heads that have a tile, of all that there are by index of the layer."""
    if len(there) > MOST_HEADS:
        shares = answer.head_shares()[list(answer.targets or (0,))].sum(axis=0)
        there = sorted(there, key=lambda at: -shares[tuple(at)])[:FEW_HEADS]
    return [(answer.layers[index], head) for index, head in there]


def _parts(answer: Any) -> list[AnswerPart]:
    parts: list[AnswerPart] = []
    for part in answer.parts:
        places = np.array(part.tokens, int)
        runs = np.split(places, np.flatnonzero(np.diff(places) > 1) + 1) if len(places) else []
        ends = [[int(run[0]), int(run[-1]) + 1] for run in runs]
        parts.append({"name": part.name, "kind": part.kind, "level": part.level, "runs": ends})
    return parts


def _ink(
    answer: Any, heads: Sequence[Cell], count: int, mean: np.ndarray
) -> Float[np.ndarray, "head word key"]:
    """Attention of each word to each token of the prompt: mean over heads, then of single ones."""
    ink = [mean @ answer.attention[:, :count]]
    if answer.record is not None and answer.quantity == "weight":
        generation, stack = _written(answer)
        for layer, head in heads[: max(0, INK // max(1, ink[0].size) - 1)]:
            rows = stack.layer(layer).weights_of(head, queries=generation.chosen_by)
            ink.append(mean @ np.asarray(rows, np.float64)[:, :count])
    return np.array(ink)


def _kinds(answer: Any, heads: Sequence[Cell]) -> list[str]:
    """The kind of each head on this text; of layers none is known."""
    if answer.record is None or answer.quantity == "alti":
        return ["none"] * len(heads)
    kinds, stack = [], _written(answer)[1]
    facts = text_facts(stack)
    for layer, head in heads:
        kind = head_pictures(stack.layer(layer), [head], facts).kinds[0, COLUMNS.index("kind")]
        kinds.append("none" if np.isnan(kind) else KINDS[int(kind)])
    return kinds


def _between(answer: Any) -> Float[np.ndarray, "part_or_answer part"]:
    """How many times an even share the tokens of each part, and the rows that wrote the answer,
    give to each part: mean over the chosen heads. Empty where shares are not of weights.
    """
    if answer.record is None or answer.quantity != "weight":
        return np.zeros((0, 0))
    generation, stack = _written(answer)
    most = max(1, ROOM // max(1, len(stack.key) * len(answer.chosen) * (len(answer.parts) + 1)))
    groups = []
    for places in (*[part.tokens for part in answer.parts], generation.chosen_by):
        every = np.linspace(0, len(places) - 1, min(most, len(places))).astype(int)
        groups.append(np.array(places, int)[every])
    rows = np.unique(np.concatenate(groups).astype(int))
    spread = np.array([np.isin(rows, group) for group in groups], float)
    own = [np.isin(np.arange(len(stack.key)), part.tokens) for part in answer.parts]
    members = np.array(own, float).T
    got, even = np.zeros((2, len(groups), len(answer.parts)))
    for number, head in answer.chosen:
        layer = stack.layer(number)
        got += spread @ (np.asarray(layer.weights_of(head, queries=rows)) @ members)
        seen = layer.visible.rows(rows)
        even += spread @ (seen @ members / np.maximum(1, seen.sum(axis=-1, keepdims=True)))
    return np.divide(got, even, out=np.full(got.shape, np.nan), where=even > 0)


def _written(answer: Any) -> tuple[Any, Stack]:
    """How the answer was written, and the stack that wrote it."""
    generation = answer.record.generation
    return generation, answer.record.stacks[generation.stack]


def _pictures(answer: Any) -> list[AnswerShown]:
    """The pictures that the model saw, and where on them its patches are."""
    shown: list[AnswerShown] = []
    for number, (rows, columns) in enumerate(answer.grids):
        own = [at for at, of in enumerate(answer.picture_of) if of == number]
        pixels = answer.pictures[number] if answer.pictures else np.zeros((rows, columns, 3))
        size, address = list(pixels.shape[:2]), png_address(pixels) if answer.pictures else ""
        places = [answer.places[at][0] * columns + answer.places[at][1] for at in own]
        grid, keys = [rows, columns], [answer.patches[at] for at in own]
        shown.append(AnswerShown(address=address, size=size, grid=grid, keys=keys, places=places))
    return shown
