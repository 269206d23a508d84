"""Answers to one live page: its header, chunks and figures, and everything for its first picture at
once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from threading import Lock
from typing import TYPE_CHECKING, Any

from headscope.errors import FigureError, PageError, check_option_names
from headscope.record import Record
from headscope.views._differences import other_pictures
from headscope.views._html import page_html
from headscope.views._selection import changed_selection
from headscope.views.contract import Page, PageArray, PageLayer, PageStack
from headscope.views.figure_options import WrittenFigureOptions
from headscope.views.options import declared
from headscope.views.quantities import OTHER

if TYPE_CHECKING:
    from headscope.views.opening import View


__all__ = ["MEDIA_TYPES", "PageAnswers", "packed_opening"]

OVERVIEW = 2**23
"""Number of weights up to which thumbnails and kinds come with the opening: about 0.2 s of work.
For a larger record the page asks for them itself, a layer at a time.
"""
OF_ALL_HEADS = 2**18
"""The same for a further quantity, each of which is worked out: about 50 ms of work."""
WITH_ALL_HEADS = ("overview",)
"""Views with small pictures of all heads in the quantity that is chosen."""
LENGTH = 4
"""Bytes of the number at the start of an opening, which is the length of its head."""


class PageAnswers:
    """The answers to the page of one view. Safe to be asked from several threads.

    Args:
        shown: the view.
    """

    def __init__(self, shown: View) -> None:
        self.shown = shown
        self._given = shown.on_demand

    @property
    def header(self) -> Page:
        """The header of the page."""
        return self._given.header

    def chunk(self, name: str) -> bytes | None:
        """The bytes of a chunk; None where there is no such chunk.

        Raises:
            FileError: where the file of the record has changed since it was opened.
        """
        return self._given.chunk(name)

    def figure(self, kind: str, options: Any) -> bytes:
        """The content of a figure's file: svg, pdf or png.

        Raises:
            HeadscopeError: an unknown option, value or kind, or matplotlib is missing.
        """
        return figure_file(self.shown.record, kind, options, self.shown.options)

    def page(self, selection: Mapping[str, Any]) -> str:
        """One self-contained page that opens as the record is shown now.

        Args:
            selection: what is chosen, by the names of the options of `headscope.views.view`; what
                is left out is what the page opens with.

        Raises:
            PageError: where ``selection`` is no JSON object, or chooses what there is not; more
                than a page can hold.
        """
        if not isinstance(selection, Mapping):
            raise PageError("selection is a JSON object of options, such as view and layer")
        header = self.shown.header
        chosen = changed_selection(header, header["selection"], selection)
        return page_html({**header, "selection": chosen}, self.shown.chunks)

    def opening(self, looking: Mapping[str, Any]) -> dict[str, bytes]:
        """The chunks of the first picture: evidence and pictures, the overview of all heads where
        it is quickly made, in the quantity that is looked at too, and the heads of one layer.

        Args:
            looking: the part of the record that is shown: ``stack``, ``layer``, ``heads``, ``view``
                and ``quantity``. Entries that are left out, or that the record does not have, are
                replaced by those that the page opens with.

        Raises:
            PageError: where ``looking`` is no JSON object.
        """
        if not isinstance(looking, Mapping):
            raise PageError("looking is a JSON object with stack, layer, heads, view and quantity")
        chunks = dict(self._given.sent)
        # One after the other: of many layers only the last ones stay prepared.
        for name in chain(self._overview(), self._looked_at(looking)):
            data = None if name in chunks else self._given.chunk(name)
            if data is not None:
                chunks[name] = data
        return chunks

    def _overview(self) -> Iterator[str]:
        stacks = self.header["stacks"]
        if sum(map(_weights_of, stacks)) > OVERVIEW:
            return
        for stack in stacks:
            for row in range(len(stack["layers"])):
                yield f"{stack['thumbs']['chunk']}/{row}"
                if "kinds" in stack:
                    yield f"{stack['kinds']['values']['chunk']}/{row}"

    def _looked_at(self, looking: Mapping[str, Any]) -> Iterator[str]:
        """Names of the chunks of the heads that are looked at, and of the quantity of all heads
        where that is.
        """
        first = self.header["selection"]
        stacks = {stack["name"]: stack for stack in self.header["stacks"]}
        stack = _given_or(stacks, looking.get("stack"), first["stack"])
        rows = {layer["layer"]: layer for layer in stack["layers"]}
        number = _given_or(rows, looking.get("layer"), first["layer"])["layer"]
        prepared = self._given.prepared(stack, number)
        if prepared is None:
            return
        yield f"layer/{stack['name']}/{number}"
        held = stack["head_numbers"]
        wanted = looking.get("heads") or first.get("heads") or held
        listed = wanted if isinstance(wanted, list) else held
        positions = [held.index(head) for head in listed if head in held]
        quantity = looking.get("quantity") or first["quantity"]
        for array in _arrays(prepared.header, quantity):
            yield from _parts(array, stack, positions)
        if looking.get("view") in WITH_ALL_HEADS and _weights_of(stack) <= OF_ALL_HEADS:
            yield from self._of_all_heads(stack, quantity)

    def _of_all_heads(self, stack: PageStack, quantity: Any) -> Iterator[str]:
        """Names of the chunks of a further quantity of every layer, and of what a page reads of a
        layer before it.
        """
        for layer in stack["layers"]:
            prepared = self._given.prepared(stack, layer["layer"])
            array = None if prepared is None else _further(prepared.header, quantity)
            if prepared is None or array is None:
                continue
            yield f"layer/{stack['name']}/{layer['layer']}"
            of_layer = (prepared.header["visible"], prepared.header.get("value_norms"), array)
            yield from (each["chunk"] for each in of_layer if each is not None)


def _weights_of(stack: PageStack) -> int:
    """How many weights the heads of a stack have in all, between single tokens."""
    sides = (stack["query"], stack["key"])
    queries, keys = (side.get("count", len(side["pieces"])) for side in sides)
    return len(stack["layers"]) * stack["heads"] * queries * keys


def _given_or(rows: Mapping[Any, Any], wanted: Any, first: Any) -> Any:
    """The wanted entry, where it exists; else the first one."""
    # JSON may hold a list or an object here, which cannot be looked up in a dictionary.
    known = isinstance(wanted, str | int) and wanted in rows
    return rows[wanted if known else first]


def _arrays(layer: PageLayer, quantity: Any) -> Iterator[PageArray]:
    """The arrays that a picture of a layer is drawn from."""
    scores = layer["scores"]
    arrays: list[PageArray | None] = [layer["visible"], layer.get("value_norms"), layer["weights"]]
    if scores is not None:
        arrays += [scores["queries"], scores["keys"], scores["bias"]]
    arrays.append(_further(layer, quantity))
    yield from (array for array in arrays if array is not None)


def _further(layer: PageLayer, quantity: Any) -> PageArray | None:
    """The array of a further quantity; None where the layer has none of this name."""
    return layer.get("quantities", {}).get(quantity) if isinstance(quantity, str) else None


def _parts(array: PageArray, stack: PageStack, positions: list[int]) -> Iterator[str]:
    """Names of the chunks of an array that hold the heads at these positions."""
    if not array.get("split"):
        yield array["chunk"]
        return
    # In grouped attention, neighbouring heads share their keys; one bias may serve all heads.
    count = array["shape"][0]
    shared = max(1, len(stack["head_numbers"]) // max(1, count))
    for part in sorted({position // shared for position in positions}):
        if part < count:
            yield f"{array['chunk']}/{part}"


def packed_opening(head: Mapping[str, Any], chunks: Mapping[str, bytes]) -> bytes:
    """A head and chunks as one answer: the length of the head, the head as JSON, which names the
    chunks, and their bytes.

    Args:
        head: the fields of the head except for the list of chunks.
        chunks: bytes of each chunk, by name.
    """
    sizes = [[name, len(data)] for name, data in chunks.items()]
    text = json.dumps({**head, "chunks": sizes}, ensure_ascii=False).encode()
    return b"".join((len(text).to_bytes(LENGTH, "little"), text, *chunks.values()))


MEDIA_TYPES = {"svg": "image/svg+xml", "pdf": "application/pdf", "png": "image/png"}
NOT_SENT = ("labels", "predictions")
"""Options of figures that no page has."""
ONE_AT_A_TIME = Lock()
"""Figures are drawn one at a time: the settings of matplotlib belong to the whole process."""


def figure_file(record: Record, kind: str, options: Any, shown: Mapping[str, Any]) -> bytes:
    """The content of the file that ``figure(record, **options).save("figure.KIND")`` writes.

    Args:
        record: the record that is drawn.
        kind: svg, pdf or png.
        options: options of `FigureOptions`, as the page sends them.
        shown: the options that the page was made with; their quantities and evidence are used.

    Raises:
        FigureError: an unknown option, value or kind, or matplotlib is missing.
        RecordError: a stack, layer or head that the record does not have, or scores that it does
            not keep.
    """
    from headscope.views.figures import figure

    if kind not in MEDIA_TYPES:
        raise FigureError(f"A figure can be svg, pdf or png, not {kind!r}")
    _check_sent(options)
    given = _given(options, shown)
    compared = shown.get("comparison")
    # Weights of the first record are drawn over its own pictures, not those of the second.
    if options.get("quantity") == OTHER and compared is not None:
        pictures = other_pictures(compared, record)
        record = record if pictures is None else replace(record, pictures=pictures)
    with ONE_AT_A_TIME:
        return figure(record, **options, **given).to_bytes(kind)


def _given(options: Mapping[str, Any], shown: Mapping[str, Any]) -> dict[str, Any]:
    """The options of the page that the figure needs too; it refuses options that its view lacks."""
    given: dict[str, Any] = {}
    quantities = shown.get("quantities") or {}
    if options.get("tray"):
        given |= {"quantities": quantities} if quantities else {}
        given |= {"beside": shown["beside"]} if shown.get("beside") else {}
    elif options.get("quantity") in quantities:
        given["quantities"] = quantities
    if options.get("view") == "scatter":
        given["evidence"] = shown.get("evidence")
    return given


def _check_sent(options: Any) -> None:
    """Raise where options are none that a page sends, or of another type."""
    if not isinstance(options, Mapping):
        raise FigureError(f"Options of a figure are a JSON object, not {options!r}")
    known = {key: of for key, of in declared(WrittenFigureOptions).items() if key not in NOT_SENT}
    check_option_names("A figure of a page", options, known, FigureError)
    for name, value in options.items():
        if value is not None:
            known[name].check(value, FigureError)
