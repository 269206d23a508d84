"""Changes of what a view shows, within what it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from headscope.errors import PageError
from headscope.views._checked_options import check_numbers, check_options, listed_numbers
from headscope.views._page import held_beside
from headscope.views._quantity_arrays import check_quantity, quantity_names
from headscope.views._token_words import token_positions, words_of_page
from headscope.views._tray import checked_tray, no_record
from headscope.views.contract import Page, PageStack
from headscope.views.options import DEFAULTS, MOVED_VIEWS, NUMBERS_OF, PageSelection


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
    changes = dict(changes)
    check_options({name: value for name, value in changes.items() if value is not None})
    changes |= MOVED_VIEWS.get(changes.get("view", ""), {})
    if "head" in changes:
        changes["heads"] = [changes.pop("head")]
    fixed = set(changes) - set(PageSelection.__annotations__)
    if fixed:
        raise PageError(
            f"{', '.join(sorted(fixed))} cannot change while a view is shown; make another view"
        )
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
    names = quantity_names(header["stacks"], header.get("quantities", []))
    check_quantity(changed["quantity"], names)
    changed["tray"] = checked_tray(
        changed.get("tray") or (), header["stacks"], names, held_beside(header.get("beside", {}))
    )
    check_numbers("layer", [changed["layer"]], layers, "this view holds")
    for name in NUMBERS_OF:
        changed[name] = _kept_numbers(name, changed[name], stack)
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


def _kept_numbers(name: str, given: Any, stack: PageStack) -> list[int] | None:
    """Numbers of the heads or tokens that an option names, checked against the view."""
    if given is None and DEFAULTS[name] is None:
        return None
    match NUMBERS_OF[name]:
        case "heads":
            return _numbers(name, given, stack["head_numbers"], least=1)
        case side:
            tokens = stack[side]
            words = words_of_page(tokens)
            positions = token_positions(
                name, given, tokens["pieces"], tokens["labels"], words=words
            )
            return _numbers(name, positions, range(len(tokens["pieces"])))


def _numbers(name: str, given: Any, held: Collection[int], least: int = 0) -> list[int]:
    numbers = listed_numbers(given, held)
    if numbers or least:
        check_numbers(name, numbers, held, "this view holds")
    return sorted(set(numbers))
