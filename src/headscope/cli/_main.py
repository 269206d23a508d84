"""The command line's border: arguments in, exit code out, and one line for every error."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from headscope.cli._extras import missing
from headscope.errors import HeadscopeError

DEBUG = "HEADSCOPE_DEBUG"


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit: 0 done, 1 bad input or failure, 2 usage."""
    sys.exit(run(sys.argv[1:] if arguments is None else list(arguments)))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    try:
        from cyclopts import CycloptsError

        from headscope.cli._app import app
    except ImportError as error:
        return _complain(missing(error), 1)
    try:
        app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        return _complain(f"{_one_line(error)} (headscope --help)", 2)
    except HeadscopeError as error:
        return _complain(_one_line(error), 1)
    except KeyboardInterrupt:
        return _complain("interrupted", 130)
    except ImportError as error:
        return _complain(missing(error), 1)
    except Exception as error:
        if os.environ.get(DEBUG):
            raise
        what = f"{type(error).__name__}: {_one_line(error)}"
        return _complain(f"unexpected {what}; this is a fault of headscope, set {DEBUG}=1 for where it happened", 1)
    return 0


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _complain(line: str, code: int) -> int:
    print(f"headscope: {line}", file=sys.stderr)  # noqa: T201
    return code
