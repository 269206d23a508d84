"""Model types tried in processes of their own, several at once.

A model type that hangs, or takes its process down with it, costs that type and nothing else.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from copy import deepcopy
from dataclasses import replace
from typing import Any

from headscope.errors import ModelError
from headscope.testing._examine import READS_NOTHING, UNREADABLE, Support, examine
from headscope.testing._models import ARCHITECTURES, KINDS, sharpen, tiny_model
from headscope.testing._shrink import Shrinking

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
    """What can be captured of model types, some at a time, in the order in which they are done.

    Args:
        names: of `every_type`.
        batch_size: how many texts, pictures or sounds each is given at once.
        workers: processes at once.
        seconds: what one model type may take.
    """
    lists = [names[first : first + AT_ONCE] for first in range(0, len(names), AT_ONCE)]
    gone = threading.Event()
    with ThreadPoolExecutor(workers) as pool:
        tried = [pool.submit(_tried, own, batch_size, seconds, gone) for own in lists]
        try:
            for each in as_completed(tried):
                yield from each.result()
        finally:
            gone.set()


def _tried(
    names: Sequence[str], batch_size: int, seconds: float, gone: threading.Event
) -> list[Support]:
    """What one process after the other tells of some types, until each of them is tried or nobody
    waits any more.
    """
    done: list[Support] = []
    # One thread each: processes that share cores wait for each other's threads.
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    while (left := names[len(done) :]) and not gone.is_set():
        command = [sys.executable, "-W", "ignore", "-c", CHILD, str(batch_size), *left]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        with subprocess.Popen(command, **pipes, text=True, env=environment) as child:
            for name in left:
                began, timer = time.monotonic(), threading.Timer(seconds, child.kill)
                timer.start()
                line = child.stdout.readline() if child.stdout else ""
                timer.cancel()
                if not line:
                    is_late = time.monotonic() - began >= seconds
                    why = f"it took more than {seconds:.0f} s" if is_late else "its process died"
                    done.append(Support(name, "", unbuilt=why))
                    child.kill()
                    break
                # JSON knows lists only.
                read = json.loads(line).items()
                own: dict[str, Any] = {
                    each: tuple(v) if isinstance(v, list) else v for each, v in read
                }
                done.append(Support(**own))
    return done


def main() -> None:
    """Try the model types named on the command line, and print a line of JSON for each."""
    import contextlib

    import transformers

    transformers.logging.set_verbosity_error()
    batch_size, *names = sys.argv[1:]
    printed = sys.stdout
    for name in names:
        # Some models print while they are built, which would be taken for a result.
        with contextlib.redirect_stdout(sys.stderr):
            support = examine_type(name, batch_size=int(batch_size))
        print(json.dumps(dataclasses.asdict(support)), file=printed, flush=True)


SHRINKINGS = (*map(Shrinking, (8, 4, 16, 2)), Shrinking(8, side=None), Shrinking(1))
"""Tried in turn until a model is captured: a width must stay a multiple of the number of heads, of
the groups of a norm and the like, and the windows of a picture must fill it; these differ.
"""
MOST_PARAMETERS = 60_000_000
"""A model of more is not built: hundreds are tried, on two cores and within minutes."""
NO_ATTENTION = "computed no softmax attention"
FOLDER = re.compile(r"(?<=')[^']*site-packages/")
"""Start of a path in a message, up to the packages of this environment."""


def every_type() -> list[str]:
    """The architectures with a configuration of their own, and all other model types of the
    transformers that is installed.
    """
    from transformers import CONFIG_MAPPING

    known = {name.partition(" (")[0] for name in ARCHITECTURES}
    return [*ARCHITECTURES, *sorted(set(CONFIG_MAPPING.keys()) - known)]


def family_of(name: str) -> str:
    """The folder of transformers that a model type lies in, which those of one family share."""
    from transformers.models.auto.configuration_auto import model_type_to_module_name

    return model_type_to_module_name(name.partition(" (")[0])


def examine_type(name: str, *, batch_size: int = 2) -> Support:
    """What can be captured of an architecture or model type, found out with a tiny model of it.

    Args:
        name: one of `every_type`.
        batch_size: how many texts, pictures or sounds the batch holds.
    """
    if name in ARCHITECTURES:
        reads = next(kind for kind, names in KINDS.items() if name in names)
        try:
            model = tiny_model(name)
        except ModelError as error:  # of a transformers that is older than the architecture
            return Support(name, "", reads=reads, unbuilt=str(error))
        return replace(examine(model, name, batch_size=batch_size), reads=reads)
    return _first_captured(name, batch_size)


def _first_captured(name: str, batch_size: int) -> Support:
    """Of the first size in which the model type is captured; else why not, of the first tried."""
    refused: Support | None = None
    unbuilt = ""
    for shrinking in SHRINKINGS:
        # Hundreds of models of others, in sizes that nobody tried: they raise whatever they like.
        # What they warn of, such as positions that are numbered, is no reason to leave one out.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = _shrunk_model(name, shrinking)
                support = examine(model, name, batch_size=batch_size)
        except Exception as error:  # noqa: BLE001
            unbuilt = unbuilt or f"{type(error).__name__}: {_first_line(error)}"
            continue
        if not support.refused:
            return support
        if support.refused.startswith((UNREADABLE, READS_NOTHING)):
            unbuilt = unbuilt or support.refused
            continue
        refused = refused or support
        # Another size would bring no attention.
        if NO_ATTENTION in support.refused:
            break
    return refused or Support(name, "", unbuilt=unbuilt)


def _shrunk_model(name: str, shrinking: Shrinking) -> Any:
    """A tiny model with random weights.

    Raises:
        ModelError: where it is too large still.
        Exception: whatever the model raises for the sizes it is given.
    """
    import torch

    config = shrinking.configuration(name)
    make = _maker_of(config)
    with torch.device("meta"):  # counts the weights without making them
        # Of a copy: a model writes its choice of attention into its configuration.
        parameters = sum(each.numel() for each in make(deepcopy(config)).parameters())
    if parameters > MOST_PARAMETERS:
        raise ModelError(f"its smallest model has {parameters / 1e6:.0f} million weights")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make(config).eval()
        sharpen(model)
    return model


def _maker_of(config: Any) -> Any:
    """What makes a model of a configuration: transformers' automatic classes, or for a part of
    another model the class that names its configuration.
    """
    from transformers import AutoModel, PreTrainedModel

    from headscope.capturing import loader_of

    for loader in (loader_of(config), AutoModel):
        if type(config) in loader._model_mapping:
            return loader.from_config
    name = type(config).__module__.replace("configuration_", "modeling_")
    candidates = []
    for each in vars(importlib.import_module(name)).values():
        is_model = inspect.isclass(each) and issubclass(each, PreTrainedModel)
        if is_model and each.config_class is type(config) and "PreTrained" not in each.__name__:
            candidates.append(each)
    if not candidates:
        raise LookupError(f"no model has {type(config).__name__} as its configuration")
    # The bare model before those with a head for some task.
    candidates.sort(key=lambda each: (not each.__name__.endswith("Model"), len(each.__name__)))
    return candidates[0]._from_config


def _first_line(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    # Without the folder of this environment, so that the table is the same on every machine.
    return FOLDER.sub("", lines[0].strip()) if lines else ""


UNTRIED = """\
## Not tried

