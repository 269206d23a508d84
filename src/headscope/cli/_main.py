"""The list of commands, and the command line's border: arguments in, exit code out, and one line
for every error.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import cyclopts
from cyclopts import App, Group, Parameter

from headscope._missing_packages import missing_package
from headscope._version import __version__
from headscope.cli._files import left_out, ran
from headscope.errors import HeadscopeError

COMMANDS = {
    "_page": "view figure",
    "_capture": "capture generate ask why effect ablate",
    "_records": "check export compare support serve",
    "_studies": "heads norms mechanism faithfulness atlas probe relations align coref",
}
"""The commands of each module: the function of that name, with its docstring as the help."""
if find_spec("headscope.headvis") is not None:  # of an extra
    COMMANDS["_studies"] += " headvis"


def _shown(default: Any) -> str | None:
    """A default in the help; nothing where a reader expects it, or where it is no value to type."""
    return None if default in (None, False, ()) or "(" in str(default) else str(default)


def _in_short(console: Any, options: Any, panel: Any) -> None:
    """A panel of the help, with only the names of options that are in a group of their own."""
    from cyclopts.help import DefaultFormatter  # takes time, as rich does

    if panel.title in ("Commands", "Arguments", "Common", "Options"):
        return DefaultFormatter()(console, options, panel)
    names = " ".join(name for entry in panel.entries for name in entry.names)
    return console.print(f"{panel.title}: {names}", highlight=False)


app = App(
    name="headscope",
    help="See what every attention head of a transformer does.",
    version=__version__,
    help_format="plaintext",
    help_flags=("--help", "-h", "--help-all"),
    help_epilogue="--help is in short, --help-all explains every option.",
    group_parameters=Group("Options", sort_key=1),
    default_parameter=Parameter(
        consume_multiple=True, negative_iterable=(), negative_bool=(), show_default=_shown
    ),
    suppress_keyboard_interrupt=False,  # cyclopts would exit by itself, without a word
)
for module, names in COMMANDS.items():
    for name in names.split():
        # Named by its path, so that the module of a command is imported only when it is needed.
        # The examples of a command stand where its usage would.
        app.command(f"headscope.cli.{module}:{name}", name=name, usage="")


DEBUG = "HEADSCOPE_DEBUG"
PACKAGE, CALLER = str(Path(__file__).parents[1]), str(Path(cyclopts.__file__).parent)
INTERRUPTED, TERMINATED = 130, 143
"""Exit codes of shells for a process ended by SIGINT or SIGTERM: 128 plus the signal number."""
INTERRUPTED_AGAIN_AFTER = 0.05
"""Seconds; most objects are deleted within microseconds."""
UNREAD = 141
"""The same for SIGPIPE."""


class Terminated(KeyboardInterrupt):
    """SIGTERM arrived. A KeyboardInterrupt, so that code and libraries that clean up after Ctrl-C
    clean up after it, too.
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line and exit.

    0 done, 1 bad input or failure, 2 usage, 3 done but for some of the texts, 130 interrupted, 141
    output closed by its reader, 143 terminated.
    """
    # Python allows signal handlers in the main thread only.
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminate)
        sys.unraisablehook = partial(_deliver_again, sys.unraisablehook)
    code = run(sys.argv[1:] if arguments is None else list(arguments))
    if code in (INTERRUPTED, TERMINATED):
        _end_now(code)
    sys.exit(code)


def _end_now(code: int) -> NoReturn:
    """End the process without waiting for threads that still work, such as a pass of a model that
    is served, or for torch's objects to be freed one by one.
    """
    atexit._run_exitfuncs()  # removes temporary folders
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; errors become one line on stderr."""
    try:
        return _run(arguments)
    except Terminated:
        return _complain("terminated", TERMINATED)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)


def _run(arguments: Sequence[str]) -> int:
    # A process may run several commands one after the other, as tests do.
    left_out.begin()
    ran.set("")
    app.help_formatter = "default" if "--help-all" in arguments else _in_short
    if not arguments or arguments[0] in ("--help", "-h"):
        # Their docstrings are read for the list of commands.
        _ = [app[name] for name in app]
    try:
        with warnings.catch_warnings():
            shown = partial(_show_warning, warnings.showwarning, set())
            warnings.showwarning = shown  # ty: ignore[invalid-assignment]
            app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except cyclopts.CycloptsError as error:
        helps = " ".join(["headscope", *(error.command_chain or ()), "--help"])
        return _complain(f"{_one_line(error)} ({helps})", 2)
    except HeadscopeError as error:
        return _complain(_one_line(error), 1)
    except ImportError as error:
        return _complain(missing_package(error), 1)
    except BrokenPipeError:
        return _unread()
    except Exception as error:
        # Python wraps what stops it while it makes a class.
        if error.__cause__ and not isinstance(error.__cause__, Exception):
            raise error.__cause__ from None
        if os.environ.get(DEBUG):
            raise
        what = f"unexpected {type(error).__name__}: {_one_line(error)}; this is a bug in headscope"
        return _complain(f"{what}, set {DEBUG}=1 to see where", 1)
    return left_out.end()


def _show_warning(
    others: Callable[..., None],
    told: set[str],
    message: Warning | str,
    category: type[Warning],
    *where: Any,
) -> None:
    """Print a warning of ours as a line, once in a command, and any other as Python does."""
    # What called our command is cyclopts, so that it is named where the command itself warns.
    if category is UserWarning and any(ours in str(where[0]) for ours in (PACKAGE, CALLER)):
        if str(message) not in told:
            sys.stderr.write(f"headscope: {message}\n")
        told.add(str(message))
    else:
        others(message, category, *where)


def _unread() -> int:
    """End without a message where the reader of our output has closed it, as ``head`` does."""
    # Output that Python still flushes at its end would fail once more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return UNREAD


def _terminate(number: int, frame: object) -> None:
    raise Terminated


def _deliver_again(
    others: Callable[[sys.UnraisableHookArgs], object], dropped: sys.UnraisableHookArgs
) -> None:
    """Interrupt again where a signal came while an object was being deleted: Python prints what is
    raised there, and goes on.
    """
    if not isinstance(dropped.exc_value, KeyboardInterrupt):
        others(dropped)
        return
    is_end = isinstance(dropped.exc_value, Terminated)
    number = signal.SIGTERM if is_end else signal.SIGINT
    # Later, and so outside of this function, in which it would be dropped as well.
    again = threading.Timer(INTERRUPTED_AGAIN_AFTER, _thread.interrupt_main, (number,))
    again.daemon = True
    again.start()


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _complain(line: str, code: int) -> int:
    print(f"headscope: {line}", file=sys.stderr)  # noqa: T201
    return code
