"""What a view shows: at first, and after a change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from headscope.errors import PageError
from headscope.views._checked_options import check_numbers, check_options, listed, listed_numbers
from headscope.views._quantity_arrays import check_quantity, quantity_names
from headscope.views._token_words import token_positions, words_of_page
from headscope.views._tray import checked_tray, no_record
from headscope.views.contract import Page, PageStack
from headscope.views.options import (
    DEFAULTS,
    MOVED_VIEWS,
    NUMBERS_OF,
    PLAIN,
    PageOptions,
    PageSelection,
)

OF_HEADS = {
    *("heads", "head", "query", "key", "pinned", "layout", "quantity", "filter"),
    *("hide_special", "sinks", "comparison"),
}
"""Options that belong to the head view; where one of them is given, the page opens on that view."""
QUICK = 2**25
"""Number of weights in a layer up to which all its heads are shown at first."""


def first_selection(
    header: Page, options: PageOptions, pictures: Sequence[np.ndarray] = ()
) -> PageSelection:
    """The selection with which a page opens.

    Args:
        header: header of the page, all but its selection.
        options: options as the user gave them.
        pictures: of the record.

    Raises:
        PageError: what the page does not hold.
    """
    stack, view = header["stacks"][0], "head" if OF_HEADS & set(options) else "overview"
    if options.get("tray"):
        view = "compare"
    usual = {"view": view, "stack": stack["name"], "layer": stack["layers"][0]["layer"]}
    chosen = (*PageSelection.__annotations__, "head")
    given = {name: value for name, value in options.items() if name in chosen and value is not None}
    first = changed_selection(header, {**DEFAULTS, **usual}, given)
    stack = _stack(_record(header, first["shown_record"]), first["stack"])
    heads, sides = stack["head_numbers"], (stack["query"]["pieces"], stack["key"]["pieces"])
    # All heads of a long text would make the first picture slow: it then opens with one of them.
    if first["heads"] is None and len(heads) * len(sides[0]) * len(sides[1]) > QUICK:
        first["heads"] = heads[:1]
    if first["view"] == "text" and not {"query", "key"} & set(given):
        first["query"] = _read_first(stack, pictures)
    return first


def _read_first(stack: PageStack, pictures: Sequence[np.ndarray]) -> list[int]:
    """The token whose row is read first: the last of a causal text, which predicts, or the patch of
    a picture with most contrast.
    """
    query = stack["query"]
    if "areas" not in query:
        return [len(query["pieces"]) - 1] if stack.get("kinds", {}).get("causal") else []
    if not pictures:
        return []
    rows, columns = query["grids"][0]
    bands = np.array_split(pictures[0].mean(axis=2), rows)
    spread = [patch.var() for band in bands for patch in np.array_split(band, columns, axis=1)]
    row, column = divmod(int(np.argmax(spread)), columns)
    area = f"{row + 1}/{column + 1}"
    return [at for at, own in enumerate(query["areas"]) if own == area][:1]


def changed_selection(
    header: Page, now: Mapping[str, Any], changes: Mapping[str, Any]
) -> PageSelection:
    """The selection after a change, checked.

    Args:
        header: header of the view.
        now: the current selection. A change of stack removes its pinned tokens, and its layer where
            the new stack has none of this number.
        changes: options of `headscope.views.view`; None means all heads, or the default percentage.

    Raises:
        PageError: an option that is unknown or cannot change, or a value that the view does not
            hold.
    """
    check_options({name: value for name, value in changes.items() if value is not None})
    changes: dict[str, Any] = {
        name: DEFAULTS.get(name) if value is None else value for name, value in changes.items()
    }
    changes |= MOVED_VIEWS.get(changes.get("view", ""), {})
    if "head" in changes:
        changes["heads"] = [changes.pop("head")]
    fixed = set(changes) - set(PageSelection.__annotations__)
    if fixed:
        given = ", ".join(sorted(fixed))
        raise PageError(f"{given} cannot change while a view is shown; make another view")
    # Tokens, heads and layers are chosen by number, which means something else in another record.
    before = now.get("shown_record", "")
    record = changes.get("shown_record", before) or ""
    of = _record(header, record)
    usual = now["stack"] if record == before else of["stacks"][0]["name"]
    stack = _stack(of, changes.get("stack", usual))
    layers = [layer["layer"] for layer in stack["layers"]]
    if stack["name"] != now["stack"] or record != before:
        now = _moved(now, stack["name"], layers)
    changed: dict[str, Any] = {**now, **changes, "shown_record": record}
    held = {name: _held(page) for name, page in header.get("beside", {}).items()}
    stacks, names = _held(header)
    check_quantity(changed["quantity"], names)
    changed["tray"] = checked_tray(changed["tray"] or (), stacks, names, held)
    if changed["layer"] not in layers:
        raise PageError(
            f"layer={changed['layer']!r}: this view holds the layers {listed(layers)} of stack "
            f"{stack['name']!r}; choose one of them"
        )
    for name in NUMBERS_OF:
        changed[name] = _kept_numbers(name, changed[name], stack)
    # NumPy's booleans and numbers are accepted, but JSON has neither.
    changed["layer"] = int(changed["layer"])
    for name, option in PLAIN.items():
        if option.type is bool:
            changed[name] = bool(changed[name])
    if changed["zoom"] is not None:
        changed["zoom"] = [float(number) for number in changed["zoom"]]
    return cast(PageSelection, changed)


def _moved(now: Mapping[str, Any], stack: str, layers: Sequence[int]) -> dict[str, Any]:
    """The selection in another stack or record: nothing that was chosen by number is kept, except
    for the layer where the new stack has one of this number.
    """
    layer = now["layer"] if now["layer"] in layers else layers[0]
    usual = {name: DEFAULTS[name] and list(DEFAULTS[name]) for name in NUMBERS_OF}
    return {**now, "stack": stack, "layer": layer, **usual}


def _record(header: Page, name: str) -> Page:
    """The header of the record that is shown."""
    beside = header.get("beside", {})
    if name and name not in beside:
        raise PageError(f"shown_record={name!r}; {no_record(beside)}")
    return beside[name] if name else header


def _stack(header: Page, name: str) -> PageStack:
    for stack in header["stacks"]:
        if stack["name"] == name:
            return stack
    names = ", ".join(repr(stack["name"]) for stack in header["stacks"])
    raise PageError(f"stack={name!r}: this view has the stacks {names}")


def _held(page: Page) -> tuple[Sequence[PageStack], list[str]]:
    """The stacks of a page and the names of its quantities."""
    return page["stacks"], quantity_names(page["stacks"], page.get("quantities", []))


def _kept_numbers(name: str, given: Any, stack: PageStack) -> list[int] | None:
    """Numbers of the heads or tokens that an option names, checked against the view."""
    if given is None:
        return None
    side = NUMBERS_OF[name]
    if side == "heads":
        held, there_are = stack["head_numbers"], f"stack {stack['name']!r} has heads"
        numbers = listed_numbers(given, held)
    else:
        tokens, there_are = stack[side], f"there are the {side} tokens"
        held, words = range(len(tokens["pieces"])), words_of_page(tokens)
        numbers = token_positions(name, given, tokens["pieces"], tokens["labels"], words=words)
    if numbers or side == "heads":
        check_numbers(name, numbers, held, there_are)
    return sorted(set(numbers))
