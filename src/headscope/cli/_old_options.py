"""Old names of options: they still work, with a warning, until 0.3."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

PAGE = {"--layers": "--include-layers", "--least": "--min-score"}
KEPT = {"--heads": "--keep-heads"}
NOW: Mapping[str, Mapping[str, str]] = {
    "view": PAGE,
    "serve": PAGE,
    "capture": KEPT,
    "generate": KEPT,
    "ablate": {
        "--heads": "--single-heads",
        "--no-heads": "--no-single-heads",
        "--layers": "--whole-layers",
        "--no-layers": "--no-whole-layers",
        "--batch": "--batch-size",
    },
    "compare": {"--heads": "--match", "--least": "--min-overlap"},
    "coref": {"--rows": "--word-rows"},
    "relations": {"--rows": "--word-rows", "--text": "--read"},
    "figure": {
        "--mute": "--hide-special",
        "--without-sinks": "--exclude-sinks",
        "--share": "--top-percent",
    },
}
"""Old and new names of the options of each command."""


def with_new_names(arguments: Sequence[str]) -> list[str]:
    """The arguments with the new names of options; each old name is reported on stderr.

    Args:
        arguments: arguments of the command line, the command first.
    """
    now = NOW.get(arguments[0], {}) if arguments else {}
    renamed = []
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in now:
            sys.stderr.write(
                f"headscope: {name} is now {now[name]}; the old name will be removed in 0.3\n"
            )
        renamed.append(now.get(name, name) + equals + value)
    return renamed
