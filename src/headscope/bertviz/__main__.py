"""Rewrite notebooks that were written for BertViz: ``python -m headscope.bertviz NOTEBOOK``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from headscope.bertviz._rewrite import rewrite_notebook
from headscope.errors import HeadscopeError


def main(arguments: Sequence[str] | None = None) -> int:
    """Rewrite each notebook and print what was changed; return 1 where one cannot be rewritten."""
    parser = argparse.ArgumentParser(
        prog="python -m headscope.bertviz",
        description="Rewrite a notebook written for BertViz, for headscope and transformers 5.",
    )
    parser.add_argument("notebook", nargs="+", help="an .ipynb or .py; it stays as it is")
    parser.add_argument(
        "--out", help="where to write it (default: next to it, NAME-headscope.ipynb)"
    )
    options = parser.parse_args(arguments)
    if options.out and len(options.notebook) > 1:
        parser.error("--out names one file; give one notebook")
    failed = 0
    for notebook in options.notebook:
        try:
            target, lines = rewrite_notebook(notebook, options.out)
        except HeadscopeError as error:
            print(f"headscope: {error}", file=sys.stderr)  # noqa: T201
            # The other notebooks are still rewritten.
            failed = 1
            continue
        print("\n".join([*lines, f"Wrote {target}"]))  # noqa: T201
    return failed


if __name__ == "__main__":
    sys.exit(main())
