"""A list of changes of a model in its four forms: JSON, interventions, words of an address, a line
of Python.

``{"do": "zero", "layer": 2, "heads": [0, 3]}`` is ``Zero(layer=2, heads=[0, 3])`` is
``zero:2-0,3``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast, get_args
from urllib.parse import quote

from headscope.errors import InterventionError, is_whole
from headscope.interventions import Cut, Intervention, Mean, Patch, Uniform, Zero
from headscope.live.contract import ChangeKind, ModelChange
from headscope.record import Record

KINDS: tuple[ChangeKind, ...] = get_args(ChangeKind)
NUMBERS = ("heads", "queries", "keys")
"""Fields that are lists of numbers, in the order of an address."""
LETTERS = {"heads": "-", "queries": "q", "keys": "k"}
FROM_TEXT: tuple[ChangeKind, ...] = ("mean", "patch")
"""Kinds that take something from other texts."""
MOST_NUMBERS = 4096
"""Of one field: as many as a long text has tokens."""
MOST_TEXTS = 16
"""That mean takes the mean over."""
RecordOf = Callable[[str], Record]


def parse_changes(given: Any, most: int) -> list[ModelChange]:
    """What a request asks for, checked, in one order, heads of one layer together.

    Args:
        given: the field ``changes``.
        most: how many there may be.

    Raises:
        InterventionError: where it is no list of known changes; what a model lacks is reported
            when it is run.
    """
    if not isinstance(given, list) or len(given) > most:
        raise InterventionError(f"changes is a list of at most {most} changes")
    return _merged([_parsed(each) for each in given])


def address_of(changes: Sequence[ModelChange]) -> str:
    """As an address holds them: ``zero:2-0,3;cut:5-1q4k0``."""
    return ";".join(map(_word, changes))


def python_of(changes: Sequence[ModelChange]) -> str:
    """As it is typed: ``interventions=[hs.Zero(layer=2, heads=[0, 3])]``."""
    return f"interventions=[{', '.join(map(_call, changes))}]"


def interventions_of(changes: Sequence[ModelChange], record_of: RecordOf) -> list[Intervention]:
    """What is done to the model.

    Args:
        changes: checked, by `parse_changes`.
        record_of: the record of another text.

    Raises:
        HeadscopeError: where another text cannot be read.
    """
    return [_intervention(change, record_of) for change in changes]


def _parsed(given: Any) -> ModelChange:
    kinds = ", ".join(KINDS)
    if not isinstance(given, Mapping) or given.get("do") not in KINDS:
        raise InterventionError(
            f'A change is {{"do": one of {kinds}, "layer": 2, "heads": [0]}}, not {_short(given)}'
        )
    do, change = given["do"], dict(given)
    known = {"do", "layer", "stack", "heads", "queries"}
    known |= {"keys"} if do == "cut" else set()
    known |= {"from"} if do in FROM_TEXT else set()
    unknown = sorted(str(name) for name in change if name not in known)
    if unknown:
        raise InterventionError(f"The change {do} has no {unknown[0][:40]!r}")
    if not is_whole(change.get("layer")):
        raise InterventionError(
            f"The change {do} needs a layer, a number from 0 on, not {_short(change.get('layer'))}"
        )
    if "stack" in change and not isinstance(change["stack"], str):
        raise InterventionError(f"stack is a text, not {_short(change['stack'])}")
    for name in NUMBERS:
        if name in change:
            change[name] = _numbers(name, change[name])
    _check_needs(do, change)
    return cast("ModelChange", change)


def _check_needs(do: str, change: Mapping[str, Any]) -> None:
    if do == "cut" and "keys" not in change:
        raise InterventionError(
            "The change cut needs the keys to which attention is cut: "
            '{"do": "cut", "layer": 5, "queries": [4], "keys": [0]}'
        )
    if do not in FROM_TEXT:
        return
    text = change.get("from")
    if not isinstance(text, str) or not text.strip():
        raise InterventionError(f'The change {do} needs "from", another text')
    if len(_lines(text)) > (MOST_TEXTS if do == "mean" else 1):
        raise InterventionError(
            f"mean is taken over at most {MOST_TEXTS} texts, a line each, and patch from one"
        )


def _numbers(name: str, given: Any) -> list[int]:
    """Rising, each once."""
    listed = given if isinstance(given, list) else None
    if not listed or len(listed) > MOST_NUMBERS or not all(map(is_whole, listed)):
        raise InterventionError(
            f"{name} is a list of up to {MOST_NUMBERS} numbers from 0 on, not {_short(given)}"
        )
    return sorted(set(listed))


def _merged(changes: Sequence[ModelChange]) -> list[ModelChange]:
    """Heads of one layer and kind as one change; in the order of `KINDS`, then of the layers.

    The order makes no difference to what a model computes between changes of one kind, so that the
    same changes are the same list, however they came about.
    """
    by_key: dict[tuple, ModelChange] = {}
    for change in changes:
        others = {name: value for name, value in change.items() if name != "heads"}
        key = tuple(sorted((name, str(value)) for name, value in others.items()))
        first = by_key.get(key)
        if first is None:
            by_key[key] = cast("ModelChange", dict(change))
        elif "heads" in first and "heads" in change:
            first["heads"] = sorted({*first["heads"], *change["heads"]})
        else:
            # All heads of the layer: one of the two named none.
            first.pop("heads", None)
    return sorted(by_key.values(), key=_order)


def _order(change: ModelChange) -> tuple:
    return KINDS.index(change["do"]), change.get("stack", ""), change["layer"], _word(change)


def _word(change: ModelChange) -> str:
    stack = f"{quote(change['stack'], safe='')}:" if change.get("stack") else ""
    rows = []
    for name in NUMBERS:
        numbers = change.get(name)
        if numbers:
            rows.append(LETTERS[name] + ",".join(map(str, numbers)))
    text = f"~{quote(change['from'], safe='')}" if "from" in change else ""
    return f"{change['do']}:{stack}{change['layer']}{''.join(rows)}{text}"


def _call(change: ModelChange) -> str:
    parts = [f"layer={change['layer']}"]
    for name in ("heads", "queries", "keys", "stack"):
        own = "positions" if change["do"] == "patch" and name == "queries" else name
        if name in change:
            parts.append(f"{own}={change[name]!r}")
    if change["do"] == "patch":
        parts = [f"record={_captured(change['from'])}", "what='output'", *parts]
    if change["do"] == "mean":
        records = ", ".join(map(_captured, _lines(change["from"])))
        parts = [f"records=[{records}]", *parts]
    place = "hs.interventions" if change["do"] in ("mean", "uniform") else "hs"
    return f"{place}.{change['do'].capitalize()}({', '.join(parts)})"


def _captured(text: str) -> str:
    return f"hs.capture(model, tokenizer, {text!r})"


def _intervention(change: ModelChange, record_of: RecordOf) -> Intervention:
    where: dict[str, Any] = {
        name: change.get(name) for name in ("layer", "heads", "stack", "queries")
    }
    match change["do"]:
        case "zero":
            return Zero(**where)
        case "uniform":
            return Uniform(**where)
        case "cut":
            return Cut(**where, keys=change.get("keys"))
        case "mean":
            return Mean(**where, records=[record_of(line) for line in _lines(change["from"])])
        case "patch":
            positions = where.pop("queries")
            record = record_of(change["from"])
            return Patch(**where, record=record, what="output", positions=positions)


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def _short(given: Any) -> str:
    return repr(given)[:80]
