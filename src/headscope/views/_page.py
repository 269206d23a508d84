"""The header and the arrays of a page that shows a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, cast

import numpy as np

from headscope._version import __version__
from headscope.axes import HEAD, KEY, LAYER, QUERY
from headscope.errors import PageError, RecordError
from headscope.patterns import COLUMNS, KINDS, text_facts
from headscope.record import Layer, Record, Stack, Tokens
from headscope.views._checked_options import check_options, held_heads, held_layers
from headscope.views._differences import put_comparison, words_of
from headscope.views._evidence import page_evidence
from headscope.views._grouped import blocks_of, by_sentence, group_words, in_groups, source_of
from headscope.views._head_pictures import sampling_words
from headscope.views._links import page_links, put_generation
from headscope.views._payload import Chunks, described, layer_facts, made_layer, own_heads
from headscope.views._quantity_arrays import (
    Given,
    further_quantities,
    given_quantities,
    put_quantities,
    quantities_of,
    seen_names,
)
from headscope.views._selection import first_selection
from headscope.views._tray import PREFIX, options_beside, records_beside
from headscope.views.constants import valid
from headscope.views.contract import PAGE_FORMAT, Page, PageArray, PageLayer, PageStack, PageTokens
from headscope.views.options import PageOptions, PageSelection

NOT_GIVEN = "its attention is not in the record"
KIND_AXES = (LAYER, HEAD, "column")
LARGEST = 128 * 2**20
"""Bytes of arrays that a page may hold before compression; larger pages are slow to open."""
TITLE = 100
"""Characters of its texts that a page has for its title, where it has no other."""
ROOM = 20 * 2**20
"""Bytes that queries and keys may take even where weights would be smaller: the neuron view needs
them.
"""


def check_shown(record: Record, options: PageOptions) -> None:
    """Raise where options are none of a page, or nothing of this record can be shown.

    Raises:
        PageError: an unknown option or value.
        RecordError: a layer without weights.
    """
    check_options(options)
    held = held_layers(record, options.get("include_layers"))
    for name, numbers in held.items():
        for number in numbers:
            layer = record[name].layer(number)
            if not layer.has("weights") and (not layer.has("queries") or not layer.has("keys")):
                raise RecordError(
                    f"Layer {number} holds neither weights nor queries and keys; capture with "
                    "keep='qk' or keep='auto'"
                )


def page_parts(
    record: Record, options: PageOptions, largest: int | None = None
) -> tuple[Page, dict[str, bytes]]:
    """The header of a page, and the bytes of the arrays that it names.

    Args:
        record: the record that is shown.
        options: options as the user gave them.
        largest: largest number of bytes of all arrays; `LARGEST` by default.

    Raises:
        PageError: an unknown option or value, or more than a page can hold.
    """
    check_options(options)
    record = in_groups(record, options)
    held = held_layers(record, options.get("include_layers"))
    shown = {
        name: [record[name].layer(number) for number in numbers] for name, numbers in held.items()
    }
    given = given_quantities(record, options.get("quantities", {}))
    records = records_beside(options.get("beside"))
    _check_size(shown, given, LARGEST if largest is None else largest, list(records.values()))
    beside, further = {}, {}
    for name, of in records.items():
        beside[name], theirs = page_parts(of, options_beside(options), largest)
        further |= {f"{PREFIX}/{name}/{chunk}": data for chunk, data in theirs.items()}
    chunks = Chunks()
    header = page_header(
        record,
        options,
        lambda *of: _stack(*of, given=given, chunks=chunks),
        given=given,
        chunks=chunks,
        beside=beside,
    )
    return header, chunks.by_name | further


def page_header(
    record: Record,
    options: PageOptions,
    stack_of: Callable[[Stack, list[Layer], list[int]], PageStack],
    *,
    given: Mapping[str, Given],
    chunks: Chunks,
    beside: Mapping[str, Page] | None = None,
) -> Page:
    """The header of a page: everything but its arrays.

    Args:
        record: the record that is shown.
        options: options as the user gave them, by `check_options`.
        stack_of: makes a stack's part of the header from its layers and the numbers of its heads
            that the page holds.
        given: the option ``quantities`` of each stack, by `given_quantities`.
        chunks: takes the bytes of the evidence and the pictures.
        beside: the headers of further records, by name.
    """
    held = held_layers(record, options.get("include_layers"))
    heads, layers, stacks = {}, {}, []
    for name, numbers in held.items():
        heads[name] = held_heads(record[name], numbers, options.get("include_heads"))
        layers[name] = [record[name].layer(number) for number in numbers]
        stacks.append(stack_of(record[name], layers[name], heads[name]))
    compared = options.get("comparison")
    words = {} if compared is None else words_of(compared)
    title = " / ".join(record.texts) or record.model.name
    title = title if len(title) <= TITLE else f"{title[:TITLE]} …"
    further = further_quantities(layers, heads, given, words)
    header: Page = {
        "format": PAGE_FORMAT,
        "headscope": __version__,
        "title": valid(options.get("title") or title or "Attention"),
        "model": {"name": valid(record.model.name), "model_type": valid(record.model.model_type)},
        "verified": record.verified,
        "stacks": stacks,
        "selection": cast("PageSelection", {}),
    }
    if further:
        header["quantities"] = further
    if beside:
        header["beside"] = dict(beside)
    header["selection"] = first_selection(header, options, record.pictures)
    _put_facts(header, record, chunks)
    _put_given(header, options, record, chunks)
    if compared is not None:
        put_comparison(header, compared, record, chunks)
    return header


def _put_given(header: Page, options: PageOptions, record: Record, chunks: Chunks) -> None:
    """Put evidence and gold links into the header, where they were given, and what the model wrote.

    Raises:
        PageError: where they belong to another record, or the first view needs evidence.
    """
    selection, links = header["selection"], options.get("links")
    evidence = options.get("evidence")
    if evidence is not None:
        header["evidence"] = page_evidence(evidence, record, header["stacks"], chunks)
    put_generation(header, record)
    if links is not None:
        header["links"] = page_links(links, record, header["stacks"], selection["stack"])


def _put_facts(header: Page, record: Record, chunks: Chunks) -> None:
    """Put facts about the whole record into the header: verification, unseen layers, pictures."""
    facts = [record.verification, sampling_words(record, header["stacks"])]
    if any(facts):
        header["checked"] = " · ".join(filter(None, facts))
    left_out = [group_words(record)]
    if record.unseen:
        left_out.append(
            f"The attention of some layers was not seen, and they are left out: {record.unseen}"
        )
    if any(left_out):
        header["unseen"] = valid(". ".join(filter(None, left_out)))
    if record.numbered:
        header["numbered"] = valid(record.numbered)
    if record.pictures:
        header["pictures"] = chunks.add_pictures("picture", record.pictures)


def _check_size(
    shown: dict[str, list[Layer]],
    given: Mapping[str, Given],
    largest: int,
    beside: Sequence[Record],
) -> None:
    layers = [layer for layers in shown.values() for layer in layers]
    size = sum(map(_least_bytes, layers))
    for record in beside:
        for stack in record.stacks.values():
            size += sum(map(_least_bytes, stack))
    for name, held in shown.items():
        size += sum(
            array.size for layer in held for array in quantities_of(layer, given[name]).values()
        )
    if size > largest:
        # About as many layers as fit, because most layers take the same number of bytes.
        fits = max(1, len(layers) * largest // size)
        raise PageError(
            f"The page would hold {size / 2**20:,.0f} MiB of arrays, and more than "
            f"{largest / 2**20:.0f} MiB are slow to open; choose about {fits} of its "
            f"{len(layers)} layers with include_layers= (--include-layers), or a shorter text; a "
            "widget, and headscope serve, send only what is looked at"
        )


def _least_bytes(layer: Layer) -> int:
    """Bytes of the smaller form of a layer: one for each weight, or two for each number of a query
    or key.
    """
    weights = len(layer.head_numbers) * layer.size[0] * layer.size[1]
    if not layer.has("queries") or not layer.has("keys"):
        return weights
    return min(weights, 2 * (prod(layer.shape_of("queries")) + prod(layer.shape_of("keys"))))


def _stack(
    stack: Stack,
    layers: list[Layer],
    heads: list[int],
    *,
    given: Mapping[str, Given],
    chunks: Chunks,
) -> PageStack:
    how: dict[str, Any] = {"facts": text_facts(stack), "blocks": blocks_of(stack)}
    own = [own_heads(layer, heads) for layer in layers]
    made = [
        made_layer(stack.name, layer, of, chunks, room=ROOM // len(layers), **how)
        for layer, of in zip(layers, own, strict=True)
    ]
    thumbs = np.zeros((len(made), len(heads), *made[0].pictures.thumbs.shape[1:]), np.uint8)
    kinds = np.full((len(made), len(heads), len(COLUMNS)), np.nan, np.float32)
    # A layer with fewer heads than its stack leaves its last entries empty.
    for row, of_heads, layer in zip(thumbs, kinds, made, strict=True):
        row[: len(layer.pictures.thumbs)] = layer.pictures.thumbs
        of_heads[: len(layer.pictures.kinds)] = layer.pictures.kinds
    for layer, of, put in zip(layers, own, made, strict=True):
        maps = given[stack.name]
        put_quantities(put.header, layer, of, maps, stack=stack.name, chunks=chunks)
    shown = chunks.add(f"thumbs/{stack.name}", thumbs, (LAYER, HEAD, QUERY, KEY), sqrt=True)
    does = chunks.add(f"kinds/{stack.name}", kinds, KIND_AXES)
    return _described(stack, heads, [layer.header for layer in made], thumbs=shown, kinds=does)


def later_stack(
    stack: Stack, layers: list[Layer], heads: list[int], given: Mapping[str, Given]
) -> PageStack:
    """A stack's part of the header of a live page, whose layers and thumbnails are made later."""
    count, sides = [len(layers), len(heads)], [len(starts) for starts in blocks_of(stack)]
    made: list[PageLayer] = [
        layer_facts(stack.name, layer, own_heads(layer, heads), Chunks())
        | {"later": True, "has": seen_names(layer, given[stack.name]), "visible": None}
        for layer in layers
    ]
    # Of a text in groups a layer takes minutes: its heads are asked for one by one.
    grouped = source_of(stack.layers[0]) is not None
    (small, does), split = (("thumb", "kind"), 2) if grouped else (("thumbs", "kinds"), 1)
    axes, more = (LAYER, HEAD, QUERY, KEY), {"encoding": "sqrt", "split": split}
    thumbs = described(f"{small}/{stack.name}", axes, [*count, *sides], "uint8", **more)
    columns = [*count, len(COLUMNS)]
    kinds = described(f"{does}/{stack.name}", KIND_AXES, columns, "float32", split=split)
    return _described(stack, heads, made, thumbs=thumbs, kinds=kinds)