No tiny model of these could be made, or nothing made up could be read by it. The real model
may work: `headscope support MODEL` tries it.

| family | model type | why |
| --- | --- | --- |"""
REFUSED = """\
## Refused

| family | model type | class | reason |
| --- | --- | --- | --- |"""
HEADER = """\
| family | model type | class | stacks: layers x heads, kind | route | layer output | weights |
| --- | --- | --- | --- | --- | ---: | ---: |"""
MOST_OF_A_REASON = 200
"""Characters of a reason: some libraries explain at length how a missing package is installed."""


def support_tables(rows: Sequence[Support]) -> str:
    """The tables of what is captured by what it reads, then what is refused, then what could not be
    tried; a single model has one row without a heading.

    Args:
        rows: of `examine_types`, in any order; or one, of `examine`.
    """
    if len(rows) == 1 and not rows[0].refused:
        return f"{HEADER}\n{_row(rows[0])}"
    by_head: dict[str, list[Support]] = {f"## {kind}\n\n{HEADER}": [] for kind in KINDS}
    by_head |= {REFUSED: [], UNTRIED: []}
    for row in sorted(rows, key=lambda row: (family_of(row.name).lower(), row.name.lower())):
        failed = REFUSED if row.refused else ""
        head = UNTRIED if row.unbuilt else failed
        by_head.setdefault(head or f"## {row.reads}\n\n{HEADER}", []).append(row)
    return "\n\n".join("\n".join([head, *map(_row, own)]) for head, own in by_head.items() if own)


def _row(row: Support) -> str:
    cells = [family_of(row.name), row.name]
    if row.unbuilt or row.refused:
        # A bar would end the cell of the table.
        why = " ".join((row.unbuilt or row.refused).replace("|", "/").split())
        short = why if len(why) <= MOST_OF_A_REASON else f"{why[:MOST_OF_A_REASON]} ..."
        cells += [short] if row.unbuilt else [row.class_name, short]
    else:
        cells += [row.class_name, "; ".join(row.stacks), ", ".join(row.routes)]
        for number in (row.output_difference, row.weights_difference):
            cells.append("-" if number is None else f"{number:.0e}")
        cells[-1] += f" ({row.remark})" if row.remark else ""
    return f"| {' | '.join(cells)} |"
