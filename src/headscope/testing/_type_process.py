"""Model types tried in processes of their own, several at once.

A model type that hangs, or takes its process down with it, costs that type and nothing else.
"""

from __future__ import annotations

import dataclasses
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from typing import Any

from headscope.testing._examine import Support

SECONDS = 120.0
"""What one model type may take; most take one or two."""
AT_ONCE = 20
"""Model types that a process tries before the next begins: imports are paid for once, and what
libraries keep of each model does not add up over hundreds.
"""
CHILD = "from headscope.testing._type_process import main; main()"


def examine_types(
    names: Sequence[str], *, batch_size: int = 2, workers: int = 1, seconds: float = SECONDS
) -> Iterator[Support]:
    """What can be captured of model types, in the order in which they are done.

    Args:
        names: of `every_type`.
        batch_size: how many texts, pictures or sounds each is given at once.
        workers: processes at once.
        seconds: what one model type may take.
    """
    waiting: queue.SimpleQueue[list[str]] = queue.SimpleQueue()
    for first in range(0, len(names), AT_ONCE):
        waiting.put(list(names[first : first + AT_ONCE]))
    done: queue.SimpleQueue[Support] = queue.SimpleQueue()
    for _ in range(workers):
        arguments = (waiting, done, batch_size, seconds)
        threading.Thread(target=_work, args=arguments, daemon=True).start()
    for _ in names:
        yield done.get()


def _work(
    waiting: queue.SimpleQueue[list[str]],
    done: queue.SimpleQueue[Support],
    batch_size: int,
    seconds: float,
) -> None:
    """Give lists of names to one process after the other until none is left."""
    while True:
        try:
            names = waiting.get_nowait()
        except queue.Empty:
            return
        while names:
            names = _in_one_process(names, done, batch_size, seconds)


def _in_one_process(
    names: list[str], done: queue.SimpleQueue[Support], batch_size: int, seconds: float
) -> list[str]:
    """The names that are left when the process has ended, by itself or by force."""
    # One thread each: processes that share cores wait for each other's threads.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", CHILD, str(batch_size), *names]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
    ) as child:
        left = list(names)
        late = threading.Event()
        for name in names:
            timer = threading.Timer(seconds, _end, (child, late))
            timer.start()
            line = child.stdout.readline() if child.stdout else ""
            timer.cancel()
            left = left[1:]
            if not line:
                why = f"it took more than {seconds:.0f} s" if late.is_set() else "its process died"
                done.put(Support(name, "", unbuilt=why))
                child.kill()
                break
            done.put(Support(**_with_tuples(json.loads(line))))
    return left


def _end(child: subprocess.Popen[str], late: threading.Event) -> None:
    late.set()
    child.kill()


def _with_tuples(values: dict[str, Any]) -> dict[str, Any]:
    """The fields of a `Support` as JSON has them, which knows lists only."""
    return {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }


def main() -> None:
    """Try the model types named on the command line, and print a line of JSON for each."""
    import contextlib

    import transformers

    from headscope.testing._every_type import examine_type

    transformers.logging.set_verbosity_error()
    batch_size, *names = sys.argv[1:]
    printed = sys.stdout
    for name in names:
        # Some models print while they are built, which would be taken for a result.
        with contextlib.redirect_stdout(sys.stderr):
            support = examine_type(name, batch_size=int(batch_size))
        print(json.dumps(dataclasses.asdict(support)), file=printed, flush=True)