def _described(
    stack: Stack, heads: list[int], layers: list[PageLayer], *, thumbs: PageArray, kinds: PageArray
) -> PageStack:
    # The layers of the model that have no attention to show, and why.
    numbers = {layer.layer for layer in stack}
    gaps = dict.fromkeys(set(range(max(numbers))) - numbers, NOT_GIVEN) | dict(stack.others)
    described: PageStack = {
        "name": stack.name,
        "heads": len(heads),
        "head_numbers": heads,
        "query": page_tokens(stack.query),
        "key": page_tokens(stack.key),
        "layers": layers,
        "absent": [{"layer": at, "why": valid(_reason(gaps[at]))} for at in sorted(gaps)],
        "thumbs": thumbs,
        "kinds": {
            "kinds": list(KINDS),
            "columns": list(COLUMNS),
            "values": kinds,
            "causal": text_facts(stack).causal,
        },
    }
    if by_sentence(stack):
        query, key = (starts.tolist() for starts in blocks_of(stack))
        described["sentences"] = {"query": query, "key": key}
    source = source_of(stack.layers[0])
    if source is not None:
        described["query"]["count"], described["key"]["count"] = source.layer.size
    return described


def _reason(what: str) -> str:
    """Why a layer has no attention, in words, from the note of its stack: ``"linear (Mamba)"``."""
    kind, _, of = what.partition(" ")
    words = {
        "unseen": "its attention has a form that headscope does not know",
        "none": "it has no attention",
        "linear": "it has linear attention, which has no weights",
    }
    return f"{words[kind]} {of}".strip() if kind in words else what


