"""Declared options in the form of cyclopts: with the names, values and help that Python has."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, get_origin

from cyclopts import Parameter

from headscope.views.figure_options import FigureOptions
from headscope.views.options import Option, PageOptions

CODE = re.compile(r"``(.+?)``|`(.+?)`")


def parameters(options: Mapping[str, Option], **helps: str) -> dict[str, Any]:
    """The fields of a ``TypedDict`` with a command-line option for each declared option.

    Options that are not given are not in the dictionary, so that no default is repeated here.

    Args:
        options: declared options, by name.
        **helps: the help of an option whose value has another form here than in Python.
    """
    fields = {}
    for name, option in options.items():
        kind = option.written
        is_list = get_origin(kind) is list
        help_ = helps.get(name) or plain_help(option.help)
        fields[name] = Annotated[
            kind,
            Parameter(
                help=help_,
                negative=_off(option) if kind is bool else "",
                consume_multiple=is_list,
            ),
        ]
    return fields


def flag(name: str) -> str:
    """The name on the command line of an option of Python."""
    return f"--{name.replace('_', '-')}"


def plain_help(text: str) -> str:
    """The docstring of an option as a line of help: without markup, and with the command-line names
    of other options.
    """
    known = PageOptions.__annotations__.keys() | FigureOptions.__annotations__

    def shown(mark: re.Match[str]) -> str:
        code = mark[1] or mark[2]
        return flag(code) if code in known else (code.strip('"') or code)

    return CODE.sub(shown, text)


def _off(option: Option) -> str:
    """The name that turns a switch off; empty where it is off by default."""
    if option.default is None or not option.default.value:
        return ""
    return option.default.off or f"--no-{option.name.replace('_', '-')}"
