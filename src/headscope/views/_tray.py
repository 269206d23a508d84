"""The compare tray: up to six pictures side by side, each written as one line: ``2-0 query=3``; and
the further records that its pictures may show.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, unquote

from headscope.errors import PageError, check_option_names
from headscope.record import Record
from headscope.views._token_words import token_positions, words_of_page
from headscope.views.constants import MOST_IN_TRAY
from headscope.views.contract import PageStack
from headscope.views.options import DEFAULTS, PICTURE_OPTIONS, PLAIN, TOKEN_OPTIONS
from headscope.views.view_table import views_with

if TYPE_CHECKING:
    from headscope.views.options import PageOptions


Held = tuple[Sequence[PageStack], Sequence[str]]
"""The stacks that a page holds of a record, and the names of its quantities."""
USUAL: Mapping[str, Any] = {"record": None, "view": "head", "stack": None} | {
    name: DEFAULTS[name] for name in PICTURE_OPTIONS
}
"""Default of each option; a line names only what differs from it."""
SWITCHES = {"0": False, "1": True, "False": False, "True": True}
LAYER_AND_HEADS = re.compile(r"(\d+)(?:-(\d+(?:,\d+)*))?")
FORM = (
    'write layer and heads, and what else is chosen: "2-0", "2-0,3", "7-3 query=store", '
    '"2 view=matrix"'
)


def parse_entries(given: Any) -> list[dict[str, Any]]:
    """The pictures of a tray as options of a view, each with its ``layer``.

    Args:
        given: lines such as ``"2-0 query=3"``, or mappings of options such as ``{"layer": 2,
            "head": 0}``.

    Raises:
        PageError: an entry of another type, an option that a picture does not have, or too many
            pictures.
    """
    if isinstance(given, str | Mapping) or not isinstance(given, Sequence):
        raise PageError(f"tray must be a list of pictures, not {given!r}; {FORM}")
    if len(given) > MOST_IN_TRAY:
        raise PageError(f"tray has {len(given)} pictures, and a row holds {MOST_IN_TRAY}")
    return [_from_line(one) if isinstance(one, str) else _from_mapping(one) for one in given]


def checked_tray(
    given: Any,
    stacks: Sequence[PageStack],
    quantities: Sequence[str],
    beside: Mapping[str, Held] | None = None,
) -> list[str]:
    """The lines of a tray as a page keeps them: with positions instead of words, and each once.

    Args:
        given: pictures in a form that `parse_entries` takes.
        stacks: stacks that the page holds.
        quantities: names of the quantities that it holds.
        beside: stacks and quantities of its further records, by name.

    Raises:
        PageError: where the page does not hold what a picture shows.
    """
    lines = []
    for entry in parse_entries(given):
        name = entry.get("record")
        if name is not None and name not in (beside or {}):
            raise PageError(f"tray: record={name!r}; {no_record(beside or ())}")
        held = (stacks, quantities) if name is None else (beside or {})[name]
        lines.append(_line(entry, *held))
    return list(dict.fromkeys(lines))


def no_record(names: Iterable[str]) -> str:
    """The end of an error about an unknown record that a tray names."""
    known = ", ".join(names)
    return f"beside= has {known}" if known else "give further records with beside= (--beside)"


def written(entry: Mapping[str, Any]) -> str:
    """The line of a picture: layer and heads, and the options that are not at their defaults."""
    heads = entry.get("heads")
    words = [f"{entry['layer']}" + (f"-{','.join(map(str, heads))}" if heads else "")]
    for name, usual in USUAL.items():
        value = entry.get(name, usual)
        given = tuple(value) if isinstance(value, list) else value
        if given != usual:
            words.append(f"{name}={_text(value)}")
    return " ".join(words)


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    # The address of a page writes blanks between the words of a line as ~ (fragment.ts).
    return quote(str(value), safe="").replace("~", "%7E")


def _from_line(line: str) -> dict[str, Any]:
    cell, *rest = line.split() or [""]
    match = LAYER_AND_HEADS.fullmatch(cell)
    if match is None:
        raise PageError(f"tray={line!r} has no place; {FORM}")
    entry: dict[str, Any] = {"layer": int(match[1])}
    if match[2]:
        entry["heads"] = [int(head) for head in match[2].split(",")]
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals or name not in USUAL:
            raise PageError(f"{word!r} in tray={line!r} is none of {'=, '.join(USUAL)}=; {FORM}")
        entry[name] = _value(name, unquote(value), line)
    return entry


def _value(name: str, text: str, line: str) -> Any:
    if name in TOKEN_OPTIONS:
        return [int(part) if part.isdecimal() else part for part in text.split(",") if part]
    option = PLAIN.get(name)
    if option is None or option.default is None:
        return text
    if option.type is bool:
        if text not in SWITCHES:
            raise PageError(f"{name}={text} in tray={line!r} must be 1 or 0")
        return SWITCHES[text]
    return text


def _from_mapping(given: Any) -> dict[str, Any]:
    known = ("layer", "head", "heads", *USUAL)
    if not isinstance(given, Mapping) or "layer" not in given:
        raise PageError(f"tray has {given!r}, which names no layer; {FORM}, or give a dict")
    check_option_names("A picture of the tray", given, known, PageError)
    entry = {name: value for name, value in given.items() if value is not None and name != "head"}
    if given.get("head") is not None:
        entry["heads"] = [given["head"]]
    for name in entry.keys() & set(TOKEN_OPTIONS):
        # A string is a sequence too, but one token.
        if isinstance(entry[name], str) or not isinstance(entry[name], Sequence):
            entry[name] = [entry[name]]
    return entry


def _line(entry: dict[str, Any], stacks: Sequence[PageStack], quantities: Sequence[str]) -> str:
    """An entry as a page keeps it, checked."""
    names = [stack["name"] for stack in stacks]
    stack = stacks[_index("stack", entry.get("stack", names[0]), names)]
    _index("view", entry.get("view", "head"), views_with("picture"))
    _index("quantity", entry.get("quantity", "weight"), quantities)
    _index("layer", entry["layer"], [layer["layer"] for layer in stack["layers"]])
    for head in entry.get("heads", ()):
        _index("head", head, stack["head_numbers"])
    line = dict(entry, stack=None if stack["name"] == names[0] else stack["name"])
    for name in (name for name in USUAL if name in TOKEN_OPTIONS):
        side = stack["query"] if TOKEN_OPTIONS[name] == "query" else stack["key"]
        positions = token_positions(
            name, entry.get(name, ()), side["pieces"], side["labels"], words=words_of_page(side)
        )
        for cell in positions:
            _index(name, cell, range(len(side["pieces"])))
        line[name] = sorted(set(positions))
    return written(line)


def _index(name: str, given: Any, known: Sequence[Any]) -> int:
    if given not in known:
        listed = ", ".join(map(str, known)) if len(known) < 40 else f"{known[0]} to {known[-1]}"
        raise PageError(f"tray: {name}={given!r}; this page has {listed}")
    return list(known).index(given)


LETTERS = "bcdef"
"""Names of records that come without one. The first record counts as ``a``, and a tray has six
pictures.
"""
# A name is written into a line of the tray, whose words are separated by blanks, and into the names
# of chunks, whose parts are separated by slashes: it may hold neither.
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,19}")
PASSED_ON = ("include_layers", "include_heads")
"""Options that choose what a page holds, for each of its records alike."""
PREFIX = "beside"
FORM_OF_RECORDS = (
    'give records, or records by name: beside=[other] for "2-0 record=b", '
    'or beside={"large": other}'
)


def records_beside(given: Any) -> dict[str, Record]:
    """Further records by their names in a tray: ``b``, ``c`` ... where they have none.

    Args:
        given: the option ``beside``, or None.

    Raises:
        PageError: something else than a list or mapping of records, more than five records, or a
            name that a tray cannot write.
    """
    records = listed_records(given)
    if len(records) > len(LETTERS):
        raise PageError(f"beside has {len(given)} records; a tray takes up to {len(LETTERS)}")
    # Not strict: there are usually fewer records than letters.
    named = dict(given if isinstance(given, Mapping) else zip(LETTERS, records, strict=False))
    for name in named:
        if not isinstance(name, str) or not NAME.fullmatch(name):
            raise PageError(
                f"beside={{{name!r}: ...}}: a name has up to 20 letters, digits, dots, dashes and _"
            )
    return named


def listed_records(given: Any) -> list[Record]:
    """The further records, in their order; none of None.

    Raises:
        PageError: something else than a list or mapping of records.
    """
    given = given if given is not None else []
    if not isinstance(given, Mapping | Sequence) or isinstance(given, str):
        raise PageError(f"beside is a {type(given).__name__}; {FORM_OF_RECORDS}")
    records = [*(given.values() if isinstance(given, Mapping) else given)]
    for record in records:
        if not isinstance(record, Record):
            raise PageError(f"beside has a {type(record).__name__}; {FORM_OF_RECORDS}")
    return records


def options_beside(options: PageOptions) -> PageOptions:
    """Options of the page of a further record: the same layers and heads as of the first."""
    return cast("PageOptions", {key: value for key, value in options.items() if key in PASSED_ON})