def page_tokens(tokens: Tokens) -> PageTokens:
    """The tokens of one side of a stack, as text that any page can hold."""
    page: PageTokens = {
        "pieces": [valid(piece) for piece in tokens.pieces],
        "labels": [valid(label) for label in tokens.labels],
        "continues": list(tokens.continues),
        "special": list(tokens.special),
        "segments": list(tokens.segments),
    }
    if any(tokens.continues):
        page["words"] = [valid(word) for word in tokens.whole_words.names]
    if tokens.places is not None:
        page["areas"] = [
            "" if place is None else f"{place[0] + 1}/{place[1] + 1}" for place in tokens.places
        ]
        page["runs"] = _runs(tokens)
        page["grids"] = [list(grid) for grid in tokens.grids]
    if tokens.frames:
        # The frames of a video that a grid stands for; empty for a picture.
        runs = [dict.fromkeys(frame or ()) for frame in tokens.frames]
        said = ["-".join(map(str, run)) for run in runs]
        page["frames"] = [
            f"frame{'s' * (len(run) > 1)} {words}" if run else ""
            for run, words in zip(runs, said, strict=True)
        ]
    return page


def _runs(tokens: Tokens) -> list[list[int]]:
    """First and stop of each run of tokens in one picture, with its number from 1; or outside of
    pictures, without a number.
    """
    pictures = [-1 if picture is None else picture for picture in tokens.pictures or ()]
    ends = [*(np.flatnonzero(np.diff(pictures)) + 1).tolist(), len(pictures)]
    # Not strict: there is one start more than there are ends.
    return [
        [first, stop, *([pictures[first] + 1] if pictures[first] >= 0 else [])]
        for first, stop in zip([0, *ends], ends, strict=False)
    ]
